import * as vscode from "vscode";
import { isAtWork, isTask, type Child } from "../../engine/subagent.ts";
import type { Task } from "../../engine/task.ts";
import { showError } from "../human-error.ts";
import { atWorkBelow, finishedTasks } from "../tree/family.ts";
import type { TaskContext } from "./command.ts";
import { pickChildren } from "./pick-task.ts";
import { forEach, nameOf, stop } from "./task-commands.ts";

export async function clear(context: TaskContext, argument: unknown, selection: unknown): Promise<void> {
  const title = vscode.l10n.t("Clear Task");
  await clearAll(context, await pickChildren(context, argument, selection, { title, accepts: isTask }));
}

export async function clearFinished(context: TaskContext): Promise<void> {
  const { known, folders } = context;
  const sessionIDs = folders.all.flatMap(({ session }) => session.id ?? []);
  await clearAll(
    context,
    sessionIDs.flatMap((id) => finishedTasks(known, id)),
  );
}

/** Clears at once and offers to undo; asks first where something would be cancelled. */
async function clearAll(context: TaskContext, asked: readonly Child[]): Promise<void> {
  const { known, tasks, logger } = context;
  // What works below a row would go on unseen.
  const working = new Set(
    asked.flatMap((task) => [...[task].filter(isAtWork), ...atWorkBelow(known, task.id)]),
  );
  if (working.size > 0) {
    const agree = vscode.l10n.t("Cancel and Clear");
    const question =
      working.size === 1
        ? vscode.l10n.t("One task is still running. Cancel it and clear it from the list?")
        : vscode.l10n.t(
            "{0} tasks are still running. Cancel them and clear them from the list?",
            working.size,
          );
    if ((await vscode.window.showWarningMessage(question, { modal: true }, agree)) !== agree) return;
  }
  // As they are now: while the question stood, what was at work may have ended.
  const below = asked.flatMap(({ id }) => {
    const child = known.child(id);
    return child && isAtWork(child) ? [] : atWorkBelow(known, id);
  });
  const stopped = Promise.all([...new Set(below)].map((child) => stop(context, child)));
  const cleared = await forEach(context, vscode.l10n.t("Clearing tasks"), asked, async ({ id }) => {
    await stopped;
    return tasks.clear(id, { cancelRunning: true });
  });
  if (cleared.length > 0) offerUndo(tasks, cleared).catch((error: unknown) => showError(error, logger));
}

async function offerUndo(tasks: TaskContext["tasks"], cleared: readonly Task[]): Promise<void> {
  const undo = vscode.l10n.t("Undo");
  const [first, ...others] = cleared;
  const message =
    first && others.length === 0
      ? vscode.l10n.t('Cleared "{0}" from the list. Its session is kept.', nameOf(first))
      : vscode.l10n.t("Cleared {0} tasks from the list. Their sessions are kept.", cleared.length);
  if ((await vscode.window.showInformationMessage(message, undo)) !== undo) return;
  await Promise.all(cleared.map(({ id }) => tasks.restore(id)));
}
