import * as vscode from "vscode";
import type { FileChange, FileContent } from "../../engine/server-model.ts";
import { presentFile } from "../output/workspace-file.ts";
import { shownPath } from "../worktrees/isolated-task.ts";
import { isTooLong, sideUri } from "./change-side.ts";

/** The two documents of a diff editor, and the file they belong to. */
export interface DiffSides {
  readonly file: vscode.Uri;
  readonly original: vscode.Uri;
  readonly modified: vscode.Uri;
}

/** The documents that show a task's change to a file. */
export async function diffSides(
  taskID: string,
  { path, after }: FileChange,
  worktree?: string,
): Promise<DiffSides> {
  const file = vscode.Uri.file(path);
  const isOnDisk = await isAsLeft(file, after, worktree);
  // For two sides with different paths the editor assumes a rename, and it abbreviates only the paths of real files.
  const name = isOnDisk ? file : namelike(file, worktree);
  return {
    file,
    original: sideUri(name, { taskID, path, side: "before" }),
    modified: isOnDisk ? file : sideUri(name, { taskID, path, side: "after" }),
  };
}

/** A path that the editor displays like the file's path within the workspace or the worktree. */
export function namelike(file: vscode.Uri, worktree: string | undefined): vscode.Uri {
  return vscode.Uri.file(`/${shownPath(file.fsPath, worktree, false)}`);
}

/**
 * Whether the file on disk can serve as the modified side, so that it can be edited and navigated. Only a file in the
 * workspace or the task's worktree can: what an agent did must not make the editor open anything else.
 */
async function isAsLeft(
  file: vscode.Uri,
  after: FileContent,
  worktree: string | undefined,
): Promise<boolean> {
  if (
    !vscode.workspace.getWorkspaceFolder(file) &&
    (await presentFile(file.fsPath, worktree)).kind !== "file"
  )
    return false;
  try {
    if (after.kind === "unknown") return (await vscode.workspace.fs.stat(file)).type === vscode.FileType.File;
    if (after.kind !== "text" || isTooLong(after)) return false;
    return Buffer.from(await vscode.workspace.fs.readFile(file)).equals(Buffer.from(after.text));
  } catch {
    return false;
  }
}
