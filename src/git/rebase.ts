import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { UserFacingError } from "../engine/errors.ts";
import { sentence } from "../engine/sentence.ts";
import { exists } from "./obstacles.ts";
import { commitOf, type Repository } from "./repository.ts";

/** What Git keeps in a working tree's Git directory while a rebase, or `git am`, waits for the user. */
const FOLDERS = ["rebase-merge", "rebase-apply"];

type WorkingTree = Pick<Repository, "root" | "gitDirectory">;

/** Where Git notes what it has stashed for a rebase or a merge that waits for the user. */
const STASHES = [...FOLDERS.map((folder) => join(folder, "autostash")), "MERGE_AUTOSTASH"];

/**
 * The commits that only an operation in progress leads to: the last of those that a rebase moves, and what was not committed
 * when it began, or when a merge did.
 */
export async function heldCommits(
  { root, gitDirectory }: WorkingTree,
  signal?: AbortSignal,
): Promise<readonly string[]> {
  const found: string[] = [];
  for (const note of [...FOLDERS.map((folder) => join(folder, "orig-head")), ...STASHES]) {
    const noted = await readFile(join(gitDirectory, note), "utf8").catch(() => "");
    const commit = noted === "" ? undefined : await commitOf(root, noted.trim(), signal);
    if (commit !== undefined) found.push(commit);
  }
  return found;
}

/** Throws if only a part of the work is in the working tree. */
export async function requireNoRebase({ gitDirectory }: WorkingTree): Promise<void> {
  for (const folder of FOLDERS)
    if (await exists(join(gitDirectory, folder)))
      throw new UserFacingError(
        sentence(
          "A rebase is in progress in the worktree, so commits are missing from it. Have the agent complete or abort the rebase, then try again.",
        ),
      );
  if (await exists(join(gitDirectory, "MERGE_AUTOSTASH")))
    throw new UserFacingError(
      sentence(
        "A merge is in progress in the worktree, for which Git has put uncommitted changes aside. Have the agent complete or abort the merge, then try again.",
      ),
    );
}
