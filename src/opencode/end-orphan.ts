import { readFile, rm } from "node:fs/promises";
import { isSame, membersOf, signalGroup } from "../state/processes.ts";
import { readServerState, type ServerState } from "./server-files.ts";

/** How long to wait for the server to exit by itself. */
const END_WITHIN_MS = 5_000;
const LOOK_EVERY_MS = 50;

/**
 * Ends a server that nobody uses any more, and its child processes. It is signalled only if the operating system
 * confirms that it is the process in the state file, and never called, because its port may belong to another program.
 * @param path the state file
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

/** Whether the server is gone but processes of its group remain. Can only be checked on Linux. */
async function hasFollowers({ pid, password }: ServerState): Promise<boolean> {
  if (process.platform !== "linux") return false;
  const found = await Promise.all((await membersOf(pid)).map(isFollower));
  return found.includes(true);

  /** Child processes of the server inherit its environment, including the password of this run. */
  async function isFollower(member: number): Promise<boolean> {
    try {
      return (await readFile(`/proc/${member}/environ`, "utf8")).includes(password);
    } catch {
      // The process has just ended, or belongs to another user.
      return false;
    }
  }
}

async function untilNot(condition: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + END_WITHIN_MS;
  while (performance.now() < deadline && (await condition()))
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
}
