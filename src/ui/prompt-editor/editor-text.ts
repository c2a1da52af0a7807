import * as vscode from "vscode";
import { lengthOf, linesOf, placeOf, QUOTE_LENGTH } from "../editor/place.ts";
import { fenced } from "../editor/quotation.ts";

/** The place shown in the active editor: `src/login.ts:10-20`. Undefined unless it is a file in the workspace. */
export function referenceToEditor(): string | undefined {
  const editor = vscode.window.activeTextEditor;
  if (!editor || !vscode.workspace.getWorkspaceFolder(editor.document.uri)) return undefined;
  const { document, selection } = editor;
  return placeOf(document.uri, selection.isEmpty ? undefined : linesOf(selection));
}

/**
 * The selection of the active editor as a quotation with its place; only the place if the selection is too long for a
 * prompt. Empty if nothing is selected, or if a long selection has no place in the workspace.
 */
export function quotedSelection(): string {
  const editor = vscode.window.activeTextEditor;
  if (!editor || editor.selection.isEmpty) return "";
  const { document, selection } = editor;
  const isLong = lengthOf(document, selection) > QUOTE_LENGTH;
  const quotation = isLong ? undefined : fenced(document.getText(selection), document.languageId);
  const parts = [referenceToEditor(), quotation].filter((part) => part !== undefined);
  return parts.length > 0 ? `\n\n${parts.join("\n\n")}\n` : "";
}

/** Replaces the whole text of a document. */
export async function setText(document: vscode.TextDocument, text: string): Promise<void> {
  const edit = new vscode.WorkspaceEdit();
  const end = document.positionAt(document.getText().length);
  edit.replace(document.uri, new vscode.Range(new vscode.Position(0, 0), end), text);
  await vscode.workspace.applyEdit(edit);
}
