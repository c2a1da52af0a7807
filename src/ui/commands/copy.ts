import * as vscode from "vscode";
import { oneLine } from "../../engine/fork/excerpt.ts";
import { isTask, type Child } from "../../engine/subagent.ts";
import { isAnswered } from "../tree/child-state.ts";
import type { Command, CommandContext } from "./command.ts";
import { pickChild, selectedChildren } from "./pick-task.ts";

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
    const selected = selectedChildren(context, argument, selection)?.filter(isAnswered);
    const children = selected ?? (await pickAnswered(context, argument));
    const results = await Promise.all(children.map((child) => readResult(context, child)));
    const answers = children.flatMap(({ description }, index) => {
      const result = results[index] ?? "";
      return result === "" ? [] : [{ description, result }];
    });
    const [first, ...others] = answers;
    if (!first) {
      if (children.length > 0)
        void vscode.window.showInformationMessage(vscode.l10n.t("There is no answer to copy."));
      return "";
    }
    const text =
      others.length === 0
        ? first.result
        : answers.map(({ description, result }) => `## ${oneLine(description)}\n\n${result}`).join("\n\n");
    await vscode.env.clipboard.writeText(text);
    return text;
  },
};

/** That the result of a task was fetched is noted in its record; a subagent of others has none. */
async function readResult({ known, tasks }: CommandContext, child: Child): Promise<string | undefined> {
  return isTask(child) ? (await tasks.output(child.id)).result : known.lastAnswer(child.id);
}

async function pickAnswered(context: CommandContext, argument: unknown): Promise<readonly Child[]> {
  const child = await pickChild(context, argument, {
    title: vscode.l10n.t("Copy Result"),
    accepts: isAnswered,
    none: vscode.l10n.t("No task has answered yet."),
  });
  return child ? [child] : [];
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
