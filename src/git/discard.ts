import { git } from "./git.ts";
import { requireNoInnerRepositories } from "./inner-repositories.ts";
import { remakeWorktree, type RemakeWorktree } from "./make-worktree.ts";
import { ourWorktrees, requireOurs } from "./our-worktrees.ts";
import { listRefs, parseDiscarded, refs, updateRefs } from "./refs.ts";
import { forgetWorktree, stateOf, takeAway, type KeptState } from "./remove-worktree.ts";
import { findRepository } from "./repository.ts";

const DAY = 24 * 60 * 60 * 1_000;
/** How long a discarded worktree can be made again. */
export const KEEP_DISCARDED_MS = 30 * DAY;

/** Removes a worktree whose work isn't wanted. All of it but ignored files can be brought back for 30 days. */
export async function discard(options: {
  /** The folder for which it was made. */
  readonly folder: string;
  /** A directory in the worktree. */
  readonly directory: string;
  /** Its name, if it is known. */
  readonly name?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}): Promise<KeptState> {
  const { folder, directory, name, signal } = options;
  const { repository, ours } = await requireOurs(directory, folder, { name, signal });
  await requireNoInnerRepositories(repository.root, signal);
  const { commit } = await stateOf(repository, ours, signal);
  const ref = refs.discarded(ours.name, new Date());
  await git(repository.root, ["update-ref", ref, commit], { signal });
  await takeAway(folder, repository, ours, signal);
  return { ref, commit };
}

/** Makes a discarded worktree again, at the same place. */
export async function undoDiscard(options: RemakeWorktree & { readonly ref: string }): Promise<void> {
  const { folder, ref } = options;
  await remakeWorktree(options, ref);
  await updateRefs(folder, { remove: [ref] });
}

/** Forgets what was discarded more than 30 days ago. */
export async function expireDiscarded(folder: string, now: Date, signal?: AbortSignal): Promise<void> {
  const all = (await listRefs(folder, refs.discardedAll, signal)).flatMap(({ ref }) => {
    const discarded = parseDiscarded(ref);
    return discarded ? [{ ref, ...discarded }] : [];
  });
  const expired = all.filter(({ time }) => now.getTime() - time.getTime() > KEEP_DISCARDED_MS);
  if (expired.length === 0) return;
  await updateRefs(folder, { remove: expired.map(({ ref }) => ref) }, signal);
  const stillThere = await ourWorktrees(await findRepository(folder, signal));
  const names = new Map(expired.map(({ name, time }) => [name, time]));
  for (const { ref, name } of all) if (!expired.some((one) => one.ref === ref)) names.delete(name);
  for (const [name, time] of names) {
    // It may have been made again since, and removed with other work in it.
    const kept = await listRefs(folder, refs.keptAll(name), signal);
    const isKeptSince = kept.some(({ ref }) => ref > refs.kept(name, time));
    if (!stillThere.has(name) && !isKeptSince) await forgetWorktree(folder, name, signal);
  }
}
