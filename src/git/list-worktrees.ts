import { lstat, readdir } from "node:fs/promises";
import { join } from "node:path";
import { commitOf, findRepository, inTree } from "./repository.ts";
import { ourWorktrees, type OurWorktree } from "./our-worktrees.ts";
import { refs } from "./refs.ts";
import { work, type Work } from "./remove-worktree.ts";
import { isOfOtherFolder } from "./worktree-marks.ts";

/** A worktree of a task, as a user decides whether to keep it. */
export interface ListedWorktree {
  readonly name: string;
  /** Undefined if Git was ended before it had noted it. */
  readonly root: string | undefined;
  /** The equivalent of the folder that was asked for. */
  readonly directory: string | undefined;
  readonly made: Date;
  /** Bytes on disk. */
  readonly size: number;
  /** Undefined if its files are gone or cannot be read. */
  readonly work: Work | undefined;
}

/**
 * The worktrees of the folder's tasks, by name; never those of users, of other tools, or of tasks of other folders in the
 * same repository.
 */
export async function listWorktrees(folder: string, signal?: AbortSignal): Promise<ListedWorktree[]> {
  const repository = await findRepository(folder, signal);
  const all = [...(await ourWorktrees(repository)).values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  const listed: ListedWorktree[] = [];
  for (const ours of all) {
    if (await isOfOtherFolder(ours, folder)) continue;
    const { name, root, made } = ours;
    listed.push({
      name,
      root,
      directory: root === undefined ? undefined : inTree(root, repository),
      made,
      size: root === undefined ? 0 : await sizeOf(root, signal),
      work: await workOf(ours, folder, signal),
    });
  }
  return listed;
}

async function workOf(
  { name, root }: OurWorktree,
  folder: string,
  signal: AbortSignal | undefined,
): Promise<Work | undefined> {
  if (root === undefined) return undefined;
  try {
    const base = await commitOf(root, refs.base(name), signal);
    return base === undefined ? undefined : await work({ folder, directory: root, name, base, signal });
  } catch {
    signal?.throwIfAborted();
    return undefined;
  }
}

/** What a folder takes on disk; what cannot be read counts as nothing. */
async function sizeOf(folder: string, signal: AbortSignal | undefined): Promise<number> {
  signal?.throwIfAborted();
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  const sizes = await Promise.all(
    entries
      .filter((entry) => !entry.isDirectory())
      .map((entry) =>
        lstat(join(folder, entry.name)).then(
          ({ blocks, size }) => (blocks === undefined ? size : blocks * 512),
          () => 0,
        ),
      ),
  );
  let total = sizes.reduce((sum, size) => sum + size, 0);
  for (const entry of entries)
    if (entry.isDirectory()) total += await sizeOf(join(folder, entry.name), signal);
  return total;
}
