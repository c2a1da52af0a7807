import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, rmdirSync, rmSync } from "node:fs";
import { rm } from "node:fs/promises";
import type { Server } from "node:net";
import { dirname } from "node:path";
import { codeOf, parseJson } from "../state/json-files.ts";
import { ensurePrivateFolder, writePrivateFile } from "../state/private-files.ts";
import { privateSocket } from "../state/private-socket.ts";
import { asEntry, connectTo, type DaemonEntry, type DaemonFiles } from "./daemon-files.ts";

/* How a daemon publishes where windows can reach it. */

const isWindows = process.platform === "win32";

export async function writeEntry({ folder, entry }: DaemonFiles, described: DaemonEntry): Promise<void> {
  await ensurePrivateFolder(folder);
  await writePrivateFile(entry, JSON.stringify(described));
}

/** Removes the entry when the daemon ends, unless another daemon has replaced it. */
export function removeEntry({ folder, entry }: DaemonFiles, { socket, token }: DaemonEntry): void {
  if (existsSync(entry) && asEntry(parseJson(readFileSync(entry, "utf8")))?.token === token) rmSync(entry);
  if (isWindows || dirname(socket) === folder) return;
  rmSync(socket, { force: true });
  try {
    rmdirSync(dirname(socket));
  } catch {
    // The folder contains other files, or is gone already.
  }
}

/** The path on which a starting daemon listens. */
export async function socketFor({ folder }: DaemonFiles): Promise<string> {
  await ensurePrivateFolder(folder);
  // Unpredictable, so that no other program can take the name when a daemon ends and pose as the daemon.
  if (isWindows) return `\\\\.\\pipe\\opencode-async-agents-${randomBytes(16).toString("hex")}`;
  return privateSocket(folder, "daemon.sock");
}

/**
 * Listens on a path unless another process does. False if another process responds there. Removes a socket left by a
 * crash, so callers that share a path must not call this at the same time.
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
