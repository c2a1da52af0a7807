import { isAbsolute, relative, resolve } from "node:path";
import type { BringBackPlan, PlannedFile, Versions } from "../engine/bring-back.ts";
import { UserFacingError } from "../engine/errors.ts";
import { sentence } from "../engine/sentence.ts";
import { changedFiles, foldersOf } from "./changed-files.ts";
import { git, gitForPaths, parts } from "./git.ts";
import { mergeTrees, type Conflicting, type Merge } from "./merge.ts";
import { conflictStart, versionsIn } from "./plan-contents.ts";
import { requireOurs } from "./our-worktrees.ts";
import { requireNoRebase } from "./rebase.ts";
import { findRepository } from "./repository.ts";
import { snapshotTree } from "./snapshot.ts";

/** Merges the worktree's changes since its base with the folder as it is. Neither of them changes. */
export async function planBringBack(options: {
  /** The folder into which to bring the work, or one below it. */
  readonly folder: string;
  /** A directory in the worktree. */
  readonly worktree: string;
  /** Its name, if it is known. */
  readonly name?: string | undefined;
  /** The commit from which the worktree was made, or a later state that was brought back already. */
  readonly base: string;
  /** Texts of the folder's editors that are not saved, by path below the folder. */
  readonly unsaved?: ReadonlyMap<string, string> | undefined;
  readonly signal?: AbortSignal | undefined;
}): Promise<BringBackPlan> {
  const { folder, worktree, name, base, unsaved, signal } = options;
  const [{ root }, { repository }] = await Promise.all([
    findRepository(folder, signal),
    requireOurs(worktree, folder, { name, signal }),
  ]);
  await requireNoRebase(repository);
  requireSaved(repository.root, folder, unsaved);
  const { tree: agents } = await snapshotTree(worktree, { base, signal });
  // Git may ignore a file of the folder at such a path: it would be overwritten without a conflict, or count as deleted.
  const alsoIgnored = await changedPaths(root, base, agents, signal);
  const { tree: mine } = await snapshotTree(folder, { unsaved, alsoIgnored, signal });
  const merge = await mergeTrees(root, { base, mine, agents }, signal);
  const [files, marked] = await Promise.all([
    plannedFiles(root, { mine, agents, merge }, signal),
    withMarkers(root, { mine, agents, merge }, signal),
  ]);
  for (const [index, file] of files.entries()) {
    const versions = marked.get(file.path);
    // Without a conflict of its own, it is one that an agent which was to merge has left.
    const { conflict = "content" } = file;
    if (versions && (conflict === "content" || conflict === "both-added"))
      files[index] = { versions, ...file, conflict, hasMarkers: true };
  }
  return { root, mine, agents, merged: merge.tree, files, commits: merge.commits };
}

/** The files of the merged tree that have our conflict markers and that the folder has not, or others, by path. */
async function withMarkers(
  root: string,
  { mine, agents, merge }: { readonly mine: string; readonly agents: string; readonly merge: Merge },
  signal: AbortSignal | undefined,
): Promise<ReadonlyMap<string, Versions>> {
  const start = conflictStart(merge.commits.mine);
  const paths = await markedFiles(root, { from: mine, to: merge.tree, start }, signal);
  const [own, theirs] = await Promise.all(
    [mine, agents].map((tree) => versionsIn(root, tree, paths, signal)),
  );
  return new Map(
    paths.map((path) => {
      const [mine, agents] = [own?.get(path), theirs?.get(path)];
      return [path, { ...(mine && { mine }), ...(agents && { agents }) }];
    }),
  );
}

/** The files of a tree that contain our conflict markers, and got or lost such since an earlier tree or commit. */
export async function markedFiles(
  root: string,
  {
    from,
    to,
    start = conflictStart(),
  }: { readonly from: string; readonly to: string; readonly start?: string },
  signal: AbortSignal | undefined,
): Promise<string[]> {
  // Attributes can exclude a file from what is shown as a difference, but not from merging.
  const changed = ["-r", "-z", "--text", "--no-renames", "--name-only", "--diff-filter=d", `-G${start}`];
  const touched = parts(await git(root, ["diff-tree", ...changed, from, to, "--"], { signal }));
  // In some of them, markers may only have been removed.
  const grep = ["--literal-pathspecs", "grep", "--no-color", "-zlE", "-e", start, to];
  const found = await gitForPaths(root, grep, touched, { signal, accept: [1] });
  return parts(found).map((found) => found.slice(to.length + 1));
}

async function changedPaths(
  root: string,
  before: string,
  after: string,
  signal: AbortSignal | undefined,
): Promise<string[]> {
  const options = ["-r", "-z", "--no-renames", "--name-only"];
  return parts(await git(root, ["diff-tree", ...options, before, after, "--"], { signal }));
}

async function plannedFiles(
  root: string,
  { mine, agents, merge }: { readonly mine: string; readonly agents: string; readonly merge: Merge },
  signal: AbortSignal | undefined,
): Promise<PlannedFile[]> {
  const { conflicts } = merge;
  const [changes, conflicting] = await Promise.all([
    changedFiles(root, mine, merge.tree, { signal }),
    conflicts.size === 0 ? [] : changedFiles(root, mine, agents, { signal, renames: false }),
  ]);
  const files = new Map<string, PlannedFile>();
  for (const file of changes.filter(({ path }) => !merge.moved.has(path)))
    files.set(file.path, {
      ...file,
      ...(foldersOf(file.path).some((path) => conflicts.has(path)) && { conflict: "kind" as const }),
    });
  // A path also stands for what is in a folder of that name.
  for (const file of conflicting.filter(({ path }) => conflicts.has(path))) {
    const { from, kind } = files.get(file.path) ?? file;
    // Compared to the merged file, conflict markers would be counted, too.
    files.set(file.path, { ...file, kind, ...(from !== undefined && { from }) });
  }
  for (const [path, conflicting] of conflicts) {
    const file = files.get(path);
    if (file) files.set(path, { ...file, ...inConflict(conflicting) });
  }
  await joinRenamed(root, mine, files, signal);
  return [...files.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
}

/**
 * With conflict markers in it, a file that the agent renamed may not resemble the folder's any more. What is written at
 * the new path and deleted at the old one is one decision.
 */
async function joinRenamed(
  root: string,
  mine: string,
  files: Map<string, PlannedFile>,
  signal: AbortSignal | undefined,
): Promise<void> {
  const isNew = ({ kind, versions }: PlannedFile): boolean =>
    kind === "added" && versions?.mine !== undefined;
  const renamed = [...files.values()].filter(isNew);
  const deleted = [...files.values()].filter(({ kind, conflict }) => kind === "deleted" && !conflict);
  if (renamed.length === 0 || deleted.length === 0) return;
  const paths = deleted.map(({ path }) => path);
  const listed = parts(
    await gitForPaths(root, ["ls-tree", "-r", "-z", "--full-tree", mine], paths, { signal }),
  );
  for (const file of renamed) {
    const entry = listed.find((one) => one.includes(` ${file.versions?.mine?.blob}\t`));
    const from = entry?.slice(entry.indexOf("\t") + 1);
    if (from !== undefined && files.delete(from)) files.set(file.path, { ...file, kind: "renamed", from });
  }
}

function inConflict({ conflict, mine, agents }: Conflicting): Pick<PlannedFile, "conflict" | "versions"> {
  return { conflict, versions: { ...(mine && { mine }), ...(agents && { agents }) } };
}

/** What is not saved in the worktree itself would be lost with it. */
function requireSaved(root: string, folder: string, unsaved: ReadonlyMap<string, string> = new Map()): void {
  for (const path of unsaved.keys()) {
    const below = relative(root, resolve(folder, path));
    if (below.startsWith("..") || isAbsolute(below)) continue;
    throw new UserFacingError(
      sentence(
        "{0} has unsaved changes in an editor. Save or discard them, then bring the work back again.",
        below,
      ),
    );
  }
}
