import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { UserFacingError } from "../engine/errors.ts";
import { sentence } from "../engine/sentence.ts";
import { exists } from "./obstacles.ts";
import { commitOf, type Repository } from "./repository.ts";

/** What Git keeps in a working tree's Git directory while a rebase, or `git am`, waits for the user. */
const FOLDERS = ["rebase-merge", "rebase-apply"];

type WorkingTree = Pick<Repository, "root" | "gitDirectory">;

/** The last commit of those that a rebase in progress moves, which nothing else need lead to; undefined if there is none. */
export async function rebasedTip(
  { root, gitDirectory }: WorkingTree,
  signal?: AbortSignal,
): Promise<string | undefined> {
  for (const folder of FOLDERS) {
    const noted = await readFile(join(gitDirectory, folder, "orig-head"), "utf8").catch(() => "");
    if (noted !== "") return commitOf(root, noted.trim(), signal);
  }
  return undefined;
}

/** Throws if only a part of the commits is in the working tree. */
export async function requireNoRebase({ gitDirectory }: WorkingTree): Promise<void> {
  for (const folder of FOLDERS)
    if (await exists(join(gitDirectory, folder)))
      throw new UserFacingError(
        sentence(
          "A rebase is in progress in the worktree, so commits are missing from it. Have the agent complete or abort the rebase, then try again.",
        ),
      );
}
