import * as vscode from "vscode";
import { isAgreed } from "../dialogs.ts";
import { type Child, isTask } from "../../engine/subagent.ts";
import { isCleared } from "../tree/family.ts";
import { discardWorktree } from "../worktrees/endings.ts";
import type { PromptContext, TaskContext } from "./command.ts";
import { pickChildren } from "./pick.ts";
import { nameOf } from "../worktrees/owner.ts";
import { forEach } from "./row-commands.ts";

/** Puts cleared tasks back into the list. */
export async function restore(context: PromptContext, argument: unknown, selection: unknown): Promise<void> {
  const title = vscode.l10n.t("Restore Task");
  const cleared = await pickCleared(context, argument, selection, title);
  const [first] = await forEach(context, vscode.l10n.t("Restoring tasks…"), cleared, ({ id }) =>
    context.tasks.restore(id),
  );
  if (first) context.reveal(first.id);
}

/** Deletes cleared tasks for good. The work in a task's worktree is discarded first, which asks by itself. */
export async function deleteTask(context: TaskContext, argument: unknown, selection: unknown): Promise<void> {
  const title = vscode.l10n.t("Delete Task");
  const cleared = await pickCleared(context, argument, selection, title);
  const [first, ...others] = cleared;
  if (!first) return;
  for (const { id } of cleared.filter((child) => holdsWork(child))) {
    await discardWorktree(context, id);
    const left = context.known.child(id);
    if (left && holdsWork(left)) return;
  }
  const question =
    others.length === 0
      ? vscode.l10n.t('Delete "{0}" for good?', nameOf(first))
      : vscode.l10n.t("Delete {0} tasks for good?", cleared.length);
  const detail = vscode.l10n.t(
    "This also deletes the conversation and all subtasks from OpenCode, and can't be undone.",
  );
  if (!(await isAgreed(question, vscode.l10n.t("Delete"), detail))) return;
  await forEach(context, vscode.l10n.t("Deleting tasks…"), cleared, ({ id }) =>
    context.tasks.clear(id, { cancelRunning: true, deleteSession: true }),
  );
}

function pickCleared(
  context: TaskContext,
  argument: unknown,
  selection: unknown,
  title: string,
): Promise<readonly Child[]> {
  const none = vscode.l10n.t("No cleared tasks are selected.");
  return pickChildren(context, argument, selection, { title, accepts: isCleared, none });
}

function holdsWork(child: Child): boolean {
  return isTask(child) && child.worktree !== undefined && child.worktree.outcome !== "discarded";
}
