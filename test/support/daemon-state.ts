import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { serverFiles, serverKeys } from "../../src/opencode/server-files.ts";
import { basicAuthorization } from "./opencode.ts";

export interface RunningServer {
  readonly url: string;
  readonly password: string;
  readonly pid: number;
}

/** What the files of a user's private state folder tell of the daemon, and of the server. */
export class DaemonState {
  constructor(
    readonly stateFolder: string,
    /** Real path. */
    readonly directory: string,
  ) {}

  /** The process of the daemon; undefined: there is none. */
  daemonPid(): number | undefined {
    return readJson<{ pid: number }>(join(this.stateFolder, "daemon.json"))?.pid;
  }

  /** The server, where there is one at the most; undefined: there is none. */
  server(): RunningServer | undefined {
    const files = existsSync(this.stateFolder) ? readdirSync(this.stateFolder) : [];
    const [key, ...others] = serverKeys(files);
    if (others.length > 0) throw new Error("There are several servers.");
    return key === undefined ? undefined : readJson<RunningServer>(serverFiles(this.stateFolder, key).state);
  }

  /** Calls the server for the folder. */
  fetch(path: string, init: RequestInit = {}): Promise<Response> {
    const server = this.server();
    if (!server) throw new Error("There is no server.");
    const headers = new Headers(init.headers);
    headers.set("authorization", basicAuthorization(server.password));
    headers.set("x-opencode-directory", encodeURIComponent(this.directory));
    return fetch(server.url + path, { ...init, headers });
  }

  /** What the daemon logged. */
  log(): string {
    return readFileSync(join(this.stateFolder, "daemon.log"), "utf8");
  }
}

/** Undefined: there is no such file. */
function readJson<T>(path: string): T | undefined {
  try {
    return JSON.parse(readFileSync(path, "utf8")) as T;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
