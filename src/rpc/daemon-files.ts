import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, rmdirSync, rmSync } from "node:fs";
import { readFile, rm } from "node:fs/promises";
import { connect } from "node:net";
import type { Server, Socket } from "node:net";
import { dirname, join } from "node:path";
import { ensurePrivateFolder, writePrivateFile } from "../state/private-files.ts";
import { privateSocket } from "../state/private-socket.ts";

const isWindows = process.platform === "win32";

/** The daemon of this user, as it describes itself. */
export interface DaemonEntry {
  /** Unix socket or named pipe. */
  readonly socket: string;
  /** Made up for this start: who knows it has read this file. */
  readonly token: string;
  readonly pid: number;
  /** When that process started; see `startOf`. */
  readonly processStart?: string | undefined;
  readonly protocol: number;
  readonly version: string;
}

/** Where the daemon of this user is described, locked, logged and reached. */
export class DaemonFiles {
  constructor(
    /** Of this user alone. */
    readonly folder: string,
  ) {}

  private get entry(): string {
    return join(this.folder, "daemon.json");
  }

  /** Exists while a window starts the daemon. */
  get lock(): string {
    return join(this.folder, "daemon.lock");
  }

  /** Exists while a daemon finds out whether it is the only one, and becomes the one that is described. */
  get entryLock(): string {
    return join(this.folder, "daemon.json.lock");
  }

  get log(): string {
    return join(this.folder, "daemon.log");
  }

  /** Undefined: there is none, or none that this version can read. A crash leaves it behind. */
  async read(): Promise<DaemonEntry | undefined> {
    let text: string;
    try {
      text = await readFile(this.entry, "utf8");
    } catch (error) {
      if (codeOf(error) === "ENOENT") return undefined;
      throw error;
    }
    return parseEntry(text);
  }

  async write(entry: DaemonEntry): Promise<void> {
    await ensurePrivateFolder(this.folder);
    await writePrivateFile(this.entry, JSON.stringify(entry));
  }

  /** As the daemon ends. What another one wrote meanwhile stays. */
  remove({ socket, token }: DaemonEntry): void {
    if (existsSync(this.entry) && parseEntry(readFileSync(this.entry, "utf8"))?.token === token)
      rmSync(this.entry);
    if (isWindows || dirname(socket) === this.folder) return;
    rmSync(socket, { force: true });
    try {
      rmdirSync(dirname(socket));
    } catch {
      // It holds a file of somebody else's, or is gone already.
    }
  }

  /** Where a daemon that starts now listens. */
  async socket(): Promise<string> {
    await ensurePrivateFolder(this.folder);
    // Never the same twice, so that nobody can wait there for a daemon to end and then pose as it.
    if (isWindows) return `\\\\.\\pipe\\opencode-async-agents-${randomBytes(16).toString("hex")}`;
    return privateSocket(this.folder, "daemon.sock");
  }
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

/** Undefined: nobody listens there. */
export function connectTo(path: string): Promise<Socket | undefined> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    socket.once("error", (error) => {
      if (["ENOENT", "ECONNREFUSED", "ENOTSOCK", "ECONNRESET"].includes(codeOf(error) ?? ""))
        resolve(undefined);
      else reject(error);
    });
    socket.once("connect", () => resolve(socket));
  });
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

function parseEntry(text: string): DaemonEntry | undefined {
  try {
    const entry = JSON.parse(text) as Partial<DaemonEntry>;
    const { socket, token, pid } = entry;
    const isWhole = typeof socket === "string" && typeof token === "string" && typeof pid === "number";
    return isWhole ? (entry as DaemonEntry) : undefined;
  } catch {
    return undefined;
  }
}

function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException).code;
}
