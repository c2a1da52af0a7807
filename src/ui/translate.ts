import * as vscode from "vscode";
import type { Text } from "../engine/sentence.ts";

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
