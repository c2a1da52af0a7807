import { readdir, readFile, rm } from "node:fs/promises";
import { isSame, signalGroup } from "../state/processes.ts";
import { readServerState, type ServerState } from "./server-files.ts";

/** How long the server may take to end by itself. */
const END_WITHIN_MS = 5_000;
const LOOK_EVERY_MS = 50;

/**
 * Ends a server that nobody uses any more, with what it started. It is signalled only where the system tells that it is the
 * one that the state file is about, and never called: its port may be another program's.
 * @param path of the state file
 */
export async function endOrphan(path: string): Promise<void> {
  const state = await readServerState(path);
  if (!state) return;
  const { pid, processStart } = state;
  const isThere = (): Promise<boolean> => isSame(pid, processStart);
  if (await isThere()) {
    signalGroup(pid, "SIGTERM");
    await untilNot(isThere);
    signalGroup(pid, "SIGKILL");
    await untilNot(isThere);
  } else if (await hasFollowers(state)) signalGroup(pid, "SIGKILL");
  await rm(path, { force: true });
}

/** Whether the server is gone and something of its process group is not; Linux alone tells whose that is. */
async function hasFollowers({ pid, password }: ServerState): Promise<boolean> {
  if (process.platform !== "linux") return false;
  const entries = await readdir("/proc");
  const found = await Promise.all(entries.filter((name) => /^\d+$/.test(name)).map(isFollower));
  return found.includes(true);

  /** What the server started got its environment, with the password of this run. */
  async function isFollower(name: string): Promise<boolean> {
    try {
      const stat = await readFile(`/proc/${name}/stat`, "utf8");
      // `pid (name) state parent group …`, where the name may hold anything.
      const group = stat.slice(stat.lastIndexOf(")") + 2).split(" ")[2];
      return group === String(pid) && (await readFile(`/proc/${name}/environ`, "utf8")).includes(password);
    } catch {
      // It has just ended, or is another user's.
      return false;
    }
  }
}

async function untilNot(condition: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + END_WITHIN_MS;
  while (performance.now() < deadline && (await condition()))
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
}
