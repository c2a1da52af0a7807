import { TASK_STATUSES, type Task } from "../engine/task.ts";
import type { UnreadableTask } from "../engine/registry.ts";
import { english } from "../engine/sentence.ts";
import { countTasks, shortIDs } from "./own-tasks.ts";
import { oneLine, tableCell } from "./plain-text.ts";
import { conflictText, statusText, timeTaken } from "./task-text.ts";
import type { ToolContext, ToolRun } from "./tool.ts";
import { ToolInput } from "./tool-input.ts";

const DESCRIPTION_LENGTH = 80;
const NAME_LENGTH = 100;
const REASON_LENGTH = 200;

export const runList: ToolRun = async (sent, context) => {
  const { known, caller } = context;
  const input = new ToolInput(sent);
  const status = input.word("status", TASK_STATUSES);
  const batchID = input.id("batch_id");
  const all = known.list(caller.sessionID, true);
  const tasks = all
    .filter((task) => status === undefined || task.status === status)
    .filter((task) => batchID === undefined || task.batchID === batchID);
  const filter = [
    status === undefined ? "" : `status ${status}`,
    batchID === undefined ? "" : `batch ${oneLine(batchID, NAME_LENGTH)}`,
  ].filter(Boolean);
  const found = tasks.length > 0 ? table(tasks, context) : nothing(all.length > 0 ? filter : []);
  const text =
    filter.length > 0 ? found : [found, ...unreadable(known.unreadable(caller.sessionID))].join("\n\n");
  return { title: countTasks(tasks.length), text };
};

function nothing(filter: readonly string[]): string {
  const what = "No background tasks found";
  return filter.length === 0 ? what : `${what} with ${filter.join(" and ")}`;
}

function table(tasks: readonly Task[], context: ToolContext): string {
  const idOf = shortIDs(context, tasks);
  const now = context.now();
  const rows = tasks.map((task) => {
    const cells = [
      [idOf(task), task.resumeCount > 0 ? "(resumed)" : "", task.isForked ? "(forked)" : ""]
        .filter(Boolean)
        .join(" "),
      statusText(task),
      tableCell(task.agent, NAME_LENGTH),
      tableCell(task.batchID, NAME_LENGTH),
      timeTaken(task, now),
      tableCell(task.description, DESCRIPTION_LENGTH),
    ];
    return `| ${cells.join(" | ")} |`;
  });
  return [
    `${countTasks(tasks.length)}: ${counts(tasks)}`,
    "",
    "| ID | Status | Agent | Batch | Time | Description |",
    "| --- | --- | --- | --- | --- | --- |",
    ...rows,
    ...conflicts(tasks, context),
  ].join("\n");
}

/** The tasks whose work in worktrees doesn't fit. */
function conflicts(tasks: readonly Task[], context: ToolContext): readonly string[] {
  const idOf = shortIDs(context, tasks);
  const lines = tasks.flatMap((task) => {
    const text = conflictText(task, context);
    return text === "" ? [] : [`- ${idOf(task)}: ${text}`];
  });
  return lines.length === 0 ? [] : ["", "Work in worktrees that conflicts:", ...lines];
}

function counts(tasks: readonly Task[]): string {
  return TASK_STATUSES.map((status) => ({
    status,
    count: tasks.filter((task) => task.status === status).length,
  }))
    .filter(({ count }) => count > 0)
    .map(({ status, count }) => `${count} ${status}`)
    .join(", ");
}

/** Lists tasks with broken records, or records of a newer version, in at most one line. */
function unreadable(tasks: readonly UnreadableTask[]): readonly string[] {
  if (tasks.length === 0) return [];
  const names = tasks.map(
    ({ sessionID, title, reason }) =>
      `session ${sessionID} "${tableCell(title, DESCRIPTION_LENGTH)}" (${tableCell(english(reason), REASON_LENGTH)})`,
  );
  return [`Not readable, so not in the table: ${names.join(", ")}`];
}
