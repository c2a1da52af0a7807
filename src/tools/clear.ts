import { invalidArgument } from "../engine/errors.ts";
import { isCleared } from "../engine/subagent.ts";
import { isActive, type Task } from "../engine/task.ts";
import { actOnEach, countTasks, nameFailed, nameTasks, readTarget, shortIDs } from "./own-tasks.ts";
import { oneLine } from "./plain-text.ts";
import type { TargetContext, ToolRun } from "./tool.ts";
import { ToolInput } from "./tool-input.ts";

/** How much of an unknown parameter's name is quoted, in characters. */
const MAX_NAME = 60;

export const runClear: ToolRun = async (sent, context) => {
  const { caller, commands } = context;
  const tasks = clearTargets(new ToolInput(sent), context, context.now() - (caller.waitedMs ?? 0));
  const idOf = shortIDs(context, tasks);
  const wereActive = new Set(tasks.filter(isActive).map(({ id }) => id));
  // As a rule by the same call, which is repeated if its answer was lost.
  const already = tasks.filter(isCleared);
  const others = tasks.filter((task) => !isCleared(task));
  const outcome = await actOnEach(others, ({ id }) => commands.clear(id, { cancelRunning: true }, caller.by));
  const { done } = outcome;
  const cancelled = done.filter(({ id, status }) => wereActive.has(id) && status === "cancelled");
  const sentences = [
    done.length > 0 && `Cleared ${nameTasks(done, idOf)}.`,
    cancelled.length > 0 && `Still running, so cancelled first: ${nameTasks(cancelled, idOf)}.`,
    already.length > 0 && `Already cleared: ${nameTasks(already, idOf)}.`,
    nameFailed("cleared", outcome, idOf),
  ].filter(Boolean);
  return {
    title: `Cleared ${countTasks(done.length + already.length)}`,
    text: sentences.join("\n") || "There are no background tasks to clear.",
  };
};

/**
 * The tasks that a call clears, and those that are cleared already: what it names, or of all tasks those that were
 * cleared since it was first made. Throws a `Refusal` if it has an unknown parameter instead of a target.
 * @param madeAt when the call was first made, in milliseconds since 1970
 */
export function clearTargets(input: ToolInput, context: TargetContext, madeAt = Infinity): readonly Task[] {
  const { known, caller } = context;
  const { taskID, batchID } = readTarget(input);
  if (taskID !== undefined) return [known.find(taskID, caller.sessionID)];
  if (batchID !== undefined) {
    const isMember = (task: Task): boolean => task.batchID === batchID;
    const isListed = known.list(caller.sessionID, true).some(isMember);
    const cleared = isListed ? [] : known.cleared(caller.sessionID, true).filter(isMember);
    return cleared.length > 0 ? cleared : known.batch(batchID, caller.sessionID);
  }
  // A misspelled parameter that was meant to narrow the selection must not clear all tasks.
  const [other] = input.others(["task_id", "batch_id"]);
  if (other === undefined) {
    const since = known.cleared(caller.sessionID, true).filter(({ clearedAt = 0 }) => clearedAt > madeAt);
    return [...known.list(caller.sessionID, true), ...since];
  }
  throw invalidArgument(
    `There is no parameter "${oneLine(other, MAX_NAME)}": give "task_id" or "batch_id", or nothing at all to clear all tasks.`,
  );
}
