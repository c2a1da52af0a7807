import type { LimitUse } from "./limit.ts";
import type { Cancellation } from "./event.ts";
import { ProgressTracker } from "./progress.ts";
import type { AgentError, Prompt } from "./server-model.ts";
import { isActive, isQueued, type TaskRecord } from "./task.ts";

/**
 * A prompt that this process handed over and has not seen stored: the server takes a prompt first, then stores its
 * message, and then its parts one by one, and may stop at any moment of that.
 */
export interface SentPrompt {
  readonly kind: "sent";
  readonly prompt: Prompt;
  /** When it was last handed over, in milliseconds since 1970. */
  readonly at: number;
  /** The call failed without an answer, or the connection was lost since: it may have to be handed over again. */
  readonly isDoubtful: boolean;
}

/** Where the prompt of a turn is, as far as this process knows. */
type PromptState =
  /** Nobody handed it over yet, or an earlier process did. */
  | { readonly kind: "unknown" }
  /** The conversation of a fork is made ready first: nothing runs in its session yet. */
  | { readonly kind: "building"; readonly cancellation: Cancellation }
  | SentPrompt
  | { readonly kind: "stored" };

/** What was seen of a turn that looks dead. Seen twice, a poll apart, without any change, it is. */
interface Suspicion {
  readonly mark: string;
  /** When it was seen first, in milliseconds since 1970. */
  readonly since: number;
  readonly restarted: boolean;
}

interface Turn {
  progress: ProgressTracker;
  prompt: PromptState;
  /** The server's last word on an error in the session since the turn began. */
  lastError: AgentError | undefined;
  suspicion: Suspicion | undefined;
  /** Its messages are about to be read. */
  isBeingRead: boolean;
  /** It is being ended as a limit was reached. */
  isBeingStopped: boolean;
  /** The limit that is nearly used. */
  nearLimit: LimitUse | undefined;
}

/** The task waits for a slot. */
interface QueuedTurn extends Turn {
  readonly kind: "queued";
  /** It has a slot, and its prompt is being started. */
  isStarting: boolean;
}

export interface WorkingTurn extends Turn {
  readonly kind: "working";
  /** When the stream last told that the session is at work, in milliseconds since 1970; 0: not known. */
  seenAtWork: number;
  /** How long it waited for a user, or for a machine that slept, in milliseconds; and when the wait began that goes on. */
  waiting: { readonly total: number; readonly since: number | undefined };
}

/** What this process knows of the turn that a task is to do, or works on. */
export type RunningTurn = QueuedTurn | WorkingTurn;

/** The turn of a task with this record, of which nothing else is known. Undefined: it has ended. */
export function turnOf(record: TaskRecord, now: number): RunningTurn | undefined {
  if (!isActive(record)) return undefined;
  const turn: Turn = {
    progress: new ProgressTracker(now, isQueued(record)),
    prompt: { kind: "unknown" },
    lastError: undefined,
    suspicion: undefined,
    isBeingRead: false,
    isBeingStopped: false,
    nearLimit: undefined,
  };
  return isQueued(record)
    ? { ...turn, kind: "queued", isStarting: false }
    : { ...turn, kind: "working", seenAtWork: 0, waiting: { total: record.waited ?? 0, since: undefined } };
}

/** The turn of a task whose record becomes another one. */
export function turnAfter(
  turn: RunningTurn | undefined,
  before: TaskRecord,
  record: TaskRecord,
  now: number,
): RunningTurn | undefined {
  const next = turnOf(record, now);
  if (!next || !turn || record.promptMessageID !== before.promptMessageID) return next;
  if (next.kind === turn.kind) return turn;
  // It got a slot: its prompt is where it was.
  return { ...next, prompt: turn.prompt, nearLimit: turn.nearLimit };
}

/** The prompt of a task as it was handed over, until it is seen stored. */
export function sentPrompt({ turn }: { readonly turn: RunningTurn | undefined }): SentPrompt | undefined {
  return turn?.prompt.kind === "sent" ? turn.prompt : undefined;
}
