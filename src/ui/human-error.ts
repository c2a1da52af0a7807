import * as vscode from "vscode";
import { ConnectionError } from "../engine/connection.ts";
import { Refusal } from "../engine/errors.ts";
import { ServerFailure, type Logger } from "../engine/ports.ts";
import { withoutLinks } from "./plain-text.ts";

/**
 * The sentence a person reads of an error, its remedy included. What they cannot act on is left to the log. An error can
 * quote what agents wrote.
 */
export function humanMessage(error: unknown): string {
  return withoutLinks(message(error));
}

function message(error: unknown): string {
  if (error instanceof ConnectionError) return `${error.failure.message} ${error.failure.remedy}`;
  if (error instanceof Refusal) return error.message;
  if (error instanceof ServerFailure)
    return vscode.l10n.t("OpenCode did not do what was asked: {0}", error.message);
  return vscode.l10n.t("Something went wrong that should not have; the log has the details.");
}

/** For commands that people run through menus which hand over arguments, as programs do. Undefined where it failed. */
export async function showingErrors<T>(logger: Logger, run: () => Promise<T>): Promise<T | undefined> {
  try {
    return await run();
  } catch (error) {
    void showError(error, logger);
    return undefined;
  }
}

/** Shows an error to the person; what was refused as a warning, any other with the log one click away. */
export async function showError(error: unknown, logger: Logger): Promise<void> {
  // Whoever cancelled knows.
  if (error instanceof Refusal && error.code === "cancelled-by-caller") return;
  logger.error("A command failed.", error);
  // A refusal changed nothing and names the remedy.
  if (error instanceof Refusal && error.code !== "unavailable")
    return void (await vscode.window.showWarningMessage(humanMessage(error)));
  const showLog = vscode.l10n.t("Show Log");
  const choice = await vscode.window.showErrorMessage(humanMessage(error), showLog);
  if (choice === showLog) await vscode.commands.executeCommand("asyncagents.showLog");
}
