import { join, normalize } from "node:path";
import * as z from "zod/mini";
import type { FileContent } from "../engine/server-model.ts";
import { tryParse } from "./validation.ts";

/*
 * What the server keeps of a conversation, as far as it tells of files. In a Git repository the server takes a snapshot of
 * the session's folder around each step (one answer of the model and the tools it calls): the step's `patch` part names
 * the files that differ, and the user message's `summary.diffs` has the difference over all finished steps of the turn,
 * with whole files. What snapshots do not see (an unfinished step, an ignored file, a folder without Git) only the tools
 * tell.
 */

const snapshotDiff = z.object({
  file: z.string(),
  /** Empty: a binary file. */
  patch: z.string(),
  status: z.enum(["added", "deleted", "modified"]),
});
type SnapshotDiff = z.infer<typeof snapshotDiff>;

/** A conversation, as far as it tells of files. */
export const rawMessages = z.array(
  z.object({
    info: z.object({
      role: z.string(),
      time: z.object({ created: z.number(), completed: z.optional(z.number()) }),
      path: z.optional(z.object({ root: z.string() })),
      // Of an assistant's message it only says whether that is a summary.
      summary: z.optional(z.unknown()),
    }),
    parts: z.array(z.unknown()),
  }),
);
export type RawMessage = z.infer<typeof rawMessages>[number];

const userSummary = z.object({ diffs: z.array(z.unknown()) });
const snapshotMark = z.object({ type: z.enum(["step-start", "step-finish"]), snapshot: z.string() });
const patchPart = z.object({ type: z.literal("patch"), files: z.array(z.string()) });
const toolPart = z.object({
  type: z.literal("tool"),
  tool: z.string(),
  state: z.object({
    status: z.string(),
    input: z.optional(z.unknown()),
    metadata: z.optional(z.unknown()),
    time: z.optional(z.object({ end: z.optional(z.number()) })),
  }),
});
type ToolPart = z.infer<typeof toolPart>;

const editMetadata = z.object({ filediff: z.object({ file: z.string(), patch: z.string() }) });
const writeMetadata = z.object({ filepath: z.string(), exists: z.boolean() });
const writeInput = z.object({ content: z.string() });
const patchMetadata = z.object({
  files: z.array(
    z.object({
      filePath: z.string(),
      type: z.enum(["add", "update", "delete", "move"]),
      patch: z.string(),
      movePath: z.optional(z.string()),
    }),
  ),
});

/** Tools that say which files they wrote. */
const WRITING_TOOLS: ReadonlySet<string> = new Set(["edit", "write", "apply_patch"]);
/** Tools that change no file, as ours do. Any other one may change every file. */
const HARMLESS_TOOLS: ReadonlySet<string> = new Set([
  "codesearch",
  "glob",
  "grep",
  "invalid",
  "list",
  "lsp",
  "plan_exit",
  "question",
  "read",
  "skill",
  "todoread",
  "todowrite",
  "webfetch",
  "websearch",
]);
const OWN_TOOL = "asyncagents_";

const ABSENT: FileContent = { kind: "absent" };
export const UNKNOWN: FileContent = { kind: "unknown" };
/** Stands between the changed places of an excerpt. */
export const GAP = "⋯\n";
/** A time, in milliseconds since 1970. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** What the session did to one file. */
export interface Change {
  readonly path: string;
  readonly before: FileContent;
  readonly after: FileContent;
  /** As in {@link SessionChanges}. */
  readonly isDoubtful: boolean;
}

/** What a tool did to one file, and when it had. */
type Write = Change & Span;

/** One answer of the model with the tools it called, as far as files are concerned. */
export interface Step extends Span {
  readonly writes: readonly Write[];
  /** The tools that may have changed files without saying which. */
  readonly commands: readonly string[];
  /** The files that differ between the snapshots around it. */
  readonly patched: ReadonlySet<string>;
  /** Those of them that its commands may have changed, and no other tool has. */
  readonly guesses: readonly string[];
  /** Whether the snapshot before it was taken; false: the server takes none. */
  readonly hasSnapshot: boolean;
  /** Whether the one after it was taken as well, so that the turn's difference has it. */
  readonly isInSnapshot: boolean;
}

/** A prompt and the steps that answer it. */
export interface Turn {
  /** What differs over all its finished steps, by absolute paths. */
  readonly diffs: readonly (SnapshotDiff & { readonly path: string })[];
  readonly steps: readonly Step[];
}

export function turnsOf(messages: readonly RawMessage[], since: number): readonly Turn[] {
  const turns: { diffs: readonly unknown[]; answers: RawMessage[] }[] = [];
  for (const message of messages) {
    const { role, time, summary } = message.info;
    if (time.created < since) continue;
    if (role === "user") turns.push({ diffs: tryParse(userSummary, summary)?.diffs ?? [], answers: [] });
    // The newest messages of a long conversation can begin amid a turn.
    else if (turns.length === 0) turns.push({ diffs: [], answers: [message] });
    else turns.at(-1)?.answers.push(message);
  }
  return turns.map(({ diffs, answers }) => {
    /** The folder that the snapshots are of. */
    const { root = "" } = answers.findLast(({ info }) => info.path)?.info.path ?? {};
    return {
      diffs: diffs
        .flatMap((diff) => tryParse(snapshotDiff, diff) ?? [])
        .map((diff) => ({ ...diff, path: join(root, diff.file) })),
      steps: answers.map(stepOf),
    };
  });
}

function stepOf({ info: { time }, parts }: RawMessage): Step {
  const tools = parts.flatMap((part) => tryParse(toolPart, part) ?? []);
  const marks = parts.flatMap((part) => tryParse(snapshotMark, part) ?? []);
  const patched = parts
    .flatMap((part) => tryParse(patchPart, part)?.files ?? [])
    .map((file) => normalize(file));
  const writes = tools.flatMap(writesOf);
  const commands = tools.map(({ tool }) => tool).filter(isCommand);
  return {
    start: time.created,
    end: time.completed ?? Number.POSITIVE_INFINITY,
    writes,
    commands,
    patched: new Set(patched),
    guesses:
      commands.length === 0 ? [] : patched.filter((path) => !writes.some((write) => write.path === path)),
    hasSnapshot: marks.length > 0,
    isInSnapshot: marks.some(({ type }) => type === "step-finish"),
  };
}

/** Whether a tool may change files without saying which. */
function isCommand(tool: string): boolean {
  return !HARMLESS_TOOLS.has(tool) && !WRITING_TOOLS.has(tool) && !tool.startsWith(OWN_TOOL);
}

function writesOf({ tool, state }: ToolPart): readonly Write[] {
  if (state.status !== "completed") return [];
  const at = state.time?.end ?? 0;
  const write = (path: string, before: FileContent, after: FileContent): Write => ({
    path: normalize(path),
    before,
    after,
    isDoubtful: false,
    start: at,
    end: at,
  });
  switch (tool) {
    case "edit": {
      const edit = tryParse(editMetadata, state.metadata)?.filediff;
      return edit ? [write(edit.file, excerpt(edit.patch, "-"), excerpt(edit.patch, "+"))] : [];
    }
    case "write": {
      const written = tryParse(writeMetadata, state.metadata);
      const input = tryParse(writeInput, state.input);
      if (!written || !input) return [];
      const after: FileContent = { kind: "text", text: input.content };
      return [write(written.filepath, written.exists ? UNKNOWN : ABSENT, after)];
    }
    case "apply_patch":
      return (tryParse(patchMetadata, state.metadata)?.files ?? []).flatMap(
        ({ filePath, type, patch, movePath }) => {
          const [before, after] = [excerpt(patch, "-"), excerpt(patch, "+")];
          if (type === "update") return [write(filePath, before, after)];
          if (type === "add") return [write(filePath, ABSENT, after)];
          const removal = write(filePath, before, ABSENT);
          return movePath === undefined ? [removal] : [removal, write(movePath, ABSENT, after)];
        },
      );
    default:
      return [];
  }
}

/** A snapshot's patch has all lines of the file. */
export function contents({ patch, status }: SnapshotDiff): Pick<Change, "before" | "after"> {
  const content = (side: Side): FileContent =>
    patch === "" ? { kind: "binary" } : { kind: "text", text: hunks(patch, side).join("") };
  return {
    before: status === "added" ? ABSENT : content("-"),
    after: status === "deleted" ? ABSENT : content("+"),
  };
}

/** A tool's patch has a few lines around each change, without the indentation that all of them share. */
function excerpt(patch: string, side: Side): FileContent {
  return { kind: "excerpt", text: hunks(patch, side).join(GAP) };
}

/** Of a patch: what it finds, or what it leaves. */
type Side = "-" | "+";

/** The text on one side of each hunk of a unified patch. */
function hunks(patch: string, side: Side): readonly string[] {
  const [, ...found] = patch.split(/^@@ .*\n?/m);
  return found.map((hunk) =>
    hunk
      // What says that a line ends without a line break stays with that line.
      .split(/\n(?!\\)/)
      .filter((line) => line.startsWith(" ") || line.startsWith(side))
      .map((line) => (line.includes("\n") ? line.slice(1, line.indexOf("\n")) : `${line.slice(1)}\n`))
      .join(""),
  );
}
