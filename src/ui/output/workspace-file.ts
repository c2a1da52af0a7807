import { chmod, lstat, readFile, realpath, stat } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, relative, resolve } from "node:path";
import * as vscode from "vscode";
import { invalidArgument } from "../../engine/errors.ts";
import { sentence } from "../../engine/sentence.ts";
import type { PresentText } from "../../rpc/revert-plan.ts";
import type { FilePosition } from "./file-reference.ts";

interface PresentFile extends FileState {
  readonly kind: "file";
  readonly isUnsaved: boolean;
}

/** What is written to restore a file. Without a mode, it keeps its own, or gets that of a new file. */
export interface FileState {
  readonly bytes: Uint8Array;
  readonly mode?: number | undefined;
}

/** The current state of a file. */
export type Present = PresentFile | Exclude<PresentText, { readonly kind: "file" }>;

/**
 * Opens a file that an agent named, at the given position. Only files in the workspace or in the agent's worktree:
 * agents must not make the editor open anything else, neither by `..` nor by a link. Rejects with an error that explains
 * this.
 * @param first the folder that the agent works in, where its paths are resolved first
 */
export async function openWorkspaceFile(
  path: string,
  position?: FilePosition,
  first?: string,
): Promise<void> {
  const folders = foldersOf(first);
  const candidates = folders.map((folder) => resolve(folder, path));
  const inside = candidates.filter((file) => folders.some((folder) => isInside(folder, file)));
  if (inside.length === 0)
    throw invalidArgument(sentence("{0} isn't in this workspace and wasn't opened.", path));
  for (const file of inside) {
    if (!(await isFileOf(folders, file))) continue;
    const at = position && new vscode.Position(position.line - 1, position.column - 1);
    const options: vscode.TextDocumentShowOptions = {
      preview: true,
      ...(at ? { selection: new vscode.Range(at, at) } : {}),
    };
    // Opens the default editor for the file type, because the file may be an image.
    await vscode.commands.executeCommand("vscode.open", vscode.Uri.file(file), options);
    return;
  }
  throw invalidArgument(sentence("{0} wasn't found in this workspace.", path));
}

/** The folders of the workspace, after the one in which an agent works. */
function foldersOf(first: string | undefined): readonly string[] {
  const all = vscode.workspace.workspaceFolders?.map(({ uri }) => uri.fsPath) ?? [];
  return [...(first === undefined ? [] : [first]), ...all.filter((folder) => folder !== first)];
}

/** Whether it is a file in one of the folders, and not a link to one elsewhere. */
async function isFileOf(folders: readonly string[], file: string): Promise<boolean> {
  try {
    return (await stat(file)).isFile() && (await isInOneOf(folders, await realpath(file)));
  } catch {
    return false;
  }
}

/** Whether a path without links is inside one of the folders, some of which may no longer exist. */
async function isInOneOf(folders: readonly string[], path: string): Promise<boolean> {
  const real = await Promise.all(folders.map((folder) => realpath(folder).catch(() => [])));
  return real.flat().some((folder) => isInside(folder, path));
}

/** Whether a path is inside a folder, judged by the names alone. */
function isInside(folder: string, file: string): boolean {
  const path = relative(folder, file);
  return path !== "" && path !== ".." && !/^\.\.[\\/]/.test(path) && !isAbsolute(path);
}

/**
 * The current state of a path. It is `outside` if the path leads out of the workspace and of the worktree, or is itself
 * a link.
 */
export async function presentFile(path: string, worktree?: string): Promise<Present> {
  try {
    if (!(await isInOneOf(foldersOf(worktree), await realPlace(path)))) return { kind: "outside" };
    const facts = await unlessMissing(lstat(path));
    if (!facts) return { kind: "absent" };
    if (facts.isSymbolicLink()) return { kind: "outside" };
    if (!facts.isFile()) return { kind: "unreadable" };
    const [bytes, real] = await Promise.all([readFile(path), realpath(path)]);
    const isUnsaved = new Map(await unsavedTexts()).has(real);
    return { kind: "file", bytes, mode: facts.mode, isUnsaved };
  } catch {
    return { kind: "unreadable" };
  }
}

/** Writes the file, or deletes it if there is no state. */
export async function putFile(path: string, state: FileState | undefined): Promise<void> {
  const file = vscode.Uri.file(path);
  if (!state)
    // Not every system has a trash.
    return vscode.workspace.fs
      .delete(file, { useTrash: true })
      .then(undefined, () => vscode.workspace.fs.delete(file));
  await vscode.workspace.fs.writeFile(file, state.bytes);
  // Only the owner may do that, but a file that was already there still has its mode.
  if (state.mode) await chmod(path, state.mode).catch(() => undefined);
}

/** Resolves the links in a path's parent folders, some of which may not exist. */
async function realPlace(path: string): Promise<string> {
  const folder = dirname(path);
  if (folder === path) return path;
  const real = await unlessMissing(realpath(folder));
  return join(real ?? (await realPlace(folder)), basename(path));
}

/** The real paths of the files with unsaved changes, which may have been opened through links, and their texts. */
export async function unsavedTexts(): Promise<readonly (readonly [string, string])[]> {
  const unsaved = vscode.workspace.textDocuments.filter(
    ({ isDirty, uri }) => isDirty && uri.scheme === "file",
  );
  return Promise.all(
    unsaved.map(async (document) => [await realPath(document), document.getText()] as const),
  );
}

/** The path of a document or folder without links; as it is if that no longer exists. */
export function realPath({ uri }: Pick<vscode.TextDocument, "uri">): Promise<string> {
  return realpath(uri.fsPath).catch(() => uri.fsPath);
}

async function unlessMissing<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw error;
  }
}
