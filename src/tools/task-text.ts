import { formatDuration } from "../engine/notice-text.ts";
import { isActive, type Phase, type Task } from "../engine/task.ts";
import type { ToolContext } from "./tool.ts";

const PHASES: Readonly<Record<Phase, string>> = {
  queued: "queued until another task ends",
  starting: "starting",
  thinking: "thinking",
  streaming: "writing its answer",
  tool: "using a tool",
  retrying: "waiting to ask its model again",
  "needs-permission": "waiting for the user's permission",
  "needs-answer": "waiting for the user's answer",
  stalled: "no update for a while",
};

/** The status and, for a running task, what it is doing. */
export function statusText({ status, progress }: Task): string {
  return progress ? `${status} (${PHASES[progress.phase]})` : status;
}

/** The duration of the current or last turn. */
export function timeTaken(task: Task, now: number): string {
  const end = isActive(task) ? now : (task.endedAt ?? task.startedAt);
  return formatDuration(end - task.startedAt);
}

/** What the caller should do while the task is running. */
export function adviceMeanwhile(task: Task, id: string, { caller }: ToolContext): string {
  // Only OpenCode sessions are notified, and only about tasks that an agent launched.
  return caller.by === "agent" && task.launchedBy === "agent"
    ? "You will be notified in this conversation when it ends. Until then go on with work that does not need its result, or end your turn; do not poll."
    : `Go on with work that does not need its result; when you need it, call asyncagents_output(task_id="${id}", block=true). Do not poll.`;
}
