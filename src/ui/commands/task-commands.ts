import * as vscode from "vscode";
import { isAtWork, isTask, type Child } from "../../engine/subagent.ts";
import { isUntold } from "../../engine/task.ts";
import { showIfLong } from "../long-work.ts";
import type { Command, CommandContext } from "./command.ts";
import { pickChild, pickTask, selectedChildren } from "./pick-task.ts";
import { resumeAsking } from "./resume-flow.ts";

export const showOutput: Command = {
  isAboutTask: true,
  async run(context, argument) {
    const child = await pickChild(context, argument, {
      title: vscode.l10n.t("Show Output"),
    });
    if (child) context.panels.show(child.id);
    return child;
  },
};

export const showSelected: Command = {
  run: async ({ panels, clickedID }) => {
    const id = await clickedID();
    if (id !== undefined) panels.show(id);
    return id;
  },
};

export const cancel: Command = {
  isAboutTask: true,
  async run(context, argument, selection) {
    const selected = selectedChildren(context, argument, selection)?.filter(isAtWork);
    if (selected && selected.length > 1)
      return showIfLong(
        vscode.l10n.t("Cancelling {0} tasks", selected.length),
        Promise.all(selected.map((child) => stop(context, child))),
      );
    const child = await pickChild(context, selected?.[0] ?? argument, {
      title: vscode.l10n.t("Cancel Task"),
      accepts: isAtWork,
      none: vscode.l10n.t("No task is running."),
    });
    return child && stop(context, child);
  },
};

export const resume: Command = {
  isAboutTask: true,
  async run(context, argument, prompt) {
    const child = await pickChild(context, argument, {
      title: vscode.l10n.t("Resume Task"),
      accepts: ({ status }) => status === "completed" || status === "idle",
      none: vscode.l10n.t("No task is completed; only completed tasks can be resumed."),
    });
    if (!child) return undefined;
    if (typeof prompt === "string") return context.tasks.resume(child.id, prompt);
    return resumeAsking(context, child);
  },
};

export const retry: Command = {
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

/** Ends what a task or a subagent of others does, and what works below it. */
export async function stop(
  { known, tasks }: Pick<CommandContext, "known" | "tasks">,
  child: Child,
): Promise<Child | undefined> {
  if (isTask(child)) return tasks.cancel(child.id);
  await tasks.stopSubagent(child.id);
  return known.child(child.id);
}
