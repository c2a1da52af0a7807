import * as vscode from "vscode";
import { lengthOf, linesOf, placeOf, QUOTE_LENGTH } from "../editor/place.ts";
import { fenced } from "../editor/quotation.ts";

/** What the active editor shows, as an agent finds it: `src/login.ts:10-20`. Undefined: no file of the workspace. */
export function referenceToEditor(): string | undefined {
  const editor = vscode.window.activeTextEditor;
  if (!editor || !vscode.workspace.getWorkspaceFolder(editor.document.uri)) return undefined;
  const { document, selection } = editor;
  return placeOf(document.uri, selection.isEmpty ? undefined : linesOf(selection));
}

/**
 * The selection of the active editor as a quotation that says where it is from; of one that is too long for a prompt the
 * place alone. Empty: nothing is selected, or it has no place.
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

/** Puts a text in the place of all that is in the document. */
export async function setText(document: vscode.TextDocument, text: string): Promise<void> {
  const edit = new vscode.WorkspaceEdit();
  const end = document.positionAt(document.getText().length);
  edit.replace(document.uri, new vscode.Range(new vscode.Position(0, 0), end), text);
  await vscode.workspace.applyEdit(edit);
}
