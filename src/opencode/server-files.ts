import { join } from "node:path";
import * as z from "zod/mini";
import { readJson } from "../state/json-files.ts";
import { writePrivateFile } from "../state/private-files.ts";
import { tryParse } from "./validation.ts";

const STATE_VERSION = 2;

/** Where a server is described and logged. */
export interface ServerFiles {
  /** What runs: see {@link ServerState}. */
  readonly state: string;
  /** What the server says. */
  readonly log: string;
}

/** @param key of the server's program */
export function serverFiles(stateFolder: string, key: string): ServerFiles {
  const file = (extension: string) => join(stateFolder, `server-${key}.${extension}`);
  return { state: file("json"), log: file("log") };
}

/** The keys of the programs whose servers are described by files of these names. */
export function serverKeys(names: readonly string[]): string[] {
  return names.flatMap((name) => /^server-([0-9a-f]+)\.json$/.exec(name)?.[1] ?? []);
}

const serverState = z.object({
  v: z.literal(STATE_VERSION),
  url: z.string(),
  password: z.string(),
  /** The server's process. */
  pid: z.number(),
  /** When that process started; see `startOf`. */
  processStart: z.optional(z.string()),
  /** OpenCode's. Undefined: the server has not answered yet, so another program may have its port. */
  version: z.optional(z.string()),
});

/** A server that this product started. */
export type ServerState = Omit<z.infer<typeof serverState>, "v">;

export async function writeServerState(path: string, state: ServerState): Promise<void> {
  await writePrivateFile(path, JSON.stringify({ ...state, v: STATE_VERSION }));
}

/** Undefined: there is none, or none that this version understands. */
export async function readServerState(path: string): Promise<ServerState | undefined> {
  return tryParse(serverState, await readJson(path));
}
