import * as vscode from "vscode";
import { Refusal } from "../../engine/errors.ts";
import { sentence } from "../../engine/sentence.ts";
import { type DocumentText, placeOf, QUOTE_LENGTH, titleOf } from "./place.ts";
import { FILE_COUNT, fileText } from "./file-subject.ts";
import { fenced } from "./quotation.ts";
import type { Subject } from "./subject.ts";

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
  const wanted = new Set(given.map(String));
  const uris = changedFiles(repository).filter((uri) => given.length === 0 || wanted.has(uri.toString()));
  const [first] = uris;
  if (!first) throw new Refusal("invalid-argument", sentence("There are no changes since the last commit."));
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
): Promise<Pick<Subject, "text" | "files"> | undefined> {
  const diffs: string[] = [];
  const untracked: vscode.Uri[] = [];
  let length = 0;
  for (const uri of uris) {
    const diff = await diffOf(repository, uri);
    if (diff === "") untracked.push(uri);
    else diffs.push(diff.replace(/\n*$/, "\n"));
    length += diff.length;
    if (length > QUOTE_LENGTH) return undefined;
  }
  const added = await Promise.all(untracked.map(addedText));
  const texts = [
    ...(diffs.length > 0 ? [`The changes since the last commit:\n\n${fenced(diffs.join(""), "diff")}`] : []),
    ...(added.length > 0 ? [`New, not committed yet:\n${added.map(({ text }) => text).join("\n")}`] : []),
  ];
  return { text: texts.join("\n\n"), files: added.flatMap(({ files }) => files) };
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

/** Empty if there is nothing to compare the file with. */
async function diffOf(repository: GitRepository, uri: vscode.Uri): Promise<string> {
  try {
    return await repository.diffWithHEAD(uri.fsPath);
  } catch {
    // There is no commit yet.
    return "";
  }
}

interface Change {
  readonly uri: vscode.Uri;
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
  /** Empty for an untracked file; rejects if there is no commit yet. */
  diffWithHEAD(path: string): Promise<string>;
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
  throw new Refusal(
    "invalid-argument",
    sentence("No Git repository is open, or Git is turned off in the settings."),
  );
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

/** The files that differ from the last commit, without duplicates. */
function changedFiles({ state }: GitRepository): readonly vscode.Uri[] {
  const { mergeChanges, indexChanges, workingTreeChanges, untrackedChanges = [] } = state;
  const all = [...mergeChanges, ...indexChanges, ...workingTreeChanges, ...untrackedChanges];
  return [...new Map(all.map(({ uri }) => [uri.toString(), uri])).values()];
}
