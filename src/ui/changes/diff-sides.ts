import * as vscode from "vscode";
import type { FileChange, FileContent } from "../../engine/server-model.ts";
import { isTooLong, sideUri } from "./change-side.ts";

/** What the editor holds against each other for one file. */
export interface DiffSides {
  readonly file: vscode.Uri;
  readonly original: vscode.Uri;
  readonly modified: vscode.Uri;
}

/** The documents of a file that a task changed. */
export async function diffSides(taskID: string, { path, after }: FileChange): Promise<DiffSides> {
  const file = vscode.Uri.file(path);
  const isOnDisk = await isAsLeft(file, after);
  // The editor takes sides of different paths for a renamed file, and shows the path of any but a real file whole.
  const name = isOnDisk ? file : namelike(file);
  return {
    file,
    original: sideUri(name, { taskID, path, side: "before" }),
    modified: isOnDisk ? file : sideUri(name, { taskID, path, side: "after" }),
  };
}

/** A path that the editor shows as the one in the workspace. */
export function namelike(file: vscode.Uri): vscode.Uri {
  return vscode.Uri.file(`/${vscode.workspace.asRelativePath(file, false)}`);
}

/**
 * Whether the file on disk can stand for what it became, so that it can be edited and navigated. Only a file of the
 * workspace: what an agent did must not make the editor open anything else.
 */
async function isAsLeft(file: vscode.Uri, after: FileContent): Promise<boolean> {
  if (!vscode.workspace.getWorkspaceFolder(file)) return false;
  try {
    if (after.kind === "unknown") return (await vscode.workspace.fs.stat(file)).type === vscode.FileType.File;
    if (after.kind !== "text" || isTooLong(after)) return false;
    return Buffer.from(await vscode.workspace.fs.readFile(file)).equals(Buffer.from(after.text));
  } catch {
    return false;
  }
}
