import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import * as z from "zod/mini";
import type { ServerAccess } from "./access.ts";
import { DEFAULT_USERNAME } from "./access.ts";
import { writePrivateFile } from "../state/private-files.ts";

/** Bytes of a Unix socket's path that every system takes (macOS: 103). */
const MAX_SOCKET_PATH_BYTES = 100;
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
export function serverFiles(stateFolder: string, directory: string): ServerFiles {
  const key = hash(directory);
  const file = (extension: string) => join(stateFolder, `server-${key}.${extension}`);
  return { state: file("json"), lock: file("lock"), log: file("log"), socket: socketPath(stateFolder, key) };
}

function socketPath(stateFolder: string, key: string): string {
  if (process.platform === "win32") return `\\\\.\\pipe\\opencode-async-agents-${hash(stateFolder)}-${key}`;
  const path = join(stateFolder, `server-${key}.sock`);
  if (Buffer.byteLength(path) <= MAX_SOCKET_PATH_BYTES) return path;
  return join(tmpdir(), `opencode-async-agents-${process.getuid?.()}-${hash(stateFolder)}`, `${key}.sock`);
}

/** The folders that must exist, and be private, before any of the files can. */
export function foldersOf(files: ServerFiles): readonly string[] {
  const socketFolder = process.platform === "win32" ? [] : [dirname(files.socket)];
  return [...new Set([dirname(files.state), ...socketFolder])];
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
