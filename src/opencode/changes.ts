import { lstat } from "node:fs/promises";
import { normalize } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fewAtOnce } from "../engine/few-at-once.ts";
import { ServerFailure } from "../engine/ports.ts";
import type { FileContent, Session, SessionChanges, UserSave } from "../engine/server-model.ts";
import {
  contents,
  GAP,
  ignoringCase,
  turnsOf,
  UNKNOWN,
  type Change,
  type RawMessage,
  type Span,
  type FileStep,
  type TurnSteps,
} from "./file-steps.ts";
import { SUBAGENT_TOOL } from "./schemas.ts";

/*
 * Determines which files a session changed. Snapshots show what changed in the folder, but not who changed it, so each
 * difference is compared with the tools of the step and with what other sessions did at the same time.
 */

/** How many messages of another session are read at first to find simultaneous changes, and the factor if they are too few. */
const OTHERS_MESSAGES = 200;
const MORE_MESSAGES = 8;
/** How many other sessions are read at a time: a folder can have hundreds, and complete messages are large. */
const OTHERS_AT_ONCE = 4;

/** How long the server may take to sum up which files a step changed, which it does after the step, in milliseconds. */
const SUMMING_UP_MS = 3_000;
const FIRST_PAUSE_MS = 100;

/** How far the times of files and messages can differ, in milliseconds. */
const CLOCKS_MS = 2_000;

/** A step of another session of the folder. */
interface OtherStep extends FileStep {
  readonly sessionID: string;
  /** Whether that session is running now. */
  readonly isBusy: boolean;
  /** Whether it can't be read what was done in this time. */
  readonly isUnknown: boolean;
}

const NO_STEP = {
  ...{ writes: [], commands: [], patched: new Set<string>(), guesses: [] },
  ...{ hasSnapshot: false, isInSnapshot: false },
};

/** The calls needed to determine a session's changes. */
export interface ChangeSource {
  /** The newest `limit` messages, or all. */
  messages(sessionID: string, limit?: number): Promise<readonly RawMessage[]>;
  sessions(): Promise<readonly Session[]>;
  /** The running sessions by ID. */
  statuses(): Promise<ReadonlyMap<string, unknown>>;
  /** Whether names that differ only by case are those of one file. */
  readonly ignoresCase: boolean;
}

interface TurnSource extends Pick<ChangeSource, "sessions" | "statuses"> {
  turns(sessionID: string, since: number): Promise<readonly TurnSteps[]>;
  /** The newest ones: at least what goes on at this time, and all later ones. */
  newest(sessionID: string, from: number): Promise<readonly TurnSteps[]>;
}

/**
 * The files that a session changed since this time (milliseconds since 1970).
 * @param saves what the user saved
 */
export async function sessionChanges(
  asked: ChangeSource,
  sessionID: string,
  since: number,
  saves: readonly UserSave[] = [],
): Promise<SessionChanges> {
  let sessions: ReturnType<ChangeSource["sessions"]> | undefined;
  const form = asked.ignoresCase ? ignoringCase() : normalize;
  const source: TurnSource = {
    sessions: () => (sessions ??= asked.sessions()),
    statuses: () => asked.statuses(),
    turns: async (id, since) => turnsOf(await asked.messages(id), since, form),
    newest: async (id, from) => {
      for (let limit = OTHERS_MESSAGES; ; limit *= MORE_MESSAGES) {
        const messages = await asked.messages(id, limit);
        const { created = 0 } = messages[0]?.info.time ?? {};
        if (messages.length < limit || created <= from) return turnsOf(messages, 0, form);
      }
    },
  };
  const turns = await summedUpTurns(source, sessionID, since);
  const own = stepsOf(turns);
  const below = await turnsOfSubagents(source, sessionID, own, since);
  const steps = [...own, ...stepsOf(below)];
  const hasChanged = steps.some(({ writes, guesses }) => writes.length > 0 || guesses.length > 0);
  const others = hasChanged ? await stepsOfOthers(source, sessionID, steps) : [];
  const touches = others.flatMap((step) => touchesOf(step, steps));
  const unknown = others.filter(({ isUnknown }) => isUnknown);
  const files = filesIn(turns, others);
  const saved = saves.map((save) => ({ ...save, path: form(save.path) }));
  // Its own snapshots include what they did, up to its end: what they show as undone isn't a change.
  const isUndone = ({ path, start }: ChangingFile): boolean =>
    own.some(({ end, isInSnapshot, patched }) => isInSnapshot && end >= start && patched.has(path)) &&
    !turns.some(({ diffs }) => diffs.some((diff) => diff.path === path));
  for (const [path, file] of filesIn(below, others))
    if (!files.has(path) && !isUndone(file)) files.set(path, file);
  for (const file of await existingBefore(files)) files.set(file.path, { ...file, before: UNKNOWN });
  return {
    files: [...files.values()]
      .filter(({ before, after }) => !(before.kind === "absent" && after.kind === "absent"))
      .filter(({ before, after }) => !isSameText(before, after))
      .sort((a, b) => (a.path < b.path ? -1 : 1))
      .map(({ start, end, isBroken, ...file }) => {
        const isMeanwhile = (one: Span): boolean => overlap(one, { start, end });
        const foreign = [...touches.filter(({ path }) => path === file.path), ...unknown];
        const meanwhile = foreign.filter(isMeanwhile);
        return {
          ...file,
          isMixed:
            isBroken ||
            meanwhile.length > 0 ||
            saved.some((one) => one.path === file.path && isMeanwhile(one)) ||
            steps.some(
              (step) =>
                isMeanwhile(step) &&
                changedByNobody(step, file.path) &&
                !changedBeside(step, file.path, steps),
            ),
          mixedWith: [...new Set(meanwhile.map((one) => one.sessionID))],
          workedOnBy: [...new Set(foreign.flatMap((one) => (one.isBusy ? one.sessionID : [])))],
        };
      }),
    hasSnapshots: own.length === 0 || own.some(({ hasSnapshot }) => hasSnapshot),
  };
}

/**
 * The turns of a session, once the server has summed up each file that a step that has just ended changed. That it has
 * summed up only earlier changes of the file can't be told.
 */
async function summedUpTurns(
  source: TurnSource,
  sessionID: string,
  since: number,
): Promise<readonly TurnSteps[]> {
  for (let pause = FIRST_PAUSE_MS; ; pause *= 2) {
    const turns = await source.turns(sessionID, since);
    const justEnded = Date.now() - SUMMING_UP_MS;
    const isBehind = turns.some(({ diffs, steps }) =>
      steps.some(
        ({ end, isInSnapshot, patched }) =>
          isInSnapshot &&
          Number.isFinite(end) &&
          end > justEnded &&
          ![...patched].every((path) => diffs.some((diff) => diff.path === path)),
      ),
    );
    if (!isBehind || pause > SUMMING_UP_MS) return turns;
    await delay(pause);
  }
}

function stepsOf(turns: readonly TurnSteps[]): readonly FileStep[] {
  return turns.flatMap((turn) => turn.steps);
}

/** By path. */
function filesIn(turns: readonly TurnSteps[], others: readonly FileStep[]): Map<string, ChangingFile> {
  const files = new Map<string, ChangingFile>();
  for (const turn of turns)
    for (const change of changesIn(turn, others))
      files.set(change.path, joined(files.get(change.path), change, turn));
  return files;
}

/**
 * The files that only seem to be created: snapshots leave out ignored and large files, and such a file appears in the next
 * one when it is ignored no longer, or has become smaller.
 */
async function existingBefore(files: ReadonlyMap<string, ChangingFile>): Promise<readonly ChangingFile[]> {
  const all = [...files.values()];
  const deleted = all.filter(({ after }) => after.kind === "absent").map(({ before }) => before);
  const isMoved = movesFrom(deleted);
  const found = await Promise.all(
    all.map(async (file) => {
      if (file.before.kind !== "absent") return [];
      // Some file systems don't know when a file was made.
      const { birthtimeMs = 0 } = (await lstat(file.path).catch(() => undefined)) ?? {};
      const isOld = birthtimeMs > 0 && birthtimeMs < file.start - CLOCKS_MS;
      // What a command has moved is as old as before.
      return isOld && !isMoved(file.after) ? [file] : [];
    }),
  );
  return found.flat();
}

/**
 * Tells which contents can be those of one of the deleted files, under another name and perhaps edited: most lines of each
 * with a letter or a digit are in the other one.
 */
function movesFrom(deleted: readonly FileContent[]): (content: FileContent) => boolean {
  const texts = new Set(deleted.flatMap((one) => (one.kind === "text" ? [one.text] : [])));
  const isBinary = deleted.some(({ kind }) => kind === "binary");
  let lines: readonly ReadonlySet<string>[] | undefined;
  return (content) => {
    if (content.kind !== "text") return content.kind === "binary" && isBinary;
    if (texts.has(content.text)) return true;
    lines ??= [...texts].map(tellingLines);
    const own = tellingLines(content.text);
    return lines.some((others) => {
      if (others.size === 0 || others.size > 2 * own.size || own.size > 2 * others.size) return false;
      const shared = [...own].filter((line) => others.has(line)).length;
      return 2 * shared > Math.max(own.size, others.size);
    });
  };
}

function tellingLines(text: string): ReadonlySet<string> {
  return new Set(text.split("\n").filter((line) => /[\p{L}\p{N}]/u.test(line)));
}

function overlap(one: Span, other: Span): boolean {
  return one.start <= other.end && one.end >= other.start;
}

/** A file's changes so far. Spans from the start of the first turn that changed it to the end of the last one. */
interface ChangingFile extends Change, Span {
  /** Whether the content changed between two turns. */
  readonly isBroken: boolean;
}

/** Combines the changes so far with one more. */
function joined(known: ChangingFile | undefined, change: Change, { steps }: TurnSteps): ChangingFile {
  const { before, after, isDoubtful } = change;
  const start = known?.start ?? steps[0]?.start ?? 0;
  const end = steps.at(-1)?.end ?? Number.POSITIVE_INFINITY;
  if (!known) return { ...change, start, end, isBroken: false };
  const isBroken = known.isBroken || isOtherText(known.after, before);
  const file = { ...known, end, isDoubtful: known.isDoubtful && isDoubtful, isBroken };
  // An excerpt cannot be compared with a complete file.
  if (after.kind === "text" && known.before.kind === "excerpt") return { ...file, before: UNKNOWN, after };
  if (after.kind !== "excerpt") return { ...file, after };
  if (known.before.kind !== "excerpt" || known.after.kind !== "excerpt" || before.kind !== "excerpt")
    return { ...file, after: UNKNOWN };
  return {
    ...file,
    before: { kind: "excerpt", text: known.before.text + GAP + before.text },
    after: { kind: "excerpt", text: known.after.text + GAP + after.text },
  };
}

/** What the session changed in one turn: first according to snapshots, then what only tools report. */
function changesIn(turn: TurnSteps, others: readonly FileStep[]): readonly Change[] {
  const own = ownFiles(turn, others);
  const ifOwn = (path: string, contents: Pick<Change, "before" | "after">): readonly Change[] => {
    const isDoubtful = own.get(path);
    return isDoubtful === undefined ? [] : [{ path, ...contents, isDoubtful }];
  };
  return [
    ...turn.diffs.flatMap((diff) => ifOwn(diff.path, contents(diff))),
    ...turn.steps.flatMap(({ writes, guesses, patched, isInSnapshot }) =>
      isInSnapshot
        ? writes.filter(({ path }) => !patched.has(path))
        : [...writes, ...guesses.flatMap((path) => ifOwn(path, { before: UNKNOWN, after: UNKNOWN }))],
    ),
  ];
}

/** The files that the session itself changed in a turn, by path, and whether that is doubtful. */
function ownFiles({ steps, diffs }: TurnSteps, others: readonly FileStep[]): ReadonlyMap<string, boolean> {
  const own = new Map<string, boolean>();
  const addGuess = (path: string, isDoubtful: boolean): void =>
    void own.set(path, isDoubtful && own.get(path) !== false);
  for (const step of steps)
    for (const path of step.guesses) {
      const verdict = judge(path, step, others);
      if (verdict !== "another's") addGuess(path, verdict === "doubtful");
    }
  // For a renamed file, the steps contain only the new name.
  const added = diffs.find(({ status, path }) => status === "added" && own.has(path));
  if (added)
    for (const { status, path } of diffs)
      if (status === "deleted" && !steps.some(({ patched }) => patched.has(path)))
        addGuess(path, own.get(added.path) === true);
  for (const { writes } of steps) for (const { path } of writes) own.set(path, false);
  return own;
}

/** Decides who changed a file in a step with a command, which may have changed any file. */
function judge(path: string, step: FileStep, others: readonly FileStep[]): "own" | "another's" | "doubtful" {
  if (others.some(({ writes }) => writes.some((write) => write.path === path && overlap(write, step))))
    return "another's";
  const isShared = others.some((other) => overlap(other, step) && other.commands.some(isOwnCommand));
  return isShared ? "doubtful" : "own";
}

/** Whether what a tool does is done in this session. */
function isOwnCommand(tool: string): boolean {
  return tool !== SUBAGENT_TOOL;
}

/** Whether a file changed during a step although the step's tools did not change it. */
function changedByNobody({ patched, commands, writes }: FileStep, path: string): boolean {
  return patched.has(path) && commands.length === 0 && !writes.some((write) => write.path === path);
}

/** Whether another step of the task and its subagents can have changed a file during this one. */
function changedBeside(step: FileStep, path: string, all: readonly FileStep[]): boolean {
  return all.some(
    (other) =>
      other !== step &&
      overlap(other, step) &&
      (other.commands.some(isOwnCommand) ||
        other.writes.some((write) => write.path === path && overlap(write, step))),
  );
}

/** The files that another session changed or may have changed in a step, and when. */
function touchesOf(step: OtherStep, own: readonly FileStep[]) {
  const { sessionID, isBusy, start, end } = step;
  // What its subagents did is known from their own sessions.
  const guesses = step.commands.some(isOwnCommand)
    ? step.guesses.filter((path) => judge(path, step, own) !== "another's")
    : [];
  const touches = [...step.writes, ...guesses.map((path) => ({ path, start, end }))];
  return touches.map(({ path, start, end }) => ({ path, start, end, sessionID, isBusy }));
}

/** Subagents that are not tasks count as part of their parent. */
function workersFor(sessionID: string, sessions: readonly Session[]): (session: Session) => boolean {
  const byID = new Map(sessions.map((session) => [session.id, session]));
  const worksForIt = ({ id, parentID, task }: Session): boolean => {
    const parent = task.kind === "none" && parentID !== undefined ? byID.get(parentID) : undefined;
    return id === sessionID || (parent !== undefined && worksForIt(parent));
  };
  return worksForIt;
}

async function turnsOfSubagents(
  source: TurnSource,
  sessionID: string,
  steps: readonly FileStep[],
  since: number,
): Promise<readonly TurnSteps[]> {
  if (!steps.some(({ commands }) => commands.includes(SUBAGENT_TOOL))) return [];
  const sessions = await source.sessions();
  const subagents = sessions
    .filter(workersFor(sessionID, sessions))
    .filter(({ id, updated }) => id !== sessionID && updated >= since);
  const read = ({ id }: Session): Promise<readonly TurnSteps[]> => source.turns(id, since).catch(() => []);
  return (await fewAtOnce(subagents, read, OTHERS_AT_ONCE)).flat();
}

/** The steps of other sessions that overlapped with these, and of other sessions that are running now. */
async function stepsOfOthers(
  source: TurnSource,
  sessionID: string,
  steps: readonly FileStep[],
): Promise<readonly OtherStep[]> {
  const start = Math.min(...steps.map((step) => step.start));
  const end = Math.max(...steps.map((step) => step.end));
  const [sessions, busy] = await Promise.all([source.sessions(), source.statuses()]);
  const worksForIt = workersFor(sessionID, sessions);
  const others = sessions.filter(
    (session) =>
      ((session.created <= end && session.updated >= start) || busy.has(session.id)) && !worksForIt(session),
  );
  const read = async ({ id, created, updated }: Session): Promise<readonly OtherStep[]> => {
    const from = created > end ? Number.POSITIVE_INFINITY : start;
    const isBusy = busy.has(id);
    try {
      const found = stepsOf(await source.newest(id, from));
      return found.map((step) => ({ ...step, sessionID: id, isBusy, isUnknown: false }));
    } catch (error) {
      if (!(error instanceof ServerFailure) || error.isPassing) throw error;
      // What a deleted session did stays unknown. What any other did must not count as nothing.
      const span = { start: created, end: isBusy ? Number.POSITIVE_INFINITY : updated };
      return error.reason === "not-found"
        ? []
        : [{ ...NO_STEP, ...span, sessionID: id, isBusy, isUnknown: true }];
    }
  };
  return (await fewAtOnce(others, read, OTHERS_AT_ONCE)).flat();
}

function isSameText(one: FileContent, other: FileContent): boolean {
  return one.kind === "text" && other.kind === "text" && one.text === other.text;
}

function isOtherText(one: FileContent, other: FileContent): boolean {
  return one.kind === "text" && other.kind === "text" && one.text !== other.text;
}
