import { copyFile, mkdir, mkdtemp, rm, stat, utimes } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Repository } from "./repository.ts";

/** Runs a job with the environment of a temporary index, so that the real one stays as it is. */
export async function withTemporaryIndex<T>(
  job: (env: Readonly<Record<string, string>>, path: string) => Promise<T>,
): Promise<T> {
  // Whoever cleans up temporary files may have removed it.
  await mkdir(tmpdir(), { recursive: true });
  const folder = await mkdtemp(join(tmpdir(), "asyncagents-git-"));
  try {
    const path = join(folder, "index");
    return await job({ GIT_INDEX_FILE: path }, path);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * Copies the index, so that Git need not read unchanged files again.
 * @returns whether there is one
 */
export async function copyIndex({ gitDirectory }: Repository, path: string): Promise<boolean> {
  const index = join(gitDirectory, "index");
  try {
    const { atime, mtimeMs } = await stat(index);
    await copyFile(index, path);
    // Git reads a file again that is not older than the index. A younger copy would hide changes made in between.
    await utimes(path, atime, new Date(Math.floor(mtimeMs)));
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return false;
    throw error;
  }
}
