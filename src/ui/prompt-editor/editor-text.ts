import * as vscode from "vscode";

/** What the active editor shows, as an agent finds it: `src/login.ts:10-20`. Undefined: no file of the workspace. */
export function referenceToEditor(): string | undefined {
  const editor = vscode.window.activeTextEditor;
  if (!editor || !vscode.workspace.getWorkspaceFolder(editor.document.uri)) return undefined;
  const path = vscode.workspace.asRelativePath(editor.document.uri, false);
  if (editor.selection.isEmpty) return path;
  const { first, last } = selectedLines(editor.selection);
  return first === last ? `${path}:${first}` : `${path}:${first}-${last}`;
}

/** The selection of the active editor as a quotation that says where it is from; empty: nothing is selected. */
export function quotedSelection(): string {
  const editor = vscode.window.activeTextEditor;
  if (!editor || editor.selection.isEmpty) return "";
  const text = editor.document.getText(editor.selection);
  const fence = "`".repeat(Math.max(3, longestRun(text) + 1));
  const reference = referenceToEditor();
  const source = reference === undefined ? "" : `${reference}\n\n`;
  return `\n\n${source}${fence}${editor.document.languageId}\n${text.replace(/\n?$/, "\n")}${fence}\n`;
}

/** Puts a text in the place of all that is in the document. */
export async function setText(document: vscode.TextDocument, text: string): Promise<void> {
  const edit = new vscode.WorkspaceEdit();
  const end = document.positionAt(document.getText().length);
  edit.replace(document.uri, new vscode.Range(new vscode.Position(0, 0), end), text);
  await vscode.workspace.applyEdit(edit);
}

/** As the editor numbers them; a selection that ends before a line's first character does not hold that line. */
function selectedLines({ start, end }: vscode.Selection): { readonly first: number; readonly last: number } {
  const last = end.character === 0 && end.line > start.line ? end.line - 1 : end.line;
  return { first: start.line + 1, last: last + 1 };
}

/** How many backticks follow one another at the most. */
function longestRun(text: string): number {
  return Math.max(0, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
}
