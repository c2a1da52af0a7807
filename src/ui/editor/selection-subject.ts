import * as vscode from "vscode";
import { Refusal } from "../../engine/errors.ts";
import { sentence } from "../../engine/sentence.ts";
import type { Variables } from "../templates/template.ts";
import { documentText, lengthOf } from "./document-text.ts";
import { linesOf, placeOf, QUOTE_LENGTH } from "./place.ts";
import { problemLine, problemsIn } from "./problem-subject.ts";
import { codeSpan, fenced } from "./quotation.ts";
import type { Subject } from "./subject.ts";

/** A place in a document. */
export interface Selected {
  readonly document: vscode.TextDocument;
  readonly range: vscode.Range;
}

/** What is selected. Throws a {@link Refusal} where nothing is. */
export function selectionSubject({ document, range }: Selected): Subject {
  if (range.isEmpty)
    throw new Refusal("invalid-argument", sentence("Select some text in the editor, then try again."));
  const { text, files, note } = documentText(document, range);
  // The server reads whole lines.
  const words = files.length > 0 && range.isSingleLine ? document.getText(range) : "";
  const isPart = words.trim() !== "" && words.trim() !== document.lineAt(range.start.line).text.trim();
  return {
    title: placeOf(document.uri, linesOf(range)),
    text: isPart && words.length <= QUOTE_LENGTH ? `${text}: ${codeSpan(words)}` : text,
    files,
    note,
    variables: variablesOf({ document, range }),
  };
}

/** What the variables of templates stand for at a place. */
export function variablesOf({ document, range }: Selected): Variables {
  const { uri, languageId } = document;
  const problems = problemsIn(uri, range);
  const isLong = lengthOf(document, range) > QUOTE_LENGTH;
  const selected = isLong ? placeOf(uri, linesOf(range)) : document.getText(range);
  const selection = isLong || range.isSingleLine ? selected : `\n${fenced(selected, languageId)}\n`;
  return {
    file: placeOf(uri),
    ...(range.isEmpty ? {} : { selection }),
    ...(problems.length > 0 && { problem: problems.map((each) => problemLine(uri, each)).join("\n") }),
  };
}

/** What the variables of templates stand for in the active editor. */
export function editorVariables(): Variables {
  const editor = vscode.window.activeTextEditor;
  return editor ? variablesOf({ document: editor.document, range: editor.selection }) : {};
}
