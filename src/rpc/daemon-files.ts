import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { connect } from "node:net";
import type { Socket } from "node:net";
import { join } from "node:path";

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

/** What a daemon is started with. */
export interface RecordedProgram {
  /** The editor's own executable, which runs as Node when told to. */
  readonly execPath: string;
  /** The daemon's bundle. */
  readonly script: string;
  /** The extension's. */
  readonly version: string;
}

/** Where the daemon of this user is described, locked, logged and reached. */
export class DaemonFiles {
  constructor(
    /** Of this user alone. */
    readonly folder: string,
  ) {}

  get entry(): string {
    return join(this.folder, "daemon.json");
  }

  /** What the last daemon was started with, which it leaves behind. */
  get program(): string {
    return join(this.folder, "daemon-program.json");
  }

  /** Exists while a window starts the daemon. */
  get lock(): string {
    return join(this.folder, "daemon.lock");
  }

  get log(): string {
    return join(this.folder, "daemon.log");
  }

  /** Undefined: there is none, or none that this version can read. A crash leaves it behind. */
  async read(): Promise<DaemonEntry | undefined> {
    const text = await textIn(this.entry);
    return text === undefined ? undefined : parseEntry(text);
  }

  /** Undefined: there is none that could be started. */
  async readProgram(): Promise<RecordedProgram | undefined> {
    const { execPath, script, version } = parse<RecordedProgram>((await textIn(this.program)) ?? "") ?? {};
    if (execPath === undefined || script === undefined || version === undefined) return undefined;
    return existsSync(execPath) && existsSync(script) ? { execPath, script, version } : undefined;
  }
}

/** Undefined: there is no such file. */
async function textIn(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
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

/** Undefined: no version that this one knows wrote that. */
export function parseEntry(text: string): DaemonEntry | undefined {
  const entry = parse<DaemonEntry>(text);
  const { socket, token, pid } = entry ?? {};
  const isWhole = typeof socket === "string" && typeof token === "string" && typeof pid === "number";
  return isWhole ? (entry as DaemonEntry) : undefined;
}

function parse<T>(text: string): Partial<T> | undefined {
  try {
    return JSON.parse(text) as Partial<T>;
  } catch {
    return undefined;
  }
}

export function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException).code;
}
