import { readdir, readFile, readlink } from "node:fs/promises";
import { membersOf } from "./processes.ts";

/** A socket on which a process listens: a link among the open files of the process, and where it leads. */
interface Listener {
  readonly link: string;
  readonly target: string;
}

/** Tells whether a port belongs to a group of processes. */
export class GroupPort {
  private listener: Listener | undefined;

  constructor(
    private readonly group: number,
    private readonly port: number,
  ) {}

  /**
   * Whether a process of the group listens on the port now. Once it doesn't, the port is free for others. Undefined as
   * long as the system doesn't tell: it is not Linux, or this user may not know it.
   */
  async isListened(): Promise<boolean | undefined> {
    if (this.listener && (await isOpen(this.listener))) return true;
    // A child that had the socket before it ran its own program can be found first, and ends.
    const found = await listenerOf(this.group, this.port);
    if (!found) return this.listener && false;
    this.listener = found;
    return true;
  }
}

async function listenerOf(group: number, port: number): Promise<Listener | undefined> {
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

async function isOpen({ link, target }: Listener): Promise<boolean> {
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
