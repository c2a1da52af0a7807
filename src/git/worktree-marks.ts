import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { changedFiles } from "./changed-files.ts";
import { ourWorktrees, requireOurs, type OurWorktree } from "./our-worktrees.ts";
import { isAtWork, refs, self } from "./refs.ts";
import { forgetWorktree, removeWorktree } from "./remove-worktree.ts";
import { findRepository, type Repository } from "./repository.ts";

/*
 * A new worktree is unclaimed until the session of its task has been stored. Should the process be killed before that, no
 * task has it.
 */

/** The mark of a worktree, in its private Git directory. */
interface Mark {
  /** The folder whose task it is for. Only its engine knows whether there is such a task. */
  readonly folder: string;
  /** The process that makes the task. Undefined once a task has the worktree. */
  readonly unclaimedBy?: string;
}

/** Marks a worktree as unclaimed. */
export async function markUnclaimed(repository: Repository, name: string, folder: string): Promise<void> {
  const ours = (await ourWorktrees(repository)).get(name);
  if (ours) await writeMark(ours, { folder, unclaimedBy: self() });
}

/** Notes that a task of the folder has the worktree. */
export async function claim(folder: string, name: string): Promise<void> {
  const ours = (await ourWorktrees(await findRepository(folder))).get(name);
  if (ours) await writeMark(ours, { folder });
}

/** The folder for whose task a worktree was made, given a directory in it. Undefined if it is none. */
export async function folderOfWorktree(directory: string): Promise<string | undefined> {
  try {
    const repository = await findRepository(directory);
    const all = [...(await ourWorktrees(repository)).values()];
    const ours = all.find(({ gitDirectory }) => gitDirectory === repository.gitDirectory);
    const folder: unknown = ours && (await readMark(ours))?.folder;
    if (typeof folder !== "string") return undefined;
    // An agent can write a mark into a repository of its own.
    await requireOurs(directory, folder);
    return folder;
  } catch {
    return undefined;
  }
}

/** Whether the worktree was made for a task of another folder, which still exists. */
export async function isOfOtherFolder(ours: OurWorktree, folder: string): Promise<boolean> {
  const mark = await readMark(ours);
  return mark !== undefined && mark.folder !== folder && existsSync(mark.folder);
}

/**
 * Removes what earlier processes have made for tasks of the folder that don't exist. Resolves to the names of those that
 * can't be removed, each with the error.
 */
export async function removeUnclaimed(
  folder: string,
  names: ReadonlySet<string>,
): Promise<ReadonlyMap<string, unknown>> {
  const failed = new Map<string, unknown>();
  for (const ours of (await ourWorktrees(await findRepository(folder))).values()) {
    const mark = await readMark(ours);
    if (mark?.folder !== folder || mark.unclaimedBy === undefined || isAtWork(mark.unclaimedBy)) continue;
    const { name } = ours;
    if (names.has(name)) await claim(folder, name);
    else await removeUnused(folder, name).catch((error: unknown) => failed.set(name, error));
  }
  return failed;
}

/** Removes a worktree that no task has. Only if something has changed in it, its state is kept. */
export async function removeUnused(folder: string, name: string): Promise<void> {
  const kept = await removeWorktree({ folder, name });
  const files = kept ? await changedFiles(folder, refs.base(name), kept.commit) : [];
  if (files.length === 0) await forgetWorktree(folder, name);
}

async function readMark(ours: OurWorktree): Promise<Mark | undefined> {
  try {
    return JSON.parse(await readFile(markOf(ours), "utf8")) as Mark;
  } catch {
    return undefined;
  }
}

function writeMark(ours: OurWorktree, mark: Mark): Promise<void> {
  return writeFile(markOf(ours), JSON.stringify(mark));
}

function markOf({ gitDirectory }: OurWorktree): string {
  return join(gitDirectory, "asyncagents-task");
}
