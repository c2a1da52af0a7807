import type { ChangedFile } from "../engine/bring-back.ts";
import { UserFacingError } from "../engine/errors.ts";
import { sentence } from "../engine/sentence.ts";
import { changedFiles } from "./changed-files.ts";
import { git, parts } from "./git.ts";
import { requireNoInnerRepositories } from "./inner-repositories.ts";
import {
  deleteWorktree,
  isCutOff,
  isIntact,
  ourWorktrees,
  requireOurs,
  type OurWorktree,
} from "./our-worktrees.ts";
import { heldCommits } from "./rebase.ts";
import { listRefs, refs, updateRefs } from "./refs.ts";
import { commitOf, findRepository, type Repository } from "./repository.ts";
import { commitTree, snapshot, type Snapshot } from "./snapshot.ts";

/** What would be lost with a worktree. */
export interface Work {
  /** The files that differ from the base, committed or not. */
  readonly files: readonly ChangedFile[];
  /** The commits that no branch or tag contains, newest first. */
  readonly commits: readonly { readonly commit: string; readonly subject: string }[];
}

/** A state of a worktree that is kept under a hidden reference. */
export interface KeptState {
  readonly ref: string;
  readonly commit: string;
}

const MAX_COMMITS = 100;

/** What the worktree contains that exists nowhere else, compared to a state that does. */
export async function work(options: {
  /** The folder for which it was made. */
  readonly folder: string;
  /** A directory in the worktree. */
  readonly directory: string;
  /** Its name, if it is known. */
  readonly name?: string | undefined;
  /** The commit from which it was made, or a later one that was kept or brought back. */
  readonly base: string;
  readonly signal?: AbortSignal | undefined;
}): Promise<Work> {
  const { folder, directory, name, base, signal } = options;
  const { repository, ours } = await requireOurs(directory, folder, { name, signal });
  const { commit, head } = await snapshot(repository.root, { base, signal });
  const start = await commitOf(repository.root, refs.head(ours.name), signal);
  const tips = [...(head === undefined ? [] : [head]), ...(await heldCommits(repository, signal))];
  const [files, commits] = await Promise.all([
    changedFiles(repository.root, base, commit, { signal }),
    ownCommits(repository.root, { tips, known: start ?? base, signal }),
  ]);
  return { files, commits };
}

/** Keeps the files and commits of a worktree, whatever becomes of it. */
export async function keep(options: {
  /** The folder for which it was made. */
  readonly folder: string;
  /** A directory in the worktree. */
  readonly directory: string;
  /** Its name, if it is known. */
  readonly name?: string | undefined;
  /** As the result of its task, which replaces an earlier one, or as one more state. */
  readonly as?: "result" | "state";
  readonly signal?: AbortSignal | undefined;
}): Promise<KeptState> {
  const { folder, directory, name, as = "state", signal } = options;
  const { repository, ours } = await requireOurs(directory, folder, { name, signal });
  const { commit } = await stateOf(repository, ours, signal);
  const ref = as === "result" ? refs.result(ours.name) : refs.kept(ours.name, new Date());
  await git(repository.root, ["update-ref", ref, commit], { signal });
  return { ref, commit };
}

/**
 * The files of a worktree, with those of its base that Git ignores by now. The commit also leads to what a rebase or merge
 * in progress has yet to apply.
 */
export async function stateOf(
  repository: Repository,
  { name }: OurWorktree,
  signal: AbortSignal | undefined,
): Promise<Snapshot> {
  const { root } = repository;
  const state = await snapshot(root, { base: await commitOf(root, refs.base(name), signal), signal });
  const { head, tree } = state;
  const held = await heldCommits(repository, signal);
  if (head === undefined || held.length === 0) return state;
  return { ...state, commit: await commitTree(root, tree, [head, ...held], signal) };
}

/**
 * Removes a worktree. Its state is kept first, except for ignored files, so that it can be made again. Throws if
 * that can't be kept, because a repository is in it or its own one was moved.
 * @returns the kept state; undefined if there is no such worktree, or its folder was gone already
 */
export async function removeWorktree(options: {
  /** The folder for which it was made. */
  readonly folder: string;
  readonly name: string;
  readonly signal?: AbortSignal | undefined;
}): Promise<KeptState | undefined> {
  const { folder, name, signal } = options;
  const repository = await findRepository(folder, signal);
  const ours = (await ourWorktrees(repository)).get(name);
  if (!ours) return undefined;
  let kept: KeptState | undefined;
  if (ours.root !== undefined && (await isIntact(ours.root, ours.gitDirectory))) {
    await requireNoInnerRepositories(ours.root, signal);
    kept = await keep({ folder, directory: ours.root, name, signal });
  } else if (ours.root !== undefined && (await isCutOff(ours.root)))
    throw new UserFacingError(
      sentence(
        'The repository was moved, so the worktree {0} can\'t be kept. Run "git worktree repair" in the repository, then try again.',
        name,
      ),
    );
  await takeAway(folder, repository, ours, signal);
  return kept;
}

/**
 * Deletes a worktree whose state is kept. If the process is killed, the next one completes it.
 * @param folder the one for which it was made: it stays, and Git may be set to refuse commands in the repository itself
 */
export async function takeAway(
  folder: string,
  repository: Repository,
  ours: OurWorktree,
  signal: AbortSignal | undefined,
): Promise<void> {
  const mark = refs.changing(ours.name);
  const base = await commitOf(folder, refs.base(ours.name), signal);
  // Not cancelled from here on: a mark that is left behind would remove a worktree that is still used.
  if (base !== undefined) await updateRefs(folder, { set: { [mark]: base } });
  try {
    await deleteWorktree(ours, repository);
  } finally {
    if (base !== undefined) await updateRefs(folder, { remove: [mark] });
  }
}

/** Forgets all kept states of a worktree that was removed. */
export async function forgetWorktree(folder: string, name: string, signal?: AbortSignal): Promise<void> {
  const left = await listRefs(folder, refs.all(name), signal);
  await updateRefs(folder, { remove: left.map(({ ref }) => ref) }, signal);
}

async function ownCommits(
  directory: string,
  { tips, known, signal }: { tips: readonly string[]; known: string; signal: AbortSignal | undefined },
): Promise<Work["commits"]> {
  if (tips.length === 0) return [];
  const not = ["--not", known, "--branches", "--tags", "--remotes"];
  const args = ["log", "-z", `--max-count=${MAX_COMMITS}`, "--format=%H %s", ...tips, ...not, "--"];
  return parts(await git(directory, args, { signal })).map((line) => ({
    commit: line.slice(0, line.indexOf(" ")),
    subject: line.slice(line.indexOf(" ") + 1),
  }));
}
