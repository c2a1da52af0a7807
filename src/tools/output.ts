import { RESULT_MARK, type ReceivedResult } from "../engine/received-result.ts";
import { blockingTime } from "../engine/waiting.ts";
import { isActive, type Task } from "../engine/task.ts";
import { findTask, shortIDs } from "./own-tasks.ts";
import { taskReport } from "./task-report.ts";
import type { ToolResult, ToolRun } from "./tool.ts";
import { missing, ToolInput } from "./tool-input.ts";

const STUCK = "It starts once another task ends, which may have to be yours, so this call didn't wait.";
const TOLD = "End your turn: you will be told when it has ended.";
const UNTOLD = "Don't ask again in this turn: finish without its result, and say so.";

export const runOutput: ToolRun = async (sent, context) => {
  const input = new ToolInput(sent);
  const reference = input.id("task_id");
  if (reference === undefined)
    throw missing("task_id", "give the ID of the task, as asyncagents_list shows it");
  const block = input.flag("block");
  const timeout = block ? input.number("timeout", "a number of seconds from 0 to 600") : undefined;
  const { id: taskID, progress, launchedBy } = findTask(context, reference);
  const { sessionID } = context.caller;
  const caller = context.known.get(sessionID);
  // Only the end of the caller's own turn may let it start.
  const isStuck = block && progress?.phase === "queued" && caller !== undefined && isActive(caller);

  const { waitedMs } = context.caller;
  const rest = block && waitedMs ? Math.max(0, blockingTime(timeout) - waitedMs) / 1_000 : timeout;
  const output = await context.commands.output(taskID, {
    block: block && !isStuck,
    timeout: isStuck ? undefined : rest,
    signal: context.signal,
  });
  const { task } = output;
  const id = shortIDs(context, [task])(task);
  return {
    title: `Task ${id}: ${task.status}`,
    text: [
      taskReport(output, id, context),
      ...(isStuck ? [STUCK, launchedBy === "agent" ? TOLD : UNTOLD] : []),
    ].join("\n\n"),
    metadata: block ? receivedResult(task) : undefined,
  };
};

/** Marks in the conversation that the caller received the end, so that no notice is needed. */
function receivedResult(task: Task): ToolResult["metadata"] {
  if (isActive(task) || task.endedAt === undefined) return undefined;
  return { [RESULT_MARK]: { taskID: task.id, endedAt: task.endedAt } satisfies ReceivedResult };
}
