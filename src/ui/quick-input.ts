import * as vscode from "vscode";
import { title, withoutLinks } from "./plain-text.ts";
import { BACK, type Answer, type Place } from "./wizard.ts";

export interface Heading extends Place {
  readonly title: string;
}

/** A button beside the title, and what its click gives. */
export interface StepButton<B> extends vscode.QuickInputButton {
  readonly gives: B;
}

interface ListQuestion<T extends vscode.QuickPickItem, B> extends Heading {
  readonly placeholder: string;
  /** May take a while; where they fail, so does the question. */
  readonly items: Promise<readonly T[]> | readonly T[];
  /** Shown until they are there. */
  readonly meanwhile?: readonly T[];
  /** Which of them Enter takes at first; of several to pick, which are ticked. */
  readonly first?: (items: readonly T[]) => readonly T[];
  readonly buttons?: readonly StepButton<B>[];
  /** Closes the list. */
  readonly over?: AbortSignal;
  /** The title for so many that are ticked. */
  readonly titleFor?: ((count: number) => string) | undefined;
}

/** Lets the user pick one of several. */
export function pickOne<T extends vscode.QuickPickItem, B = never>(
  question: ListQuestion<T, B>,
): Promise<Answer<T | B>> {
  return pick(question, false, ([item]) => item);
}

/** Lets the user pick at least one of several. */
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
  const { placeholder, items, meanwhile = [], first, buttons = [], over, titleFor } = question;
  const list = vscode.window.createQuickPick<T>();
  showHeading(list, question);
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
    list.items = meanwhile;
    if (items instanceof Promise) items.then(fill, fail);
    else fill(items);
    if (titleFor) list.onDidChangeSelection(({ length }) => (list.title = title(titleFor(length))));
    list.onDidAccept(() => {
      const result = read(list.selectedItems);
      if (result !== undefined) finish(result);
      else if (isForSeveral) list.placeholder = vscode.l10n.t("Select at least one: {0}", placeholder);
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

interface ChoiceQuestion<T> extends Heading {
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

/** Whatever comes of a question beside the way, the one before is asked again. Undefined: it stays as it is. */
export async function aside<T>(question: Promise<Answer<T>>): Promise<T | undefined> {
  const answer = await question;
  return answer === BACK ? undefined : answer;
}

/** Says in a question's head where it stands, and offers the way back. */
export function showHeading(
  input: vscode.QuickPick<vscode.QuickPickItem> | vscode.InputBox,
  { title: heading, step, totalSteps = 0, canGoBack }: Heading,
): void {
  input.title = title(heading);
  if (totalSteps > 1) {
    input.step = step;
    input.totalSteps = totalSteps;
  }
  input.buttons = canGoBack ? [vscode.QuickInputButtons.Back] : [];
}

/** A button that puts a text into the box. */
interface InsertButton extends vscode.QuickInputButton {
  readonly inserts: string;
}

interface TextQuestion<B> extends Heading {
  readonly placeholder: string;
  readonly prompt: string;
  readonly text: string;
  /** Whether what is typed replaces the text. */
  readonly isReplaced?: boolean;
  /** What is wrong with the text as it was given. */
  readonly problem?: string | undefined;
  /** What is wrong with a text; undefined: nothing. */
  readonly validate: (text: string) => string | undefined;
  /** Gets what is in the box when it is left, however that is. */
  readonly keep?: (text: string) => void;
  readonly buttons?: readonly (StepButton<B> | InsertButton)[];
  /** Closes the box. */
  readonly over?: AbortSignal;
}

/** Lets the user write. */
export function askText<B = never>(question: TextQuestion<B>): Promise<Answer<string | B>> {
  const { text, isReplaced, problem, validate, keep, buttons = [], over } = question;
  const input = vscode.window.createInputBox();
  showHeading(input, question);
  input.buttons = [...input.buttons, ...buttons];
  input.placeholder = question.placeholder;
  input.prompt = withoutLinks(question.prompt);
  input.value = text;
  input.valueSelection = [isReplaced ? 0 : text.length, text.length];
  input.validationMessage = problem;
  const listen = (finish: (result: string | B | typeof BACK) => void): void => {
    input.onDidChangeValue(() => (input.validationMessage = undefined));
    input.onDidAccept(() => {
      input.validationMessage = validate(input.value);
      if (!input.validationMessage) finish(input.value);
    });
    input.onDidTriggerButton((button) => {
      const own = buttons.find((one) => one === button);
      if (!own) finish(BACK);
      else if ("gives" in own) finish(own.gives);
      else input.value = [input.value.trimEnd(), own.inserts, ""].join(" ").trimStart();
    });
    input.onDidHide(() => keep?.(input.value));
  };
  return showInput(input, listen, over);
}

/**
 * Shows an input until `listen` finishes it with a result or fails it with an error, the user leaves, or `over` says
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
