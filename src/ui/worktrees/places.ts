import * as vscode from "vscode";
import { Refusal } from "../../engine/errors.ts";
import { sentence } from "../../engine/sentence.ts";
import { isTask, type Child } from "../../engine/subagent.ts";
import type { Task, TaskWorktree } from "../../engine/task.ts";
import type { TaskContext } from "../commands/command.ts";
import { pickConnected } from "../commands/pick.ts";
import type { Folder } from "../folders/folders.ts";
import type { Tasks } from "../folders/all-tasks.ts";
import { title as oneTitle } from "../plain-text.ts";
import { ancestors } from "../tree/family.ts";

export type IsolatedTask = Task & { readonly worktree: TaskWorktree };

/** The isolated task that a command is about, and its folder, which is connected. Undefined if the user cancels. */
export async function pickIsolated(
  context: TaskContext,
  argument: unknown,
  title: string,
): Promise<{ readonly task: IsolatedTask; readonly folder: Folder } | undefined> {
  const picked = await pickConnected(context, argument, {
    title,
    accepts: isIsolated,
    none: vscode.l10n.t("No tasks in worktrees."),
  });
  if (!picked) return undefined;
  const { child, folder } = picked;
  if (isIsolated(child)) return { task: child, folder };
  throw new Refusal("no-worktree", sentence('"{0}" doesn\'t have its own worktree.', child.description));
}

function isIsolated(child: Child): child is IsolatedTask {
  return isTask(child) && child.worktree !== undefined;
}

/** The directory of the worktree in which an agent works. Undefined if it works in the folder. */
export function worktreeDirectory(known: Pick<Tasks, "child">, id: string): string | undefined {
  const child = known.child(id);
  const ids = child ? [id, ...ancestors(known, child)] : [];
  const all = ids.map((one) => known.child(one)).filter((one) => one !== undefined);
  return all.find(isIsolated)?.worktree.directory;
}

export async function openWorktree(context: TaskContext, argument: unknown): Promise<void> {
  const directory = await pickDirectory(context, argument, vscode.l10n.t("Open Worktree in New Window"));
  if (directory !== undefined)
    await vscode.commands.executeCommand("vscode.openFolder", vscode.Uri.file(directory), {
      forceNewWindow: true,
    });
}

export async function openWorktreeTerminal(context: TaskContext, argument: unknown): Promise<void> {
  const title = vscode.l10n.t("Open Terminal in Worktree");
  const picked = await pickIsolated(context, argument, title);
  if (!picked) return;
  const { description, worktree } = picked.task;
  await requireThere(worktree);
  vscode.window.createTerminal({ name: oneTitle(description), cwd: worktree.directory }).show();
}

export async function copyWorktreePath(context: TaskContext, argument: unknown): Promise<void> {
  const picked = await pickIsolated(context, argument, vscode.l10n.t("Copy Worktree Path"));
  if (picked) await vscode.env.clipboard.writeText(picked.task.worktree.directory);
}

export async function remakeWorktree(context: TaskContext, argument: unknown): Promise<void> {
  const picked = await pickIsolated(context, argument, vscode.l10n.t("Make Worktree Again"));
  if (!picked) return;
  const { task, folder } = picked;
  await folder.calls.remakeWorktree(task.id);
  void vscode.window.showInformationMessage(
    vscode.l10n.t("The worktree is there again: {0}", task.worktree.directory),
  );
}

async function pickDirectory(
  context: TaskContext,
  argument: unknown,
  title: string,
): Promise<string | undefined> {
  const worktree = (await pickIsolated(context, argument, title))?.task.worktree;
  if (worktree) await requireThere(worktree);
  return worktree?.directory;
}

async function requireThere({ directory, name }: TaskWorktree): Promise<void> {
  try {
    await vscode.workspace.fs.stat(vscode.Uri.file(directory));
  } catch {
    throw new Refusal(
      "worktree-gone",
      sentence("The worktree {0} no longer exists. Make it again, or launch a new task instead.", name),
    );
  }
}
