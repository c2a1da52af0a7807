import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { isAlive } from "../../src/state/processes.ts";
import { defaultStateFolder } from "../../src/state/private-files.ts";
import { hermeticEnv } from "./opencode.ts";
import { until } from "./wait.ts";

/**
 * Ends the daemon that works in this home and the servers that it started there, which outlive the windows, and waits
 * until they are gone.
 */
export async function endBackground(home: string): Promise<void> {
  const { platform } = process;
  const stateFolder = defaultStateFolder({ platform, env: hermeticEnv(home), home });
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
    20_000,
  );
}

/** The daemon and the watchdogs of servers; a server itself where its watchdog is gone. */
function processesOf(stateFolder: string): readonly number[] {
  return filesOf(stateFolder)
    .filter((name) => /^(daemon|server-.+)\.json$/.test(name))
    .map((name) => readPids(join(stateFolder, name)))
    .flatMap(
      ({ pid, watchdogPid }) => [watchdogPid, pid].find((each) => each !== undefined && isAlive(each)) ?? [],
    );
}

function filesOf(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    // Nothing was started there.
    return [];
  }
}

function readPids(file: string): { readonly pid?: number; readonly watchdogPid?: number } {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as ReturnType<typeof readPids>;
  } catch {
    // It was removed just now.
    return {};
  }
}
