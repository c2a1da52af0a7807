import * as vscode from "vscode";
import { excerpt, oneLine } from "../../engine/fork/excerpt.ts";
import { isAtWork, isTask, type Child } from "../../engine/subagent.ts";
import type { Task } from "../../engine/task.ts";
import { showError } from "../human-error.ts";
import { showIfLong } from "../long-work.ts";
import { withoutLinks } from "../plain-text.ts";
import { isFromCode, type Command, type CommandContext } from "./command.ts";
import { pickChild, selectedChildren } from "./pick-task.ts";

/** Characters of a description that a message shows. */
const NAME_LENGTH = 80;

/** Makes tasks of what somebody else launched. */
export const adopt: Command = {
  isAboutTask: true,
  async run(context, argument, selection) {
    const selected = selectedChildren(context, argument, selection)?.filter((child) => !isTask(child));
    if (selected && selected.length > 1) return adoptAll(context, selected);
    const child = await pickChild(context, selected?.[0] ?? argument, {
      title: vscode.l10n.t("Adopt Subagent"),
      accepts: (each) => !isTask(each),
      none: vscode.l10n.t("There is nothing to adopt: every task of this session is yours already."),
    });
    if (!child) return undefined;
    const task = await context.tasks.adopt(child.id);
    if (!isFromCode([argument])) void vscode.window.showInformationMessage(adoptedWords(task));
    return task;
  },
};

async function adoptAll(
  { tasks, logger }: CommandContext,
  asked: readonly Child[],
): Promise<readonly Task[]> {
  const settled = await showIfLong(
    vscode.l10n.t("Adopting {0} subagents", asked.length),
    Promise.allSettled(asked.map(({ id }) => tasks.adopt(id))),
  );
  const adopted = settled.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  const failed = settled.find((one) => one.status === "rejected");
  if (failed) void showError(failed.reason, logger);
  const [first, ...others] = adopted;
  if (first)
    void vscode.window.showInformationMessage(
      others.length === 0
        ? adoptedWords(first)
        : vscode.l10n.t("{0} subagents are your tasks now.", adopted.length),
    );
  return adopted;
}

/** What a person has of it. */
function adoptedWords(task: Task): string {
  const name = withoutLinks(excerpt(oneLine(task.description), NAME_LENGTH));
  if (isAtWork(task)) return vscode.l10n.t('"{0}" is your task now, and goes on with its work.', name);
  return task.status === "completed"
    ? vscode.l10n.t('"{0}" is your task now. Resume it to go on.', name)
    : vscode.l10n.t('"{0}" is your task now. Retry it as a new task, or fork it to go on.', name);
}
