import { randomBytes } from "node:crypto";
import { chmod, lstat, mkdir, readdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isAlive } from "./processes.ts";

/** Creates the folder, readable by this user alone. Throws if the path is somebody else's, or no real folder. */
export async function ensurePrivateFolder(path: string): Promise<void> {
  await mkdir(path, { recursive: true, mode: 0o700 });
  // Windows guards the user's own folders with access lists, which these modes do not show.
  if (process.platform === "win32") return;
  const stats = await lstat(path);
  if (!stats.isDirectory()) throw new Error(`${path} is not a folder.`);
  if (stats.uid !== process.getuid?.()) throw new Error(`${path} belongs to another user.`);
  if (stats.mode & 0o077) await chmod(path, 0o700);
}

/** Writes a file that this user alone can read; readers see the old text or the new one, never a part. */
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

/** Where a file is written before it is there; see {@link sweepDrafts}. */
export function draftOf(path: string): string {
  return `${path}.${process.pid}.${randomBytes(6).toString("hex")}.tmp`;
}

/** Removes what processes had not written to its end when they were killed. */
export async function sweepDrafts(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const pid = /\.(\d+)\.[0-9a-f]{12}\.tmp$/.exec(name)?.[1];
    if (pid !== undefined && !isAlive(Number(pid))) await rm(join(folder, name), { force: true });
  }
}
