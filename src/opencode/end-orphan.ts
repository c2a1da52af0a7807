import { rm } from "node:fs/promises";
import { environmentOf, isAlive, isSame, membersOf, signalGroup } from "../state/processes.ts";
import { readServerState, type ServerState } from "./server-files.ts";

/** How long to wait for the server to exit by itself. */
const END_WITHIN_MS = 5_000;
const LOOK_EVERY_MS = 50;

/**
 * Whether the process with the recorded ID is the server in the state file. `unknown` if its start could not be recorded,
 * and nothing else tells. Rejects if the look failed.
 */
export async function lookAt(state: ServerState): Promise<"running" | "gone" | "unknown"> {
  const { pid, processStart } = state;
  if (processStart !== undefined) return (await isSame(pid, processStart)) ? "running" : "gone";
  if (process.platform === "linux") return (await knowsPassword(state, pid)) ? "running" : "gone";
  // On Windows, which reports no starts, servers end with their daemon.
  return process.platform !== "win32" && isAlive(pid) ? "unknown" : "gone";
}

/**
 * Ends a server that nobody uses any more, and its child processes. It is signalled only if the operating system
 * confirms that it is the process in the state file, and never called, because its port may belong to another program.
 * @param path the state file; it stays if it is unknown whether the server is running
 */
export async function endOrphan(path: string): Promise<void> {
  const state = await readServerState(path);
  if (!state) return;
  const { pid } = state;
  const found = await lookAt(state);
  if (found === "unknown") return;
  const isThere = async (): Promise<boolean> => (await lookAt(state)) === "running";
  if (found === "running") {
    signalGroup(pid, "SIGTERM");
    await untilNot(isThere);
    signalGroup(pid, "SIGKILL");
    await untilNot(isThere);
  } else if (await hasFollowers(state)) signalGroup(pid, "SIGKILL");
  await rm(path, { force: true });
}

/** Whether the server is gone but processes of its group remain. Can only be checked on Linux. */
export async function hasFollowers(state: ServerState): Promise<boolean> {
  if (process.platform !== "linux") return false;
  const members = await membersOf(state.pid);
  return (await Promise.all(members.map((pid) => knowsPassword(state, pid)))).includes(true);
}

/** Whether a process was started with the password of this run: the server, or one of its child processes, which inherit it. */
async function knowsPassword({ password }: ServerState, pid: number): Promise<boolean> {
  return (await environmentOf(pid))?.includes(password) ?? false;
}

async function untilNot(condition: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + END_WITHIN_MS;
  while (performance.now() < deadline && (await condition()))
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
}
