import { existsSync } from "node:fs";
import { realpath } from "node:fs/promises";
import { join, posix } from "node:path";
import { UserFacingError } from "../engine/errors.ts";
import { sentence } from "../engine/sentence.ts";
import { namesOf } from "./changed-files.ts";
import { fewAtOnce } from "../engine/few-at-once.ts";
import { git, parts } from "./git.ts";

/**
 * The repositories inside a working tree, such as what an agent cloned there, except for ignored ones. No snapshot, commit
 * or branch of the working tree contains their files.
 */
export async function innerRepositories(root: string, signal?: AbortSignal): Promise<string[]> {
  const which = ["--stage", "--others", "--exclude-standard"];
  const entries = parts(await git(root, ["ls-files", "-z", ...which], { signal }));
  const listed = entries.flatMap((entry) => {
    // An entry of the index is a mere link, whose repository may be gone.
    const link = /^160000 .*?\t(.+)$/s.exec(entry)?.[1];
    if (link !== undefined) return existsSync(join(root, link, ".git")) ? [link] : [];
    return entry.endsWith("/") ? [entry.slice(0, -1)] : [];
  });
  const around = await fewAtOnce(foldersOf(entries), (folder) => holdsRepository(root, folder));
  return [...listed, ...around.flat()];
}

/** The folders of the listed files. */
function foldersOf(entries: readonly string[]): ReadonlySet<string> {
  const folders = new Set<string>();
  for (const entry of entries) {
    const path = entry.replace(/^\d{6} [0-9a-f]+ \d\t/, "").replace(/\/$/, "");
    for (let at = posix.dirname(path); at !== "." && !folders.has(at); at = posix.dirname(at))
      folders.add(at);
  }
  return folders;
}

/** Git lists the files of a folder that are part of the working tree, even if a repository was made in it later. */
async function holdsRepository(root: string, folder: string): Promise<readonly string[]> {
  const link = join(root, folder, ".git");
  try {
    // Behind a symbolic link, it isn't in the worktree.
    return (await realpath(link)) === link ? [folder] : [];
  } catch {
    return [];
  }
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
