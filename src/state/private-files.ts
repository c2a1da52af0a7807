import { randomBytes } from "node:crypto";
import { chmod, lstat, mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isAlive } from "./processes.ts";

/** Creates a folder that only this user can access. Throws if another user owns the path or it is no real folder. */
export async function ensurePrivateFolder(path: string): Promise<void> {
  await mkdir(path, { recursive: true, mode: 0o700 });
  // On Windows, the user's folders are protected by access lists, which these modes do not show.
  if (process.platform === "win32") return;
  const stats = await lstat(path);
  if (!stats.isDirectory()) throw new Error(`${path} is not a folder.`);
  if (stats.uid !== process.getuid?.()) throw new Error(`${path} belongs to another user.`);
  if (stats.mode & 0o077) await chmod(path, 0o700);
}

/** Writes a file atomically, readable only by this user. */
export async function writePrivateFile(path: string, text: string): Promise<void> {
  const draft = draftOf(path);
  try {
    await writeFile(draft, text, { mode: 0o600, flag: "wx" });
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

/** Copies a text file that only this user may change, unless it is there already. */
export async function copyPrivateFile(from: string, to: string): Promise<void> {
  const text = await readFile(from, "utf8");
  if ((await readFile(to, "utf8").catch(() => undefined)) !== text) await writePrivateFile(to, text);
}

/** The temporary path to which a file is first written; see {@link sweepDrafts}. */
export function draftOf(path: string): string {
  return `${path}.${process.pid}.${randomBytes(6).toString("hex")}.tmp`;
}

/**
 * Removes temporary files of processes that were killed while writing, and those that this process, which must have ended
 * its writing, couldn't remove: the disk became read-only between two steps.
 */
export async function sweepDrafts(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const pid = /\.(\d+)\.[0-9a-f]{12}\.tmp$/.exec(name)?.[1];
    if (pid !== undefined && (Number(pid) === process.pid || !isAlive(Number(pid))))
      await rm(join(folder, name), { force: true });
  }
}
