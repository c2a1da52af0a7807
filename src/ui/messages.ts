import * as vscode from "vscode";
import { ConnectionError, describeFailure } from "../engine/connection.ts";
import { Refusal, UserFacingError } from "../engine/errors.ts";
import { ServerFailure, type Logger } from "../engine/ports.ts";
import { english, sentence, type Text } from "../engine/sentence.ts";
import { withoutLinks } from "./plain-text.ts";

/**
 * The message and remedy that users see for an error. Details that they can't act on are only logged. Links are
 * removed, because an error can quote what agents wrote.
 */
export function humanMessage(error: unknown): string {
  return withoutLinks(translate(explanation(error)));
}

/** Like {@link humanMessage}, but for a model: always in English. */
export function modelMessage(error: unknown): string {
  return withoutLinks(english(explanation(error)));
}

/** The explanation of an error, including its remedy. */
export function explanation(error: unknown): Text {
  if (error instanceof ConnectionError) return describeFailure(error.failure);
  if (error instanceof Refusal) return error.text;
  if (error instanceof ServerFailure)
    return error.reason === "unreachable"
      ? error.text
      : sentence("OpenCode returned an error: {0}", error.text);
  if (error instanceof UserFacingError) return error.text;
  return sentence("Unexpected error. See the log for details.");
}

/** Shows an error: a refusal as a warning, any other error with a button that helps. */
export async function showError(error: unknown, logger: Logger): Promise<void> {
  // Needs no message: whoever cancelled knows it already.
  if (error instanceof Refusal && error.code === "cancelled-by-caller") return;
  logger.error("A command failed.", error);
  // A refusal names its remedy and has changed nothing, so it needs no button.
  if (error instanceof Refusal && error.code !== "unavailable")
    return void (await vscode.window.showWarningMessage(humanMessage(error)));
  const [label, command, ...args] = isMissing(error)
    ? [vscode.l10n.t("Set Up OpenCode"), "asyncagents.connect"]
    : [vscode.l10n.t("Show Log"), "asyncagents.showLog", "window"];
  const choice = await vscode.window.showErrorMessage(humanMessage(error), label);
  if (choice === label) await vscode.commands.executeCommand(command, ...args);
}

/** Whether no usable OpenCode was found. */
export function isMissing(error: unknown): boolean {
  return (
    error instanceof ConnectionError && ["not-found", "bad-path", "too-new"].includes(error.failure.code)
  );
}

/** Translates a text into the editor's language; plain strings are returned unchanged. */
export function translate(text: Text): string {
  if (typeof text === "string") return text;
  const values = text.values.map((value) => (typeof value === "number" ? value : translate(value)));
  // eslint-disable-next-line no-restricted-syntax -- a literal, as the rule holds every sentence to it
  return vscode.l10n.t(text.template, ...values);
}

/** Joins words into a list; those that don't apply are left out. */
export function enumerate(words: readonly (string | false | undefined)[]): string {
  return words.filter(Boolean).join(vscode.l10n.t(", "));
}

/** Work that takes longer than this shows progress, in milliseconds. */
const LONG_MS = 1_000;

/** Shows a progress notification if the work takes long. Undefined if the user may cancel that, and does. */
export function showIfLong<T>(title: string, work: Promise<T>): Promise<T>;
export function showIfLong<T>(title: string, work: Promise<T>, cancellable: true): Promise<T | undefined>;
export async function showIfLong<T>(
  title: string,
  work: Promise<T>,
  cancellable = false,
): Promise<T | undefined> {
  let end = (): void => undefined;
  const ended = new Promise<undefined>((resolve) => (end = () => resolve(undefined)));
  const options = { location: vscode.ProgressLocation.Notification, title, cancellable };
  const show = (): void =>
    void vscode.window.withProgress(options, (_, token) => {
      token.onCancellationRequested(end);
      return ended;
    });
  const timer = setTimeout(show, LONG_MS);
  try {
    return await Promise.race([work, ended]);
  } finally {
    clearTimeout(timer);
    end();
  }
}
