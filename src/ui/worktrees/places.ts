import * as vscode from "vscode";
import { Refusal } from "../../engine/errors.ts";
import { sentence } from "../../engine/sentence.ts";
import type { TaskContext } from "../commands/command.ts";
import { pickConnected } from "../commands/pick.ts";
import { inform } from "../dialogs.ts";
import type { Folder } from "../folders/folders.ts";
import { title as oneTitle } from "../plain-text.ts";
import { isIsolated, type IsolatedTask } from "./owner.ts";
import { askToRemake, remake } from "./remedies.ts";

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

/** Like {@link pickIsolated}, but if the worktree is gone, offers to make it again. */
export async function pickPresent(
  context: TaskContext,
  argument: unknown,
  title: string,
): ReturnType<typeof pickIsolated> {
  const picked = await pickIsolated(context, argument, title);
  if (!picked) return undefined;
  const { task, folder } = picked;
  const isThere = await vscode.workspace.fs.stat(vscode.Uri.file(task.worktree.directory)).then(
    () => true,
    () => askToRemake(folder, task),
  );
  return isThere ? picked : undefined;
}

export async function openWorktree(context: TaskContext, argument: unknown): Promise<void> {
  const picked = await pickPresent(context, argument, vscode.l10n.t("Open Worktree in New Window"));
  if (!picked) return;
  const folder = vscode.Uri.file(picked.task.worktree.directory);
  await vscode.commands.executeCommand("vscode.openFolder", folder, { forceNewWindow: true });
}

export async function openWorktreeTerminal(context: TaskContext, argument: unknown): Promise<void> {
  const picked = await pickPresent(context, argument, vscode.l10n.t("Open Terminal in Worktree"));
  if (!picked) return;
  const { description, worktree } = picked.task;
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
  await remake(folder, task);
  inform(vscode.l10n.t("The worktree is there again: {0}", task.worktree.directory));
}
