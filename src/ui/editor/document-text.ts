import * as vscode from "vscode";
import { Refusal } from "../../engine/errors.ts";
import type { PromptFile } from "../../engine/server-model.ts";
import { isOnDisk, linesOf, placeOf, QUOTE_LENGTH, textFile } from "./place.ts";
import { fenced } from "./quotation.ts";

/** Characters that OpenCode shows an agent of a file at once; it tells the agent how to read on. */
const FIRST_LOOK = 50_000;

/** How a part of a document goes with a prompt. */
export interface DocumentText {
  /** What the prompt says of it. */
  readonly text: string;
  readonly files: readonly PromptFile[];
  readonly note?: string | undefined;
}

/**
 * Lines of a document, or all of it: read by the server, or quoted where the document is not on disk as the editor has
 * it. Throws a {@link Refusal} where that is too long to be quoted.
 */
export function documentText(document: vscode.TextDocument, range?: vscode.Range): DocumentText {
  const { uri, languageId } = document;
  const lines = range && linesOf(range);
  const place = placeOf(uri, lines);
  const length = lengthOf(document, range);
  if (isOnDisk(document)) {
    const note =
      length > FIRST_LOOK
        ? vscode.l10n.t("It is long: the agent sees its beginning and reads on by itself.")
        : undefined;
    return { text: place, files: [textFile(uri, lines)], note };
  }
  if (length > QUOTE_LENGTH) throw tooLong(document, place, length);
  const text = `${place} (not saved; this is how it stands in the editor)\n\n${fenced(document.getText(range), languageId)}`;
  return { text, files: [], note: vscode.l10n.t("It is not saved: its text goes into the prompt.") };
}

/** In characters; its text is not made for that. */
export function lengthOf(document: vscode.TextDocument, range?: vscode.Range): number {
  const { start, end } = range ?? new vscode.Range(0, 0, document.lineCount, 0);
  return document.offsetAt(end) - document.offsetAt(start);
}

function tooLong({ uri }: vscode.TextDocument, place: string, length: number): Refusal {
  const given = length.toLocaleString();
  const limit = QUOTE_LENGTH.toLocaleString();
  const message =
    uri.scheme === "file" || uri.scheme === "untitled"
      ? vscode.l10n.t(
          "{0} is not saved and has {1} characters; save it first, or select {2} at the most.",
          place,
          given,
          limit,
        )
      : vscode.l10n.t(
          "{0} is not a file and has {1} characters; select {2} at the most.",
          place,
          given,
          limit,
        );
  return new Refusal("invalid-argument", message);
}
