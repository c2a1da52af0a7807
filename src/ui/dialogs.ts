import * as vscode from "vscode";
import { withoutLinks } from "./plain-text.ts";

/*
 * Messages with at most one button, and the editor of the settings that they lead to. Links in messages have no effect,
 * because they can quote what agents wrote.
 */

type Show = (message: string, action: string) => Thenable<string | undefined>;

export function inform(message: string): void {
  void vscode.window.showInformationMessage(withoutLinks(message));
}

/** Shows a message with a button. Resolves to whether the user chose it. */
export async function offer(
  message: string,
  action: string,
  show: Show = vscode.window.showInformationMessage,
): Promise<boolean> {
  return (await show(withoutLinks(message), action)) === action;
}

/** Shows a message that offers to copy what the user wrote, which would be lost otherwise. */
export async function offerCopy(message: string, text: string, show?: Show): Promise<void> {
  if (await offer(message, vscode.l10n.t("Copy What You Wrote"), show))
    await vscode.env.clipboard.writeText(text);
}

/** Like {@link offer}, as a warning. */
export function offerWarning(message: string, action: string): Promise<boolean> {
  return offer(message, action, vscode.window.showWarningMessage);
}

/** Asks in a dialog whether to do something. */
export function isAgreed(question: string, action: string, detail = ""): Promise<boolean> {
  const options = { modal: true, detail: withoutLinks(detail) };
  return offer(question, action, (text, agree) => vscode.window.showWarningMessage(text, options, agree));
}

/**
 * Opens the editor of the settings.
 * @param id the setting that it shows; with `*` at its end, those whose names begin so
 */
export async function openSettings(id: string): Promise<void> {
  await vscode.commands.executeCommand("workbench.action.openSettings", `@id:${id}`);
}
