import { isGenerated } from "./batch-ids.ts";
import type { Disposable } from "./event.ts";
import type { Logger } from "./ports.ts";
import type { TaskChange, TaskRegistry } from "./registry.ts";
import { withoutName } from "./task-names.ts";
import { isActive, isQueued, isTakenBack, shortID, type Phase, type Task, type TaskRecord } from "./task.ts";

/** The phases in which a task does nothing until something outside it happens. */
const WAITING: readonly (Phase | undefined)[] = ["needs-permission", "needs-answer", "retrying", "stalled"];

/**
 * Logs what happens to each task, from its launch to its notice, so that a search for its ID shows its story. Contains
 * nothing that a user or a model wrote.
 */
export function logTasks(registry: TaskRegistry, logger: Logger): Disposable {
  return registry.onDidChange((change) => {
    for (const line of linesOf(change)) logger.info(`Task ${shortID(change.id)}: ${line}.`);
  });
}

function linesOf({ before, after }: TaskChange): readonly string[] {
  // Most tasks that a connect finds ended long ago.
  if (!before) return after && isActive(after) ? [opening(after)] : [];
  if (!after) return ["removed from the list"];
  return [
    ...statusLines(before, after),
    ...phaseLines(before, after),
    ...worktreeLines(before, after),
    ...noticeLines(before, after),
    ...(before.clearedAt === after.clearedAt ? [] : [after.clearedAt === undefined ? "restored" : "cleared"]),
  ];
}

function opening({ id, status, queued, agent, model, launchedBy, parentSessionID, ...task }: Task): string {
  const facts = [
    `${queued ? "queued" : status}, session ${id} of ${parentSessionID}`,
    `launched by ${launchedBy === "person" ? "the user" : "an agent"}`,
    `agent ${agent}`,
    model && `model ${model.providerID}/${model.modelID}`,
    isGenerated(task.batchID) ? `batch ${task.batchID}` : "named batch",
    task.forkedFrom && `forked from ${task.forkedFrom}`,
    task.insteadOf && `instead of ${task.insteadOf}`,
    task.worktree && withoutName(`worktree ${task.worktree.name}`, task.worktree.name),
  ];
  return facts.filter(Boolean).join(", ");
}

function statusLines(before: Task, after: Task): readonly string[] {
  if (before.status === after.status && before.resumeCount === after.resumeCount)
    return isQueued(before) && !isQueued(after) && isActive(after) ? ["started"] : [];
  if (isTakenBack(before, after)) return ["follow-up refused"];
  const { status, error, endedAt, startedAt, toolCalls } = after;
  const change = `${before.status} → ${status}`;
  if (isActive(after) || endedAt === undefined) return [change];
  const seconds = Math.round((endedAt - startedAt) / 1_000);
  return [`${change}${error ? ` (${error.name})` : ""} after ${seconds} s, ${toolCalls} tool calls so far`];
}

function phaseLines(before: Task, after: Task): readonly string[] {
  const [left, entered] = [before.progress?.phase, after.progress?.phase];
  if (left === entered || !isActive(after)) return [];
  if (WAITING.includes(entered)) return [`waits (${entered})`];
  return WAITING.includes(left) ? ["continues"] : [];
}

function worktreeLines({ worktree: before }: TaskRecord, { worktree: after }: TaskRecord): readonly string[] {
  if (!after || before === after) return [];
  return [
    ...(before?.setup === "pending" && !after.setup ? ["worktree set up"] : []),
    ...(before?.outcome !== after.outcome ? [`work ${after.outcome ?? "in its worktree again"}`] : []),
  ];
}

function noticeLines({ notice: before }: TaskRecord, { notice: after }: TaskRecord): readonly string[] {
  if (before === after) return [];
  switch (after.state) {
    case "none":
      return [];
    case "pending":
      if (before.state !== "pending") return [`notice ${after.messageID} is due`];
      return after.attempts > before.attempts ? [`notice not delivered, attempt ${after.attempts}`] : [];
    case "delivered":
      return before.state === "delivered" && before.messageID === after.messageID
        ? []
        : [`notice ${after.messageID} delivered`];
    case "skipped":
      return before.state === "skipped" ? [] : [`no notice: ${after.reason.replace(/\.$/, "")}`];
  }
}
