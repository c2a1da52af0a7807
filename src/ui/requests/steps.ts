import * as vscode from "vscode";
import { title, withoutLinks } from "../plain-text.ts";
import { BACK, showInput } from "../quick-input.ts";

/** What came of a step; undefined: the person left, or `over` said that it has no more use. */
export type Step<T> = T | typeof BACK | undefined;

export interface StepOptions {
  readonly title: string;
  readonly placeholder: string;
  readonly canGoBack: boolean;
  /** Closes the step. */
  readonly over: AbortSignal;
}

/** A button beside the title, and what its click gives. */
export interface StepButton<B> extends vscode.QuickInputButton {
  readonly gives: B;
}

export interface ListOptions<T extends vscode.QuickPickItem, B> extends StepOptions {
  readonly items: readonly T[];
  readonly buttons?: readonly StepButton<B>[];
}

/** Lets the person pick one of several, beginning at `active`. */
export function pickOne<T extends vscode.QuickPickItem, B = never>(
  options: ListOptions<T, B> & { readonly active?: T | undefined },
): Promise<Step<T | B>> {
  const { active } = options;
  return pick<T, B, T>(options, (list) => {
    if (active) list.activeItems = [active];
    return () => list.selectedItems[0];
  });
}

/** Lets the person pick at least one of several, `chosen` to begin with. */
export function pickSome<T extends vscode.QuickPickItem, B = never>(
  options: ListOptions<T, B> & { readonly chosen: readonly T[] },
): Promise<Step<readonly T[] | B>> {
  return pick<T, B, readonly T[]>(options, (list) => {
    list.canSelectMany = true;
    list.selectedItems = options.chosen;
    return () => {
      if (list.selectedItems.length > 0) return list.selectedItems;
      list.placeholder = vscode.l10n.t("Choose at least one: {0}", options.placeholder);
      return undefined;
    };
  });
}

function pick<T extends vscode.QuickPickItem, B, R>(
  options: ListOptions<T, B>,
  /** Gives how to read what is chosen; undefined: not enough yet. */
  prepare: (list: vscode.QuickPick<T>) => () => R | undefined,
): Promise<Step<R | B>> {
  const { placeholder, canGoBack, over, items, buttons = [] } = options;
  const list = vscode.window.createQuickPick<T>();
  list.title = title(options.title);
  list.placeholder = title(placeholder);
  list.matchOnDescription = true;
  list.matchOnDetail = true;
  list.items = items;
  list.buttons = [...(canGoBack ? [vscode.QuickInputButtons.Back] : []), ...buttons];
  const chosen = prepare(list);
  const listen = (finish: (result: R | B | typeof BACK) => void): void => {
    list.onDidAccept(() => {
      const result = chosen();
      if (result !== undefined) finish(result);
    });
    list.onDidTriggerButton((button) => {
      const own = buttons.find((one) => one === button);
      finish(own ? own.gives : BACK);
    });
  };
  return showInput(list, listen, over);
}

/** Lets the person write; `draft` is told each change, so that nothing is lost with the step. */
export function write(
  options: StepOptions & {
    readonly prompt: string;
    readonly text: string;
    readonly draft: (text: string) => void;
    /** Said where nothing is written. */
    readonly empty: string;
  },
): Promise<Step<string>> {
  const input = vscode.window.createInputBox();
  input.title = title(options.title);
  input.placeholder = options.placeholder;
  input.prompt = withoutLinks(options.prompt);
  input.value = options.text;
  input.valueSelection = [options.text.length, options.text.length];
  input.buttons = options.canGoBack ? [vscode.QuickInputButtons.Back] : [];
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
