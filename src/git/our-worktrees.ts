import { readdir, readFile, realpath, rename, rm, rmdir, stat, writeFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { UserFacingError } from "../engine/errors.ts";
import { sentence } from "../engine/sentence.ts";
import { Serial } from "../engine/serial.ts";
import { findRepository, type Repository, worktreesFolder } from "./repository.ts";

/** A worktree that was made for a task. */
export interface OurWorktree {
  readonly name: string;
  /** The top folder of its files. Undefined if Git was ended before it had noted it. */
  readonly root: string | undefined;
  /** The worktree's private Git directory. */
  readonly gitDirectory: string;
  readonly made: Date;
}

/**
 * Adds and removes worktrees one at a time: while Git adds one, it reads the others, and fails if one of them is
 * incomplete.
 */
export const listing = new Serial();

const RENAME_ATTEMPTS = 8;
const RENAME_PAUSE_MS = 250;
const DELETION = { recursive: true, force: true, maxRetries: 3 } as const;

const LOCK = "Async Agents for OpenCode made this worktree for a task: ";

/**
 * The reason why a worktree is locked, which marks it as ours. Git writes it into the worktree's private directory
 * before anything else, and it keeps other programs from removing the worktree.
 */
export function lockReason(name: string): string {
  return `${LOCK}${name}`;
}

/** All worktrees of ours in a repository, finished or not, by name. */
export async function ourWorktrees({
  commonDirectory,
}: Pick<Repository, "commonDirectory">): Promise<ReadonlyMap<string, OurWorktree>> {
  const folder = join(commonDirectory, "worktrees");
  const ids = await orElse(readdir(folder), []);
  const found = await Promise.all(ids.map((id) => readOurs(join(folder, id))));
  return new Map(found.filter((one) => one !== undefined).map((one) => [one.name, one]));
}

/**
 * The worktree of ours that contains the directory, in the repository of the folder for whose task it was made. Throws if
 * there is none, so that no other files are touched, and nothing is run: an agent can write a file `.git` that leads to a
 * repository of its own, whose configuration names commands, or to the worktree of another task.
 */
export async function requireOurs(
  directory: string,
  folder: string,
  { name, signal }: { readonly name?: string | undefined; readonly signal?: AbortSignal | undefined } = {},
): Promise<{ readonly repository: Repository; readonly ours: OurWorktree }> {
  const [repository, { commonDirectory }] = await Promise.all([
    findRepository(directory, signal),
    findRepository(folder, signal),
  ]);
  const isLinked =
    repository.commonDirectory === commonDirectory &&
    dirname(repository.gitDirectory) === join(commonDirectory, "worktrees");
  const ours = isLinked ? await readOurs(repository.gitDirectory) : undefined;
  const isIt = ours?.root !== undefined && (await isSame(ours.root, repository.root));
  if (!ours || !isIt || ours.name !== (name ?? ours.name))
    throw new UserFacingError(
      sentence("{0} isn't a worktree made for a task, or it was unlocked, so it's left alone.", directory),
    );
  return { repository, ours };
}

async function isSame(one: string, other: string): Promise<boolean> {
  return (await orElse(realpath(one), one)) === (await orElse(realpath(other), other));
}

/**
 * Deletes a worktree of ours. If it is interrupted, it can be called again. A folder that no longer leads to the
 * worktree stays.
 */
export async function deleteWorktree(
  { root, gitDirectory }: OurWorktree,
  repository: Repository,
): Promise<void> {
  if (root !== undefined) {
    await deleteFiles(root, gitDirectory);
    // It was made with the first worktree.
    if (dirname(root) === worktreesFolder(repository)) await removeIfEmpty(dirname(root));
  }
  await listing.run(async () => {
    // Git ignores a worktree without this file. Without one of the others, it fails.
    await rm(join(gitDirectory, "gitdir"), { force: true });
    await rm(gitDirectory, DELETION);
    await removeIfEmpty(join(repository.commonDirectory, "worktrees"));
  });
}

/**
 * Renames the folder first: a deletion that fails halfway would leave a worktree whose missing files look like the work of
 * its agent. What can't be deleted, such as files of another user, stays under the new name.
 */
async function deleteFiles(root: string, gitDirectory: string): Promise<void> {
  const removed = join(dirname(root), `.${basename(root)}.removed`);
  const isOurs = async (folder: string): Promise<boolean> =>
    (await linkedFrom(join(folder, ".git"))) === gitDirectory;
  if (await isOurs(root)) {
    // What an earlier worktree of this name has left there.
    await rm(removed, DELETION).catch(() => rename(removed, `${removed}-${Date.now()}`));
    await renameInUse(root, removed);
  } else await removeIfEmpty(root);
  if (!(await isOurs(removed))) return;
  const names = (await readdir(removed)).filter((name) => name !== ".git");
  const outcomes = await Promise.allSettled(names.map((name) => rm(join(removed, name), DELETION)));
  // Git must not take what is left for files of the user, whose repository may contain it.
  if (outcomes.some(({ status }) => status === "rejected"))
    await writeFile(join(removed, ".gitignore"), "*\n").catch(() => undefined);
  // The file `.git` goes last, because it proves that the folder is ours.
  await rm(join(removed, ".git"), DELETION).catch(() => undefined);
  await removeIfEmpty(removed);
}

/** Waits a moment for programs that have just ended and whose files Windows still holds. */
async function renameInUse(from: string, to: string): Promise<void> {
  for (let attempt = 1; ; attempt++)
    try {
      return await rename(from, to);
    } catch (error) {
      if (attempt === RENAME_ATTEMPTS || !["EPERM", "EBUSY", "EACCES"].includes(codeOf(error))) throw error;
      await delay(RENAME_PAUSE_MS);
    }
}

/** Undefined if it isn't ours. */
async function readOurs(gitDirectory: string): Promise<OurWorktree | undefined> {
  const lock = join(gitDirectory, "locked");
  const reason = (await orElse(readFile(lock, "utf8"), "")).trim();
  const stats = await orElse(stat(lock), undefined);
  if (!stats || !reason.startsWith(LOCK)) return undefined;
  const link = (await orElse(readFile(join(gitDirectory, "gitdir"), "utf8"), "")).trim();
  return {
    name: reason.slice(LOCK.length),
    root: link === "" ? undefined : dirname(resolve(gitDirectory, link)),
    gitDirectory,
    made: stats.mtime,
  };
}

/** The Git directory to which a worktree's file `.git` leads. */
async function linkedFrom(link: string): Promise<string | undefined> {
  const path = await linkIn(link);
  return path === undefined ? undefined : orElse(realpath(path), undefined);
}

/** Whether the folder is there, and leads to the worktree. */
export async function isIntact(root: string, gitDirectory: string): Promise<boolean> {
  try {
    return (await findRepository(root)).gitDirectory === gitDirectory;
  } catch {
    return false;
  }
}

/** Whether the file `.git` in a folder leads nowhere, as after its repository was moved. */
export async function isCutOff(root: string): Promise<boolean> {
  const link = join(root, ".git");
  return (await linkIn(link)) !== undefined && (await linkedFrom(link)) === undefined;
}

async function linkIn(link: string): Promise<string | undefined> {
  const [, path] = /^gitdir: (.+)$/m.exec(await orElse(readFile(link, "utf8"), "")) ?? [];
  return path === undefined ? undefined : resolve(dirname(link), path);
}

/** Does nothing if the folder doesn't exist or something is in it. */
export async function removeIfEmpty(folder: string): Promise<void> {
  try {
    await rmdir(folder);
  } catch (error) {
    if (!["ENOENT", "ENOTDIR", "ENOTEMPTY", "EEXIST", "EPERM"].includes(codeOf(error))) throw error;
  }
}

/** The value if what is read doesn't exist. */
async function orElse<T>(reading: Promise<T>, value: T): Promise<T> {
  try {
    return await reading;
  } catch (error) {
    if (["ENOENT", "ENOTDIR", "EISDIR"].includes(codeOf(error))) return value;
    throw error;
  }
}

export function codeOf(error: unknown): string {
  return String((error as NodeJS.ErrnoException | null | undefined)?.code);
}

/** Whether a name can stand in paths and references without changing their meaning. */
export function isValidName(name: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9_-]*$/.test(name) && name.length <= 100 && name !== "discarded";
}
