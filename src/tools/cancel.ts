import { invalidArgument } from "../engine/errors.ts";
import { isActive, type Task } from "../engine/task.ts";
import { actOnEach, countTasks, findTask, nameFailed, nameTasks, readTarget, shortIDs } from "./own-tasks.ts";
import type { TargetContext, ToolRun } from "./tool.ts";
import { ToolInput } from "./tool-input.ts";

export const runCancel: ToolRun = async (sent, context) => {
  const tasks = cancelTargets(new ToolInput(sent), context);
  const idOf = shortIDs(context, tasks);
  // As a rule by the same call, which is repeated if its answer was lost.
  const already = tasks.filter(({ status }) => status === "cancelled");
  const others = tasks.filter((task) => !already.includes(task));
  const outcome = await actOnEach(others, ({ id }) => context.commands.cancel(id, context.caller.by));
  const cancelled = outcome.done.filter(({ status }) => status === "cancelled");
  const ended = outcome.done.filter(({ status }) => status !== "cancelled");
  const sentences = [
    cancelled.length > 0 && `Cancelled ${nameTasks(cancelled, idOf)}.`,
    already.length > 0 && `Already cancelled: ${nameTasks(already, idOf)}.`,
    ended.length > 0 && `Ended by itself before it could be cancelled: ${nameTasks(ended, idOf)}.`,
    nameFailed("cancelled", outcome, idOf),
  ].filter(Boolean);
  return {
    title: `Cancelled ${countTasks(cancelled.length + already.length)}`,
    text: sentences.join("\n") || "None of these tasks is running any more; there is nothing to cancel.",
  };
};

/** The tasks that a call cancels, and those of a batch that are already cancelled. Throws a `Refusal` if it names none. */
export function cancelTargets(input: ToolInput, context: TargetContext): readonly Task[] {
  const { taskID, batchID } = readTarget(input);
  if (taskID !== undefined) return [findTask(context, taskID)];
  if (batchID !== undefined)
    return context.known
      .batch(batchID, context.caller.sessionID)
      .filter((task) => isActive(task) || task.status === "cancelled");
  throw invalidArgument('Give "task_id" or "batch_id": asyncagents_list shows the IDs.');
}
