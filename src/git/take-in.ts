import { isForUser, type BringBackPlan } from "../engine/bring-back.ts";
import type { TaskWorktree } from "../engine/task.ts";
import { changedFiles } from "./changed-files.ts";
import { fewAtOnce } from "./few-at-once.ts";
import { git, gitText, parts } from "./git.ts";
import { requireOurs } from "./our-worktrees.ts";
import { contents } from "./plan-contents.ts";
import { refs, updateRefs } from "./refs.ts";
import { keep } from "./remove-worktree.ts";
import { commitTree } from "./snapshot.ts";
import { withTemporaryIndex } from "./temporary-index.ts";
import { writeBack } from "./write-back.ts";

/** See `Worktrees.takeIn`. */
export async function takeIn({ name, directory, base }: TaskWorktree, plan: BringBackPlan): Promise<string> {
  const { root } = (await requireOurs(directory)).repository;
  const inWorktree = { ...plan, root, mine: plan.agents, agents: plan.mine };
  const changed = await changedFiles(root, plan.agents, plan.merged, { renames: false });
  await keep({ directory });
  const moved = [plan.commits.mine, plan.commits.agents].map((commit) => `~${commit}`);
  const left = plan.files.filter(isForUser).flatMap(({ path, from }) => [path, ...(from ? [from] : [])]);
  const paths = changed
    .map(({ path }) => path)
    .filter((path) => !moved.some((name) => path.includes(name)))
    .filter((path) => !left.some((one) => `${path}/`.startsWith(`${one}/`)));
  const files = await fewAtOnce(
    paths,
    async (path) => [path, await contents(inWorktree, path, "markers")] as const,
  );
  await writeBack(inWorktree, new Map(files));
  // From here on, what the agent does is compared with the folder's state that it was given.
  const given = left.length === 0 ? plan.mine : await withFilesOf(root, { tree: plan.mine, base, left });
  const newBase = await commitTree(root, given, [base]);
  await updateRefs(root, { set: { [refs.base(name)]: newBase } });
  return newBase;
}

/** The tree with some files as they are in the base, so that what both sides made of them stays in conflict. */
async function withFilesOf(
  root: string,
  { tree, base, left }: { readonly tree: string; readonly base: string; readonly left: readonly string[] },
): Promise<string> {
  const files = parts(await git(root, ["ls-tree", "-r", "-z", "--full-tree", base, "--", ...left]));
  const without = left.map((path) => `0 ${"0".repeat(tree.length)}\t${path}`);
  const input = [...without, ...files].map((entry) => `${entry}\0`).join("");
  return withTemporaryIndex(async (env) => {
    await git(root, ["read-tree", tree], { env });
    await git(root, ["update-index", "-z", "--replace", "--add", "--index-info"], { env, input });
    return gitText(root, ["write-tree"], { env });
  });
}
