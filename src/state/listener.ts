import { readdir, readFile, readlink } from "node:fs/promises";
import { membersOf } from "./processes.ts";

/** A socket on which a process listens: a link among the open files of the process, and where it leads. */
export interface Listener {
  readonly link: string;
  readonly target: string;
}

/**
 * The socket on which a process of this group listens on the port. Undefined if there is none, if this user may not
 * know it, and on systems other than Linux.
 */
export async function listenerOf(group: number, port: number): Promise<Listener | undefined> {
  if (process.platform !== "linux") return undefined;
  try {
    const targets = listening(await readFile("/proc/net/tcp", "utf8"), port);
    for (const pid of await membersOf(group))
      for (const listener of await openFiles(pid)) if (targets.has(listener.target)) return listener;
  } catch {
    // As if there were none.
  }
  return undefined;
}

/** Whether the process still listens. Once its port is free for others, it doesn't. */
export async function isListening({ link, target }: Listener): Promise<boolean> {
  return (await readlink(link).catch(() => undefined)) === target;
}

/** @param table `/proc/net/tcp` */
function listening(table: string, port: number): ReadonlySet<string> {
  const ending = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const rows = table.split("\n").map((row) => row.trim().split(/\s+/));
  const isWanted = ([, address = "", , state]: readonly string[]): boolean =>
    address.endsWith(ending) && state === "0A";
  return new Set(rows.filter(isWanted).map((row) => `socket:[${row[9]}]`));
}

async function openFiles(pid: number): Promise<readonly Listener[]> {
  const folder = `/proc/${pid}/fd`;
  const names = await readdir(folder).catch(() => []);
  const links = names.map((name) => `${folder}/${name}`);
  return Promise.all(links.map(async (link) => ({ link, target: await readlink(link).catch(() => "") })));
}
