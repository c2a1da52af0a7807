import { realpath } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { askGit, gitText, withoutLineBreak } from "./git.ts";

/** Where a folder's repository is. All paths are absolute. */
export interface Repository {
  /** The top folder of the files. */
  readonly root: string;
  /** The private Git directory of this working tree: index, HEAD. */
  readonly gitDirectory: string;
  /** The Git directory that all working trees share: objects, references. */
  readonly commonDirectory: string;
  /** The folder's path below the root, with slashes, empty for the root itself. */
  readonly prefix: string;
}

export async function findRepository(directory: string, signal?: AbortSignal): Promise<Repository> {
  const output = await gitText(
    directory,
    [
      ...["rev-parse", "--path-format=absolute"],
      ...["--show-toplevel", "--git-dir", "--git-common-dir", "--show-prefix"],
    ],
    { signal },
  );
  const [root = "", gitDirectory = "", commonDirectory = "", prefix = ""] = output.split("\n");
  return {
    root: resolve(root),
    gitDirectory: await realpath(gitDirectory),
    commonDirectory: await realpath(commonDirectory),
    prefix: prefix.replace(/\/$/, ""),
  };
}

/** The commit that a revision names; undefined if it names none, as HEAD in a new repository. */
export async function commitOf(
  directory: string,
  revision: string,
  signal?: AbortSignal,
): Promise<string | undefined> {
  const { code, stdout } = await askGit(
    directory,
    ["rev-parse", "--verify", "--quiet", "--end-of-options", `${revision}^{commit}`],
    { signal, accept: [1] },
  );
  return code === 0 ? withoutLineBreak(stdout.toString()) : undefined;
}

/** The folder beside the repository in which its worktrees are made, whichever of its working trees is asked. */
export function worktreesFolder({ root, commonDirectory }: Repository, location = ""): string {
  const main = basename(commonDirectory) === ".git" ? dirname(commonDirectory) : root;
  return location === "" ? `${main}.worktrees` : resolve(main, location);
}

/** The top folder of another working tree, in which the directory is the folder's equivalent. */
export async function rootAround(directory: string, folder: string): Promise<string> {
  const { prefix } = await findRepository(folder);
  return prefix === "" ? directory : directory.slice(0, -(prefix.length + 1));
}

/** The folder's equivalent in another working tree. */
export function inTree(root: string, { prefix }: Pick<Repository, "prefix">): string {
  return join(root, prefix);
}
