import * as vscode from "vscode";
import { ConnectionError, describeFailure } from "../engine/connection.ts";
import { Refusal } from "../engine/errors.ts";
import { ServerFailure, type Logger } from "../engine/ports.ts";
import { english, sentence, type Text } from "../engine/sentence.ts";
import { withoutLinks } from "./plain-text.ts";
import { translate } from "./translate.ts";

/**
 * The sentence a user reads of an error, its remedy included. What they cannot act on is left to the log. An error can
 * quote what agents wrote.
 */
export function humanMessage(error: unknown): string {
  return withoutLinks(translate(explanation(error)));
}

/** As {@link humanMessage}, for a model: in English, whatever the editor's language. */
export function modelMessage(error: unknown): string {
  return withoutLinks(english(explanation(error)));
}

/** What an error comes to in words, its remedy included. */
export function explanation(error: unknown): Text {
  if (error instanceof ConnectionError) return describeFailure(error.failure);
  if (error instanceof Refusal) return error.text;
  if (error instanceof ServerFailure)
    return error.reason === "unreachable"
      ? error.text
      : sentence("OpenCode returned an error: {0}", error.text);
  return sentence("Unexpected error. See the log for details.");
}

/** Shows an error to the user; what was refused as a warning, any other with what helps one click away. */
export async function showError(error: unknown, logger: Logger): Promise<void> {
  // Whoever cancelled knows.
  if (error instanceof Refusal && error.code === "cancelled-by-caller") return;
  logger.error("A command failed.", error);
  // A refusal changed nothing and names the remedy.
  if (error instanceof Refusal && error.code !== "unavailable")
    return void (await vscode.window.showWarningMessage(humanMessage(error)));
  const [label, command, ...args] = isMissing(error)
    ? [vscode.l10n.t("Set Up OpenCode"), "asyncagents.setUp"]
    : [vscode.l10n.t("Show Log"), "asyncagents.showLog", "window"];
  const choice = await vscode.window.showErrorMessage(humanMessage(error), label);
  if (choice === label) await vscode.commands.executeCommand(command, ...args);
}

/** Whether it is OpenCode itself that is missing. */
function isMissing(error: unknown): boolean {
  return error instanceof ConnectionError && ["not-found", "bad-path"].includes(error.failure.code);
}
