import type { Dirent } from "node:fs";
import { readdir } from "node:fs/promises";
import { isAbsolute, posix } from "node:path";
import { filesAmong } from "./files-among.ts";
import { askGit, git, gitText, parts } from "./git.ts";
import { codeOf } from "./our-worktrees.ts";
import { commitOf, findRepository, type Repository } from "./repository.ts";
import { copyIndex, withTemporaryIndex } from "./temporary-index.ts";

/** What a user sees in a working tree, stored as Git objects. */
export interface Snapshot {
  /** Undefined in a repository without commits. */
  readonly head: string | undefined;
  readonly tree: string;
  /** A commit of the tree with `head` as its parent. No reference points to it. */
  readonly commit: string;
}

export interface SnapshotOptions {
  /** Texts of editors that are not saved, by path below the directory, with slashes. */
  readonly unsaved?: ReadonlyMap<string, string> | undefined;
  /** A commit whose files are taken in where they are still there, even if Git ignores them by now. */
  readonly base?: string | undefined;
  /** Paths below the repository's top folder that are taken in, if they are files, even if Git ignores them. */
  readonly alsoIgnored?: readonly string[] | undefined;
  readonly signal?: AbortSignal | undefined;
}

type Environment = Readonly<Record<string, string>>;

/** The author of commits that never become part of a branch. */
const SYNTHETIC_AUTHOR: Environment = Object.fromEntries(
  ["AUTHOR", "COMMITTER"].flatMap((role) => [
    [`GIT_${role}_NAME`, "Async Agents for OpenCode"],
    [`GIT_${role}_EMAIL`, "asyncagents@localhost"],
  ]),
);

/**
 * Stores the files of the directory's repository as they are: changes that are staged, unstaged and untracked, without
 * ignored files. Neither the files nor the index change.
 */
export async function snapshot(directory: string, options: SnapshotOptions = {}): Promise<Snapshot> {
  const { head, tree } = await snapshotTree(directory, options);
  const commit = await commitTree(directory, tree, head === undefined ? [] : [head], options.signal);
  return { head, tree, commit };
}

/** Like {@link snapshot}, without a commit, of which each would be another object in the repository. */
export async function snapshotTree(
  directory: string,
  options: SnapshotOptions = {},
): Promise<Omit<Snapshot, "commit">> {
  const { unsaved, base, alsoIgnored = [], signal } = options;
  const [repository, head] = await Promise.all([
    findRepository(directory, signal),
    commitOf(directory, "HEAD", signal),
  ]);
  const tree = await withTemporaryIndex(async (env, path) => {
    await addFiles(repository, path, { env, signal, head });
    const also = alsoIgnored.map(inLatin1);
    const missing = base === undefined ? [] : await missingFrom(base, repository, { env, signal });
    await addIfThere(repository, [...also, ...missing], { env, signal });
    if (unsaved) await addUnsaved(repository, unsaved, { env, signal });
    return gitText(repository.root, ["write-tree"], { env, signal });
  });
  return { head, tree };
}

/** A commit that no reference points to. */
export function commitTree(
  directory: string,
  tree: string,
  parents: readonly string[],
  signal?: AbortSignal,
): Promise<string> {
  const args = ["commit-tree", tree, ...parents.flatMap((parent) => ["-p", parent])];
  return gitText(directory, [...args, "-m", "State of the files"], { env: SYNTHETIC_AUTHOR, signal });
}

interface Indexing {
  readonly env: Environment;
  readonly signal: AbortSignal | undefined;
}

async function addFiles(
  repository: Repository,
  path: string,
  { env, signal, head }: Indexing & { readonly head: string | undefined },
): Promise<void> {
  const { root } = repository;
  if (!(await copyIndex(repository, path)))
    await git(root, ["read-tree", head ?? "--empty"], { env, signal });
  const entries = await git(root, ["ls-files", "-z", "-v", "--cached", "--others", "--exclude-standard"], {
    env,
    signal,
  });
  // Names need not be valid UTF-8; Latin-1 keeps every byte.
  const listed = parts(entries, "latin1").map((entry) => ({ tag: entry[0] ?? "", name: entry.slice(2) }));
  const flagged = listed.filter(({ tag }) => tag === "S" || (tag >= "a" && tag <= "z"));
  if (flagged.length > 0) {
    // Files that Git was told not to look at can differ, too.
    const input = joined(flagged.map(({ name }) => name));
    for (const flag of ["--no-assume-unchanged", "--no-skip-worktree"])
      await git(root, ["update-index", "-z", flag, "--stdin"], { env, signal, input });
  }
  await git(root, ["add", "--update", "--", "."], { env, signal });
  // A name that ends with a slash is a repository inside this one, which is not part of it.
  const untracked = listed.filter(({ tag, name }) => tag === "?" && !name.endsWith("/"));
  if (untracked.length > 0)
    await addPaths(repository, joined(untracked.map(({ name }) => name)), { env, signal });
}

/** A file can be deleted in the meantime, and its folder can have been staged as a repository of its own. */
async function addPaths({ root }: Repository, input: Buffer, { env, signal }: Indexing): Promise<void> {
  const options = ["--add", "--remove", "--replace"];
  await git(root, ["update-index", "-z", ...options, "--stdin"], { env, signal, input });
}

/** The files of a commit that the index doesn't have. */
async function missingFrom(base: string, { root }: Repository, { env, signal }: Indexing): Promise<string[]> {
  const options = ["--cached", "-z", "--no-renames", "--name-only", "--diff-filter=D"];
  return parts(await git(root, ["diff-index", ...options, base, "--"], { env, signal }), "latin1");
}

/** Which paths below a folder are files, by exactly these names. */
export async function namedExactly(root: string, paths: readonly string[]): Promise<ReadonlySet<string>> {
  const found = new Set(await filesBelow(root, paths.map(inLatin1)));
  return new Set(paths.filter((path) => found.has(inLatin1(path))));
}

function filesBelow(root: string, names: readonly string[]): Promise<string[]> {
  return filesAmong(names, (folder) => entriesOf(Buffer.concat([Buffer.from(`${root}/`), joined([folder])])));
}

function inLatin1(path: string): string {
  return Buffer.from(path).toString("latin1");
}

/** Git would refuse a path behind a link. */
async function addIfThere(
  repository: Repository,
  names: readonly string[],
  indexing: Indexing,
): Promise<void> {
  const files = await filesBelow(repository.root, names);
  if (files.length > 0) await addPaths(repository, joined(files), indexing);
}

/** A folder can be deleted in the meantime, and one that can't be listed must not make everything fail. */
async function entriesOf(folder: Buffer): Promise<readonly Dirent<Buffer>[]> {
  try {
    return await readdir(folder, { encoding: "buffer", withFileTypes: true });
  } catch (error) {
    if (["ENOENT", "ENOTDIR", "EACCES", "EPERM"].includes(codeOf(error))) return [];
    throw error;
  }
}

async function addUnsaved(
  { root, prefix }: Repository,
  unsaved: ReadonlyMap<string, string>,
  { env, signal }: Indexing,
): Promise<void> {
  // A file on another drive has no path below or above the folder.
  const texts = new Map(
    [...unsaved].flatMap(([path, text]) => (isAbsolute(path) ? [] : [[posix.join(prefix, path), text]])),
  );
  const names = [...texts.keys()].filter((name) => !name.startsWith("../"));
  if (names.length === 0) return;
  const staged = await git(root, ["ls-files", "-z", "--stage", "--", ...names], { env, signal });
  const modes = new Map(
    parts(staged).map((entry) => [entry.slice(entry.indexOf("\t") + 1), entry.slice(0, 6)]),
  );
  const unknown = names.filter((name) => !modes.has(name));
  const ignored = await ignoredOf(root, unknown, signal);
  const lines = await Promise.all(
    names.map(async (name) => {
      const mode = modes.get(name) ?? (ignored.has(name) ? undefined : "100644");
      if (mode !== "100644" && mode !== "100755") return undefined;
      const input = texts.get(name) ?? "";
      const blob = await gitText(root, ["hash-object", "-w", "--stdin", "--path", name], { signal, input });
      return `${mode} ${blob}\t${name}`;
    }),
  );
  const input = lines.filter((line) => line !== undefined).map((line) => `${line}\0`);
  await git(root, ["update-index", "-z", "--add", "--index-info"], { env, signal, input: input.join("") });
}

/** Which of these files Git ignores. Paths are relative to the root. */
export async function ignoredOf(
  root: string,
  paths: readonly string[],
  signal?: AbortSignal,
): Promise<ReadonlySet<string>> {
  if (paths.length === 0) return new Set();
  // This command doesn't take paths literally; behind "./", a name has no special meaning.
  const { stdout } = await askGit(root, ["check-ignore", "-z", "--stdin"], {
    signal,
    accept: [1],
    env: { GIT_LITERAL_PATHSPECS: "0" },
    input: paths.map((path) => `./${path}`).join("\0"),
  });
  return new Set(parts(stdout).map((path) => path.slice(2)));
}

function joined(names: readonly string[]): Buffer {
  return Buffer.from(names.join("\0"), "latin1");
}
