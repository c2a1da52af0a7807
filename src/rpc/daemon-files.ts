import { connect } from "node:net";
import type { Socket } from "node:net";
import { join } from "node:path";
import { codeOf, readJson } from "../state/json-files.ts";

/** The entry in which the daemon of this user describes itself. */
export interface DaemonEntry {
  /** The path of a Unix socket or named pipe. */
  readonly socket: string;
  /** Random for each start. Knowing it proves access to this file. */
  readonly token: string;
  readonly pid: number;
  /** When that process started; see `startOf`. */
  readonly processStart?: string | undefined;
  readonly protocol: number;
  readonly version: string;
}

/** The files of this user's daemon: its entry, lock and log. */
export class DaemonFiles {
  constructor(
    /** The state folder, which only this user can access. */
    readonly folder: string,
  ) {}

  get entry(): string {
    return join(this.folder, "daemon.json");
  }

  /** Exists while a process starts the daemon. */
  get lock(): string {
    return join(this.folder, "daemon.lock");
  }

  get log(): string {
    return join(this.folder, "daemon.log");
  }

  /** Undefined if there is no entry, or this version cannot read it. Crashes leave stale entries. */
  async read(): Promise<DaemonEntry | undefined> {
    return asEntry(await readJson(this.entry));
  }
}

/** Connects to a socket. Undefined if nothing listens there. */
export function connectTo(path: string): Promise<Socket | undefined> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    socket.once("error", (error) => {
      if (["ENOENT", "ECONNREFUSED", "ENOTSOCK", "ECONNRESET"].includes(codeOf(error))) resolve(undefined);
      else reject(error);
    });
    socket.once("connect", () => resolve(socket));
  });
}

/** Undefined if the JSON is not an entry that this version can read. */
export function asEntry(json: unknown): DaemonEntry | undefined {
  const { socket, token, pid } = (json ?? {}) as Partial<DaemonEntry>;
  const isWhole = typeof socket === "string" && typeof token === "string" && typeof pid === "number";
  return isWhole ? (json as DaemonEntry) : undefined;
}
