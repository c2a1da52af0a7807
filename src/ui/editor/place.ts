import { pathToFileURL } from "node:url";
import * as vscode from "vscode";
import { invalidArgument, type Refusal } from "../../engine/errors.ts";
import type { PromptFile } from "../../engine/server-model.ts";
import { fenced } from "../../protocol/quotation.ts";

/** Maximum number of characters of a text quoted in a prompt. */
export const QUOTE_LENGTH = 100_000;

/** One-based line numbers, both inclusive. */
export interface Lines {
  readonly first: number;
  readonly last: number;
}

/** The lines of a range. A range that ends before a line's first character doesn't include that line. */
export function linesOf({ start, end }: vscode.Range): Lines {
  const last = end.character === 0 && end.line > start.line ? end.line - 1 : end.line;
  return { first: start.line + 1, last: last + 1 };
}

/**
 * A place in a form that agents can find: `src/login.ts:3-9`. The path is absolute outside the workspace, and if there
 * are several folders, because the agent may work in another one.
 */
export function placeOf(uri: vscode.Uri, lines?: Lines): string {
  const isOneFolder = vscode.workspace.workspaceFolders?.length === 1;
  return withLines(isOneFolder ? shortPath(uri) : wholePath(uri), lines);
}

/** Like {@link placeOf}, but for users: with several folders, the folder's name is enough. */
export function titleOf(uri: vscode.Uri, lines?: Lines): string {
  return withLines(shortPath(uri), lines);
}

function shortPath(uri: vscode.Uri): string {
  return vscode.workspace.getWorkspaceFolder(uri) ? vscode.workspace.asRelativePath(uri) : wholePath(uri);
}

function wholePath(uri: vscode.Uri): string {
  if (uri.scheme === "untitled") return uri.path;
  return uri.scheme === "file" ? uri.fsPath : uri.toString(true);
}

function withLines(path: string, lines: Lines | undefined): string {
  if (!lines) return path;
  const { first, last } = lines;
  return first === last ? `${path}:${first}` : `${path}:${first}-${last}`;
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

/** Whether the server can read the document's current text from disk. */
export function isOnDisk({ uri, isDirty }: vscode.TextDocument): boolean {
  return uri.scheme === "file" && !isDirty;
}

/** The open document of a file; undefined if it isn't open. */
export function openDocument(uri: vscode.Uri): vscode.TextDocument | undefined {
  return vscode.workspace.textDocuments.find((each) => each.uri.toString() === uri.toString());
}

/** Characters of a file that OpenCode shows an agent at first, along with how to read on. */
const FIRST_LOOK = 50_000;

/** How a document, or a part of it, becomes part of a prompt. */
export interface DocumentText {
  /** The text in the prompt. */
  readonly text: string;
  readonly files: readonly PromptFile[];
  readonly note?: string | undefined;
}

/**
 * A document, or some lines of it, for a prompt: read by the server, or quoted if the file on disk is missing or
 * outdated. Throws a {@link Refusal} if the text is too long to quote.
 */
export function documentText(document: vscode.TextDocument, range?: vscode.Range): DocumentText {
  const { uri, languageId } = document;
  const lines = range && linesOf(range);
  const place = placeOf(uri, lines);
  const length = lengthOf(document, range);
  if (isOnDisk(document)) {
    const note =
      length > FIRST_LOOK
        ? vscode.l10n.t("The agent is given the start of this text and can read the rest.")
        : undefined;
    return { text: place, files: [textFile(uri, lines)], note };
  }
  if (length > QUOTE_LENGTH) throw tooLong(document, place, length);
  const text = `${place} (not saved; this is how it stands in the editor)\n\n${fenced(document.getText(range), languageId)}`;
  return { text, files: [], note: vscode.l10n.t("Not saved; its text is included in the prompt.") };
}

/** The length in characters, computed without creating the text. */
export function lengthOf(document: vscode.TextDocument, range?: vscode.Range): number {
  const { start, end } = range ?? new vscode.Range(0, 0, document.lineCount, 0);
  return document.offsetAt(end) - document.offsetAt(start);
}

function tooLong({ uri }: vscode.TextDocument, place: string, length: number): Refusal {
  const given = length.toLocaleString();
  const limit = QUOTE_LENGTH.toLocaleString();
  const message =
    uri.scheme === "file" || uri.scheme === "untitled"
      ? vscode.l10n.t(
          "{0} isn't saved and has {1} characters. Save it first, or select at most {2}.",
          place,
          given,
          limit,
        )
      : vscode.l10n.t(
          "{0} isn't a file on disk and has {1} characters. Select at most {2}.",
          place,
          given,
          limit,
        );
  return invalidArgument(message);
}

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
