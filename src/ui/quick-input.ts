import * as vscode from "vscode";
import { title, withoutLinks } from "./plain-text.ts";
import { BACK, type Answer, type Place } from "./wizard.ts";

export interface Heading extends Place {
  readonly title: string;
}

/** A button beside the title or in a row, and the answer that it gives. */
export interface StepButton<B> extends vscode.QuickInputButton {
  readonly gives: B;
}

/** A button that changes what the list shows. */
interface ChangeButton extends vscode.QuickInputButton {
  readonly changes: () => void;
}

type ListButton<B> = StepButton<B> | ChangeButton;

export interface ListItem<B = never> extends vscode.QuickPickItem {
  readonly buttons?: readonly ListButton<B>[];
}

interface ListQuestion<T extends ListItem<B>, B> extends Heading {
  readonly placeholder: string;
  /** May take a while; if it rejects, so does the question. A function is called again after a button's change. */
  readonly items: Promise<readonly T[]> | readonly T[] | (() => readonly T[]);
  /** Shown until the items are loaded. */
  readonly meanwhile?: readonly T[];
  /** The items that are initially active; if several can be picked, those initially checked. */
  readonly first?: (items: readonly T[]) => readonly T[];
  readonly buttons?: readonly ListButton<B>[];
  /** Closes the list when aborted. */
  readonly over?: AbortSignal;
  /** The title for a number of checked items. */
  readonly titleFor?: ((count: number) => string) | undefined;
  /** The text that is initially typed. */
  readonly text?: string;
  /** Receives the selected items and the typed text whenever they change. */
  readonly follow?: (items: readonly T[], text: string) => void;
}

/** Lets the user pick one of several. */
export function pickOne<T extends ListItem<B>, B = never>(
  question: ListQuestion<T, B>,
): Promise<Answer<T | B>> {
  return pick(question, false, ([item]) => item);
}

/** Lets the user pick at least one of several. */
export function pickSome<T extends ListItem<B>, B = never>(
  question: ListQuestion<T, B>,
): Promise<Answer<readonly T[] | B>> {
  return pick(question, true, (items) => (items.length > 0 ? items : undefined));
}

/** Lets the user pick any number of several. */
export function pickAny<T extends ListItem<B>, B = never>(
  question: ListQuestion<T, B>,
): Promise<Answer<readonly T[] | B>> {
  return pick(question, true, (items) => items);
}

function pick<T extends ListItem<B>, B, R>(
  question: ListQuestion<T, B>,
  isForSeveral: boolean,
  /** Undefined if the selection isn't sufficient yet. */
  read: (items: readonly T[]) => R | undefined,
): Promise<Answer<R | B>> {
  const { placeholder, items, meanwhile = [], first, buttons = [], over, titleFor, text, follow } = question;
  const list = vscode.window.createQuickPick<T>();
  showHeading(list, question);
  list.placeholder = title(placeholder);
  list.canSelectMany = isForSeveral;
  list.matchOnDescription = true;
  list.matchOnDetail = true;
  list.buttons = [...list.buttons, ...buttons];
  list.busy = true;
  if (text !== undefined) list.value = text;
  const fill = (found: readonly T[]): void => {
    list.items = found;
    list.busy = false;
    const chosen = first?.(found) ?? [];
    if (isForSeveral) list.selectedItems = chosen;
    else if (chosen.length > 0) list.activeItems = chosen;
  };
  const listen = (finish: (result: R | B | typeof BACK) => void, fail: (error: unknown) => void): void => {
    list.items = meanwhile;
    const load = (): void => {
      if (items instanceof Promise) items.then(fill, fail);
      else fill(typeof items === "function" ? items() : items);
    };
    load();
    const press = (button: ListButton<B> | undefined): void => {
      if (!button) return finish(BACK);
      if ("gives" in button) return finish(button.gives);
      button.changes();
      load();
    };
    if (titleFor) list.onDidChangeSelection(({ length }) => (list.title = title(titleFor(length))));
    list.onDidAccept(() => {
      const result = read(list.selectedItems);
      if (result !== undefined) finish(result);
      else if (isForSeveral) list.placeholder = vscode.l10n.t("Select at least one: {0}", placeholder);
    });
    list.onDidTriggerButton((button) => press(buttons.find((one) => one === button)));
    list.onDidTriggerItemButton(({ button, item }) => press(item.buttons?.find((one) => one === button)));
    if (follow) {
      list.onDidChangeSelection((selected) => follow(selected, list.value));
      list.onDidChangeValue((typed) => follow(list.selectedItems, typed));
    }
  };
  return showInput(list, listen, over);
}

/** A row that stands for a value, or a separator. */
export type Choice<T> = ListItem & { readonly value?: T };

interface ChoiceQuestion<T> extends Heading {
  readonly placeholder: string;
  readonly choices: Promise<readonly Choice<T>[]> | readonly Choice<T>[];
}

/** Like {@link pickOne}, but for values; initially `active`, otherwise the first one, is active. */
export async function askChoice<T>({
  choices,
  active,
  ...question
}: ChoiceQuestion<T> & { readonly active?: T | undefined }): Promise<Answer<T>> {
  const first = (found: readonly Choice<T>[]): readonly Choice<T>[] => among(found, [active]);
  const picked = await pickOne({ ...question, items: choices, first });
  return picked === BACK ? BACK : picked?.value;
}

/** Like {@link pickSome}, but for values; initially `picked`, or the first one if none of these exists, is checked. */
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

/** Turns Back into undefined for a side question, after which the main question is asked again anyway. */
export async function aside<T>(question: Promise<Answer<T>>): Promise<T | undefined> {
  const answer = await question;
  return answer === BACK ? undefined : answer;
}

/** Shows a question's title, step and Back button. */
function showHeading(
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

/** A button that inserts a text into the box. */
interface InsertButton extends vscode.QuickInputButton {
  readonly inserts: string;
}

export interface TextQuestion<B> extends Heading {
  readonly placeholder: string;
  readonly prompt: string;
  /** What a text means, shown before the prompt; undefined if that needs no words. */
  readonly meaning?: ((text: string) => string | undefined) | undefined;
  readonly text: string;
  /** Whether the text is selected, so that typing replaces it. */
  readonly isReplaced?: boolean;
  /** The error shown initially. */
  readonly problem?: string | undefined;
  /** The error in a text; undefined if it is valid. */
  readonly validate: (text: string) => string | undefined;
  /** Receives the text as it is typed, and when the box is closed, in whatever way. */
  readonly keep?: (text: string) => void;
  readonly buttons?: readonly (StepButton<B> | InsertButton)[];
  /** Closes the box when aborted. */
  readonly over?: AbortSignal;
}

/** Lets the user enter a text. */
export function askText<B = never>(question: TextQuestion<B>): Promise<Answer<string | B>> {
  const { text, isReplaced, problem, validate, keep, buttons = [], over } = question;
  const input = vscode.window.createInputBox();
  showHeading(input, question);
  input.buttons = [...input.buttons, ...buttons];
  input.placeholder = question.placeholder;
  input.value = text;
  input.valueSelection = [isReplaced ? 0 : text.length, text.length];
  input.validationMessage = problem;
  const explain = (): void => {
    const texts = [question.meaning?.(input.value), question.prompt];
    input.prompt = withoutLinks(texts.filter(Boolean).join(" "));
  };
  explain();
  const listen = (finish: (result: string | B | typeof BACK) => void): void => {
    input.onDidChangeValue(() => {
      input.validationMessage = undefined;
      explain();
      // The same question can be asked again while this one is open, or the window can be closed.
      keep?.(input.value);
    });
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
 * Shows an input until `listen` finishes it with a result or fails it with an error, the user leaves, or `over` aborts.
 * Undefined if there is no result.
 */
function showInput<R>(
  input: vscode.QuickInput,
  listen: (finish: (result: R) => void, fail: (error: unknown) => void) => void,
  over?: AbortSignal,
): Promise<R | undefined> {
  return new Promise((resolve, reject) => {
    let result: R | undefined;
    const close = (): void => input.hide();
    // Activity elsewhere must not close the question.
    input.ignoreFocusOut = true;
    listen(
      (given) => {
        // The user may choose again before the input closes.
        result ??= given;
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
