import { mergeTrees } from "./merge.ts";

/** The files of a worktree, or of the folder, at some time. */
export interface TreeState {
  /** The tree or commit of the files, as of `snapshot`. */
  readonly tree: string;
  /** The commit from which a worktree was made. Undefined for the folder. */
  readonly base?: string;
}

/**
 * The paths at which the work in a worktree conflicts with the folder, or with the work in another worktree, sorted.
 * @param directory any folder of the repository
 */
export async function predict(
  directory: string,
  worktree: TreeState & { readonly base: string },
  other: TreeState,
  signal?: AbortSignal,
): Promise<string[]> {
  const { base: from = worktree.base } = other;
  const agents =
    from === worktree.base
      ? worktree.tree
      : // What the folder's user changed between the two worktrees is no work of either.
        (await mergeTrees(directory, { base: worktree.base, mine: from, agents: worktree.tree }, signal))
          .tree;
  const { conflicts } = await mergeTrees(directory, { base: from, mine: other.tree, agents }, signal);
  return [...conflicts.keys()].sort();
}
