import * as vscode from "vscode";
import { isActive, isUntold, type Task } from "../../engine/task.ts";
import { isFromCode, type Command, type CommandContext } from "./command.ts";
import { showError } from "../human-error.ts";
import { SHOW_SELECTED } from "../tree/task-tree.ts";
import { pickTask, selectedTaskIDs } from "./pick-task.ts";

const any = (): boolean => true;

export const showOutput: Command = {
  id: "asyncagents.showOutput",
  isAboutTask: true,
  async run(context, argument) {
    const task = await pickTask(context, argument, {
      title: vscode.l10n.t("Show Output"),
      accepts: any,
      none: vscode.l10n.t("There are no tasks in this session."),
    });
    if (task) context.panels.show(task.id);
    return task;
  },
};

export const showSelected: Command = {
  id: SHOW_SELECTED,
  run: async ({ panels, selectedTaskID }) => {
    const taskID = selectedTaskID();
    if (taskID !== undefined) panels.show(taskID);
    return Promise.resolve(taskID);
  },
};

export const copyTaskId: Command = {
  id: "asyncagents.copyTaskId",
  isAboutTask: true,
  async run(context, argument, selection) {
    const selected = selectedTaskIDs(argument, selection);
    const task = selected
      ? undefined
      : await pickTask(context, argument, {
          title: vscode.l10n.t("Copy Task ID"),
          accepts: any,
          none: vscode.l10n.t("There are no tasks in this session."),
        });
    const ids = selected ?? (task ? [task.id] : []);
    if (ids.length > 0) await vscode.env.clipboard.writeText(ids.join("\n"));
    return ids.join("\n");
  },
};

export const cancel: Command = {
  id: "asyncagents.cancel",
  isAboutTask: true,
  async run(context, argument, selection) {
    const selected = selectedTaskIDs(argument, selection)?.filter((id) => {
      const task = context.engine.get(id);
      return task && isActive(task);
    });
    if (selected && selected.length > 1) return Promise.all(selected.map((id) => context.tasks.cancel(id)));
    const task = await pickTask(context, argument, {
      title: vscode.l10n.t("Cancel Task"),
      accepts: isActive,
      none: vscode.l10n.t("No task is running."),
    });
    return task && context.tasks.cancel(task.id);
  },
};

export const resume: Command = {
  id: "asyncagents.resume",
  isAboutTask: true,
  async run(context, argument, prompt) {
    const task = await pickTask(context, argument, {
      title: vscode.l10n.t("Resume Task"),
      accepts: ({ status }) => status === "completed",
      none: vscode.l10n.t("No task is completed; only completed tasks can be resumed."),
    });
    if (!task) return undefined;
    if (typeof prompt === "string") return context.tasks.resume(task.id, prompt);
    return (await import("./resume-flow.ts")).resumeAsking(context, task);
  },
};

export const retry: Command = {
  id: "asyncagents.retry",
  isAboutTask: true,
  async run(context, argument) {
    const task = await pickTask(context, argument, {
      title: vscode.l10n.t("Retry Task"),
      accepts: ({ status }) => status === "error" || status === "cancelled",
      none: vscode.l10n.t("No task failed or was cancelled."),
    });
    return task && context.tasks.retry(task.id);
  },
};

export const sendNotice: Command = {
  id: "asyncagents.sendNotice",
  isAboutTask: true,
  async run(context, argument) {
    const task = await pickTask(context, argument, {
      title: vscode.l10n.t("Tell the Session Now"),
      accepts: isUntold,
      none: vscode.l10n.t("Every session was told how its tasks ended."),
    });
    return task && context.tasks.sendNotice(task.id);
  },
};

export const clear: Command = {
  id: "asyncagents.clear",
  isAboutTask: true,
  async run(context, argument, options) {
    const selected = selectedTaskIDs(argument, options);
    if (selected && selected.length > 1) return clearAll(context, selected);
    const task = await pickTask(context, argument, {
      title: vscode.l10n.t("Clear Task"),
      accepts: any,
      none: vscode.l10n.t("There are no tasks in this session."),
    });
    if (!task) return undefined;
    // A program says in its arguments whether a running task may be cancelled; a person is asked.
    if (isFromCode([argument])) return context.tasks.clear(task.id, { cancelRunning: isAgreed(options) });
    return (await clearAll(context, [task.id]))[0];
  },
};

export const clearFinished: Command = {
  id: "asyncagents.clearFinished",
  async run(context) {
    const { engine, session } = context;
    const finished =
      session.id === undefined ? [] : engine.list(session.id).filter((task) => !isActive(task));
    return clearAll(
      context,
      finished.map(({ id }) => id),
    );
  },
};

/** Clears at once and offers to undo; asks first where something would be cancelled. */
async function clearAll(
  { engine, tasks, logger }: CommandContext,
  ids: readonly string[],
): Promise<readonly Task[]> {
  const running = ids.filter((id) => {
    const task = engine.get(id);
    return task && isActive(task);
  });
  if (running.length > 0) {
    const agree = vscode.l10n.t("Cancel and Clear");
    const question =
      running.length === 1
        ? vscode.l10n.t("One task is still running. Cancel it and clear it from the list?")
        : vscode.l10n.t(
            "{0} tasks are still running. Cancel them and clear them from the list?",
            running.length,
          );
    if ((await vscode.window.showWarningMessage(question, { modal: true }, agree)) !== agree) return [];
  }
  const cleared = await Promise.all(ids.map((id) => tasks.clear(id, { cancelRunning: true })));
  if (cleared.length > 0) offerUndo(tasks, cleared).catch((error: unknown) => showError(error, logger));
  return cleared;
}

/** Whether a program said that what runs may be cancelled. */
export function isAgreed(options: unknown): boolean {
  return (
    typeof options === "object" &&
    options !== null &&
    "cancelRunning" in options &&
    options.cancelRunning === true
  );
}

async function offerUndo(tasks: CommandContext["tasks"], cleared: readonly Task[]): Promise<void> {
  const undo = vscode.l10n.t("Undo");
  const message =
    cleared.length === 1
      ? vscode.l10n.t('Cleared "{0}" from the list. Its session is kept.', cleared[0]?.description ?? "")
      : vscode.l10n.t("Cleared {0} tasks from the list. Their sessions are kept.", cleared.length);
  if ((await vscode.window.showInformationMessage(message, undo)) !== undo) return;
  await Promise.all(cleared.map(({ id }) => tasks.restore(id)));
}
