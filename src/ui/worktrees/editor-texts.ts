import { realpath } from "node:fs/promises";
import { relative, resolve, sep } from "node:path";
import * as vscode from "vscode";
import { Refusal } from "../../engine/errors.ts";
import { sentence } from "../../engine/sentence.ts";

/** The unsaved texts of the editors, by path below a folder. Paths outside of it begin with `..`. */
export async function unsavedTexts(folder: vscode.Uri): Promise<Readonly<Record<string, string>>> {
  const root = await realpath(folder.fsPath);
  const texts = vscode.workspace.textDocuments
    .filter(({ isDirty, uri }) => isDirty && uri.scheme === "file")
    .map(async (document) => [pathBelow(root, await realFile(document)), document.getText()] as const);
  return Object.fromEntries(await Promise.all(texts));
}

/** A text to put into an editor, and the one that it replaces. */
export interface TextChange {
  readonly path: string;
  readonly before: string;
  readonly after: string;
}

/**
 * Which of these files have unsaved changes. Throws a {@link Refusal} if a text isn't what it was when it was read.
 * @param paths below the repository's top folder
 */
export async function unsavedOf(
  root: string,
  paths: readonly string[],
  folder: vscode.Uri,
  planned: Readonly<Record<string, string>>,
): Promise<ReadonlyMap<string, string>> {
  const realFolder = await realpath(folder.fsPath);
  const unsaved = new Map<string, string>();
  for (const path of paths) {
    const document = await documentOf(root, path);
    if (!document?.isDirty) continue;
    const before = planned[pathBelow(realFolder, resolve(root, path))];
    if (before !== document.getText()) throw changedSince(path);
    unsaved.set(path, before);
  }
  return unsaved;
}

/** Changes the texts of editors as one undoable edit; nothing is saved. Throws a {@link Refusal} if one has changed. */
export async function changeTexts(root: string, changes: readonly TextChange[]): Promise<void> {
  if (changes.length === 0) return;
  const edit = new vscode.WorkspaceEdit();
  for (const { path, before, after } of changes) {
    const document = await documentOf(root, path);
    if (document?.getText() !== before) throw changedSince(path);
    const { start, end, text } = difference(before, after);
    edit.replace(document.uri, new vscode.Range(document.positionAt(start), document.positionAt(end)), text);
  }
  if (!(await vscode.workspace.applyEdit(edit)))
    throw new Refusal("unavailable", sentence("The editor didn't apply the changes."));
}

/** The text of an editor after a change, with its own line endings. */
export async function presentText(root: string, path: string): Promise<string | undefined> {
  return (await documentOf(root, path))?.getText();
}

/** What to replace so that cursors and folded lines elsewhere stay. */
function difference(before: string, after: string): { start: number; end: number; text: string } {
  const shorter = Math.min(before.length, after.length);
  let start = 0;
  while (start < shorter && before[start] === after[start]) start++;
  let tail = 0;
  while (tail < shorter - start && before[before.length - 1 - tail] === after[after.length - 1 - tail])
    tail++;
  return { start, end: before.length - tail, text: after.slice(start, after.length - tail) };
}

async function documentOf(root: string, path: string): Promise<vscode.TextDocument | undefined> {
  const file = resolve(root, path);
  for (const document of vscode.workspace.textDocuments)
    if (document.uri.scheme === "file" && (await realFile(document)) === file) return document;
  return undefined;
}

async function realFile({ uri }: vscode.TextDocument): Promise<string> {
  return realpath(uri.fsPath).catch(() => uri.fsPath);
}

function pathBelow(folder: string, file: string): string {
  return relative(folder, file).split(sep).join("/");
}

function changedSince(path: string): Refusal {
  return new Refusal(
    "wrong-status",
    sentence("{0} has changed in the meantime, so nothing was written. Bring the work back again.", path),
  );
}
