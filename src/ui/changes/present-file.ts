import { lstat, readFile, realpath } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import * as vscode from "vscode";
import { isInside } from "../output/workspace-file.ts";
import type { Present } from "./revert-plan.ts";

/** What is at a path now, if it is one of the workspace: no link leads to it, and none leads out on the way. */
export async function presentFile(path: string): Promise<Present> {
  const folders = vscode.workspace.workspaceFolders?.map(({ uri }) => uri.fsPath) ?? [];
  try {
    const [place, ...realFolders] = await Promise.all([
      realPlace(path),
      ...folders.map((folder) => realpath(folder)),
    ]);
    if (!realFolders.some((folder) => isInside(folder, place))) return { kind: "outside" };
    const facts = await unlessMissing(lstat(path));
    if (!facts) return { kind: "absent" };
    if (facts.isSymbolicLink()) return { kind: "outside" };
    if (!facts.isFile()) return { kind: "unreadable" };
    return { kind: "file", bytes: await readFile(path), isUnsaved: isUnsaved(path) };
  } catch {
    return { kind: "unreadable" };
  }
}

/** Where a path is once all links on the way to it are followed, though folders of it may be missing. */
async function realPlace(path: string): Promise<string> {
  const folder = dirname(path);
  if (folder === path) return path;
  const real = await unlessMissing(realpath(folder));
  return join(real ?? (await realPlace(folder)), basename(path));
}

function isUnsaved(path: string): boolean {
  return vscode.workspace.textDocuments.some(
    ({ uri, isDirty }) => isDirty && uri.scheme === "file" && uri.fsPath === vscode.Uri.file(path).fsPath,
  );
}

async function unlessMissing<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR"))
      return undefined;
    throw error;
  }
}
