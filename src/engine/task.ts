import type { LimitUse } from "./limit.ts";
import { english, type Sentence, type Text } from "./sentence.ts";

/** A model as the server names it. */
export interface ModelRef {
  readonly providerID: string;
  readonly modelID: string;
  readonly variant?: string | undefined;
}

export interface TokenUsage {
  readonly input: number;
  readonly output: number;
  readonly reasoning: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
}

/** How much of a conversation a fork inherits. */
export interface ForkRange {
  /** The first and the last message to inherit; by default all that its model sees now. */
  readonly fromMessageID?: string | undefined;
  readonly upToMessageID?: string | undefined;
  /** Instead of the settings' limits. */
  readonly maxToolResultChars?: number | undefined;
  readonly maxTokens?: number | undefined;
}

/** US dollars and tokens. */
export interface Spending extends TokenUsage {
  readonly cost: number;
}

/** The five states of a task. What a running one is doing is its {@link Phase}. */
export const TASK_STATUSES = ["running", "completed", "error", "cancelled", "resumed"] as const;
export type TaskStatus = (typeof TASK_STATUSES)[number];

/** Why a task ended in `error`: `name` is a stable word for programs, `message` a sentence in English or the server's. */
export interface TaskError {
  readonly name: string;
  readonly message: string;
  /** The message, where it is one of ours, to be translated. */
  readonly sentence?: Sentence | undefined;
}

/** The name of the error of a task that was cut off with its server. */
export const INTERRUPTED_ERROR = "Interrupted";

export function taskError(name: string, sentence: Sentence): TaskError {
  return { name, message: english(sentence), sentence };
}

/** How far the message to the parent is that tells of the last end. */
export type NoticeState =
  | { readonly state: "none" }
  | {
      readonly state: "pending";
      readonly messageID: string;
      readonly attempts: number;
      readonly lastError?: string | undefined;
    }
  | { readonly state: "delivered"; readonly messageID: string; readonly at: number }
  /**
   * The reason is one of our sentences, in English and without values. The parent already knows (it received the result, or it asked for the cancel) or exists no
   * more.
   */
  | { readonly state: "skipped"; readonly reason: string };

/**
 * The facts of a task that outlive every process: kept in its session's metadata, under 4 kB.
 * Times are milliseconds since 1970.
 */
export interface TaskRecord {
  /** The session's ID: a task is a session. */
  readonly id: string;
  /** Counts writes; of two readings the higher one is newer. */
  readonly revision: number;
  readonly description: string;
  readonly agent: string;
  readonly model?: ModelRef | undefined;
  readonly parentSessionID: string;
  readonly parentMessageID?: string | undefined;
  readonly launchedBy: "agent" | "person";
  /** When a user made a task of what somebody else had launched. */
  readonly adoptedAt?: number | undefined;
  /** Tasks of one parent that belong together. */
  readonly batchID: string;
  readonly isForked: boolean;
  /** The session whose conversation it inherited. */
  readonly forkedFrom?: string | undefined;
  /** Which part of that conversation, and how it was cut, where the settings did not say. */
  readonly forkOptions?: ForkRange | undefined;
  /** What its session showed as spent before the task began, where that was copied with the conversation. */
  readonly baseline?: Spending | undefined;
  readonly resumeCount: number;
  readonly status: TaskStatus;
  /** Waits for a slot: its prompt is stored and was not started. */
  readonly queued?: boolean | undefined;
  /** Tool calls of the turns that have ended. */
  readonly toolCalls: number;
  /** The agent's call that asked for the present or last turn: made again, it changes nothing. */
  readonly callID?: string | undefined;
  /** The user message whose answer the task is working on, or gave last. */
  readonly promptMessageID: string;
  readonly createdAt: number;
  /** When the present or last turn was handed over. */
  readonly startedAt: number;
  readonly endedAt?: number | undefined;
  /** Milliseconds of work in the turns that have ended, without those in which it waited for a user. */
  readonly worked?: number | undefined;
  /** Milliseconds of the present turn in which it waited for a user; kept only where minutes may matter. */
  readonly waited?: number | undefined;
  /** The assistant message that ended the last turn. */
  readonly finalMessageID?: string | undefined;
  readonly error?: TaskError | undefined;
  readonly notice: NoticeState;
  readonly retrievedAt?: number | undefined;
  readonly clearedAt?: number | undefined;
}

/** A record before the server gave its session an ID. */
export type TaskRecordDraft = Omit<TaskRecord, "id">;

/** What a session's metadata says of the task it is. */
export type RecordReading =
  | { readonly kind: "none" }
  | { readonly kind: "task"; readonly record: TaskRecord }
  /** Broken, or written by a future version: shown as such, never overwritten. */
  | { readonly kind: "unreadable"; readonly reason: Text };

/** What a running task is doing. */
export type Phase =
  | "queued"
  | "starting"
  | "thinking"
  | "streaming"
  | "tool"
  | "retrying"
  | "needs-permission"
  | "needs-answer"
  | "stalled";

export interface ToolUse {
  readonly tool: string;
  /** What the call does, in the tool's own words, once known. */
  readonly title?: string | undefined;
  readonly status: "pending" | "running" | "completed" | "error";
}

export interface Progress {
  readonly phase: Phase;
  readonly toolCalls: number;
  /** Calls by tool name. */
  readonly toolCounts: Readonly<Record<string, number>>;
  /** The most recent calls, oldest first. */
  readonly recentTools: readonly ToolUse[];
  /** The last update, milliseconds since 1970. */
  readonly lastUpdate: number;
  readonly retry?: { readonly attempt: number; readonly message: string; readonly next: number } | undefined;
}

/** Files that a task changed after another one had, which was at work at the same time. */
export interface Collision {
  /** The other one. */
  readonly taskID: string;
  readonly description: string;
  /** Absolute ones. */
  readonly paths: readonly string[];
  /** Whether the other task had not changed a file after this one before: users are notified once per pair. */
  readonly isFirst: boolean;
}

/** A task as everyone outside the engine sees it. Never changes: each change gives a new one. */
export interface Task extends TaskRecord {
  /** Only while the task is active. */
  readonly progress?: Progress | undefined;
  /** US dollars spent by its session so far. */
  readonly cost: number;
  readonly tokens: TokenUsage;
  /** Only while the task is active, and from 80 % on: the limit it is nearest to, its own or that of its batch. */
  readonly nearLimit?: LimitUse | undefined;
  /** Those that were seen; undefined: none. */
  readonly collisions?: readonly Collision[] | undefined;
}

/** A task whose session is at work, or about to be. */
export function isActive(task: Pick<TaskRecord, "status">): boolean {
  return task.status === "running" || task.status === "resumed";
}

/** A task whose last turn ended before its time: its session is not to work for it any more. */
export function isStopped({ status }: Pick<TaskRecord, "status">): boolean {
  return status === "cancelled" || status === "error";
}

/** A task that waits for others to end before it starts. */
export function isQueued(task: Pick<TaskRecord, "queued">): boolean {
  return task.queued === true;
}

/** What users read: the end of the ID, because its start is a timestamp that siblings share. */
export function shortID(taskID: string): string {
  return taskID.slice(-6);
}
