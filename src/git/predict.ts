import { gitText } from "./git.ts";
import { mergeTrees } from "./merge.ts";
import { snapshotTree } from "./snapshot.ts";

/** The files of a worktree, or of the folder, at some time. */
export interface TreeState {
  /** The tree or commit of the files, as of `snapshot`. */
  readonly tree: string;
  /** That from which a worktree was made. Undefined for the folder. */
  readonly base?: { readonly commit: string; readonly tree: string };
}

/**
 * Reads the files of a worktree.
 * @param base the commit from which it was made
 */
export async function worktreeState(
  directory: string,
  base: string,
  signal?: AbortSignal,
): Promise<Required<TreeState>> {
  const [{ tree }, baseTree] = await Promise.all([
    snapshotTree(directory, { base, signal }),
    gitText(directory, ["rev-parse", `${base}^{tree}`], { signal }),
  ]);
  return { tree, base: { commit: base, tree: baseTree } };
}

/**
 * The paths at which the work in a worktree conflicts with the folder, or with the work in another worktree, sorted.
 * @param directory any folder of the repository
 */
export async function predict(
  directory: string,
  { tree, base }: Required<TreeState>,
  other: TreeState,
  signal?: AbortSignal,
): Promise<string[]> {
  const from = other.base ?? base;
  // Worktrees of one batch have the same files at first, in commits of their own.
  const agents =
    from.tree === base.tree
      ? tree
      : // What the folder's user changed between the two worktrees is no work of either.
        (await mergeTrees(directory, { base: base.commit, mine: from.commit, agents: tree }, signal)).tree;
  const sides = { base: from.commit, mine: other.tree, agents };
  return [...(await mergeTrees(directory, sides, signal)).conflicts.keys()].sort();
}
