import * as vscode from "vscode";
import { settingOf } from "../engine/budget.ts";
import { percentOf } from "../engine/ceiling.ts";
import { excerpt, oneLine } from "../engine/fork/excerpt.ts";
import type { Task } from "../engine/task.ts";
import { showError } from "./human-error.ts";
import type { EndContext } from "./notifications.ts";
import { withoutLinks } from "./plain-text.ts";
import { ceilingAmounts } from "./tree/words.ts";

/** As much of a task's description as a notification shows. */
const TASK_SHOWN = 60;

/** Warns that a task, or its batch, has nearly used its ceiling, while there is time to raise it or to stop by hand. */
export async function tellCeiling(context: EndContext, task: Task): Promise<void> {
  const { ceiling } = task;
  if (!ceiling) return;
  const isBatch = ceiling.scope === "batch";
  const show = isBatch ? vscode.l10n.t("Show Tasks") : vscode.l10n.t("Show Output");
  const change = vscode.l10n.t("Change Ceiling");
  const cancel = isBatch ? vscode.l10n.t("Cancel Batch") : vscode.l10n.t("Cancel Task");
  const name = excerpt(oneLine(task.description), TASK_SHOWN);
  const facts = [name, percentOf(ceiling), ceilingAmounts(ceiling)] as const;
  const message = isBatch
    ? vscode.l10n.t('The batch of task "{0}" has used {1} % of its ceiling: {2}.', ...facts)
    : vscode.l10n.t('Task "{0}" has used {1} % of its ceiling: {2}.', ...facts);
  const choice = await vscode.window.showWarningMessage(withoutLinks(message), show, change, cancel);
  if (choice === change)
    await vscode.commands.executeCommand(
      "workbench.action.openSettings",
      `@id:${settingOf(ceiling.ceiling)}`,
    );
  else if (choice === cancel) await stop(context, task, isBatch);
  else if (choice === show && isBatch) context.showTasks();
  else if (choice === show) context.showOutput(task.id);
}

async function stop(
  { tasks, logger }: EndContext,
  { id, batchID, parentSessionID }: Task,
  isBatch: boolean,
): Promise<void> {
  try {
    await (isBatch ? tasks.cancelBatch(batchID, parentSessionID) : tasks.cancel(id));
  } catch (error) {
    await showError(error, logger);
  }
}
