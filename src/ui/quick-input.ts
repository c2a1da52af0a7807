import * as vscode from "vscode";
import { title, withoutLinks } from "./plain-text.ts";

/** The person wants the step before. */
export const BACK = Symbol("back");

/** What came of a question; undefined: the person left, or it had no more use. */
export type Answer<T> = T | typeof BACK | undefined;

/** Where a question stands among those that are asked one after the other. */
export interface Step {
  readonly title: string;
  /** 1 for the first one; left out: it stands alone. */
  readonly step?: number | undefined;
  readonly totalSteps?: number | undefined;
  readonly canGoBack?: boolean | undefined;
}

/** A button beside the title, and what its click gives. */
export interface StepButton<B> extends vscode.QuickInputButton {
  readonly gives: B;
}

interface ListQuestion<T extends vscode.QuickPickItem, B> extends Step {
  readonly placeholder: string;
  /** May take a while; where they fail, so does the question. */
  readonly items: Promise<readonly T[]> | readonly T[];
  /** Which of them Enter takes at first; of several to pick, which are ticked. */
  readonly first?: (items: readonly T[]) => readonly T[];
  readonly buttons?: readonly StepButton<B>[];
  /** Closes the list. */
  readonly over?: AbortSignal;
  /** The title for so many that are ticked. */
  readonly titleFor?: ((count: number) => string) | undefined;
}

/** Lets the person pick one of several. */
export function pickOne<T extends vscode.QuickPickItem, B = never>(
  question: ListQuestion<T, B>,
): Promise<Answer<T | B>> {
  return pick(question, false, ([item]) => item);
}

/** Lets the person pick at least one of several. */
export function pickSome<T extends vscode.QuickPickItem, B = never>(
  question: ListQuestion<T, B>,
): Promise<Answer<readonly T[] | B>> {
  return pick(question, true, (items) => (items.length > 0 ? items : undefined));
}

function pick<T extends vscode.QuickPickItem, B, R>(
  question: ListQuestion<T, B>,
  isForSeveral: boolean,
  /** Undefined: not enough yet. */
  read: (items: readonly T[]) => R | undefined,
): Promise<Answer<R | B>> {
  const { placeholder, items, first, buttons = [], over, titleFor } = question;
  const list = vscode.window.createQuickPick<T>();
  showStep(list, question);
  list.placeholder = title(placeholder);
  list.canSelectMany = isForSeveral;
  list.matchOnDescription = true;
  list.matchOnDetail = true;
  list.buttons = [...list.buttons, ...buttons];
  list.busy = true;
  const fill = (found: readonly T[]): void => {
    list.items = found;
    list.busy = false;
    const chosen = first?.(found) ?? [];
    if (isForSeveral) list.selectedItems = chosen;
    else if (chosen.length > 0) list.activeItems = chosen;
  };
  const listen = (finish: (result: R | B | typeof BACK) => void, fail: (error: unknown) => void): void => {
    if (items instanceof Promise) items.then(fill, fail);
    else fill(items);
    if (titleFor) list.onDidChangeSelection(({ length }) => (list.title = title(titleFor(length))));
    list.onDidAccept(() => {
      const result = read(list.selectedItems);
      if (result !== undefined) finish(result);
      else if (isForSeveral) list.placeholder = vscode.l10n.t("Choose at least one: {0}", placeholder);
    });
    list.onDidTriggerButton((button) => {
      const own = buttons.find((one) => one === button);
      finish(own ? own.gives : BACK);
    });
  };
  return showInput(list, listen, over);
}

/** A row that stands for a value, or a line between such rows. */
export type Choice<T> = vscode.QuickPickItem & { readonly value?: T };

interface ChoiceQuestion<T> extends Step {
  readonly placeholder: string;
  readonly choices: Promise<readonly Choice<T>[]> | readonly Choice<T>[];
}

/** As {@link pickOne}, by values: at first `active`, else the first one. */
export async function askChoice<T>({
  choices,
  active,
  ...question
}: ChoiceQuestion<T> & { readonly active?: T | undefined }): Promise<Answer<T>> {
  const first = (found: readonly Choice<T>[]): readonly Choice<T>[] => among(found, [active]);
  const picked = await pickOne({ ...question, items: choices, first });
  return picked === BACK ? BACK : picked?.value;
}

/** As {@link pickSome}, by values: at first `picked`; where there is none of them, the first one. */
export async function askChoices<T>({
  choices,
  picked: values,
  ...question
}: ChoiceQuestion<T> & {
  readonly picked: readonly (T | undefined)[];
  readonly titleFor?: ((count: number) => string) | undefined;
}): Promise<Answer<readonly T[]>> {
  const first = (found: readonly Choice<T>[]): readonly Choice<T>[] => {
    const ticked = among(found, values);
    return ticked.length > 0 ? ticked : found.slice(0, 1);
  };
  const picked = await pickSome({ ...question, items: choices, first });
  return picked === undefined || picked === BACK
    ? picked
    : picked.flatMap(({ value }) => (value === undefined ? [] : [value]));
}

function among<T>(choices: readonly Choice<T>[], values: readonly (T | undefined)[]): readonly Choice<T>[] {
  return choices.filter(({ value }) => value !== undefined && values.includes(value));
}

/** Says in a question's head where it stands, and offers the way back. */
export function showStep(input: vscode.QuickPick<vscode.QuickPickItem> | vscode.InputBox, step: Step): void {
  input.title = title(step.title);
  input.step = step.step;
  input.totalSteps = step.totalSteps;
  input.buttons = step.canGoBack ? [vscode.QuickInputButtons.Back] : [];
}

/** Lets the person write; `draft` is told each change, so that nothing is lost with the step. */
export function write(
  options: Step & {
    readonly placeholder: string;
    /** Closes the box. */
    readonly over: AbortSignal;
    readonly prompt: string;
    readonly text: string;
    readonly draft: (text: string) => void;
    /** Said where nothing is written. */
    readonly empty: string;
  },
): Promise<Answer<string>> {
  const input = vscode.window.createInputBox();
  showStep(input, options);
  input.placeholder = options.placeholder;
  input.prompt = withoutLinks(options.prompt);
  input.value = options.text;
  input.valueSelection = [options.text.length, options.text.length];
  const listen = (finish: (result: string | typeof BACK) => void): void => {
    input.onDidChangeValue((value) => {
      input.validationMessage = "";
      options.draft(value);
    });
    input.onDidAccept(() => {
      if (input.value.trim() === "") input.validationMessage = options.empty;
      else finish(input.value.trim());
    });
    input.onDidTriggerButton(() => finish(BACK));
  };
  return showInput(input, listen, options.over);
}

/**
 * Shows an input until `listen` finishes it with a result or fails it with an error, the person leaves, or `over` says
 * that it has no more use. Undefined: it has no result.
 */
export function showInput<R>(
  input: vscode.QuickInput,
  listen: (finish: (result: R) => void, fail: (error: unknown) => void) => void,
  over?: AbortSignal,
): Promise<R | undefined> {
  return new Promise((resolve, reject) => {
    let result: R | undefined;
    const close = (): void => input.hide();
    // What someone else does meanwhile must not take the question away.
    input.ignoreFocusOut = true;
    listen(
      (given) => {
        result = given;
        close();
      },
      (error) => {
        reject(error instanceof Error ? error : new Error(String(error)));
        close();
      },
    );
    input.onDidHide(() => {
      over?.removeEventListener("abort", close);
      input.dispose();
      resolve(result);
    });
    over?.addEventListener("abort", close);
    input.show();
    if (over?.aborted) close();
  });
}
