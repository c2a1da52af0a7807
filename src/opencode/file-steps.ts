import { join, normalize } from "node:path";
import * as z from "zod/mini";
import type { FileContent } from "../engine/server-model.ts";
import { tryParse } from "./validation.ts";

/*
 * Reads file changes from the server's messages. In a Git repository the server takes a snapshot of the session's
 * folder around each step (one answer of the model and the tools it calls). The step's `patch` part names the files
 * that differ. The user message's `summary.diffs` has the differences over all finished steps of the turn, with
 * complete files. Changes that snapshots do not show (in unfinished steps, ignored files, folders without Git) are read
 * from the tools.
 */

const snapshotDiff = z.object({
  file: z.string(),
  /** Empty for a binary file. */
  patch: z.string(),
  status: z.enum(["added", "deleted", "modified"]),
});
type SnapshotDiff = z.infer<typeof snapshotDiff>;

/** Messages, with the properties that concern files. */
export const rawMessages = z.array(
  z.object({
    info: z.object({
      role: z.string(),
      time: z.object({ created: z.number(), completed: z.optional(z.number()) }),
      path: z.optional(z.object({ root: z.string() })),
      // In an assistant message, this only says whether it is a summary.
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

/** Tools that report which files they wrote. */
const WRITING_TOOLS: ReadonlySet<string> = new Set(["edit", "write", "apply_patch"]);
/** Tools that change no files, as our own tools. Any other tool may change any file. */
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
/** Separates the changed places in an excerpt. */
export const GAP = "⋯\n";
/** A period, in milliseconds since 1970. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** What the session changed in one file. */
export interface Change {
  readonly path: string;
  readonly before: FileContent;
  readonly after: FileContent;
  /** See {@link SessionChanges}. */
  readonly isDoubtful: boolean;
}

/** What a tool changed in one file, and when. */
type Write = Change & Span;

/** One answer of the model and the tools it called, with the properties that concern files. */
export interface FileStep extends Span {
  readonly writes: readonly Write[];
  /** The tools that may have changed files without reporting them. */
  readonly commands: readonly string[];
  /** The files that differ between the snapshots before and after it. */
  readonly patched: ReadonlySet<string>;
  /** The patched files that only its commands can have changed. */
  readonly guesses: readonly string[];
  /** Whether there is a snapshot before it. False if the server takes no snapshots. */
  readonly hasSnapshot: boolean;
  /** Whether there is a snapshot after it too, so that the turn's differences include the step. */
  readonly isInSnapshot: boolean;
}

/** A prompt and the steps of its answer. */
export interface TurnSteps {
  /** The differences over all its finished steps, with absolute paths. */
  readonly diffs: readonly (SnapshotDiff & { readonly path: string })[];
  readonly steps: readonly FileStep[];
}

/** Brings a path into the form in which it is compared. */
export type PathForm = (path: string) => string;

/** Where the file system ignores case: each path is given as it was written first. */
export function ignoringCase(): PathForm {
  const first = new Map<string, string>();
  return (path) => {
    const key = normalize(path).toLowerCase();
    const known = first.get(key) ?? normalize(path);
    first.set(key, known);
    return known;
  };
}

export function turnsOf(
  messages: readonly RawMessage[],
  since: number,
  form: PathForm = normalize,
): readonly TurnSteps[] {
  const turns: { diffs: readonly unknown[]; answers: RawMessage[] }[] = [];
  for (const message of messages) {
    const { role, time, summary } = message.info;
    if (time.created < since) continue;
    if (role === "user") turns.push({ diffs: tryParse(userSummary, summary)?.diffs ?? [], answers: [] });
    // The newest messages of a long conversation may begin within a turn.
    else if (turns.length === 0) turns.push({ diffs: [], answers: [message] });
    else turns.at(-1)?.answers.push(message);
  }
  const all = turns.flatMap(({ answers }) => answers);
  // A step that was interrupted with its server is never completed, but it isn't going on beside a later one.
  const endOf = (answer: RawMessage): number =>
    answer.info.time.completed ??
    (all[all.indexOf(answer) + 1]?.info.time.created ?? Number.POSITIVE_INFINITY) - 1;
  return turns.map(({ diffs, answers }) => {
    /** The folder that the snapshots cover. */
    const { root = "" } = answers.findLast(({ info }) => info.path)?.info.path ?? {};
    return {
      diffs: diffs
        .flatMap((diff) => tryParse(snapshotDiff, diff) ?? [])
        .map((diff) => ({ ...diff, path: form(join(root, diff.file)) })),
      steps: answers.map((answer) => stepOf(answer, endOf(answer), form)),
    };
  });
}

function stepOf({ info: { time }, parts }: RawMessage, end: number, form: PathForm): FileStep {
  const tools = parts.flatMap((part) => tryParse(toolPart, part) ?? []);
  const marks = parts.flatMap((part) => tryParse(snapshotMark, part) ?? []);
  const patched = parts.flatMap((part) => tryParse(patchPart, part)?.files ?? []).map((file) => form(file));
  const writes = tools.flatMap((tool) => writesOf(tool, form));
  const commands = tools.map(({ tool }) => tool).filter(isCommand);
  return {
    start: time.created,
    end,
    writes,
    commands,
    patched: new Set(patched),
    guesses:
      commands.length === 0 ? [] : patched.filter((path) => !writes.some((write) => write.path === path)),
    hasSnapshot: marks.length > 0,
    isInSnapshot: marks.some(({ type }) => type === "step-finish"),
  };
}

/** Whether a tool may change files without reporting them. */
function isCommand(tool: string): boolean {
  return !HARMLESS_TOOLS.has(tool) && !WRITING_TOOLS.has(tool) && !tool.startsWith(OWN_TOOL);
}

function writesOf({ tool, state }: ToolPart, form: PathForm): readonly Write[] {
  if (state.status !== "completed") return [];
  const at = state.time?.end ?? 0;
  const write = (path: string, before: FileContent, after: FileContent): Write => ({
    path: form(path),
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

/** A snapshot's patch contains all lines of the file. */
export function contents({ patch, status }: SnapshotDiff): Pick<Change, "before" | "after"> {
  const content = (side: Side): FileContent =>
    patch === "" ? { kind: "binary" } : { kind: "text", text: hunks(patch, side).join("") };
  return {
    before: status === "added" ? ABSENT : content("-"),
    after: status === "deleted" ? ABSENT : content("+"),
  };
}

/** A tool's patch contains a few lines around each change, without their common indentation. */
function excerpt(patch: string, side: Side): FileContent {
  return { kind: "excerpt", text: hunks(patch, side).join(GAP) };
}

/** A side of a patch: before or after. */
type Side = "-" | "+";

/** The text on one side of each hunk of a unified patch. */
function hunks(patch: string, side: Side): readonly string[] {
  const [, ...found] = patch.split(/^@@ .*\n?/m);
  return found.map((hunk) =>
    hunk
      // A marker that a line has no line break at its end stays with that line.
      .split(/\n(?!\\)/)
      .filter((line) => line.startsWith(" ") || line.startsWith(side))
      .map((line) => (line.includes("\n") ? line.slice(1, line.indexOf("\n")) : `${line.slice(1)}\n`))
      .join(""),
  );
}
