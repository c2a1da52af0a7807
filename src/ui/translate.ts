import * as vscode from "vscode";
import type { Text } from "../engine/sentence.ts";

/** A text in the editor's language; words that came from elsewhere stay as they are. */
export function translate(text: Text): string {
  if (typeof text === "string") return text;
  const values = text.values.map((value) => (typeof value === "number" ? value : translate(value)));
  // eslint-disable-next-line no-restricted-syntax -- a literal, as the rule holds every sentence to it
  return vscode.l10n.t(text.template, ...values);
}
