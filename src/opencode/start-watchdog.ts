import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { open, readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { ConnectionError } from "../engine/connection.ts";
import { sentence, type Text } from "../engine/sentence.ts";
import { failures } from "./failures.ts";
import { EXIT_ALREADY_SERVED, LISTENING } from "./watchdog/lease-protocol.ts";
import type { WatchdogConfig } from "./watchdog/lease-protocol.ts";

const LISTEN_TIMEOUT_MS = 15_000;
const LOG_TAIL_CHARS = 1_000;

export interface WatchdogProgram {
  /** The editor's own executable, which runs as Node when told to. */
  readonly execPath: string;
  readonly script: string;
  /** The server's environment, and the watchdog's. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

/**
 * Starts a watchdog that outlives this process, and resolves once leases can be taken (from it, or from another that
 * was there first). Throws a `ConnectionError` if it does not come up.
 */
export async function startWatchdog(program: WatchdogProgram, config: WatchdogConfig): Promise<void> {
  const log = await open(config.files.log, "w", 0o600);
  try {
    const child = spawn(program.execPath, [program.script], {
      // A folder in which a process runs cannot be removed on Windows; this one is the watchdog's own.
      cwd: dirname(config.files.state),
      env: { ...program.env, ELECTRON_RUN_AS_NODE: "1" },
      detached: true,
      stdio: ["pipe", "pipe", log.fd],
      windowsHide: true,
    });
    const problem = listening(child);
    child.stdin?.on("error", () => {});
    child.stdin?.end(JSON.stringify(config));
    const found = await problem;
    child.stdout?.destroy();
    child.unref();
    if (found !== undefined)
      throw new ConnectionError(failures.startFailed(found, await tailOf(config.files.log)));
  } finally {
    await log.close();
  }
}

/** Resolves to what went wrong, or to undefined once the watchdog listens. */
function listening(child: ChildProcess): Promise<Text | undefined> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => {
      child.kill("SIGKILL");
      resolve(sentence("its watchdog process did not answer"));
    }, LISTEN_TIMEOUT_MS);
    const settle = (problem: Text | undefined) => {
      clearTimeout(timer);
      resolve(problem);
    };
    child.once("error", (error) =>
      settle(sentence("its watchdog process could not be started ({0})", error.message)),
    );
    child.once("exit", (code) =>
      settle(
        code === EXIT_ALREADY_SERVED
          ? undefined
          : sentence("its watchdog process ended (exit code {0})", String(code)),
      ),
    );
    child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      if (text.includes(LISTENING)) settle(undefined);
    });
  });
}

async function tailOf(path: string): Promise<string> {
  return (await readFile(path, "utf8")).slice(-LOG_TAIL_CHARS);
}
