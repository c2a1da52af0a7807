import type { ModelRef, Progress, Task, TaskError, TokenUsage } from "./task.ts";

/**
 * A session below another one that is no task of ours: OpenCode's own `task` tool launched it, or someone in the
 * terminal did. It is followed while it works and can be stopped; nothing is written to it until it is adopted, which
 * makes it a task. Never changes: each change gives a new one. Times are milliseconds since 1970.
 */
export interface Subagent {
  readonly launchedBy: "other";
  /** The session's ID. */
  readonly id: string;
  readonly parentSessionID: string;
  /** The session's title, without the agent that OpenCode adds to it. */
  readonly description: string;
  /** Undefined: the server has not said yet. */
  readonly agent?: string | undefined;
  readonly model?: ModelRef | undefined;
  /** `idle`: nothing works in it. How its last turn ended is known only of turns that were seen to end. */
  readonly status: "running" | "idle" | "error" | "cancelled";
  readonly createdAt: number;
  /** When the present or last turn began, as far as that is known; else when the session was created. */
  readonly startedAt: number;
  /** When the last turn was seen to end; else, of a session idle, when it was last changed. */
  readonly endedAt?: number | undefined;
  readonly error?: TaskError | undefined;
  /** Tool calls of the turns that were seen to end. */
  readonly toolCalls: number;
  /** Only while it works. */
  readonly progress?: Progress | undefined;
  /** US dollars spent by its session so far. */
  readonly cost: number;
  readonly tokens: TokenUsage;
}

/** What the tree shows below a session, and the panel of it: a task, or somebody else's. */
export type Child = Task | Subagent;

/** Before and after; undefined where the subagent was not, or is no more. */
export interface SubagentChange {
  readonly id: string;
  readonly before: Subagent | undefined;
  readonly after: Subagent | undefined;
}

/** Whether a child is one of ours, with a record of its own. */
export function isTask(child: Child): child is Task {
  return child.launchedBy !== "other";
}

/** Whether a child's session is at work, or about to be. */
export function isRunning({ status }: Pick<Child, "status">): boolean {
  return status === "running" || status === "resumed";
}
