import type { LimitUse } from "./limit.ts";
import { ProgressTracker } from "./progress.ts";
import { ServerFailure } from "./ports.ts";
import type { AgentError, Prompt } from "./server-model.ts";
import { isActive, isQueued, type TaskRecord } from "./task.ts";

/** How long the start of a turn is repeated that the server can't take at the moment, in milliseconds. */
const RESTARTING_MS = 60_000;

/**
 * A prompt that this process sent and has not seen stored. The server accepts a prompt, then stores its message, then
 * its parts one by one, and may die in between.
 */
export interface SentPrompt {
  readonly kind: "sent";
  readonly prompt: Prompt;
  /** When it was last sent, or accepted by the server, in milliseconds since 1970. */
  readonly at: number;
  /** The call failed without a response, or the connection was lost since: the prompt may have to be sent again. */
  readonly isDoubtful: boolean;
}

/** The state of a turn's prompt, as far as this process knows. */
type PromptState =
  /** Not sent yet, or sent by an earlier process. */
  | { readonly kind: "unknown" }
  /** The conversation of a fork is being prepared. Nothing runs in its session yet. */
  | { readonly kind: "building"; readonly abort: AbortController }
  /** The server could not be reached meanwhile: the conversation has to be prepared again. */
  | { readonly kind: "interrupted"; readonly buildAgain: () => Promise<void> }
  | SentPrompt
  | { readonly kind: "stored" };

/** Evidence that a turn may be dead. It counts as dead if two successive polls find the same evidence. */
interface Suspicion {
  readonly mark: string;
  /** When it was first seen, in milliseconds since 1970. */
  readonly since: number;
  readonly restarted: boolean;
}

interface TurnBase {
  progress: ProgressTracker;
  prompt: PromptState;
  /** The last error that the server reported for the session since the turn began. */
  lastError: AgentError | undefined;
  suspicion: Suspicion | undefined;
  /** Whether its messages are about to be read. */
  isBeingRead: boolean;
  /** Why they couldn't be read the last time, which is logged once. */
  failedRead: string | undefined;
  /** Whether it is being stopped at a limit. */
  isBeingStopped: boolean;
  /** The limit that is nearly used. */
  nearLimit: LimitUse | undefined;
}

/** The turn of a task that waits for a slot. */
interface QueuedTurn extends TurnBase {
  readonly kind: "queued";
  /** Whether it has a slot and its prompt is being started. */
  isStarting: boolean;
}

export interface WorkingTurn extends TurnBase {
  readonly kind: "working";
  /**
   * When an event last showed that the session is running, in milliseconds since 1970. 0 if it showed that the session is
   * idle. Undefined if unknown.
   */
  seenAtWork: number | undefined;
  /**
   * How long it waited for a user or while the machine slept, in milliseconds; when the current wait began, and from
   * when until when the last one was.
   */
  waiting: {
    readonly total: number;
    readonly since: number | undefined;
    readonly last?: readonly [from: number, to: number];
  };
}

/** What this process knows about the queued or running turn of a task. */
export type RunningTurn = QueuedTurn | WorkingTurn;

/** The answer with which a task ended, known while those who waited for it are told. */
export interface FinalAnswer {
  readonly messageID: string;
  readonly text: string;
}

/** A new turn for a task with this record. Undefined if the task has ended. */
export function turnOf(record: TaskRecord, now: number): RunningTurn | undefined {
  if (!isActive(record)) return undefined;
  const turn: TurnBase = {
    progress: new ProgressTracker(now, isQueued(record)),
    prompt: { kind: "unknown" },
    lastError: undefined,
    suspicion: undefined,
    isBeingRead: false,
    failedRead: undefined,
    isBeingStopped: false,
    nearLimit: undefined,
  };
  return isQueued(record)
    ? { ...turn, kind: "queued", isStarting: false }
    : {
        ...turn,
        kind: "working",
        seenAtWork: undefined,
        waiting: { total: record.waited ?? 0, since: undefined },
      };
}

/** The turn of a task after its record was replaced. */
export function turnAfter(
  turn: RunningTurn | undefined,
  before: TaskRecord,
  record: TaskRecord,
  now: number,
): RunningTurn | undefined {
  const next = turnOf(record, now);
  if (!next || !turn || record.promptMessageID !== before.promptMessageID) return next;
  if (next.kind === turn.kind) return turn;
  // The task left the queue; its prompt is unchanged.
  return { ...next, prompt: turn.prompt, nearLimit: turn.nearLimit };
}

/**
 * Throws the error for which a turn wasn't started. A server that can't take the start at the moment has begun nothing,
 * so that is repeated for a while.
 * @param since since when the turn has been suspected to be dead, in milliseconds since 1970
 */
export function noteFailedStart(
  { turn }: { readonly turn: RunningTurn | undefined },
  since: number,
  error: unknown,
): never {
  const isPassing = error instanceof ServerFailure && error.status !== undefined && error.isPassing;
  if (turn?.suspicion && isPassing && turn.suspicion.since - since < RESTARTING_MS)
    turn.suspicion = { ...turn.suspicion, since, restarted: false };
  throw error;
}

/** The prompt of a task, if it was sent but not seen stored yet. */
export function sentPrompt({ turn }: { readonly turn: RunningTurn | undefined }): SentPrompt | undefined {
  return turn?.prompt.kind === "sent" ? turn.prompt : undefined;
}
