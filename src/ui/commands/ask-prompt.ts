import * as vscode from "vscode";
import { referenceToEditor } from "../prompt-editor/editor-text.ts";
import { showInput, showStep, type Step } from "../quick-input.ts";
import type { LaunchMemory } from "./launch-memory.ts";

export interface PromptQuestion extends Step {
  readonly hint: string;
  readonly placeholder?: string | undefined;
  /** The name under which the text is kept until it was used. */
  readonly draft: string;
  /** What went wrong with the text when it was to be used. */
  readonly problem?: string | undefined;
  /** Whether a text says nothing; by default: it is blank. */
  readonly isEmpty?: ((text: string) => boolean) | undefined;
  /** Whether there is something to choose beside the text, or instead of it. */
  readonly hasOptions?: boolean | undefined;
}

/** What a person wrote, and where they go from here. */
export interface PromptAnswer {
  readonly text: string;
  readonly goes: "on" | "back" | "options" | "templates" | "editor";
}

/**
 * Asks for a prompt, beginning with what was written the last time and not used. What is in the box is kept however
 * it is left; whoever uses it drops the draft. Undefined: the person changed their mind.
 */
export function askPrompt(memory: LaunchMemory, question: PromptQuestion): Promise<PromptAnswer | undefined> {
  const box = vscode.window.createInputBox();
  const value = memory.draft(question.draft);
  const isEmpty = question.isEmpty ?? ((text: string) => text.trim() === "");
  const reference = referenceToEditor();
  const insert = {
    iconPath: new vscode.ThemeIcon("mention"),
    tooltip: vscode.l10n.t("Insert {0}", reference ?? ""),
  };
  const write = { iconPath: new vscode.ThemeIcon("edit"), tooltip: vscode.l10n.t("Write in an Editor") };
  const options = { iconPath: new vscode.ThemeIcon("settings-gear"), tooltip: vscode.l10n.t("Options") };
  const templates = {
    iconPath: new vscode.ThemeIcon("history"),
    tooltip: vscode.l10n.t("Templates and Recent Prompts"),
  };
  showStep(box, question);
  box.buttons = [
    ...box.buttons,
    ...(reference === undefined ? [] : [insert]),
    write,
    ...(question.hasOptions ? [options, templates] : []),
  ];
  box.prompt =
    value === "" ? question.hint : vscode.l10n.t("{0} Your last text is still here.", question.hint);
  box.placeholder =
    question.placeholder ?? vscode.l10n.t("For example: find out why the tests are slow, and report.");
  box.value = value;
  box.valueSelection = [value.length, value.length];
  box.validationMessage = question.problem;
  return showInput(box, (finish) => {
    const go = (goes: PromptAnswer["goes"]): void => finish({ text: box.value, goes });
    box.onDidChangeValue(() => (box.validationMessage = undefined));
    box.onDidTriggerButton((button) => {
      if (button === insert) box.value = [box.value.trimEnd(), reference, ""].join(" ").trimStart();
      else if (button === write) go("editor");
      else if (button === options) go("options");
      else go(button === templates ? "templates" : "back");
    });
    box.onDidAccept(() => {
      if (isEmpty(box.value)) box.validationMessage = vscode.l10n.t("Say what the task is to do.");
      else go("on");
    });
    box.onDidHide(() => memory.keepDraft(question.draft, box.value));
  });
}
