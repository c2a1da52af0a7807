import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import * as z from "zod/mini";
import type { ServerAccess } from "./access.ts";
import { DEFAULT_USERNAME } from "./access.ts";
import { writePrivateFile } from "../state/private-files.ts";
import { privateSocket } from "../state/private-socket.ts";

const STATE_VERSION = 1;

/** Where the server of one folder is described, locked, logged and reached. */
export interface ServerFiles {
  /** What runs: see {@link ServerState}. */
  readonly state: string;
  /** Exists while somebody starts the watchdog. */
  readonly lock: string;
  readonly log: string;
  /** Unix socket or named pipe of the watchdog. */
  readonly socket: string;
}

/** `directory` must be the real path of the folder, so that every way to it leads to the same server. */
export async function serverFiles(stateFolder: string, directory: string): Promise<ServerFiles> {
  const key = hash(directory);
  const file = (extension: string) => join(stateFolder, `server-${key}.${extension}`);
  const socket =
    process.platform === "win32"
      ? `\\\\.\\pipe\\opencode-async-agents-${hash(stateFolder)}-${key}`
      : await privateSocket(stateFolder, `server-${key}.sock`);
  return { state: serverStateFile(stateFolder, directory), lock: file("lock"), log: file("log"), socket };
}

export function serverStateFile(stateFolder: string, directory: string): string {
  return join(stateFolder, `server-${hash(directory)}.json`);
}

function hash(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}

const serverState = z.object({
  v: z.literal(STATE_VERSION),
  url: z.string(),
  password: z.string(),
  /** Made up for this start: who can name it has read this file. */
  run: z.string(),
  /** The server's process. */
  pid: z.number(),
  /** When that process started; see `startOf`. */
  processStart: z.optional(z.string()),
  watchdogPid: z.number(),
  socket: z.string(),
  /** OpenCode's. */
  version: z.string(),
  directory: z.string(),
  /** Milliseconds since 1970. */
  startedAt: z.number(),
});

/** A server that a watchdog keeps running. */
export type ServerState = z.infer<typeof serverState>;

export async function writeServerState(path: string, state: Omit<ServerState, "v">): Promise<void> {
  await writePrivateFile(path, JSON.stringify({ v: STATE_VERSION, ...state } satisfies ServerState));
}

/** Undefined: there is none, or none that this version understands. */
export async function readServerState(path: string): Promise<ServerState | undefined> {
  try {
    const parsed = z.safeParse(serverState, JSON.parse(await readFile(path, "utf8")));
    return parsed.success ? parsed.data : undefined;
  } catch (error) {
    if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

export function accessOf({ url, password }: ServerState): ServerAccess {
  return { url, username: DEFAULT_USERNAME, password };
}
