import { realpath } from "node:fs/promises";
import { invalidArgument, Refusal } from "../../engine/errors.ts";
import type { MirroredRequest } from "../../engine/folder-changes.ts";
import type { FileChange, RequestAnswer, SessionChanges } from "../../engine/server-model.ts";
import { shortID, type Task } from "../../engine/task.ts";
import { stoppable } from "../background-work.ts";
import { requireFolder } from "../folders/folders.ts";
import type { ReviewContext, ServerContext, TaskContext } from "./command.ts";
import { readSubject, type SubjectKind } from "./editor-commands.ts";
import { launchTask, type LaunchArguments } from "./launching.ts";
import { changeAt, type ChangedBy, findChild } from "./pick.ts";
import { accept, pendingOf, revertNow, type RevertResult } from "./review.ts";
import { requestsUnder } from "./row-commands.ts";

/* The implementation of the exported API. Works like the commands, but asks nothing, and rejects on failure. */

export { forkTask, launchTask } from "./launching.ts";

/** Resolves to the real paths of the folders in which there was something to stop. */
export async function stopBackgroundWork(
  { daemon }: Pick<ServerContext, "daemon">,
  folders: readonly string[],
): Promise<readonly string[]> {
  if (!(await daemon.isStarted())) return [];
  // Agents may still run in a folder that was deleted from the disk.
  const wanted = await Promise.all(folders.map((path) => realpath(path).catch(() => path)));
  const directories = stoppable(await daemon.status())
    .map(({ directory }) => directory)
    .filter((directory) => wanted.includes(directory));
  if (directories.length > 0) await daemon.stop(directories);
  return directories;
}

export async function launchOn(
  context: TaskContext,
  kind: SubjectKind,
  input: LaunchArguments,
  given: readonly unknown[],
): Promise<Task> {
  return launchTask(context, input, await readSubject(context, kind, given));
}

/** Answers a request of a task: the one named, by default the oldest. */
export async function sendAnswer(
  context: TaskContext,
  taskID: string,
  answer: RequestAnswer,
  requestID?: string,
): Promise<void> {
  const { id } = findChild(context, taskID);
  const chosen = requestsUnder(context, id).find(
    ({ request }) => requestID === undefined || request.id === requestID,
  );
  if (!chosen) throw new Refusal("wrong-status", `Task ${shortID(id)} does not wait for this answer now.`);
  requireFitting(chosen.request, answer);
  await context.tasks.answer(chosen.request, answer);
}

function requireFitting(request: MirroredRequest, answer: RequestAnswer): void {
  if (answer.type === "dismiss") return;
  if (request.type === "permission" && answer.type === "permission") return;
  if (request.type === "permission" || answer.type === "permission")
    throw invalidArgument(`The answer to a ${request.type} must be of that type, or "dismiss".`);
  if (answer.answers.length !== request.questions.length)
    throw invalidArgument(`There must be one list for each of the ${request.questions.length} questions.`);
  request.questions.forEach(({ question, options, multiple, custom }, at) => {
    const labels = answer.answers[at] ?? [];
    if (labels.length === 0 || (labels.length > 1 && !multiple))
      throw invalidArgument(
        `The question "${question}" takes ${multiple ? "at least one answer" : "one answer"}.`,
      );
    const unknown = labels.find((label) => !options.some((option) => option.label === label));
    if (unknown !== undefined && !custom)
      throw invalidArgument(`The question "${question}" has no option "${unknown}".`);
  });
}

export async function readChanges(context: ReviewContext, taskID: string): Promise<SessionChanges> {
  return (await changedBy(context, taskID)).changes;
}

/** Resolves to the accepted paths. */
export async function acceptChanges(
  context: ReviewContext,
  taskID: string,
  paths?: readonly string[],
): Promise<readonly string[]> {
  const target = await changedBy(context, taskID);
  const files = await filesOf(context, target, paths);
  await accept(context, target, files);
  return files.map(({ path }) => path);
}

export async function revertChanges(
  context: ReviewContext,
  taskID: string,
  paths?: readonly string[],
): Promise<RevertResult> {
  const target = await changedBy(context, taskID);
  return revertNow(context, target, await filesOf(context, target, paths));
}

async function changedBy(context: ReviewContext, taskID: string): Promise<ChangedBy> {
  const child = findChild(context, taskID);
  return { child, changes: await (await context.review()).read(child) };
}

/** The named files; by default all that are left to review. */
async function filesOf(
  context: ReviewContext,
  target: ChangedBy,
  paths: readonly string[] | undefined,
): Promise<readonly FileChange[]> {
  return paths ? paths.map((path) => changeAt(target, path)) : pendingOf(context, target);
}

/** Resolves to the path of the configuration file that is now as requested; undefined if there is none. */
export async function setAgentTools(
  { folders }: TaskContext,
  action: "install" | "remove",
  scope: "project" | "user",
): Promise<string | undefined> {
  const calls = await requireFolder(folders).open();
  const plan = await calls.planAgentTools(action, scope);
  if (plan && plan.after !== plan.before) await calls.applyAgentTools(plan);
  return plan?.path;
}
