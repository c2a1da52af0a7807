import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import * as z from "zod/mini";
import { readJson } from "../state/json-files.ts";
import { writePrivateFile } from "../state/private-files.ts";
import { tryParse } from "./validation.ts";

const STATE_VERSION = 2;
/** How long the log of a server is kept that isn't running any more. */
const LOG_KEPT_MS = 30 * 24 * 3_600_000;

/** The files of a server. */
export interface ServerFiles {
  /** The path of its {@link ServerState}. */
  readonly state: string;
  /** The path of its output. */
  readonly log: string;
}

/** @param key the key of the server's program */
export function serverFiles(stateFolder: string, key: string): ServerFiles {
  const file = (extension: string) => join(stateFolder, `server-${key}.${extension}`);
  return { state: file("json"), log: file("log") };
}

/** The program keys in the names of state files. Other names are ignored. */
export function serverKeys(names: readonly string[]): string[] {
  return names.flatMap((name) => /^server-([0-9a-f]+)\.json$/.exec(name)?.[1] ?? []);
}

/** Removes the logs of servers that ended long ago: each change to a program or its environment leaves one. */
export async function sweepLogs(stateFolder: string, now: number): Promise<void> {
  const names = new Set(await readdir(stateFolder));
  for (const name of names) {
    const key = /^server-([0-9a-f]+)\.log$/.exec(name)?.[1];
    if (key === undefined || names.has(`server-${key}.json`)) continue;
    const path = join(stateFolder, name);
    if (now - (await stat(path)).mtimeMs > LOG_KEPT_MS) await rm(path, { force: true });
  }
}

const serverState = z.object({
  v: z.literal(STATE_VERSION),
  url: z.string(),
  password: z.string(),
  /** The ID of the server's process. */
  pid: z.number(),
  /** When that process started; see `startOf`. */
  processStart: z.optional(z.string()),
  /** OpenCode's version. Undefined until the server responds: until then its port may belong to another program. */
  version: z.optional(z.string()),
});

/** A server that the extension started. */
export type ServerState = Omit<z.infer<typeof serverState>, "v">;

export async function writeServerState(path: string, state: ServerState): Promise<void> {
  await writePrivateFile(path, JSON.stringify({ ...state, v: STATE_VERSION }));
}

/** Undefined if there is no file, or this version cannot read it. */
export async function readServerState(path: string): Promise<ServerState | undefined> {
  return tryParse(serverState, await readJson(path));
}
