import { join, normalize } from "node:path";
import * as z from "zod/mini";
import type { FileChange, FileContent, Session, SessionChanges } from "../engine/server-model.ts";
import { tryParse } from "./validation.ts";

/*
 * Which files a session changed, from what the server keeps of it. In a Git repository the server takes a snapshot of
 * the session's folder around each step (one answer of the model and the tools it calls): the step's `patch` part names
 * the files that differ, and the user message's `summary.diffs` has the difference over all finished steps of the turn,
 * with whole files. Both tell what changed in the folder, whoever did it, so each is held against the tools of the step.
 * What snapshots do not see (an unfinished step, an ignored file, a folder without Git) only the tools tell.
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
/** Works in a session of its own below this one. */
const SUBAGENT_TOOL = "task";

const ABSENT: FileContent = { kind: "absent" };
const UNKNOWN: FileContent = { kind: "unknown" };
/** Stands between the changed places of an excerpt. */
const GAP = "⋯\n";
/** Messages of another session that are looked through for what it did meanwhile. */
const OTHERS_MESSAGES = 200;
/** Other sessions that are read at a time: a folder can have hundreds, and whole messages are large. */
const OTHERS_AT_ONCE = 4;

/** What a tool did to one file. */
interface Write {
  readonly path: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly before: FileContent;
  readonly after: FileContent;
}

/** One answer of the model with the tools it called, as far as files are concerned. */
interface Step {
  readonly start: number;
  readonly end: number;
  readonly writes: readonly Write[];
  /** The files that differ between the snapshots around it. */
  readonly patched: ReadonlySet<string>;
  /** Whether the snapshot before it was taken; false: the server takes none. */
  readonly hasSnapshot: boolean;
  /** Whether the one after it was taken as well, so that the turn's difference has it. */
  readonly isInSnapshot: boolean;
  readonly tools: readonly string[];
}

/** A step of another session of the folder. */
interface OtherStep extends Step {
  readonly sessionID: string;
  /** Whether that session is at work now. */
  readonly isBusy: boolean;
}

/** A prompt and the steps that answer it. */
interface Turn {
  readonly diffs: readonly SnapshotDiff[];
  readonly steps: Step[];
  /** The folder that the snapshots are of. */
  root: string;
}

/** The calls by which a session's changes are found out. */
export interface ChangeSource {
  /** The newest `limit` ones, or all. */
  messages(sessionID: string, limit?: number): Promise<readonly RawMessage[]>;
  sessions(): Promise<readonly Session[]>;
  /** The sessions that are at work, by their IDs. */
  statuses(): Promise<ReadonlyMap<string, unknown>>;
}

/** The files that a session changed since then (milliseconds since 1970). */
export async function sessionChanges(
  source: ChangeSource,
  sessionID: string,
  since: number,
): Promise<SessionChanges> {
  const turns = turnsOf(await source.messages(sessionID), since);
  const steps = turns.flatMap((turn) => turn.steps);
  const hasChanged = steps.some((step) => step.writes.length > 0 || guessed(step).length > 0);
  const others = hasChanged ? await stepsOfOthers(source, sessionID, steps) : [];
  const files = new Map<string, ChangingFile>();
  for (const turn of turns) takeIn(turn, files, others);
  return {
    files: [...files]
      .map(([path, { from, to, isBroken, ...file }]) => ({
        path,
        ...file,
        isMixed: isBroken || isForeign(path, from, to, steps, others),
        workedOnBy: workersOn(path, steps, others),
      }))
      .filter(({ before, after }) => !(before.kind === "absent" && after.kind === "absent"))
      .filter(({ before, after }) => !isSameText(before, after))
      .sort((a, b) => (a.path < b.path ? -1 : 1)),
    hasSnapshots: steps.length === 0 || steps.some(({ hasSnapshot }) => hasSnapshot),
  };
}

/** A file as far as the turns that were looked at tell. */
interface ChangingFile extends Pick<FileChange, "before" | "after" | "isDoubtful"> {
  /** When the first turn that changed it began and the last one ended, in milliseconds since 1970. */
  readonly from: number;
  readonly to: number;
  /** What one turn left is not what the next one found. */
  readonly isBroken: boolean;
}

/** Adds what the session did in one turn. */
function takeIn(turn: Turn, files: Map<string, ChangingFile>, others: readonly Step[]): void {
  const add = (path: string, before: FileContent, after: FileContent, isDoubtful = false): void => {
    const known = files.get(path);
    const first = known?.before ?? before;
    files.set(path, {
      from: known?.from ?? turn.steps[0]?.start ?? 0,
      to: turn.steps.at(-1)?.end ?? Number.POSITIVE_INFINITY,
      isBroken: known !== undefined && (known.isBroken || isOtherText(known.after, before)),
      // An excerpt cannot be held against a whole file.
      before: first.kind === "excerpt" && after.kind === "text" ? UNKNOWN : first,
      after,
      isDoubtful: known ? known.isDoubtful && isDoubtful : isDoubtful,
    });
  };
  const own = ownFiles(turn, others);
  for (const diff of turn.diffs) {
    const path = pathOf(diff, turn);
    const isDoubtful = own.get(path);
    if (isDoubtful === undefined) continue;
    const [before, after] = diff.patch === "" ? binary(diff) : wholeFiles(diff);
    add(path, before, after, isDoubtful);
  }
  for (const step of turn.steps) {
    for (const { path, before, after } of step.writes)
      if (!(step.isInSnapshot && step.patched.has(path))) extend(path, before, after);
    if (!step.isInSnapshot)
      for (const path of guessed(step)) if (own.has(path)) add(path, UNKNOWN, UNKNOWN, own.get(path));
  }

  /** What a tool tells of a change that no snapshot has. */
  function extend(path: string, before: FileContent, after: FileContent): void {
    const known = files.get(path);
    if (!known || after.kind !== "excerpt") add(path, before, after);
    else if (known.before.kind === "excerpt" && known.after.kind === "excerpt" && before.kind === "excerpt")
      files.set(path, {
        ...known,
        before: { kind: "excerpt", text: known.before.text + GAP + before.text },
        after: { kind: "excerpt", text: known.after.text + GAP + after.text },
      });
    else add(path, before, UNKNOWN);
  }
}

/** The files that the session itself changed in a turn, by path, and whether that is in doubt. */
function ownFiles(turn: Turn, others: readonly Step[]): ReadonlyMap<string, boolean> {
  const own = new Map<string, boolean>();
  const addGuess = (path: string, isDoubtful: boolean): void =>
    void own.set(path, isDoubtful && own.get(path) !== false);
  for (const step of turn.steps)
    for (const path of guessed(step)) {
      const verdict = judge(path, step, others);
      if (verdict !== "another's") addGuess(path, verdict === "doubtful");
    }
  // Of a file that was renamed the steps name the new name only.
  const added = turn.diffs.find((diff) => diff.status === "added" && own.has(pathOf(diff, turn)));
  if (added)
    for (const diff of turn.diffs) {
      const path = pathOf(diff, turn);
      if (diff.status === "deleted" && !turn.steps.some(({ patched }) => patched.has(path)))
        addGuess(path, own.get(pathOf(added, turn)) === true);
    }
  for (const { writes } of turn.steps) for (const { path } of writes) own.set(path, false);
  return own;
}

function pathOf({ file }: SnapshotDiff, { root }: Turn): string {
  return join(root, file);
}

/** Files that changed in a step which ran something that may change any file. */
function guessed({ tools, patched, writes }: Step): readonly string[] {
  if (!tools.some(isCommand)) return [];
  return [...patched].filter((path) => !writes.some((write) => write.path === path));
}

function judge(path: string, step: Step, others: readonly Step[]): "own" | "another's" | "doubtful" {
  const isDuring = (at: number): boolean => at >= step.start && at <= step.end;
  if (others.some(({ writes }) => writes.some((write) => write.path === path && isDuring(write.at))))
    return "another's";
  const isShared = others.some(
    ({ tools, start, end }) =>
      start <= step.end &&
      end >= step.start &&
      tools.some((tool) => isCommand(tool) && tool !== SUBAGENT_TOOL),
  );
  return isShared ? "doubtful" : "own";
}

/** Whether a tool may change files without saying which. */
function isCommand(tool: string): boolean {
  return !HARMLESS_TOOLS.has(tool) && !WRITING_TOOLS.has(tool) && !tool.startsWith(OWN_TOOL);
}

/** Whether somebody else changed a file while the session did, or between two turns in which it did. */
function isForeign(
  path: string,
  from: number,
  to: number,
  own: readonly Step[],
  others: readonly OtherStep[],
): boolean {
  const isMeanwhile = ({ start, end }: Step): boolean => start <= to && end >= from;
  return (
    // It changed during a step whose tools did not change it.
    own.some((step) => isMeanwhile(step) && step.patched.has(path) && !mayHaveChanged(step, path)) ||
    others.some(
      (step) =>
        step.writes.some((write) => write.path === path && write.at >= from && write.at <= to) ||
        (isMeanwhile(step) && guessed(step).includes(path) && judge(path, step, own) !== "another's"),
    )
  );
}

function mayHaveChanged(step: Step, path: string): boolean {
  return step.tools.some(isCommand) || step.writes.some((write) => write.path === path);
}

/** The other sessions at work that have changed a file, or may have. */
function workersOn(path: string, own: readonly Step[], others: readonly OtherStep[]): readonly string[] {
  const workers = others.filter(
    (step) =>
      step.isBusy &&
      (step.writes.some((write) => write.path === path) ||
        (guessed(step).includes(path) && judge(path, step, own) !== "another's")),
  );
  return [...new Set(workers.map(({ sessionID }) => sessionID))];
}

/**
 * What other sessions of the folder did meanwhile, and what those did that are at work now. A subagent that is no task
 * of its own works for its parent.
 */
async function stepsOfOthers(
  source: ChangeSource,
  sessionID: string,
  steps: readonly Step[],
): Promise<readonly OtherStep[]> {
  const start = Math.min(...steps.map((step) => step.start));
  const end = Math.max(...steps.map((step) => step.end));
  const [sessions, busy] = await Promise.all([source.sessions(), source.statuses()]);
  const byID = new Map(sessions.map((session) => [session.id, session]));
  const worksForIt = ({ id, parentID, task }: Session): boolean => {
    const parent = task.kind === "none" && parentID !== undefined ? byID.get(parentID) : undefined;
    return id === sessionID || (parent !== undefined && worksForIt(parent));
  };
  const others = sessions.filter(
    (session) =>
      ((session.created <= end && session.updated >= start) || busy.has(session.id)) && !worksForIt(session),
  );
  const found: (readonly OtherStep[])[] = [];
  const waiting = others.entries();
  const read = async (): Promise<void> => {
    for (const [index, { id }] of waiting) {
      // One that is deleted meanwhile tells nothing any more.
      const messages = await source.messages(id, OTHERS_MESSAGES).catch(() => []);
      const steps = turnsOf(messages, 0).flatMap((turn) => turn.steps);
      found[index] = steps.map((step) => ({ ...step, sessionID: id, isBusy: busy.has(id) }));
    }
  };
  await Promise.all(Array.from({ length: OTHERS_AT_ONCE }, read));
  return found.flat();
}

function turnsOf(messages: readonly RawMessage[], since: number): readonly Turn[] {
  const turns: Turn[] = [];
  for (const message of messages) {
    const { role, time, path, summary } = message.info;
    if (time.created < since) continue;
    if (role === "user") {
      const diffs = tryParse(userSummary, summary)?.diffs ?? [];
      turns.push({ diffs: diffs.flatMap((diff) => tryParse(snapshotDiff, diff) ?? []), steps: [], root: "" });
      continue;
    }
    // The newest messages of a long conversation can begin amid a turn.
    const turn = turns.at(-1) ?? { diffs: [], steps: [], root: "" };
    if (turns.length === 0) turns.push(turn);
    turn.steps.push(stepOf(message));
    if (path) turn.root = path.root;
  }
  return turns;
}

function stepOf({ info: { time }, parts }: RawMessage): Step {
  const tools = parts.flatMap((part) => tryParse(toolPart, part) ?? []);
  const marks = parts.flatMap((part) => tryParse(snapshotMark, part) ?? []);
  return {
    start: time.created,
    end: time.completed ?? Number.POSITIVE_INFINITY,
    writes: tools.flatMap((tool) => writesOf(tool)),
    patched: new Set(
      parts.flatMap((part) => tryParse(patchPart, part)?.files ?? []).map((file) => normalize(file)),
    ),
    hasSnapshot: marks.length > 0,
    isInSnapshot: marks.some(({ type }) => type === "step-finish"),
    tools: tools.map(({ tool }) => tool),
  };
}

function writesOf({ tool, state }: ToolPart): readonly Write[] {
  if (state.status !== "completed") return [];
  const at = state.time?.end ?? 0;
  const write = (path: string, before: FileContent, after: FileContent): Write => ({
    path: normalize(path),
    at,
    before,
    after,
  });
  switch (tool) {
    case "edit": {
      const edit = tryParse(editMetadata, state.metadata)?.filediff;
      return edit ? [write(edit.file, ...excerpts(edit.patch))] : [];
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
          const [before, after] = excerpts(patch);
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

function binary({ status }: SnapshotDiff): [FileContent, FileContent] {
  const content: FileContent = { kind: "binary" };
  return [status === "added" ? ABSENT : content, status === "deleted" ? ABSENT : content];
}

/** A snapshot's patch has all lines of the file. */
function wholeFiles({ patch, status }: SnapshotDiff): [FileContent, FileContent] {
  const [before, after] = sides(patch);
  return [
    status === "added" ? ABSENT : { kind: "text", text: before.join("") },
    status === "deleted" ? ABSENT : { kind: "text", text: after.join("") },
  ];
}

/** A tool's patch has a few lines around each change, without the indentation that all of them share. */
function excerpts(patch: string): [FileContent, FileContent] {
  const [before, after] = sides(patch);
  return [
    { kind: "excerpt", text: before.join(GAP) },
    { kind: "excerpt", text: after.join(GAP) },
  ];
}

/** Both sides of a unified patch: for each of its hunks the text that it finds, and the one that it leaves. */
function sides(patch: string): [before: string[], after: string[]] {
  const before: string[] = [];
  const after: string[] = [];
  let last = " ";
  let inHunk = false;
  for (const line of patch.split("\n")) {
    const [mark = ""] = line;
    if (line.startsWith("@@ ")) {
      inHunk = true;
      before.push("");
      after.push("");
    } else if (!inHunk) {
      continue;
    } else if (mark === "\\") {
      // The line before this one ends without a line break.
      if (last !== "+") chop(before);
      if (last !== "-") chop(after);
    } else if (mark === " " || mark === "-" || mark === "+") {
      const text = `${line.slice(1)}\n`;
      if (mark !== "+") before[before.length - 1] += text;
      if (mark !== "-") after[after.length - 1] += text;
      last = mark;
    }
  }
  return [before, after];
}

function chop(texts: string[]): void {
  texts[texts.length - 1] = texts.at(-1)?.slice(0, -1) ?? "";
}

function isSameText(one: FileContent, other: FileContent): boolean {
  return one.kind === "text" && other.kind === "text" && one.text === other.text;
}

function isOtherText(one: FileContent, other: FileContent): boolean {
  return one.kind === "text" && other.kind === "text" && one.text !== other.text;
}
