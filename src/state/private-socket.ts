import { lstat, mkdtemp, readlink, rm, rmdir, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { codeOf, ifPresent } from "./json-files.ts";
import { ensurePrivateFolder } from "./private-files.ts";

/** Bytes of a Unix socket's path that every system takes (macOS: 103). */
const MAX_SOCKET_PATH_BYTES = 100;

/**
 * Where the Unix socket of this name is, the same for all who ask: in the private folder itself or, where its path would
 * be too long, in one that the private folder links to.
 */
export async function privateSocket(folder: string, name: string): Promise<string> {
  await ensurePrivateFolder(folder);
  const path = join(folder, name);
  if (Buffer.byteLength(path) <= MAX_SOCKET_PATH_BYTES) return path;
  return join(await shortFolder(join(folder, "sockets")), name);
}

/** The folder that the link leads to, made where there is none that is this user's alone. */
async function shortFolder(link: string): Promise<string> {
  for (;;) {
    const linked = await ifPresent(readlink(link));
    if (linked !== undefined && (await isPrivateFolder(linked))) return linked;
    if (linked !== undefined) await rm(link, { force: true });
    // A name that others could foresee would be theirs to take first.
    const made = await mkdtemp(join(tmpdir(), "async-agents-"));
    try {
      await symlink(made, link);
    } catch (error) {
      await rmdir(made);
      // Another process was first.
      if (codeOf(error) !== "EEXIST") throw error;
    }
  }
}

async function isPrivateFolder(path: string): Promise<boolean> {
  try {
    const stats = await lstat(path);
    return stats.isDirectory() && stats.uid === process.getuid?.() && (stats.mode & 0o077) === 0;
  } catch {
    return false;
  }
}
