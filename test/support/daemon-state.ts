import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { serverFiles, serverKeys } from "../../src/opencode/server-files.ts";
import { basicAuthorization } from "./opencode.ts";

export interface RunningServer {
  readonly url: string;
  readonly password: string;
  readonly pid: number;
}

/** Reads the daemon's and the server's state from the files of a private state folder. */
export class DaemonState {
  constructor(
    readonly stateFolder: string,
    /** The real path of the folder. */
    readonly directory: string,
  ) {}

  /** The process of the daemon; undefined if there is none. */
  daemonPid(): number | undefined {
    return readJson<{ pid: number }>(join(this.stateFolder, "daemon.json"))?.pid;
  }

  /** The only server; undefined if there is none. Throws if there are several. */
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

  /** The daemon's log. */
  log(): string {
    return readFileSync(join(this.stateFolder, "daemon.log"), "utf8");
  }
}

/** Undefined if the file doesn't exist. */
function readJson<T>(path: string): T | undefined {
  try {
    return JSON.parse(readFileSync(path, "utf8")) as T;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
