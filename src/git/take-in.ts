import { isForUser, type BringBackPlan } from "../engine/bring-back.ts";
import { UserFacingError } from "../engine/errors.ts";
import type { TaskWorktree } from "../engine/task.ts";
import { changedFiles } from "./changed-files.ts";
import { fewAtOnce } from "../engine/few-at-once.ts";
import { git, gitForPaths, gitText, parts } from "./git.ts";
import { requireOurs } from "./our-worktrees.ts";
import { contents } from "./plan-contents.ts";
import { refs, updateRefs } from "./refs.ts";
import { keep } from "./remove-worktree.ts";
import { commitTree, snapshotTree } from "./snapshot.ts";
import { withTemporaryIndex } from "./temporary-index.ts";
import { writeBack } from "./write-back.ts";

/** See `Worktrees.takeIn`. */
export async function takeIn(
  { name, directory, base }: TaskWorktree,
  plan: BringBackPlan,
  folder: string,
): Promise<string> {
  const { root } = (await requireOurs(directory, folder, { name })).repository;
  const inWorktree = { ...plan, root, mine: plan.agents, agents: plan.mine };
  const changed = await changedFiles(root, plan.agents, plan.merged, { renames: false });
  await keep({ folder, directory, name });
  const moved = [plan.commits.mine, plan.commits.agents].map((commit) => `~${commit}`);
  const left = plan.files.filter(isForUser).flatMap(({ path, from }) => [path, ...(from ? [from] : [])]);
  const paths = changed
    .map(({ path }) => path)
    .filter((path) => !moved.some((name) => path.includes(name)))
    .filter((path) => !left.some((one) => `${path}/`.startsWith(`${one}/`)));
  // Git ignores them in the worktree, so the agent keeps its own.
  const { tree: now } = await snapshotTree(root, { base, alsoIgnored: paths });
  const ignored = (await changedFiles(root, plan.agents, now, { renames: false }))
    .filter(({ path, kind }) => kind === "added" && paths.includes(path))
    .map(({ path }) => path);
  left.push(...ignored);
  const taken = paths.filter((path) => !ignored.includes(path));
  const files = await fewAtOnce(taken, async (path) => {
    try {
      return [[path, await contents(inWorktree, path, "markers")] as const];
    } catch (error) {
      if (!(error instanceof UserFacingError)) throw error;
      // It can't be written, such as a repository that the user added to the index.
      left.push(path);
      return [];
    }
  });
  await writeBack(inWorktree, new Map(files.flat()));
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
  const list = ["ls-tree", "-r", "-z", "--full-tree"];
  // A file on one side can be a folder on the other.
  const present = parts(await gitForPaths(root, [...list, "--name-only", tree], left), "latin1");
  const files = parts(await gitForPaths(root, [...list, base], left), "latin1");
  const without = present.map((path) => `0 ${"0".repeat(tree.length)}\t${path}`);
  const input = Buffer.from([...without, ...files].map((entry) => `${entry}\0`).join(""), "latin1");
  return withTemporaryIndex(async (env) => {
    await git(root, ["read-tree", tree], { env });
    await git(root, ["update-index", "-z", "--replace", "--add", "--index-info"], { env, input });
    return gitText(root, ["write-tree"], { env });
  });
}
