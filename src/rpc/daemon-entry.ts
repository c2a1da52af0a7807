import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, rmdirSync, rmSync } from "node:fs";
import { rm } from "node:fs/promises";
import type { Server } from "node:net";
import { dirname } from "node:path";
import { codeOf, parseJson } from "../state/json-files.ts";
import { ensurePrivateFolder, writePrivateFile } from "../state/private-files.ts";
import { privateSocket } from "../state/private-socket.ts";
import { asEntry, connectTo, type DaemonEntry, type DaemonFiles } from "./daemon-files.ts";

/* How a daemon makes itself known to windows. */

const isWindows = process.platform === "win32";

export async function writeEntry({ folder, entry }: DaemonFiles, described: DaemonEntry): Promise<void> {
  await ensurePrivateFolder(folder);
  await writePrivateFile(entry, JSON.stringify(described));
}

/** As the daemon ends. What another one wrote meanwhile stays. */
export function removeEntry({ folder, entry }: DaemonFiles, { socket, token }: DaemonEntry): void {
  if (existsSync(entry) && asEntry(parseJson(readFileSync(entry, "utf8")))?.token === token) rmSync(entry);
  if (isWindows || dirname(socket) === folder) return;
  rmSync(socket, { force: true });
  try {
    rmdirSync(dirname(socket));
  } catch {
    // It holds a file of somebody else's, or is gone already.
  }
}

/** Where a daemon that starts now listens. */
export async function socketFor({ folder }: DaemonFiles): Promise<string> {
  await ensurePrivateFolder(folder);
  // Never the same twice, so that nobody can wait there for a daemon to end and then pose as it.
  if (isWindows) return `\\\\.\\pipe\\opencode-async-agents-${randomBytes(16).toString("hex")}`;
  return privateSocket(folder, "daemon.sock");
}

/**
 * Listens where nobody else does. False: somebody answers there already. What a crash left there is removed; so of those
 * who share a path, one does this at a time.
 */
export async function listenExclusively(server: Server, path: string): Promise<boolean> {
  for (let attempt = 1; ; attempt++) {
    try {
      await listen(server, path);
      return true;
    } catch (error) {
      if (codeOf(error) !== "EADDRINUSE" || attempt === 3) throw error;
    }
    const socket = await connectTo(path);
    socket?.destroy();
    if (socket) return false;
    if (!isWindows) await rm(path, { force: true });
  }
}

function listen(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(path, () => {
      server.off("error", reject);
      resolve();
    });
  });
}
