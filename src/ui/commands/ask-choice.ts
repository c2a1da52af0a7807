import * as vscode from "vscode";
import { title } from "../plain-text.ts";
import { BACK, showInput } from "../quick-input.ts";

/** Where a question stands among those that are asked one after the other. */
export interface Step {
  readonly title: string;
  /** 1 for the first one; left out: it stands alone. */
  readonly step?: number | undefined;
  readonly totalSteps?: number | undefined;
  readonly canGoBack?: boolean | undefined;
}

/** A row that stands for a value, or a line between such rows. */
export type Choice<T> = vscode.QuickPickItem & { readonly value?: T };

export interface ChoiceQuestion<T> extends Step {
  readonly placeholder: string;
  /** May take a while; where it fails, so does the question. */
  readonly choices: Promise<readonly Choice<T>[]> | readonly Choice<T>[];
  /** The choice that Enter takes at first; by default the first one. */
  readonly active?: T | undefined;
}

export interface ChoicesQuestion<T> extends ChoiceQuestion<T> {
  /** The choices that are ticked at first; where there is none of them, the first one is. */
  readonly picked: readonly (T | undefined)[];
  /** The title for so many that are ticked. */
  readonly titleFor?: ((count: number) => string) | undefined;
}

/** Asks for one of several things. Undefined: the person changed their mind. */
export async function askChoice<T>(question: ChoiceQuestion<T>): Promise<T | typeof BACK | undefined> {
  const answer = await ask(question);
  return answer === BACK ? BACK : answer?.[0];
}

/** Asks for one or more of several things. */
export async function askChoices<T>(
  question: ChoicesQuestion<T>,
): Promise<readonly T[] | typeof BACK | undefined> {
  return ask(question);
}

function ask<T>(
  question: ChoiceQuestion<T> & Partial<ChoicesQuestion<T>>,
): Promise<readonly T[] | typeof BACK | undefined> {
  const pick = openPick(question);
  return showInput<readonly T[] | typeof BACK>(pick, (finish, fail) => {
    Promise.resolve(question.choices).then((choices) => fill(pick, choices, question), fail);
    pick.onDidChangeSelection((selection) => {
      pick.title = title(question.titleFor?.(selection.length) ?? question.title);
    });
    pick.onDidAccept(() => {
      const values = pick.selectedItems.flatMap(({ value }) => (value === undefined ? [] : [value]));
      if (values.length > 0) finish(values);
    });
    pick.onDidTriggerButton(() => finish(BACK));
  });
}

function openPick<T>(question: ChoiceQuestion<T> & Partial<ChoicesQuestion<T>>): vscode.QuickPick<Choice<T>> {
  const pick = vscode.window.createQuickPick<Choice<T>>();
  showStep(pick, question);
  pick.placeholder = question.placeholder;
  pick.canSelectMany = question.picked !== undefined;
  pick.matchOnDescription = true;
  pick.matchOnDetail = true;
  pick.busy = true;
  return pick;
}

function fill<T>(
  pick: vscode.QuickPick<Choice<T>>,
  choices: readonly Choice<T>[],
  { active, picked }: ChoiceQuestion<T> & Partial<ChoicesQuestion<T>>,
): void {
  pick.items = choices;
  pick.busy = false;
  const among = (values: readonly (T | undefined)[]): readonly Choice<T>[] =>
    choices.filter(({ value }) => value !== undefined && values.includes(value));
  if (active !== undefined) pick.activeItems = among([active]);
  if (!picked) return;
  const ticked = among(picked);
  pick.selectedItems = ticked.length > 0 ? ticked : choices.slice(0, 1);
}

/** Says in a question's head where it stands, and offers the way back. */
export function showStep(input: vscode.QuickPick<vscode.QuickPickItem> | vscode.InputBox, step: Step): void {
  input.title = title(step.title);
  input.step = step.step;
  input.totalSteps = step.totalSteps;
  input.buttons = step.canGoBack ? [vscode.QuickInputButtons.Back] : [];
}
