import * as vscode from "vscode";
import { linesOf, placeOf } from "../editor/place.ts";
import { fenced } from "../editor/quotation.ts";

/** What the active editor shows, as an agent finds it: `src/login.ts:10-20`. Undefined: no file of the workspace. */
export function referenceToEditor(): string | undefined {
  const editor = vscode.window.activeTextEditor;
  if (!editor || !vscode.workspace.getWorkspaceFolder(editor.document.uri)) return undefined;
  const { document, selection } = editor;
  return placeOf(document.uri, selection.isEmpty ? undefined : linesOf(selection));
}

/** The selection of the active editor as a quotation that says where it is from; empty: nothing is selected. */
export function quotedSelection(): string {
  const editor = vscode.window.activeTextEditor;
  if (!editor || editor.selection.isEmpty) return "";
  const text = editor.document.getText(editor.selection);
  const reference = referenceToEditor();
  const source = reference === undefined ? "" : `${reference}\n\n`;
  return `\n\n${source}${fenced(text, editor.document.languageId)}\n`;
}

/** Puts a text in the place of all that is in the document. */
export async function setText(document: vscode.TextDocument, text: string): Promise<void> {
  const edit = new vscode.WorkspaceEdit();
  const end = document.positionAt(document.getText().length);
  edit.replace(document.uri, new vscode.Range(new vscode.Position(0, 0), end), text);
  await vscode.workspace.applyEdit(edit);
}
