import { constants } from "node:fs";
import { access, copyFile, lstat, mkdir, readlink, realpath, symlink } from "node:fs/promises";
import { dirname, join, relative, resolve, sep } from "node:path";
import { fewAtOnce } from "../engine/few-at-once.ts";
import { git, parts } from "./git.ts";
import { codeOf } from "./our-worktrees.ts";
import { findRepository } from "./repository.ts";
import { ignoredOf } from "./snapshot.ts";

/** Lists ignored files that a worktree needs, in the syntax of `.gitignore`, in any folder of the repository. */
const LIST = ".worktreeinclude";

/**
 * Copies ignored files that the work needs into a worktree: those that `.worktreeinclude` lists, or else those that
 * match the patterns. Files that exist there stay as they are.
 * @returns the paths of the copied files, relative to the repository's top folder
 */
export async function includeFiles(options: {
  /** The folder from which the worktree was made. */
  readonly folder: string;
  /** The worktree's top folder. */
  readonly root: string;
  /** Used if there is no `.worktreeinclude`, in the syntax of `.gitignore`. */
  readonly patterns?: readonly string[];
  readonly signal?: AbortSignal | undefined;
}): Promise<string[]> {
  const { folder, root, patterns = [], signal } = options;
  const repository = await findRepository(folder, signal);
  const isListed = (await exists(join(repository.root, LIST))) || (await exists(join(folder, LIST)));
  if (!isListed && patterns.length === 0) return [];
  const which = isListed ? [`--exclude-per-directory=${LIST}`] : patterns.map((one) => `--exclude=${one}`);
  const listed = await git(repository.root, ["ls-files", "-z", "--others", "--ignored", ...which], {
    signal,
  });
  // A name that ends with a slash is a repository inside this one.
  const matching = parts(listed).filter((path) => !path.endsWith("/"));
  const ignored = await ignoredOf(repository.root, matching, signal);
  const copy = new Copy(await realpath(repository.root), await realpath(root));
  const paths = matching.filter((path) => ignored.has(path));
  const copied: string[] = [];
  await fewAtOnce(paths, async (path) => {
    signal?.throwIfAborted();
    if (await copy.file(path)) copied.push(path);
  });
  return copied.sort();
}

/** Copies files from one folder into another, never outside of it, and never over a file. */
class Copy {
  private readonly folders = new Map<string, Promise<boolean>>();

  constructor(
    private readonly from: string,
    private readonly to: string,
  ) {}

  /** Returns whether it was copied. */
  async file(path: string): Promise<boolean> {
    const source = join(this.from, path);
    const target = join(this.to, path);
    if (!(await this.hasFolder(dirname(target)))) return false;
    try {
      const stats = await lstat(source);
      if (stats.isSymbolicLink()) return await this.link(source, target);
      if (!stats.isFile()) return false;
      await copyFile(source, target, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
      return true;
    } catch (error) {
      // The file was deleted in the meantime, or there is one already.
      if (["ENOENT", "EEXIST"].includes(codeOf(error))) return false;
      throw error;
    }
  }

  /** Links that lead out of the folder are left out: what is written through them would change other files. */
  private async link(source: string, target: string): Promise<boolean> {
    const to = await readlink(source);
    const path = relative(this.from, resolve(dirname(source), to));
    if (resolve(to) === to || path.split(sep)[0] === "..") return false;
    await symlink(to, target);
    return true;
  }

  /** Makes the folder. Returns whether it is inside, not behind a link. */
  private hasFolder(folder: string): Promise<boolean> {
    let made = this.folders.get(folder);
    if (!made) this.folders.set(folder, (made = this.makeFolder(folder)));
    return made;
  }

  private async makeFolder(folder: string): Promise<boolean> {
    if (folder === this.to) return true;
    if (!(await this.hasFolder(dirname(folder)))) return false;
    try {
      await mkdir(folder);
    } catch (error) {
      if (codeOf(error) !== "EEXIST") throw error;
    }
    return (await lstat(folder)).isDirectory();
  }
}

async function exists(path: string): Promise<boolean> {
  try {
    await access(path);
    return true;
  } catch {
    return false;
  }
}
