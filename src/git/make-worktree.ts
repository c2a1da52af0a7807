import { lstat, mkdir, realpath } from "node:fs/promises";
import { dirname, join } from "node:path";
import { UserFacingError } from "../engine/errors.ts";
import { sentence } from "../engine/sentence.ts";
import { git, gitText, GitError } from "./git.ts";
import {
  codeOf,
  deleteWorktree,
  isIntact,
  isValidName,
  listing,
  lockReason,
  ourWorktrees,
  removeIfEmpty,
} from "./our-worktrees.ts";
import { listRefs, parseDiscarded, refs, unfinished, updateRefs } from "./refs.ts";
import { commitOf, findRepository, inTree, type Repository, worktreesFolder } from "./repository.ts";
import { commitTree, snapshot, type Snapshot } from "./snapshot.ts";
import { markUnclaimed } from "./worktree-marks.ts";

/** What a worktree contains at first: the folder as it is, or its last commit. */
type StartFrom = "what-you-see" | "head";

export interface MakeWorktree {
  /** The folder for which it is made: the repository's top folder or one below it. */
  readonly directory: string;
  /** Letters, digits, `-` and `_`. If it is taken, a number is appended. */
  readonly name: string;
  /** The folder for whose task it is, if it is to be removed unless it is claimed. */
  readonly unclaimedFor?: string | undefined;
  /** Where worktrees are made, absolute or relative to the repository; by default `<repository>.worktrees`. */
  readonly location?: string | undefined;
  readonly from: StartFrom;
  /** The base of the worktree in which the directory is, if it is in one. */
  readonly base?: string | undefined;
  /** Texts of editors that are not saved, by path below the directory. */
  readonly unsaved?: ReadonlyMap<string, string> | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface MadeWorktree {
  readonly name: string;
  /** The folder's equivalent in the worktree; a real path. */
  readonly directory: string;
  /** A real path. */
  readonly root: string;
  /** A commit of the state from which it was made. */
  readonly base: string;
  /** The commit that was checked out in the folder. Undefined in a repository without commits. */
  readonly head: string | undefined;
}

/** The checked-out commit and the files of a worktree. */
interface Contents {
  readonly head: string;
  readonly tree: string;
}

const MAX_NAMES = 100;

/** Makes a worktree. If it fails or is cancelled, nothing of it is left. */
export async function makeWorktree(options: MakeWorktree): Promise<MadeWorktree> {
  const { directory, location, from, base, unsaved, unclaimedFor, signal } = options;
  const repository = await findRepository(directory, signal);
  await cleanUpUnfinished(directory, signal);
  const start =
    from === "head"
      ? await headState(directory, signal)
      : await snapshot(directory, { base, unsaved, signal });
  const contents = { head: start.head ?? start.commit, tree: start.tree };
  for (const name of candidates(options.name)) {
    const path = join(worktreesFolder(repository, location), name);
    if ((await exists(path)) || !(await reserve(directory, name, start, signal))) continue;
    try {
      await checkOut(repository, { name, root: path, contents, signal });
      // Its location may lead through a symbolic link, but folders are compared by their real paths.
      const root = await realpath(path);
      if (unclaimedFor !== undefined) await markUnclaimed(repository, name, unclaimedFor);
      await updateRefs(directory, { remove: [refs.making(name)] });
      return { name, directory: inTree(root, repository), root, base: start.commit, head: start.head };
    } catch (error) {
      await removeUnfinished(repository, { name, step: "making" });
      if (!isTaken(error)) throw error;
    }
  }
  throw new UserFacingError(
    sentence('There are too many worktrees named "{0}". Clean up worktrees, then try again.', options.name),
  );
}

export interface RemakeWorktree {
  /** The folder for which it was made. */
  readonly folder: string;
  readonly name: string;
  readonly root: string;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Makes a worktree again at the same place: from the given state, or from the last kept one, or else from the one from
 * which it was made.
 */
export async function remakeWorktree(options: RemakeWorktree, state?: string): Promise<void> {
  const { folder, name, root, signal } = options;
  const repository = await findRepository(folder, signal);
  await cleanUpUnfinished(folder, signal);
  if (await exists(root))
    throw new UserFacingError(sentence("{0} already exists. Move it away, then try again.", root));
  const ours = (await ourWorktrees(repository)).get(name);
  if (ours?.root !== undefined && (await isIntact(ours.root, ours.gitDirectory)))
    throw new UserFacingError(
      sentence(
        'The worktree was moved to {0}. Move it back to {1}, run "git worktree repair" in it, then try again.',
        ours.root,
        root,
      ),
    );
  const contents = await lastContents(folder, { name, state, signal });
  if (!contents)
    throw new UserFacingError(
      sentence('The worktree "{0}" can\'t be recreated because no state of it was saved.', name),
    );
  await updateRefs(folder, { set: { [refs.changing(name)]: contents.head } });
  try {
    // Its folder may have been deleted without Git.
    await deleteIfOurs(repository, name);
    await checkOut(repository, { name, root, contents, signal });
    await updateRefs(folder, { remove: [refs.changing(name)] });
  } catch (error) {
    await removeUnfinished(repository, { name, step: "changing" });
    throw error;
  }
}

/**
 * Removes worktrees of ours that were not finished because a process was killed. Resolves to the names of those that
 * can't be removed now, such as for files in use, each with the error; they must not keep others from being made.
 */
export async function cleanUpUnfinished(
  folder: string,
  signal?: AbortSignal,
): Promise<ReadonlyMap<string, unknown>> {
  const left = await unfinished(folder, signal);
  const failed = new Map<string, unknown>();
  if (left.length === 0) return failed;
  const repository = await findRepository(folder, signal);
  for (const one of left)
    try {
      await removeUnfinished(repository, one);
      await updateRefs(folder, { remove: [one.ref] });
    } catch (error) {
      failed.set(one.name, error);
    }
  return failed;
}

async function removeUnfinished(
  repository: Repository,
  { name, step }: { readonly name: string; readonly step: "making" | "changing" },
): Promise<void> {
  await deleteIfOurs(repository, name);
  // It may have been made without a worktree in it yet.
  await removeIfEmpty(worktreesFolder(repository));
  // One that was never finished has no state to keep.
  const pattern = step === "making" ? refs.all(name) : refs.changing(name);
  const left = await listRefs(repository.root, pattern);
  await updateRefs(repository.root, { remove: left.map(({ ref }) => ref) });
}

async function deleteIfOurs(repository: Repository, name: string): Promise<void> {
  const ours = (await ourWorktrees(repository)).get(name);
  if (ours) await deleteWorktree(ours, repository);
}

async function headState(directory: string, signal: AbortSignal | undefined): Promise<Snapshot> {
  const head = await commitOf(directory, "HEAD", signal);
  if (head !== undefined)
    return {
      head,
      commit: head,
      tree: await gitText(directory, ["rev-parse", `${head}^{tree}`], { signal }),
    };
  const tree = await gitText(directory, ["mktree"], { signal, input: "" });
  return { head, tree, commit: await commitTree(directory, tree, [], signal) };
}

function* candidates(name: string): Iterable<string> {
  if (!isValidName(name)) throw new Error(`${JSON.stringify(name)} is no name for a worktree.`);
  yield name;
  for (let number = 2; number <= MAX_NAMES; number++) yield `${name}-${number}`;
}

/** Takes a name for a worktree, together with what is to be kept. Returns whether it was free. */
async function reserve(
  directory: string,
  name: string,
  { commit, head }: Snapshot,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const isTaken = async (): Promise<boolean> =>
    (await listRefs(directory, refs.all(name), signal)).length > 0;
  if (await isTaken()) return false;
  const create = {
    [refs.base(name)]: commit,
    ...(head !== undefined && { [refs.head(name)]: head }),
    [refs.making(name)]: commit,
  };
  try {
    // Not cancelled halfway, as nobody would know that the name was taken.
    await updateRefs(directory, { create });
    return true;
  } catch (error) {
    if (error instanceof GitError && (await isTaken())) return false;
    throw error;
  }
}

interface CheckOut {
  readonly name: string;
  readonly root: string;
  readonly contents: Contents;
  readonly signal: AbortSignal | undefined;
}

/** The index is that of the commit, so that the status shows what was uncommitted in the folder. */
async function checkOut(repository: Repository, { name, root, contents, signal }: CheckOut): Promise<void> {
  await mkdir(dirname(root), { recursive: true });
  const add = ["worktree", "add", "--detach", "--no-checkout", "--lock", "--reason", lockReason(name)];
  await listing.run(() => git(repository.root, [...add, "--", root, contents.head], { signal }));
  await git(root, ["read-tree", "--reset", "-u", contents.tree], { signal });
  await git(root, ["read-tree", "-m", "HEAD"], { signal });
  await mkdir(inTree(root, repository), { recursive: true });
}

/** Of a kept state, whose parent is the commit that was checked out, or else of the first state. */
async function lastContents(
  folder: string,
  {
    name,
    state,
    signal,
  }: { readonly name: string; readonly state: string | undefined; readonly signal: AbortSignal | undefined },
): Promise<Contents | undefined> {
  const kept = state ?? (await lastKept(folder, name, signal));
  const commit = await commitOf(folder, kept ?? refs.base(name), signal);
  if (commit === undefined) return undefined;
  const head = await commitOf(folder, kept === undefined ? refs.head(name) : `${commit}^`, signal);
  return {
    head: head ?? commit,
    tree: await gitText(folder, ["rev-parse", `${commit}^{tree}`], { signal }),
  };
}

/** The ref of the newest state of a worktree: its task's result, or as it was removed or discarded. */
async function lastKept(
  folder: string,
  name: string,
  signal: AbortSignal | undefined,
): Promise<string | undefined> {
  const discarded = (await listRefs(folder, refs.discardedAll, signal)).flatMap(({ ref }) =>
    parseDiscarded(ref)?.name === name ? [ref] : [],
  );
  const newest = ["--sort=-committerdate", "--count=1", "--format=%(refname)"];
  const states = [refs.keptAll(name), refs.result(name), ...discarded];
  const ref = await gitText(folder, ["for-each-ref", ...newest, ...states], { signal });
  return ref === "" ? undefined : ref;
}

/** Whether somebody else took the path for a worktree in the meantime, or for one whose folder is missing. */
function isTaken(error: unknown): boolean {
  return error instanceof GitError && /already exists|already registered/.test(error.stderr);
}

async function exists(path: string): Promise<boolean> {
  try {
    await lstat(path);
    return true;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return false;
    throw error;
  }
}
