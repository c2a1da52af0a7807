import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { serverFiles, serverKeys } from "../../src/opencode/server-files.ts";
import { isAlive } from "../../src/state/processes.ts";
import { defaultStateFolder } from "../../src/state/state-folder.ts";
import { hermeticEnv } from "./opencode.ts";
import { until } from "./wait.ts";

type Env = Readonly<Record<string, string | undefined>>;

/** Ends the daemon of this home and its servers, which outlive the windows, and waits until they are gone. */
export async function endBackground(home: string, env: Env = hermeticEnv(home)): Promise<void> {
  await endAll(stateFolderOf(home, env));
}

/** Whether a daemon of this home, or a server that one left behind, is running. */
export function runsInBackground(home: string, env: Env): boolean {
  return processesOf(stateFolderOf(home, env)).length > 0;
}

/** Like {@link endBackground}, for the processes recorded in a state folder. */
export async function endAll(stateFolder: string): Promise<void> {
  const asked = new Set<number>();
  await until(
    "the end of what goes on in the background",
    () => {
      const running = processesOf(stateFolder);
      for (const pid of running)
        if (!asked.has(pid)) {
          asked.add(pid);
          process.kill(pid, "SIGTERM");
        }
      return running.length === 0 && ![...asked].some(isAlive);
    },
    60_000,
  );
}

/** Where the processes of this home keep their state and their log. */
export function stateFolderOf(home: string, env: Env = hermeticEnv(home)): string {
  return defaultStateFolder({ platform: process.platform, env, home });
}

/** The daemon, because it would restart its servers; without a daemon, the servers that it left behind. */
function processesOf(stateFolder: string): readonly number[] {
  const daemon = pidIn(join(stateFolder, "daemon.json"));
  if (daemon.length > 0) return daemon;
  return serverKeys(filesOf(stateFolder)).flatMap((key) => pidIn(serverFiles(stateFolder, key).state));
}

function filesOf(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    // Nothing was ever started there.
    return [];
  }
}

/** The process named in a state file, if it is running. */
function pidIn(file: string): readonly number[] {
  try {
    const { pid } = JSON.parse(readFileSync(file, "utf8")) as { readonly pid: number };
    return isAlive(pid) ? [pid] : [];
  } catch {
    // The file was just removed.
    return [];
  }
}
