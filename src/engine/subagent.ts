import type { ModelRef, Progress, Task, TaskError, TokenUsage } from "./task.ts";

/**
 * A child session that is not a task: launched by OpenCode's own `task` tool, or by a user in the terminal. It can be
 * followed and stopped. Nothing is written to its session until it is adopted, which makes it a task. Immutable: each
 * change creates a new object. Times are in milliseconds since 1970.
 */
export interface Subagent {
  readonly launchedBy: "other";
  /** The session's ID. */
  readonly id: string;
  readonly parentSessionID: string;
  /** The session's title. */
  readonly description: string;
  /** Undefined if the server has not reported it yet. */
  readonly agent?: string | undefined;
  readonly model?: ModelRef | undefined;
  /** `idle`: nothing is running. The outcome of a turn is only known if its end was seen. */
  readonly status: "running" | "idle" | "error" | "cancelled";
  readonly createdAt: number;
  /** When the current or last turn began, if known. Otherwise when the session was created. */
  readonly startedAt: number;
  /** When the last turn was seen to end. For an idle session otherwise when it was last updated. */
  readonly endedAt?: number | undefined;
  readonly error?: TaskError | undefined;
  /** The tool calls of the turns whose end was seen. */
  readonly toolCalls: number;
  /** Only set while it is running. */
  readonly progress?: Progress | undefined;
  /** US dollars spent by its session so far. */
  readonly cost: number;
  readonly tokens: TokenUsage;
}

/** A child of a session in the tree and the output panel: a task or a subagent. */
export type Child = Task | Subagent;

/** A subagent before and after a change. Undefined if it did not exist. */
export interface SubagentChange {
  readonly id: string;
  readonly before: Subagent | undefined;
  readonly after: Subagent | undefined;
}

/** Whether a child is a task, with its own record. */
export function isTask(child: Child): child is Task {
  return child.launchedBy !== "other";
}

export function isCleared(child: Child): boolean {
  return isTask(child) && child.clearedAt !== undefined;
}

/** Whether a child's session is running or about to run. */
export function isRunning({ status }: Pick<Child, "status">): boolean {
  return status === "running" || status === "resumed";
}
