import { access, constants, readFile, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { messageOf } from "../engine/errors.ts";
import { sentence, type Text } from "../engine/sentence.ts";
import { git, GitError, gitText, parts, setting } from "./git.ts";
import { findRepository, type Repository, worktreesFolder } from "./repository.ts";

/** The first version that merges without touching files. */
const OLDEST = [2, 38] as const;

/** What Git keeps while an operation waits for the user, and what to call it. */
const IN_PROGRESS = [
  ["rebase-merge", "rebase"],
  ["rebase-apply", "rebase"],
  ["MERGE_HEAD", "merge"],
  ["CHERRY_PICK_HEAD", "cherry-pick"],
  ["REVERT_HEAD", "revert"],
] as const;

/** Longer than the longest name of a worktree that is made of a task's description. */
const LONGEST_NAME = 64;

/** Why no worktree can be made for the folder, with what to do instead; undefined if one can. */
export async function obstacle(
  directory: string,
  options: { readonly location?: string | undefined; readonly signal?: AbortSignal | undefined } = {},
): Promise<Text | undefined> {
  const { location, signal } = options;
  try {
    return (
      (await versionObstacle(directory, signal)) ??
      (await placeObstacle(directory, signal)) ??
      (await repositoryObstacle(await findRepository(directory, signal), { location, signal }))
    );
  } catch (error) {
    signal?.throwIfAborted();
    return error instanceof GitError && error.stderr === ""
      ? sentence("{0} Or run the task in the folder instead.", error.text)
      : sentence(
          "Git can't read the repository: {0} Repair it, or run the task in the folder instead.",
          endOf(messageOf(error)),
        );
  }
}

async function versionObstacle(
  directory: string,
  signal: AbortSignal | undefined,
): Promise<Text | undefined> {
  let version: string;
  try {
    version = await gitText(directory, ["version"], { signal });
  } catch (error) {
    if (!(error instanceof GitError) || error.stderr === "" || /^fatal: /m.test(error.stderr)) throw error;
    // Such as the placeholder of macOS, whose lines only make sense together.
    return sentence(
      "Git doesn't run: {0} Install Git {1} or later, or run the task in the folder instead.",
      endOf(error.stderr.trim().replaceAll(/\s*\n\s*/g, " ")),
      OLDEST.join("."),
    );
  }
  const [, major = "0", minor = "0"] = /(\d+)\.(\d+)/.exec(version) ?? [];
  const isNew = Number(major) > OLDEST[0] || (Number(major) === OLDEST[0] && Number(minor) >= OLDEST[1]);
  return isNew
    ? undefined
    : sentence(
        "Worktrees require Git {0} or later, but {1} is installed. Update Git, or run the task in the folder instead.",
        OLDEST.join("."),
        `${major}.${minor}`,
      );
}

async function placeObstacle(directory: string, signal: AbortSignal | undefined): Promise<Text | undefined> {
  try {
    if ((await gitText(directory, ["rev-parse", "--is-inside-work-tree"], { signal })) === "true")
      return undefined;
    return sentence(
      "The repository has no files of its own (it is bare), so no worktree can be made from what you see. Run the task in the folder instead.",
    );
  } catch (error) {
    if (!(error instanceof GitError) || !/not a git repository/.test(error.stderr)) throw error;
    if (/not a git repository: /.test(error.stderr))
      return sentence(
        'The file ".git" leads to a repository that doesn\'t exist. Repair it (git worktree repair), or run the task in the folder instead.',
      );
    return sentence(
      "The folder isn't in a Git repository. Create one (git init), or run the task in the folder instead.",
    );
  }
}

async function repositoryObstacle(
  repository: Repository,
  { location, signal }: { readonly location: string | undefined; readonly signal: AbortSignal | undefined },
): Promise<Text | undefined> {
  const { root, gitDirectory } = repository;
  for (const [file, operation] of IN_PROGRESS)
    if (await exists(join(gitDirectory, file)))
      return sentence(
        "A {0} is in progress in the repository. Complete or abort it, or run the task in the folder instead.",
        operation,
      );
  if (await setting(root, "core.sparseCheckout", { signal }))
    return sentence(
      "The repository uses sparse checkout, which worktrees of tasks don't support. Run the task in the folder instead.",
    );
  const entries = parts(await git(root, ["ls-files", "-z", "--stage"], { signal }));
  if (entries.some((entry) => entry.startsWith("160000 ")))
    return sentence(
      "The repository contains submodules, which worktrees of tasks don't support. Run the task in the folder instead.",
    );
  const paths = entries.map((entry) => entry.slice(entry.indexOf("\t") + 1));
  if (await usesLfs(repository, paths))
    return sentence(
      "The repository uses Git LFS, which worktrees of tasks don't support. Run the task in the folder instead.",
    );
  return pathObstacle(repository, paths, { location, signal });
}

async function usesLfs({ root, commonDirectory }: Repository, paths: readonly string[]): Promise<boolean> {
  const files = paths.filter((path) => /(^|\/)\.gitattributes$/.test(path)).map((path) => join(root, path));
  for (const file of new Set([
    ...files,
    join(root, ".gitattributes"),
    join(commonDirectory, "info/attributes"),
  ]))
    if (/^[^#\n]*\bfilter=lfs\b/m.test(await textOf(file))) return true;
  return false;
}

async function pathObstacle(
  repository: Repository,
  paths: readonly string[],
  { location, signal }: { readonly location: string | undefined; readonly signal: AbortSignal | undefined },
): Promise<Text | undefined> {
  const isShort =
    process.platform === "win32" && !(await setting(repository.root, "core.longpaths", { signal }));
  const limit = isShort ? 259 : 4_095;
  const longest = paths.reduce((length, path) => Math.max(length, path.length), 0);
  const folder = worktreesFolder(repository, location);
  const length = folder.length + 1 + LONGEST_NAME + 1 + longest;
  return length <= limit
    ? locationObstacle(folder)
    : sentence(
        "Paths in the worktree would be too long: up to {0} characters, and the limit is {1}. Choose a shorter location in the settings, or run the task in the folder instead.",
        length,
        limit,
      );
}

/** @param at the folder, or the next one above it if it doesn't exist yet */
async function locationObstacle(folder: string, at = folder): Promise<Text | undefined> {
  try {
    const isFolder = (await stat(at)).isDirectory();
    if (isFolder) return void (await access(at, constants.W_OK));
  } catch (error) {
    const above = dirname(at);
    if (/^(ENOENT|ENOTDIR)$/.test((error as NodeJS.ErrnoException).code ?? "") && above !== at)
      return locationObstacle(folder, above);
  }
  return sentence(
    'Worktrees would be made in "{0}", but "{1}" isn\'t a folder that you can write to. Choose another location in the settings (asyncagents.isolation.location), or run the task in the folder instead.',
    folder,
    at,
  );
}

async function textOf(file: string): Promise<string> {
  return readFile(file, "utf8").catch(() => "");
}

export async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

/** The text with a full stop at its end. */
function endOf(text: string): string {
  return /[.!?]$/.test(text) ? text : `${text}.`;
}
