import * as vscode from "vscode";
import { referenceToEditor } from "../prompt-editor/editor-text.ts";
import { askText, type Heading, type StepButton } from "../quick-input.ts";
import type { Answer } from "../wizard.ts";
import type { LaunchMemory } from "./launch-memory.ts";

interface PromptQuestion<B> extends Heading {
  readonly hint: string;
  readonly placeholder?: string | undefined;
  /** The name under which the text is kept until it was used. */
  readonly draft: string;
  /** What went wrong with the text when it was to be used. */
  readonly problem?: string | undefined;
  /** Whether a text says nothing; by default: it is blank. */
  readonly isEmpty?: ((text: string) => boolean) | undefined;
  /** Given where the user writes on in an editor. */
  readonly editor: B;
  readonly buttons?: readonly StepButton<B>[];
}

/**
 * Asks for a prompt, beginning with what was written the last time and not used. What is in the box is kept however
 * it is left; whoever uses it drops the draft.
 */
export function askPrompt<B>(
  memory: LaunchMemory,
  {
    hint,
    draft,
    isEmpty = (text) => text.trim() === "",
    editor,
    buttons = [],
    ...question
  }: PromptQuestion<B>,
): Promise<Answer<string | B>> {
  const text = memory.draft(draft);
  const reference = referenceToEditor();
  const insert = {
    iconPath: new vscode.ThemeIcon("mention"),
    tooltip: vscode.l10n.t("Insert {0}", reference ?? ""),
    inserts: reference ?? "",
  };
  const write = {
    iconPath: new vscode.ThemeIcon("edit"),
    tooltip: vscode.l10n.t("Write in an Editor"),
    gives: editor,
  };
  return askText({
    ...question,
    placeholder:
      question.placeholder ?? vscode.l10n.t("For example: find out why the tests are slow, and report."),
    prompt: text === "" ? hint : vscode.l10n.t("{0} Your last text is still here.", hint),
    text,
    validate: (written) => (isEmpty(written) ? vscode.l10n.t("Say what the task is to do.") : undefined),
    keep: (written) => memory.keepDraft(draft, written),
    buttons: [...(reference === undefined ? [] : [insert]), write, ...buttons],
  });
}
