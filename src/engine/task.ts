import type { LimitUse } from "./limit.ts";
import { english, type Sentence, type Text } from "./sentence.ts";

/** A model, as the server identifies it. */
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
  /** The first and last message to inherit. Defaults to everything that the source's model sees now. */
  readonly fromMessageID?: string | undefined;
  readonly upToMessageID?: string | undefined;
  /** Override the limits in the settings. */
  readonly maxToolResultChars?: number | undefined;
  readonly maxTokens?: number | undefined;
  /** Whether the fork carries on with the work of the conversation, instead of taking it as background. */
  readonly carriesOn?: boolean | undefined;
}

/** A message that waits for the end of a task's turn, to be sent as a follow-up. */
export interface FollowUp {
  readonly text: string;
  /** The ID of the prompt that it became. Kept until its turn ends, in case the prompt is lost. */
  readonly messageID?: string | undefined;
}

/** US dollars and tokens. */
export interface Spending extends TokenUsage {
  readonly cost: number;
}

/** The statuses of a task. What a running task is doing is its {@link Phase}. */
export const TASK_STATUSES = ["running", "completed", "error", "cancelled", "resumed"] as const;
export type TaskStatus = (typeof TASK_STATUSES)[number];

/** Why a task ended in `error`: `name` is a code for programs, `message` a text in English or by the server. */
export interface TaskError {
  readonly name: string;
  readonly message: string;
  /** The message as a translatable sentence, unless it is the server's text. */
  readonly sentence?: Sentence | undefined;
}

/** The error name of tasks that were interrupted because their server died. */
export const INTERRUPTED_ERROR = "Interrupted";

export function taskError(name: string, sentence: Sentence): TaskError {
  return { name, message: english(sentence), sentence };
}

/** The state of the notice about a task's last end. */
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
   * The parent already knows (it received the result, or cancelled the task itself), was stopped too, does not want to
   * be notified, or is gone. The reason is one of our sentences in English, without values.
   */
  | { readonly state: "skipped"; readonly reason: string };

/** A past turn, or a time in which the task waited for its user: from when, until when. */
export type Span = readonly [what: "turn" | "wait", from: number, to: number];

/** How many of the latest spans are kept. */
const KEPT_SPANS = 12;

export function withSpan(spans: readonly Span[] = [], span: Span): readonly Span[] {
  return [...spans, span].slice(-KEPT_SPANS);
}

/** Where a task works: in the folder of its parent session, or in a Git worktree of its own. */
export type Isolation = "folder" | "worktree";

/** The Git worktree of an isolated task. */
export interface TaskWorktree {
  /** Unique in the repository. The worktree's folder and its Git refs have this name. */
  readonly name: string;
  /** The task's directory: the worktree, or the equivalent of the folder in it. Absolute. */
  readonly directory: string;
  /** The commit of the state that the worktree began with. */
  readonly base: string;
  /**
   * Set until the setup command has run: "pending" before the first turn, for which the task stays queued, and "again"
   * after the worktree was made again.
   */
  readonly setup?: "pending" | "again" | undefined;
  /** What became of the work, once the user has decided. */
  readonly outcome?: "broughtBack" | "branched" | "discarded" | undefined;
}

/**
 * The facts about a task that outlive every process, stored in its session's metadata in less than 4 kB. Times are in
 * milliseconds since 1970.
 */
export interface TaskRecord {
  /** The ID of the task's session. */
  readonly id: string;
  /** Counts writes: of two records, the one with the higher revision is newer. */
  readonly revision: number;
  readonly description: string;
  readonly agent: string;
  readonly model?: ModelRef | undefined;
  readonly parentSessionID: string;
  readonly parentMessageID?: string | undefined;
  readonly launchedBy: "agent" | "person";
  /** When a user adopted it, if it was a subagent before. */
  readonly adoptedAt?: number | undefined;
  /** Groups tasks of one parent. */
  readonly batchID: string;
  readonly isForked: boolean;
  /** The session whose conversation it inherited. */
  readonly forkedFrom?: string | undefined;
  /** Which part of that conversation it inherited, for what, and limits that differ from the settings. */
  readonly forkOptions?: ForkRange | undefined;
  /** The failed or cancelled task that it retries or continues. */
  readonly insteadOf?: string | undefined;
  /** The usage that its session showed before the task began, if it was copied with the conversation. */
  readonly baseline?: Spending | undefined;
  /** Set if the task is isolated. What is launched in an isolated task works in the same worktree. */
  readonly worktree?: TaskWorktree | undefined;
  readonly resumeCount: number;
  readonly status: TaskStatus;
  /** Waits for a slot: its prompt is stored, but not started. */
  readonly queued?: boolean | undefined;
  /** The tool calls of the turns that have ended. */
  readonly toolCalls: number;
  /** The agent's call that requested the current or last turn. Repeating the call changes nothing. */
  readonly callID?: string | undefined;
  /** The user message that began the current or last turn. */
  readonly promptMessageID: string;
  readonly followUp?: FollowUp | undefined;
  readonly createdAt: number;
  /** When the prompt of the current or last turn was sent. */
  readonly startedAt: number;
  readonly endedAt?: number | undefined;
  /** Milliseconds of work in the turns that have ended, without time spent waiting for a user. */
  readonly worked?: number | undefined;
  /** How many milliseconds the current turn has waited for a user. Only stored if there are limits. */
  readonly waited?: number | undefined;
  /** The turns before the current or last one, and the waits for a user that are over, as far as they are kept. */
  readonly spans?: readonly Span[] | undefined;
  /** The assistant message that ended the last turn. */
  readonly finalMessageID?: string | undefined;
  readonly error?: TaskError | undefined;
  readonly notice: NoticeState;
  readonly retrievedAt?: number | undefined;
  readonly clearedAt?: number | undefined;
}

/** A record whose session has no ID yet. */
export type TaskRecordDraft = Omit<TaskRecord, "id">;

/** The task record in a session's metadata. */
export type RecordReading =
  | { readonly kind: "none" }
  | { readonly kind: "task"; readonly record: TaskRecord }
  /** Broken, or written by a later version. Shown as such, never overwritten. */
  | { readonly kind: "unreadable"; readonly reason: Text };

/** What a running task is doing. */
export type Phase =
  | "queued"
  | "setting-up"
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
  /** What the call does, in the tool's own words, if known. */
  readonly title?: string | undefined;
  readonly status: "pending" | "running" | "completed" | "error";
}

export interface Progress {
  readonly phase: Phase;
  readonly toolCalls: number;
  /** The number of calls by tool name. */
  readonly toolCounts: Readonly<Record<string, number>>;
  /** The most recent calls, the oldest first. */
  readonly recentTools: readonly ToolUse[];
  /** The time of the last update, in milliseconds since 1970. */
  readonly lastUpdate: number;
  readonly retry?: { readonly attempt: number; readonly message: string; readonly next: number } | undefined;
}

/** Files that a task changed after another task had changed them while both were running. */
export interface Collision {
  /** The ID of the other task. */
  readonly taskID: string;
  readonly description: string;
  /** Absolute paths. */
  readonly paths: readonly string[];
  /** Whether the other task has not collided with this one before. Users are notified once per pair. */
  readonly isFirst: boolean;
}

/** What an isolated task has changed in its worktree, and which of it would conflict if it were brought back. */
export interface IsolatedWork {
  /** The number of files that differ from the base, and of their lines. */
  readonly files: number;
  readonly added: number;
  readonly removed: number;
  readonly conflicts: readonly PredictedConflict[];
}

interface PredictedConflict {
  /** The isolated task whose work doesn't fit. Undefined if it is the folder that doesn't. */
  readonly task?: { readonly id: string; readonly description: string } | undefined;
  /** Relative to the repository's top folder, with slashes. Not all if there are many. */
  readonly paths: readonly string[];
  /** The number of files in conflict. */
  readonly count: number;
}

/** A task as seen outside the engine. Immutable: each change creates a new one. */
export interface Task extends TaskRecord {
  /** Only set while the task is active. */
  readonly progress?: Progress | undefined;
  /** US dollars spent by its session so far. */
  readonly cost: number;
  readonly tokens: TokenUsage;
  /** The most used limit of the task or its batch. Only set while the task is active and at least 80% is used. */
  readonly nearLimit?: LimitUse | undefined;
  /** The collisions seen so far. Undefined if there are none. */
  readonly collisions?: readonly Collision[] | undefined;
  /** Only set while the work of an isolated task is neither brought back nor given up. Undefined until it was read. */
  readonly work?: IsolatedWork | undefined;
}

/** Whether the task's session is running or about to run. */
export function isActive(task: Pick<TaskRecord, "status">): boolean {
  return task.status === "running" || task.status === "resumed";
}

/** Whether a follow-up was refused, which leaves the task as it was before. Its turn has not ended: it never began. */
export function isTakenBack(before: TaskRecord, after: TaskRecord): boolean {
  return after.status === "completed" && after.resumeCount < before.resumeCount;
}

/** Whether the task's last turn ended early, so that its session should not work for it any more. */
export function isStopped({ status }: Pick<TaskRecord, "status">): boolean {
  return status === "cancelled" || status === "error";
}

/** Whether the task waits for other tasks to end before it starts. */
export function isQueued(task: Pick<TaskRecord, "queued">): boolean {
  return task.queued === true;
}

/** Whether the task has a worktree whose work is under way, or ended and not decided on. */
export function hasOpenWork({ worktree, clearedAt }: Pick<TaskRecord, "worktree" | "clearedAt">): boolean {
  return (
    worktree !== undefined &&
    worktree.setup !== "pending" &&
    worktree.outcome === undefined &&
    clearedAt === undefined
  );
}

/** The message that waits for the end of the task's turn. Undefined if there is none. */
export function waitingMessage({ followUp }: Pick<TaskRecord, "followUp">): string | undefined {
  return followUp?.messageID === undefined ? followUp?.text : undefined;
}

/** The ID shown to users: the end of the full ID, as its start is a timestamp that siblings share. */
export function shortID(taskID: string): string {
  return taskID.slice(-6);
}
