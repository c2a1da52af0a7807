import { connect } from "node:net";
import type { Socket } from "node:net";
import { join } from "node:path";
import { codeOf, readJson } from "../state/json-files.ts";

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

  get entry(): string {
    return join(this.folder, "daemon.json");
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
    return asEntry(await readJson(this.entry));
  }
}

/** Undefined: nobody listens there. */
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

/** Undefined: no version that this one knows wrote that. */
export function asEntry(json: unknown): DaemonEntry | undefined {
  const { socket, token, pid } = (json ?? {}) as Partial<DaemonEntry>;
  const isWhole = typeof socket === "string" && typeof token === "string" && typeof pid === "number";
  return isWhole ? (json as DaemonEntry) : undefined;
}
