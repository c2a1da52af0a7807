import * as vscode from "vscode";
import { Refusal } from "../../engine/errors.ts";
import { sentence } from "../../engine/sentence.ts";

interface Change {
  readonly uri: vscode.Uri;
}

/** What is used of the API of the editor's own Git extension, version 1. */
export interface GitRepository {
  readonly rootUri: vscode.Uri;
  readonly state: {
    readonly workingTreeChanges: readonly Change[];
    readonly indexChanges: readonly Change[];
    readonly mergeChanges: readonly Change[];
    readonly untrackedChanges?: readonly Change[];
  };
  /** Empty for a file that is not tracked; rejects where nothing was committed yet. */
  diffWithHEAD(path: string): Promise<string>;
}

interface GitApi {
  readonly repositories: readonly GitRepository[];
  getRepository(uri: vscode.Uri): GitRepository | null;
}

/** The repository of a file; without one the first that is open. */
export async function repositoryOf(uri: vscode.Uri | undefined): Promise<GitRepository> {
  const git = await gitApi();
  const repository = (uri && git?.getRepository(uri)) ?? git?.repositories[0];
  if (repository) return repository;
  throw new Refusal(
    "invalid-argument",
    sentence("There is no Git repository in this window, or Git is turned off in the settings."),
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

/** The files that differ from the last commit, each once. */
export function changedFiles({ state }: GitRepository): readonly vscode.Uri[] {
  const { mergeChanges, indexChanges, workingTreeChanges, untrackedChanges = [] } = state;
  const all = [...mergeChanges, ...indexChanges, ...workingTreeChanges, ...untrackedChanges];
  return [...new Map(all.map(({ uri }) => [uri.toString(), uri])).values()];
}
