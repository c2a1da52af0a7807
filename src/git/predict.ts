import { gitText } from "./git.ts";
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
  const agents = (await isSameTree(directory, from, worktree.base, signal))
    ? worktree.tree
    : // What the folder's user changed between the two worktrees is no work of either.
      (await mergeTrees(directory, { base: worktree.base, mine: from, agents: worktree.tree }, signal)).tree;
  const { conflicts } = await mergeTrees(directory, { base: from, mine: other.tree, agents }, signal);
  return [...conflicts.keys()].sort();
}

/** Worktrees of one batch have the same files at first, in commits of their own. */
async function isSameTree(
  directory: string,
  a: string,
  b: string,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  if (a === b) return true;
  const trees = await gitText(directory, ["rev-parse", `${a}^{tree}`, `${b}^{tree}`], { signal });
  const [first, second] = trees.split("\n");
  return first === second;
}
