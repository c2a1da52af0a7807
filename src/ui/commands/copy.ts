import * as vscode from "vscode";
import { oneLine } from "../../engine/fork/excerpt.ts";
import { isTask, type Child } from "../../engine/subagent.ts";
import type { Task } from "../../engine/task.ts";
import type { Command, CommandContext } from "./command.ts";
import { pickChild, pickTask, selectedChildren } from "./pick-task.ts";

export const copyTaskId: Command = {
  isAboutTask: true,
  async run(context, argument, selection) {
    const ids = (await chosen(context, argument, selection)).map(({ id }) => id).join("\n");
    if (ids !== "") await vscode.env.clipboard.writeText(ids);
    return ids;
  },
};

/** Copies the final answers as Markdown, several ones under headings. */
export const copyResult: Command = {
  isAboutTask: true,
  async run(context, argument, selection) {
    const selected = selectedChildren(context, argument, selection)?.filter(isTask).filter(isAnswered);
    const tasks = selected ?? (await pickAnswered(context, argument));
    const outputs = await Promise.all(tasks.map(({ id }) => context.tasks.output(id)));
    const answers = outputs.flatMap(({ task, result = "" }) => (result === "" ? [] : [{ task, result }]));
    const [first, ...others] = answers;
    if (!first) {
      if (tasks.length > 0)
        void vscode.window.showInformationMessage(vscode.l10n.t("There is no answer to copy."));
      return "";
    }
    const text =
      others.length === 0
        ? first.result
        : answers.map(({ task, result }) => `## ${oneLine(task.description)}\n\n${result}`).join("\n\n");
    await vscode.env.clipboard.writeText(text);
    return text;
  },
};

function isAnswered({ finalMessageID }: Task): boolean {
  return finalMessageID !== undefined;
}

async function pickAnswered(context: CommandContext, argument: unknown): Promise<readonly Task[]> {
  const task = await pickTask(context, argument, {
    title: vscode.l10n.t("Copy Result"),
    accepts: isAnswered,
    none: vscode.l10n.t("No task has answered yet."),
  });
  return task ? [task] : [];
}

async function chosen(
  context: CommandContext,
  argument: unknown,
  selection: unknown,
): Promise<readonly Child[]> {
  const selected = selectedChildren(context, argument, selection);
  if (selected) return selected;
  const child = await pickChild(context, argument, {
    title: vscode.l10n.t("Copy Task ID"),
  });
  return child ? [child] : [];
}
