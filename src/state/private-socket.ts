import { lstat, mkdtemp, readlink, rm, rmdir, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { codeOf, ifPresent } from "./json-files.ts";
import { ensurePrivateFolder } from "./private-files.ts";

/** The maximum length of a Unix socket's path that all systems accept, in bytes (macOS: 103). */
const MAX_SOCKET_PATH_BYTES = 100;

/**
 * The path of the Unix socket with this name, the same for all processes: in the private folder itself or, if that path
 * would be too long, in a temporary folder that the private folder links to.
 */
export async function privateSocket(folder: string, name: string): Promise<string> {
  await ensurePrivateFolder(folder);
  const path = join(folder, name);
  if (Buffer.byteLength(path) <= MAX_SOCKET_PATH_BYTES) return path;
  return join(await shortFolder(join(folder, "sockets")), name);
}

/** The folder that the link points to. Creates it if the link is missing or its target is not a private folder. */
async function shortFolder(link: string): Promise<string> {
  for (;;) {
    const linked = await ifPresent(readlink(link));
    if (linked !== undefined && (await isPrivateFolder(linked))) return linked;
    if (linked !== undefined) await rm(link, { force: true });
    // Unpredictable, so that other users cannot create the folder first.
    const made = await mkdtemp(join(tmpdir(), "async-agents-"));
    try {
      await symlink(made, link);
    } catch (error) {
      await rmdir(made);
      // Another process has created the link first.
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
