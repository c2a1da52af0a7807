import { pathToFileURL } from "node:url";
import * as vscode from "vscode";
import type { PromptFile } from "../../engine/server-model.ts";

/** Characters of a text that goes into a prompt; a longer one is read by the server from its file. */
export const QUOTE_LENGTH = 100_000;

/** As the editor numbers them, both included. */
export interface Lines {
  readonly first: number;
  readonly last: number;
}

/** The lines of a range; one that ends before a line's first character does not hold that line. */
export function linesOf({ start, end }: vscode.Range): Lines {
  const last = end.character === 0 && end.line > start.line ? end.line - 1 : end.line;
  return { first: start.line + 1, last: last + 1 };
}

/** Where something is, as an agent finds it: `src/login.ts:3-9`. A file outside of the workspace by its whole path. */
export function placeOf(uri: vscode.Uri, lines?: Lines): string {
  const path = pathOf(uri);
  if (!lines) return path;
  const { first, last } = lines;
  return first === last ? `${path}:${first}` : `${path}:${first}-${last}`;
}

function pathOf(uri: vscode.Uri): string {
  if (uri.scheme === "untitled") return uri.path;
  if (vscode.workspace.getWorkspaceFolder(uri)) return vscode.workspace.asRelativePath(uri, false);
  return uri.scheme === "file" ? uri.fsPath : uri.toString(true);
}

/** A text file, or some of its lines, for the server to read. */
export function textFile(uri: vscode.Uri, lines?: Lines): PromptFile {
  return fileOf(uri, "text/plain", lines);
}

export function fileOf(uri: vscode.Uri, mime: string, lines?: Lines): PromptFile {
  const url = pathToFileURL(uri.fsPath);
  if (lines) url.search = `?start=${lines.first}&end=${lines.last}`;
  return { url: url.href, mime, filename: placeOf(uri, lines) };
}

/** Whether the server finds the text of a document on disk. */
export function isOnDisk({ uri, isDirty }: vscode.TextDocument): boolean {
  return uri.scheme === "file" && !isDirty;
}

/** The document that an editor holds for a file; undefined: it is not open. */
export function openDocument(uri: vscode.Uri): vscode.TextDocument | undefined {
  return vscode.workspace.textDocuments.find((each) => each.uri.toString() === uri.toString());
}
