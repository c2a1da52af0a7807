import { UserFacingError } from "../engine/errors.ts";
import { sentence } from "../engine/sentence.ts";
import { namesOf } from "./changed-files.ts";
import { markedFiles } from "./bring-back.ts";
import { askGit, git, gitText } from "./git.ts";
import { requireNoInnerRepositories } from "./inner-repositories.ts";
import { mergeTrees } from "./merge.ts";
import { requireOurs } from "./our-worktrees.ts";
import { requireNoRebase } from "./rebase.ts";
import { refs, updateRefs } from "./refs.ts";
import { commitOf } from "./repository.ts";
import { snapshot } from "./snapshot.ts";

export interface CreateBranch {
  /** The folder for which the worktree was made. */
  readonly folder: string;
  /** A directory in the worktree. */
  readonly worktree: string;
  /** Its name, if it is known. */
  readonly of?: string | undefined;
  /** The commit of the state from which the worktree was made. */
  readonly base: string;
  /** The branch to create. */
  readonly name: string;
  /** For what the agent didn't commit. */
  readonly message: string;
  readonly signal?: AbortSignal | undefined;
}

/** Where the work began: the commit that was checked out, and the files with what was uncommitted. */
interface Start {
  readonly root: string;
  readonly base: string;
  readonly head: string | undefined;
  readonly headTree: string;
  readonly signal: AbortSignal | undefined;
}

/**
 * Creates a branch with the work of a worktree: the agent's commits, and one of the user with what is uncommitted.
 * What was uncommitted in the folder when the worktree was made is not part of it.
 * @returns the branch's last commit
 */
export async function createBranch(options: CreateBranch): Promise<string> {
  const { folder, worktree, of, base, name, message, signal } = options;
  const { repository, ours } = await requireOurs(worktree, folder, { name: of, signal });
  const { root } = repository;
  await requireFree(root, name, signal);
  await requireNoRebase(repository);
  await requireNoInnerRepositories(root, signal);
  const head = await commitOf(root, refs.head(ours.name), signal);
  const headTree =
    head === undefined
      ? await gitText(root, ["mktree"], { signal, input: "" })
      : await treeOf(root, head, signal);
  const start: Start = { root, base, head, headTree, signal };
  const now = await snapshot(root, { signal });
  await requireMerged(start, now.tree);
  const tip = await agentsCommits(start, now.head);
  const tree = await withoutUncommitted(start, now.tree);
  if (tree === (tip === undefined ? headTree : await treeOf(root, tip, signal)) && tip === head)
    throw new UserFacingError(sentence("There are no changes for a branch."));
  const commit = await commitRest(start, { tip, tree, message });
  await updateRefs(root, { create: { [`refs/heads/${name}`]: commit } }, signal);
  return commit;
}

async function requireFree(root: string, name: string, signal: AbortSignal | undefined): Promise<void> {
  const { code } = await askGit(root, ["check-ref-format", "--branch", name], { signal, accept: [1, 128] });
  if (code !== 0 || name.startsWith("@{"))
    throw new UserFacingError(sentence('"{0}" isn\'t a valid name for a branch. Enter another one.', name));
  const all = (await git(root, ["for-each-ref", "--format=%(refname)", "refs/heads"], { signal })).toString();
  const ref = `refs/heads/${name}`;
  // Git keeps branches in folders, so that "a" and "a/b" cannot both exist.
  const taken = all
    .split("\n")
    .find((one) => `${one}/`.startsWith(`${ref}/`) || (one !== "" && ref.startsWith(`${one}/`)));
  if (taken !== undefined)
    throw new UserFacingError(
      sentence('A branch named "{0}" already exists. Enter another name.', taken.slice("refs/heads/".length)),
    );
}

/** Throws if an agent that was to merge has left conflict markers. */
async function requireMerged({ root, base, signal }: Start, tree: string): Promise<void> {
  const paths = await markedFiles(root, { from: base, to: tree }, signal);
  if (paths.length > 0)
    throw new UserFacingError(
      sentence(
        "The agent has left conflict markers in {0}. Have it resolve the conflicts, or bring the work back instead.",
        namesOf(paths),
      ),
    );
}

/**
 * The last of the agent's commits, remade where they contain what was uncommitted in the folder. The commit from which
 * the work began if there are none, or if they don't follow it one by one.
 */
async function agentsCommits(start: Start, agentsHead: string | undefined): Promise<string | undefined> {
  const { root, head, headTree, base, signal } = start;
  if (head === undefined || agentsHead === undefined || agentsHead === head) return head;
  if ((await treeOf(root, base, signal)) === headTree) return agentsHead;
  const commits = await commitsBetween(start, head, agentsHead);
  let tip = head;
  for (const { commit, parents } of commits) {
    const tree = await withoutUncommitted(start, await treeOf(root, commit, signal));
    const isSame = parents[0] === tip && tree === (await treeOf(root, commit, signal));
    tip = isSame ? commit : await remadeCommit(start, { commit, tree, parent: tip });
  }
  return tip;
}

/** The commits after the first, oldest first; none if they don't follow it one by one. */
async function commitsBetween(
  { root, signal }: Start,
  from: string,
  to: string,
): Promise<readonly { readonly commit: string; readonly parents: readonly string[] }[]> {
  const args = ["rev-list", "--reverse", "--topo-order", "--parents", to, `^${from}`, "--"];
  const lines = (await gitText(root, args, { signal })).split("\n").filter((line) => line !== "");
  const commits = lines.map((line) => {
    const [commit = "", ...parents] = line.split(" ");
    return { commit, parents };
  });
  const isOneByOne = commits.every(
    ({ parents }, index) => parents.length === 1 && parents[0] === (commits[index - 1]?.commit ?? from),
  );
  return isOneByOne ? commits : [];
}

/** A tree without what was uncommitted in the folder when the worktree was made. */
async function withoutUncommitted({ root, base, headTree, signal }: Start, tree: string): Promise<string> {
  const merge = await mergeTrees(root, { base, mine: headTree, agents: tree }, signal);
  if (merge.conflicts.size === 0) return merge.tree;
  throw new UserFacingError(
    sentence(
      "The agent changed what you had changed but not committed when the task started, so a branch can't hold the agent's changes alone: {0}. Bring the work back instead.",
      namesOf([...merge.conflicts.keys()]),
    ),
  );
}

async function remadeCommit(
  { root, signal }: Start,
  { commit, tree, parent }: { readonly commit: string; readonly tree: string; readonly parent: string },
): Promise<string> {
  const format = ["an", "ae", "ad", "cn", "ce", "cd"].map((field) => `%${field}`).join("%x00");
  const described = await git(root, ["show", "-s", "--date=raw", `--format=${format}%x00%B`, commit], {
    signal,
  });
  const [
    name = "",
    email = "",
    date = "",
    committer = "",
    committerEmail = "",
    committed = "",
    message = "",
  ] = described.toString().split("\0");
  const env = {
    GIT_AUTHOR_NAME: name,
    GIT_AUTHOR_EMAIL: email,
    GIT_AUTHOR_DATE: date,
    GIT_COMMITTER_NAME: committer,
    GIT_COMMITTER_EMAIL: committerEmail,
    GIT_COMMITTER_DATE: committed,
  };
  const input = message.replace(/\n+$/, "\n");
  return gitText(root, ["commit-tree", tree, "-p", parent], { env, signal, input });
}

/** A commit of the user on top of the agent's; the last of these if it contains everything. */
async function commitRest(
  { root, signal }: Start,
  {
    tip,
    tree,
    message,
  }: { readonly tip: string | undefined; readonly tree: string; readonly message: string },
): Promise<string> {
  if (tip !== undefined && tree === (await treeOf(root, tip, signal))) return tip;
  const { code } = await askGit(root, ["var", "GIT_COMMITTER_IDENT"], { signal, accept: [1, 128] });
  if (code !== 0)
    throw new UserFacingError(
      sentence(
        "Git doesn't know your name. Set user.name and user.email in your Git configuration, then try again.",
      ),
    );
  const parents = tip === undefined ? [] : ["-p", tip];
  return gitText(root, ["commit-tree", tree, ...parents], { signal, input: `${message.trim()}\n` });
}

function treeOf(root: string, commit: string, signal: AbortSignal | undefined): Promise<string> {
  return gitText(root, ["rev-parse", "--verify", `${commit}^{tree}`], { signal });
}
