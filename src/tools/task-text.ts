import { formatDuration } from "../engine/notice-text.ts";
import { isActive, type Phase, type Task } from "../engine/task.ts";
import { shortIDs } from "./own-tasks.ts";
import { oneLine } from "./plain-text.ts";
import type { TargetContext, ToolContext } from "./tool.ts";

/** How many files of a conflict are named, and how many characters of each. */
const NAMED_FILES = 10;
const PATH_LENGTH = 200;

const PHASES: Readonly<Record<Phase, string>> = {
  queued: "queued until another task ends",
  "setting-up": "setting up its worktree",
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

/** With what the work of an isolated task conflicts, and in which files. Empty if with nothing. */
export function conflictText({ work }: Task, context: TargetContext): string {
  const own = context.known.list(context.caller.sessionID, true);
  const idOf = shortIDs(context, own);
  const conflicts = (work?.conflicts ?? []).map(({ task, paths, count }) => {
    const names = paths.slice(0, NAMED_FILES).map((path) => JSON.stringify(oneLine(path, PATH_LENGTH)));
    const files = [...names, ...(count > names.length ? [`${count - names.length} more`] : [])].join(", ");
    const other = own.find(({ id }) => id === task?.id);
    const who = other ? `task ${idOf(other)}` : task ? "a task of another session" : "the folder";
    return `with ${who} (${files})`;
  });
  return conflicts.join(", ");
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
