import { randomBytes } from "node:crypto";
import { rmSync } from "node:fs";
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import * as z from "zod/mini";
import { ifPresent, readJson } from "../state/json-files.ts";
import { ensurePrivateFolder, writePrivateFile } from "../state/private-files.ts";
import { isLiving, startOf } from "../state/processes.ts";

const ENTRY_VERSION = 1;
/** File names that the plugin finds whatever its version: do not change the pattern. */
const FILE_NAME = /^window-[\w-]+\.json$/;

/** How an endpoint announces itself to the plugin: one file per endpoint in the state folder, private to the user. */
const endpointEntry = z.object({
  v: z.literal(ENTRY_VERSION),
  /** The real paths of the folder whose agents the endpoint serves, which comes first, and of its worktrees. */
  directories: z.array(z.string()),
  /** The address of the OpenCode server whose agents the endpoint serves. */
  server: z.string(),
  /** The port on 127.0.0.1. */
  port: z.int().check(z.minimum(1), z.maximum(65_535)),
  token: z.string(),
  /** The process that listens on the port. */
  pid: z.int().check(z.minimum(1)),
  /** When that process started; see `startOf`. */
  processStart: z.optional(z.string()),
  /** Milliseconds since 1970. */
  openedAt: z.number(),
});
export type EndpointEntry = z.infer<typeof endpointEntry>;

/** A published entry, which other processes can read until it is withdrawn. */
export interface PublishedEntry {
  /** Removes the file immediately. */
  withdraw(): void;
}

/** Publishes an entry. Creates the state folder if needed and makes it private. */
export async function publishEntry(
  stateFolder: string,
  entry: Omit<EndpointEntry, "v" | "processStart">,
): Promise<PublishedEntry> {
  await ensurePrivateFolder(stateFolder);
  const processStart = await startOf(entry.pid);
  // A name that is never reused: removing a stale entry cannot hit the entry of another endpoint.
  const path = join(stateFolder, `window-${randomBytes(9).toString("base64url")}.json`);
  await writePrivateFile(
    path,
    JSON.stringify({ v: ENTRY_VERSION, ...entry, processStart } satisfies EndpointEntry),
  );
  return { withdraw: () => rmSync(path, { force: true }) };
}

/** The entries of all endpoints, in no order, including stale ones left by crashes. Empty if there is no folder. */
export async function readEntries(stateFolder: string): Promise<readonly EndpointEntry[]> {
  return (await readFiles(stateFolder)).map(({ entry }) => entry);
}

/**
 * The entries of endpoints that are known to be running. The port of a stale entry may belong to any other program: send
 * nothing there.
 */
export async function readLivingEntries(stateFolder: string): Promise<readonly EndpointEntry[]> {
  const entries = await readEntries(stateFolder);
  const living = await Promise.all(entries.map((entry) => isLiving(entry).catch(() => false)));
  return entries.filter((_, index) => living[index]);
}

/** Removes entries left by crashes. Entries of other versions are not touched. */
export async function removeStale(stateFolder: string): Promise<void> {
  const removeIfStale = async ({ path, entry }: EntryFile) => {
    if (!(await isLiving(entry))) await rm(path, { force: true });
  };
  await Promise.all((await readFiles(stateFolder)).map(removeIfStale));
}

interface EntryFile {
  readonly path: string;
  readonly entry: EndpointEntry;
}

async function readFiles(stateFolder: string): Promise<readonly EntryFile[]> {
  const names = ((await ifPresent(readdir(stateFolder))) ?? []).filter((name) => FILE_NAME.test(name));
  const files = await Promise.all(names.map((name) => readEntryFile(join(stateFolder, name))));
  return files.filter((file) => file !== undefined);
}

/** Undefined if the entry was withdrawn in the meantime, or if this version cannot read it. */
async function readEntryFile(path: string): Promise<EntryFile | undefined> {
  const entry = z.safeParse(endpointEntry, await readJson(path).catch(() => undefined));
  return entry.success ? { path, entry: entry.data } : undefined;
}
