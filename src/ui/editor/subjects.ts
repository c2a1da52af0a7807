import * as vscode from "vscode";
import { invalidArgument, Refusal } from "../../engine/errors.ts";
import { sentence } from "../../engine/sentence.ts";
import type { Variables, Subject } from "../launch-plan.ts";
import {
  documentText,
  lengthOf,
  linesOf,
  placeOf,
  QUOTE_LENGTH,
  titleOf,
  type DocumentText,
  fileOf,
  isOnDisk,
  openDocument,
  textFile,
} from "./place.ts";
import { codeSpan, fenced } from "../../protocol/quotation.ts";
import { open } from "node:fs/promises";
import { extname } from "node:path";
import type { PromptFile } from "../../engine/server-model.ts";

/** A place in a document. */
export interface Selected {
  readonly document: vscode.TextDocument;
  readonly range: vscode.Range;
}

/** The selection as a subject. Throws a {@link Refusal} if it is empty. */
export function selectionSubject({ document, range }: Selected): Subject {
  if (range.isEmpty) throw invalidArgument(sentence("Select some text in the editor, then try again."));
  const { text, files, note } = documentText(document, range);
  // The server reads whole lines, so a part of a line is quoted in the prompt.
  const words = files.length > 0 && range.isSingleLine ? document.getText(range) : "";
  const isPart = words.trim() !== "" && words.trim() !== document.lineAt(range.start.line).text.trim();
  return {
    title: titleOf(document.uri, linesOf(range)),
    text: isPart && words.length <= QUOTE_LENGTH ? `${text}: ${codeSpan(words)}` : text,
    files,
    note,
    variables: variablesOf({ document, range }),
  };
}

/** The values of the template variables at a place. */
function variablesOf({ document, range }: Selected): Variables {
  const { uri, languageId } = document;
  const problems = problemsIn(uri, range);
  const isLong = lengthOf(document, range) > QUOTE_LENGTH;
  const selected = isLong ? placeOf(uri, linesOf(range)) : document.getText(range);
  const selection = isLong || range.isSingleLine ? selected : `\n${fenced(selected, languageId)}\n`;
  return {
    file: placeOf(uri),
    ...(range.isEmpty ? {} : { selection }),
    ...(problems.length > 0 && { problem: problemLines(uri, problems) }),
  };
}

/** The values of the template variables in the active editor. */
export function editorVariables(): Variables {
  const editor = vscode.window.activeTextEditor;
  return editor ? variablesOf({ document: editor.document, range: editor.selection }) : {};
}

/** Lines of context shown before and after a problem. */
const LINES_AROUND = 10;
/** The number of problems that a prompt names; the agent finds the others. */
const NAMED_PROBLEMS = 100;
const SEVERITIES = ["error", "warning", "information", "hint"] as const;

/** Problems of one file as a subject, with the lines around them. Throws a {@link Refusal} if there are none. */
export function problemSubject(
  document: vscode.TextDocument,
  problems: readonly vscode.Diagnostic[],
): Subject {
  const { uri } = document;
  const [first] = problems;
  if (!first) throw invalidArgument(sentence("No problems in {0}.", placeOf(uri)));
  const range = problems.reduce((all, each) => all.union(each.range), first.range);
  const around = new vscode.Range(
    Math.max(range.start.line - LINES_AROUND, 0),
    0,
    Math.min(range.end.line + LINES_AROUND, document.lineCount - 1) + 1,
    0,
  );
  const { text, files, note } = documentText(document, around);
  const lines = problemLines(uri, problems);
  const place = titleOf(uri, { first: first.range.start.line + 1, last: first.range.start.line + 1 });
  return {
    title:
      problems.length === 1
        ? vscode.l10n.t("the problem in {0}", place)
        : vscode.l10n.t("{0} problems in {1}", problems.length, titleOf(uri)),
    text: files.length > 0 ? lines : `${lines}\n\n${text}`,
    files,
    note,
    variables: { file: placeOf(uri), problem: lines },
  };
}

/** The problems that intersect a range; for an empty range, those at its position. */
export function problemsIn(uri: vscode.Uri, range: vscode.Range): readonly vscode.Diagnostic[] {
  return vscode.languages.getDiagnostics(uri).filter((each) => each.range.intersection(range) !== undefined);
}

/** One problem per line, formatted as by compilers: `src/login.ts:3:5: error ts(2322): …`. */
function problemLines(uri: vscode.Uri, problems: readonly vscode.Diagnostic[]): string {
  const lines = problems.slice(0, NAMED_PROBLEMS).map((each) => problemLine(uri, each));
  const others = problems.length - lines.length;
  return [...lines, ...(others > 0 ? [`… and ${others} more problems`] : [])].join("\n");
}

function problemLine(uri: vscode.Uri, problem: vscode.Diagnostic): string {
  const { range, severity, source = "", message } = problem;
  const { line, character } = range.start;
  const code = typeof problem.code === "object" ? problem.code.value : problem.code;
  const origin = code === undefined ? source : `${source}(${code})`;
  const kind = [SEVERITIES[severity], origin].filter(Boolean).join(" ");
  return `${placeOf(uri)}:${line + 1}:${character + 1}: ${kind}: ${message}`;
}

/** Maximum number of files in a prompt. */
const FILE_COUNT = 50;
/** Maximum size of an image or PDF in bytes; the server stores it with the conversation. */
const MEDIA_BYTES = 10 * 1024 * 1024;
/** The number of bytes checked to detect binary files. */
const SAMPLE_BYTES = 8_192;
/** Types that models may read besides text. OpenCode knows which model can, and reports it. */
const MEDIA: Readonly<Record<string, string>> = {
  ".png": "image/png",
  ".jpg": "image/jpeg",
  ".jpeg": "image/jpeg",
  ".gif": "image/gif",
  ".webp": "image/webp",
  ".pdf": "application/pdf",
};

/**
 * Files and folders as a subject. The server lists a folder's entries without reading its files. Throws a
 * {@link Refusal} that names the file that can't be part of a prompt.
 */
export async function fileSubject(uris: readonly vscode.Uri[]): Promise<Subject> {
  const [first] = uris;
  if (!first) throw invalidArgument(sentence("Open or select a file, then try again."));
  if (uris.length > FILE_COUNT)
    throw invalidArgument(
      sentence(
        "{0} files are selected; a prompt can have at most {1}. Select fewer, or their folder.",
        uris.length,
        FILE_COUNT,
      ),
    );
  const texts = await Promise.all(uris.map(fileText));
  const places = uris.map((uri) => placeOf(uri));
  return {
    title: uris.length === 1 ? titleOf(first) : vscode.l10n.t("{0} files", uris.length),
    text: texts.map(({ text }) => text).join("\n"),
    files: texts.flatMap(({ files }) => files),
    note: texts.find(({ note }) => note)?.note,
    variables: { file: places.join(", ") },
  };
}

/** A file or folder for a prompt; the editor's unsaved text takes precedence over the file on disk. */
async function fileText(uri: vscode.Uri): Promise<DocumentText> {
  const document = openDocument(uri);
  if (document && !isOnDisk(document)) return documentText(document);
  const text = placeOf(uri);
  const file = await promptFile(uri);
  return file.mime === "text/plain" && document ? documentText(document) : { text, files: [file] };
}

async function promptFile(uri: vscode.Uri): Promise<PromptFile> {
  const name = placeOf(uri);
  if (uri.scheme !== "file") throw noFile(name);
  const { type, size } = await stat(uri, name);
  if (type & vscode.FileType.Directory) return fileOf(uri, "application/x-directory");
  // Reading a pipe or device may never end.
  if (!(type & vscode.FileType.File)) throw noFile(name);
  const mime = MEDIA[extname(uri.fsPath).toLowerCase()];
  if (mime === undefined) {
    if (await isText(uri, name)) return textFile(uri);
    throw invalidArgument(sentence('"{0}" is a binary file. Select text files, images or PDFs.', name));
  }
  if (size > MEDIA_BYTES)
    throw invalidArgument(sentence('"{0}" is larger than 10 MB. Select a smaller image or PDF.', name));
  return fileOf(uri, mime);
}

function noFile(name: string): Refusal {
  return invalidArgument(sentence('"{0}" isn\'t a file on this computer.', name));
}

async function stat(uri: vscode.Uri, name: string): Promise<vscode.FileStat> {
  try {
    return await vscode.workspace.fs.stat(uri);
  } catch {
    throw invalidArgument(sentence('"{0}" no longer exists.', name));
  }
}

/** Whether the start of the file contains no zero bytes. */
async function isText(uri: vscode.Uri, name: string): Promise<boolean> {
  const file = await open(uri.fsPath).catch(() => {
    throw invalidArgument(sentence('Can\'t read "{0}".', name));
  });
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(SAMPLE_BYTES), 0, SAMPLE_BYTES, 0);
    return !buffer.subarray(0, bytesRead).includes(0);
  } finally {
    await file.close();
  }
}

/** The number of paths that a prompt names; the agent finds the others. */
const NAMED_PATHS = 100;

/**
 * The changes since the last commit as a subject: of the given files, otherwise of the repository that contains one of
 * `places`. If the diff is too long for a prompt, the agent is told how to read it. Throws a {@link Refusal} if there
 * are no changes.
 */
export async function changeSubject(
  given: readonly vscode.Uri[],
  places: readonly vscode.Uri[],
): Promise<Subject> {
  const repository = await repositoryOf([...given, ...places]);
  const uris = await changedFiles(repository, new Set(given.map(String)));
  const [first] = uris;
  if (!first) throw invalidArgument(sentence("There are no changes since the last commit."));
  const named = uris.slice(0, NAMED_PATHS).map((uri) => placeOf(uri));
  const title =
    uris.length === 1
      ? vscode.l10n.t("the change in {0}", titleOf(first))
      : vscode.l10n.t("the changes in {0} files", uris.length);
  const variables = { file: named.join(", ") };
  const content = uris.length > FILE_COUNT ? undefined : await readChanges(repository, uris);
  if (content) return { ...content, title, variables };
  const others = uris.length > NAMED_PATHS ? `\n… and ${uris.length - NAMED_PATHS} more files` : "";
  return {
    title,
    text: `The changes since the last commit, to be read with \`git diff HEAD\`, in:\n${named.join("\n")}${others}`,
    files: [],
    note: vscode.l10n.t("The diff is too long for a prompt. The agent reads it on its own."),
    variables,
  };
}

/** Undefined if the diff is too long for a prompt. */
async function readChanges(
  repository: GitRepository,
  uris: readonly vscode.Uri[],
): Promise<Pick<Subject, "text" | "files" | "note"> | undefined> {
  const added = new Set(
    changesOf(repository).flatMap(({ uri, status }) => (status === INDEX_ADDED ? uri.toString() : [])),
  );
  const diffs: string[] = [];
  let note: string | undefined;
  const untracked: vscode.Uri[] = [];
  let length = 0;
  for (const uri of uris) {
    const diff = added.has(uri.toString()) ? "" : ((await diffOf(repository, uri)) ?? "");
    if (diff === "") untracked.push(uri);
    else {
      diffs.push(diff.replace(/\n*$/, "\n"));
      if (openDocument(uri)?.isDirty) note = vscode.l10n.t("Unsaved changes aren't part of the diff.");
    }
    length += diff.length;
    if (length > QUOTE_LENGTH) return undefined;
  }
  const files = await Promise.all(untracked.map(addedText));
  const texts = [
    ...(diffs.length > 0 ? [`The changes since the last commit:\n\n${fenced(diffs.join(""), "diff")}`] : []),
    ...(files.length > 0 ? [`New, not committed yet:\n${files.map(({ text }) => text).join("\n")}`] : []),
  ];
  return { text: texts.join("\n\n"), files: files.flatMap((file) => file.files), note };
}

/** The text of a new file; a file that agents can't read is only named. */
async function addedText(uri: vscode.Uri): Promise<DocumentText> {
  try {
    return await fileText(uri);
  } catch (error) {
    if (error instanceof Refusal) return { text: placeOf(uri), files: [] };
    throw error;
  }
}

/** Undefined if there is no commit yet. */
async function diffOf(repository: GitRepository, uri: vscode.Uri): Promise<string | undefined> {
  try {
    return await repository.diffWith("HEAD", uri.fsPath);
  } catch {
    return undefined;
  }
}

/** The status of a file that is new and staged. */
const INDEX_ADDED = 1;

interface Change {
  readonly uri: vscode.Uri;
  /** Differs if the file was renamed. */
  readonly originalUri?: vscode.Uri;
  readonly status: number;
}

/** The part of the API of VS Code's Git extension (version 1) that is used here. */
interface GitRepository {
  readonly rootUri: vscode.Uri;
  readonly state: {
    readonly workingTreeChanges: readonly Change[];
    readonly indexChanges: readonly Change[];
    readonly mergeChanges: readonly Change[];
    readonly untrackedChanges?: readonly Change[];
  };
  /** Empty for an untracked file; rejects if there is no commit yet. `diffWithHEAD` would leave out what is staged. */
  diffWith(ref: string, path: string): Promise<string>;
}

interface GitApi {
  readonly repositories: readonly GitRepository[];
  getRepository(uri: vscode.Uri): GitRepository | null;
}

/** The repository of the first address that is in one; otherwise the first open repository. */
async function repositoryOf(uris: readonly vscode.Uri[]): Promise<GitRepository> {
  const git = await gitApi();
  const [repository = git?.repositories[0]] = uris.flatMap((uri) => git?.getRepository(uri) ?? []);
  if (repository) return repository;
  throw invalidArgument(sentence("No Git repository is open, or Git is turned off in the settings."));
}

async function gitApi(): Promise<GitApi | undefined> {
  const extension = vscode.extensions.getExtension<{ getAPI(version: 1): GitApi }>("vscode.git");
  try {
    return (await extension?.activate())?.getAPI(1);
  } catch {
    // Git is turned off, or not installed.
    return undefined;
  }
}

function changesOf({ state }: GitRepository): readonly Change[] {
  const { mergeChanges, indexChanges, workingTreeChanges, untrackedChanges = [] } = state;
  return [...mergeChanges, ...indexChanges, ...workingTreeChanges, ...untrackedChanges];
}

/**
 * The files that differ from the last commit, without duplicates.
 * @param wanted the addresses to which they are limited; none if empty
 */
async function changedFiles(
  repository: GitRepository,
  wanted: ReadonlySet<string>,
): Promise<readonly vscode.Uri[]> {
  const changes = changesOf(repository).filter(({ uri }) => wanted.size === 0 || wanted.has(uri.toString()));
  const uris = distinct(changes.flatMap(({ uri, originalUri = uri }) => [originalUri, uri]));
  // What was staged may have been undone in the working tree since.
  const staged = new Set(repository.state.indexChanges.map(({ uri }) => uri.toString()));
  const mayBeUndone = repository.state.workingTreeChanges
    .map(({ uri }) => uri.toString())
    .filter((uri) => staged.has(uri));
  const undone = new Set<string>();
  for (const uri of uris)
    if (mayBeUndone.includes(uri.toString()) && (await diffOf(repository, uri)) === "")
      undone.add(uri.toString());
  return uris.filter((uri) => !undone.has(uri.toString()));
}

/** The addresses without duplicates. */
export function distinct(uris: readonly vscode.Uri[]): readonly vscode.Uri[] {
  return [...new Map(uris.map((uri) => [uri.toString(), uri])).values()];
}
