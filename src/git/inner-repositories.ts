import { existsSync } from "node:fs";
import { join } from "node:path";
import { UserFacingError } from "../engine/errors.ts";
import { sentence } from "../engine/sentence.ts";
import { namesOf } from "./changed-files.ts";
import { git, parts } from "./git.ts";

/**
 * The repositories inside a working tree, such as what an agent cloned there, except for ignored ones. No snapshot, commit
 * or branch of the working tree contains their files.
 */
export async function innerRepositories(root: string, signal?: AbortSignal): Promise<string[]> {
  const which = ["--stage", "--others", "--exclude-standard"];
  return parts(await git(root, ["ls-files", "-z", ...which], { signal })).flatMap((entry) => {
    // An entry of the index is a mere link, whose repository may be gone.
    const link = /^160000 .*?\t(.+)$/s.exec(entry)?.[1];
    if (link !== undefined) return existsSync(join(root, link, ".git")) ? [link] : [];
    return entry.endsWith("/") ? [entry.slice(0, -1)] : [];
  });
}

/** Throws if the working tree can't be kept as a whole. */
export async function requireNoInnerRepositories(root: string, signal?: AbortSignal): Promise<void> {
  const paths = await innerRepositories(root, signal);
  if (paths.length > 0)
    throw new UserFacingError(
      sentence(
        "The worktree contains other repositories, which Git can't keep with it: {0}. Move them out of the worktree or delete them, then try again.",
        namesOf(paths),
      ),
    );
}
