import { formatDuration, framed, worktreeText } from "../engine/notice-text.ts";
import type { PendingRequest } from "../engine/server-model.ts";
import { isActive, type Progress, type Task, type ToolUse } from "../engine/task.ts";
import type { TaskOutput } from "../engine/waiting.ts";
import { oneLine } from "./plain-text.ts";
import { adviceMeanwhile, conflictText, statusText, timeTaken } from "./task-text.ts";
import type { ToolContext } from "./tool.ts";

const DESCRIPTION_LENGTH = 200;
const TOOL_TITLE_LENGTH = 80;
const REQUEST_LENGTH = 300;

/** Reports on a task: its properties, followed by its result or by what to do until there is one. */
export function taskReport({ task, result, changes }: TaskOutput, id: string, context: ToolContext): string {
  const now = context.now();
  const { progress } = task;
  const conflicts = conflictText(task, context);
  const facts = [
    `Task ${id}: ${oneLine(task.description, DESCRIPTION_LENGTH)}`,
    `Status: ${statusText(task)}`,
    `Agent: ${task.agent}`,
    `${isActive(task) ? "Elapsed" : "Duration"}: ${timeTaken(task, now)}`,
    `Tool calls: ${task.toolCalls + (progress?.toolCalls ?? 0)}`,
    ...(conflicts ? [`Conflicts: ${conflicts}`] : []),
    ...(progress ? progressLines(progress, now) : []),
  ];
  const rest = isActive(task) ? waitingText(task, id, context) : endText(task, id, result);
  const worktree = task.worktree && !isActive(task) ? [worktreeText(id, task.worktree, changes)] : [];
  return [facts.join("\n"), ...worktree, rest].join("\n\n");
}

function progressLines({ recentTools, lastUpdate }: Progress, now: number): readonly string[] {
  const update = `Last update: ${formatDuration(now - lastUpdate)} ago (${new Date(lastUpdate).toISOString()})`;
  return recentTools.length === 0
    ? [update]
    : [`Recent tools: ${recentTools.map(toolUse).join(", ")}`, update];
}

function toolUse({ tool, title = "", status }: ToolUse): string {
  const notes = [oneLine(title, TOOL_TITLE_LENGTH), status === "completed" ? "" : status].filter(Boolean);
  return notes.length === 0 ? tool : `${tool} (${notes.join(", ")})`;
}

function waitingText(task: Task, id: string, context: ToolContext): string {
  const [request] = context.known.pendingRequests(task.id);
  if (request)
    return `It is waiting for the user to answer in VS Code: ${requestText(request)} Only the user can: tell them, and do not poll.`;
  const advice = adviceMeanwhile(task, id, context);
  const retry = task.progress?.retry;
  return retry
    ? `Its model refused (attempt ${retry.attempt}: ${oneLine(retry.message, REQUEST_LENGTH)}) and is asked again in ${formatDuration(retry.next - context.now())}.\n${advice}`
    : advice;
}

function requestText(request: PendingRequest): string {
  const what =
    request.type === "permission"
      ? `it asks for the permission ${request.permission} (${request.patterns.join(", ")})`
      : `it asks "${request.questions.map(({ question }) => question).join(" ")}"`;
  return `${oneLine(what, REQUEST_LENGTH)}.`;
}

/** @param result undefined if there is none to be read, empty if none was written */
function endText({ status, error }: Task, id: string, result: string | undefined): string {
  if (status === "completed") {
    if (result === undefined)
      return "Its answer can no longer be read: it was deleted from the task's session.";
    return result === "" ? "It finished without writing an answer." : `Result:\n${framed(id, result)}`;
  }
  const reason =
    status === "error"
      ? `It failed (${error?.name ?? "unknown"}):\n${framed(id, error?.message ?? "no details")}`
      : "It was cancelled before it finished.";
  return !result ? reason : `${reason}\n\nThe last that it wrote:\n${framed(id, result)}`;
}
