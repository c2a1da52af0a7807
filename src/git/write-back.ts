import { randomBytes } from "node:crypto";
import {
  chmod,
  lstat,
  mkdir,
  readdir,
  readFile,
  readlink,
  rename,
  rm,
  rmdir,
  symlink,
  unlink,
  writeFile,
} from "node:fs/promises";
import { basename, dirname, join, relative, sep } from "node:path";
import type { BringBackPlan, BroughtBack, KeptFile } from "../engine/bring-back.ts";
import { textOf, UserFacingError } from "../engine/errors.ts";
import { sentence } from "../engine/sentence.ts";
import { foldersOf, namesOf } from "./changed-files.ts";
import { fewAtOnce } from "../engine/few-at-once.ts";
import { git, gitText, parts, setting } from "./git.ts";
import { codeOf } from "./our-worktrees.ts";
import type { FileContent } from "./plan-contents.ts";
import { findRepository } from "./repository.ts";
import { namedExactly, snapshotTree } from "./snapshot.ts";

/**
 * Writes and deletes files of the folder, each at once, for what an edit of a text cannot do: binary files, modes,
 * symbolic links. The index stays as it is. Nothing is written if one of the files is no longer as it was when the plan
 * was made, or can't be written.
 * @returns the files before and after that
 */
export async function writeBack(
  plan: BringBackPlan,
  files: ReadonlyMap<string, FileContent>,
  signal?: AbortSignal,
): Promise<Pick<BroughtBack, "before" | "after">> {
  const { root } = plan;
  const paths = [...files.keys()];
  await requireAllWritable(root, files);
  await requireSameCase(plan, files, signal);
  const before = await keptFiles(root, paths);
  const wanted = await withModes(root, files, before, signal);
  const { tree } = await snapshotTree(root, { alsoIgnored: paths, signal });
  await requireUnchanged(plan, tree, files, signal);
  const written = new Set<string>();
  try {
    await writeFiles(root, wanted, written);
    return { before, after: await keptFiles(root, paths) };
  } catch (error) {
    const changed = before.filter(({ path }) => written.has(path));
    await putBack(root, changed, error);
    throw error;
  }
}

/** Where Git doesn't know the modes of files, those in the folder stay; where it has no links, their text is a file. */
async function withModes(
  root: string,
  files: ReadonlyMap<string, FileContent>,
  before: readonly KeptFile[],
  signal: AbortSignal | undefined,
): Promise<ReadonlyMap<string, FileContent>> {
  const [knowsModes, hasLinks] = await Promise.all([
    setting(root, "core.fileMode", { otherwise: true, signal }),
    setting(root, "core.symlinks", { otherwise: true, signal }),
  ]);
  if (knowsModes && hasLinks) return files;
  const modes = new Map(before.flatMap(({ path, blob, mode }) => (blob === undefined ? [] : [[path, mode]])));
  return new Map(
    [...files].map(([path, given]): [string, FileContent] => {
      const content: FileContent = !hasLinks && given.mode === "symlink" ? { ...given, mode: "file" } : given;
      const mode = knowsModes ? content.mode : (modes.get(path) ?? content.mode);
      return [path, [mode, content.mode].includes("symlink") ? content : { ...content, mode }];
    }),
  );
}

async function putBack(root: string, changed: readonly KeptFile[], error: unknown): Promise<void> {
  try {
    await writeFiles(root, await contentsOf(root, changed));
  } catch {
    throw new UserFacingError(
      sentence(
        "Not all files could be written, and these couldn't be restored: {0}. {1}",
        namesOf(changed.map(({ path }) => path)),
        textOf(error),
      ),
    );
  }
}

/** The bytes of files as they are now. */
export function keptFiles(root: string, paths: readonly string[]): Promise<KeptFile[]> {
  return fewAtOnce(paths, (path) => keptFile(root, path));
}

async function keptFile(root: string, path: string): Promise<KeptFile> {
  const file = join(root, path);
  const stats = await lstat(file).catch(() => undefined);
  const isLink = stats?.isSymbolicLink() === true;
  if (!stats || !(isLink || stats.isFile())) return { path, mode: "file" };
  const input = isLink ? Buffer.from(await readlink(file)) : await readFile(file);
  const blob = await gitText(root, ["hash-object", "-w", "--stdin"], { input });
  return { path, blob, mode: isLink ? "symlink" : (stats.mode & 0o100) === 0 ? "file" : "executable" };
}

/**
 * Restores files to what they were before they were written. Nothing is written if one has changed since; those that an
 * earlier attempt has restored have not.
 */
export async function restoreFiles(
  root: string,
  before: readonly KeptFile[],
  after: readonly KeptFile[],
): Promise<void> {
  const present = await keptFiles(
    root,
    after.map(({ path }) => path),
  );
  const changed = after.find((file, at) => ![file, before[at]].some((known) => isSame(known, present[at])));
  if (changed)
    throw new UserFacingError(
      sentence("{0} has changed in the meantime, so nothing was restored.", changed.path),
    );
  const files = await contentsOf(root, before);
  await requireAllWritable(root, files);
  await writeFiles(root, files);
}

function isSame(a: KeptFile | undefined, b: KeptFile | undefined): boolean {
  return a?.path === b?.path && a?.blob === b?.blob && a?.mode === b?.mode;
}

async function contentsOf(
  root: string,
  files: readonly KeptFile[],
): Promise<ReadonlyMap<string, FileContent>> {
  const contents = await fewAtOnce(files, async ({ path, mode, blob }) => {
    const bytes = blob === undefined ? undefined : await git(root, ["cat-file", "blob", blob]);
    return [path, { mode, bytes }] as const;
  });
  return new Map(contents);
}

async function requireAllWritable(root: string, files: ReadonlyMap<string, FileContent>): Promise<void> {
  const deleted = deletedOf(files);
  for (const path of files.keys()) await requireWritable(root, path, deleted);
}

function deletedOf(files: ReadonlyMap<string, FileContent>): readonly string[] {
  return [...files].flatMap(([path, { bytes }]) => (bytes === undefined ? [path] : []));
}

/** Throws if a disk that ignores case would replace a file that the plan doesn't know by this name. */
async function requireSameCase(
  { root, mine }: BringBackPlan,
  files: ReadonlyMap<string, FileContent>,
  signal: AbortSignal | undefined,
): Promise<void> {
  const kinds = await fewAtOnce(files.keys(), (path) => kindOf(join(root, path)));
  const occupied = [...files.keys()].filter((_, at) => kinds[at] === "file");
  const exact = await namedExactly(root, occupied);
  const freed = new Set(deletedOf(files).map((path) => path.toLowerCase()));
  const others = occupied.filter((path) => !exact.has(path) && !freed.has(path.toLowerCase()));
  if (others.length === 0) return;
  const listed = ["ls-tree", "-r", "-z", "--name-only", "--full-tree", mine, "--", ...others];
  const known = new Set(parts(await git(root, listed, { signal })));
  const unknown = others.find((path) => !known.has(path));
  if (unknown !== undefined)
    throw new UserFacingError(
      sentence(
        "{0} wasn't written, because there is a file whose name differs only in case. Rename one of them, then try again.",
        unknown,
      ),
    );
}

/** @param written gets the path of each file once it is written or deleted */
async function writeFiles(
  root: string,
  files: ReadonlyMap<string, FileContent>,
  written = new Set<string>(),
): Promise<void> {
  const { gitDirectory } = await findRepository(root);
  const isInTheWay = blockerOf([...files].flatMap(([path, { bytes }]) => (bytes ? [path] : [])));
  const deleteAll = async (paths: readonly string[]): Promise<void> => {
    for (const path of paths) {
      await deleteFile(root, path);
      written.add(path);
    }
  };
  const deleted = deletedOf(files);
  await deleteAll(deleted.filter(isInTheWay));
  for (const [path, content] of files) {
    if (content.bytes === undefined) continue;
    await writeOne(root, gitDirectory, path, content);
    written.add(path);
  }
  // Last, because a renamed file is the only one with the user's changes until it is written under its new name.
  await deleteAll(deleted.filter((path) => !isInTheWay(path)));
}

/**
 * Tells which files can't be there while these are written: a file for a folder, or what a disk that ignores case, or how
 * letters are composed, takes for the same name.
 */
function blockerOf(paths: readonly string[]): (path: string) => boolean {
  const form = (path: string): string => path.normalize("NFC").toLowerCase();
  const files = new Set(paths.map(form));
  const exact = new Set(paths.flatMap(foldersOf));
  const folders = new Set([...exact].map(form));
  return (path) =>
    [path, ...foldersOf(path)].some((one) => files.has(form(one))) ||
    folders.has(form(path)) ||
    // Such a folder gets its new name only once it is empty.
    foldersOf(path).some((one) => folders.has(form(one)) && !exact.has(one));
}

/** A path behind a link is outside of the folder, and a folder isn't replaced by a file. */
async function requireWritable(root: string, path: string, deleted: readonly string[]): Promise<void> {
  for (let folder = dirname(path); folder !== "."; folder = dirname(folder))
    if ((await kindOf(join(root, folder))) === "file" && !deleted.includes(folder))
      throw new UserFacingError(
        sentence("{0} isn't a folder, so {1} wasn't written. Move it away, then try again.", folder, path),
      );
  if ((await kindOf(join(root, path))) === "folder" && !(await isEmptyWithout(root, path, deleted)))
    throw new UserFacingError(
      sentence("{0} is a folder, so it wasn't replaced by a file. Move it away, then try again.", path),
    );
}

async function isEmptyWithout(root: string, folder: string, deleted: readonly string[]): Promise<boolean> {
  const entries = await readdir(join(root, folder), { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => !entry.isDirectory())
    .every((entry) =>
      deleted.includes(relative(root, join(entry.parentPath, entry.name)).replaceAll(sep, "/")),
    );
}

async function requireUnchanged(
  plan: BringBackPlan,
  tree: string,
  paths: { has(path: string): boolean },
  signal: AbortSignal | undefined,
): Promise<void> {
  // All paths can be too many for one command.
  const options = ["-r", "-z", "--no-renames", "--name-only"];
  const differing = await git(plan.root, ["diff-tree", ...options, plan.mine, tree, "--"], { signal });
  const changed = parts(differing).find((path) => paths.has(path));
  if (changed !== undefined)
    throw new UserFacingError(
      sentence(
        "{0} has changed in the meantime, so nothing was written. Bring the work back again.",
        changed,
      ),
    );
}

async function writeOne(
  root: string,
  gitDirectory: string,
  path: string,
  content: FileContent,
): Promise<void> {
  const target = join(root, path);
  const permissions = await permissionsOf(target);
  if ((await kindOf(target)) === "folder") await removeFolders(target);
  await mkdir(dirname(target), { recursive: true });
  const name = `asyncagents-${randomBytes(6).toString("hex")}.tmp`;
  try {
    // Git doesn't list it there, should the process be killed before it is in its place.
    await moveInto(join(gitDirectory, name), target, content, permissions);
  } catch (error) {
    if (codeOf(error) !== "EXDEV") throw error;
    await moveInto(join(dirname(target), `.${basename(target)}.${name}`), target, content, permissions);
  }
}

async function moveInto(
  draft: string,
  target: string,
  { bytes = Buffer.alloc(0), mode }: FileContent,
  permissions: number | undefined,
): Promise<void> {
  try {
    if (mode === "symlink") await symlink(String(bytes), draft);
    else {
      await writeFile(draft, bytes, { flag: "wx", mode: mode === "executable" ? 0o777 : 0o666 });
      if (permissions !== undefined) {
        const execute = mode === "executable" ? (permissions & 0o444) >> 2 : 0;
        await chmod(draft, (permissions & ~0o111) | execute);
      }
    }
    await rename(draft, target);
  } finally {
    await rm(draft, { force: true });
  }
}

/** Undefined if there is no regular file. */
async function permissionsOf(file: string): Promise<number | undefined> {
  const stats = await lstat(file).catch(() => undefined);
  return stats?.isFile() ? stats.mode & 0o777 : undefined;
}

async function kindOf(path: string): Promise<"folder" | "file" | "none"> {
  try {
    return (await lstat(path)).isDirectory() ? "folder" : "file";
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes(codeOf(error))) return "none";
    throw error;
  }
}

/** Removes a folder with nothing but folders in it, which Git doesn't know. */
async function removeFolders(folder: string): Promise<void> {
  for (const name of await readdir(folder)) await removeFolders(join(folder, name));
  await rmdir(folder);
}

/** Deletes a file and the folders that are empty without it, as Git does. */
async function deleteFile(root: string, path: string): Promise<void> {
  await unlink(join(root, path)).catch((error: unknown) => {
    if (codeOf(error) !== "ENOENT") throw error;
  });
  for (let folder = dirname(path); folder !== "."; folder = dirname(folder))
    try {
      await rmdir(join(root, folder));
    } catch {
      return;
    }
}
