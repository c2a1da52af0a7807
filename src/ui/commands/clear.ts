import * as vscode from "vscode";
import { excerpt, oneLine } from "../../engine/fork/excerpt.ts";
import { isAtWork, isTask } from "../../engine/subagent.ts";
import type { Task } from "../../engine/task.ts";
import { showError } from "../human-error.ts";
import { showIfLong } from "../long-work.ts";
import { withoutLinks } from "../plain-text.ts";
import { atWorkBelow, finishedTasks } from "../tree/family.ts";
import { isAgreed, isFromCode, type Command, type CommandContext } from "./command.ts";
import { pickTask, selectedChildren } from "./pick-task.ts";
import { stop } from "./task-commands.ts";

/** Characters of a description that a message shows. */
const NAME_LENGTH = 80;

export const clear: Command = {
  isAboutTask: true,
  async run(context, argument, options) {
    const selected = selectedChildren(context, argument, options)?.filter(isTask);
    if (selected && selected.length > 0) {
      const cleared = await clearAll(context, selected);
      return selected.length === 1 ? cleared[0] : cleared;
    }
    const task = await pickTask(context, argument, {
      title: vscode.l10n.t("Clear Task"),
    });
    if (!task) return undefined;
    // A program says in its arguments whether a running task may be cancelled; a person is asked.
    if (isFromCode([argument])) return context.tasks.clear(task.id, { cancelRunning: isAgreed(options) });
    return (await clearAll(context, [task]))[0];
  },
};

export const clearFinished: Command = {
  async run(context) {
    const { known, folders } = context;
    const sessionIDs = folders.all.flatMap(({ session }) => session.id ?? []);
    return clearAll(
      context,
      sessionIDs.flatMap((id) => finishedTasks(known, id)),
    );
  },
};

/** Clears at once and offers to undo; asks first where something would be cancelled. */
async function clearAll(context: CommandContext, asked: readonly Task[]): Promise<readonly Task[]> {
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
    if ((await vscode.window.showWarningMessage(question, { modal: true }, agree)) !== agree) return [];
  }
  // As they are now: while the question stood, what was at work may have ended.
  const below = asked.flatMap(({ id }) => {
    const child = known.child(id);
    return child && isAtWork(child) ? [] : atWorkBelow(known, id);
  });
  const clearEach = async (): Promise<readonly PromiseSettledResult<Task>[]> => {
    await Promise.all([...new Set(below)].map((child) => stop(context, child)));
    return Promise.allSettled(asked.map(({ id }) => tasks.clear(id, { cancelRunning: true })));
  };
  const settled = await showIfLong(
    asked.length === 1 ? vscode.l10n.t("Clearing a task") : vscode.l10n.t("Clearing {0} tasks", asked.length),
    clearEach(),
  );
  const cleared = settled.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  const failed = settled.find((one) => one.status === "rejected");
  if (failed) void showError(failed.reason, logger);
  if (cleared.length > 0) offerUndo(tasks, cleared).catch((error: unknown) => showError(error, logger));
  return cleared;
}

async function offerUndo(tasks: CommandContext["tasks"], cleared: readonly Task[]): Promise<void> {
  const undo = vscode.l10n.t("Undo");
  const message =
    cleared.length === 1
      ? vscode.l10n.t(
          'Cleared "{0}" from the list. Its session is kept.',
          withoutLinks(excerpt(oneLine(cleared[0]?.description ?? ""), NAME_LENGTH)),
        )
      : vscode.l10n.t("Cleared {0} tasks from the list. Their sessions are kept.", cleared.length);
  if ((await vscode.window.showInformationMessage(message, undo)) !== undo) return;
  await Promise.all(cleared.map(({ id }) => tasks.restore(id)));
}
