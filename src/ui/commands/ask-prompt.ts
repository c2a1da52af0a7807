import * as vscode from "vscode";

/** The person wants the step before. */
export const BACK = Symbol("back");

export interface PromptQuestion {
  readonly title: string;
  readonly hint: string;
  /** What was typed before. */
  readonly value: string;
  readonly canGoBack: boolean;
}

/** Asks for a prompt. Undefined: the person changed their mind. */
export function askPrompt(question: PromptQuestion): Promise<string | typeof BACK | undefined> {
  return new Promise((resolve) => {
    const box = vscode.window.createInputBox();
    box.title = question.title;
    box.prompt = question.hint;
    box.placeholder = vscode.l10n.t("For example: find out why the tests are slow, and report.");
    box.value = question.value;
    box.valueSelection = [question.value.length, question.value.length];
    box.ignoreFocusOut = true;
    box.buttons = question.canGoBack ? [vscode.QuickInputButtons.Back] : [];
    let answer: string | typeof BACK | undefined;
    box.onDidChangeValue(() => (box.validationMessage = undefined));
    box.onDidTriggerButton(() => {
      answer = BACK;
      box.hide();
    });
    box.onDidAccept(() => {
      if (box.value.trim() === "") {
        box.validationMessage = vscode.l10n.t("Say what the task is to do.");
        return;
      }
      answer = box.value;
      box.hide();
    });
    box.onDidHide(() => {
      box.dispose();
      resolve(answer);
    });
    box.show();
  });
}

/** What a person typed is not lost because the launch failed. */
export async function offerPromptBack(prompt: string): Promise<void> {
  const copy = vscode.l10n.t("Copy Prompt");
  const choice = await vscode.window.showWarningMessage(vscode.l10n.t("The task was not launched."), copy);
  if (choice === copy) await vscode.env.clipboard.writeText(prompt);
}
