import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { open } from "node:fs/promises";
import { messageOf } from "../engine/errors.ts";
import type { Clock } from "../engine/ports.ts";
import { sentence, type Text } from "../engine/sentence.ts";
import { ensurePrivateFolder } from "../state/private-files.ts";
import { notStarted } from "./daemon-failures.ts";
import type { DaemonFiles } from "./daemon-files.ts";
import { EXIT_ALREADY_SERVED, LISTENING, type DaemonConfig } from "./daemon-program.ts";

const LISTEN_TIMEOUT_MS = 15_000;
/** In megabytes. Most of what the daemon reads is soon garbage, much of which would be kept with the default of 16. */
const YOUNG_GENERATION = 1;

export interface DaemonProgram {
  /** The editor's executable, which can run as Node. */
  readonly execPath: string;
  readonly script: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/**
 * Starts a daemon that outlives this process. Resolves once it listens, or another daemon already does. Rejects with a
 * `ConnectionError` if it fails.
 */
export async function startDaemon(
  { execPath, script, env }: DaemonProgram,
  config: DaemonConfig,
  files: DaemonFiles,
  clock: Clock,
): Promise<void> {
  let problem: Text | undefined;
  try {
    await ensurePrivateFolder(files.folder);
    const log = await open(files.log, "a", 0o600);
    try {
      const child = spawn(execPath, [`--max-semi-space-size=${YOUNG_GENERATION}`, script], {
        // Windows cannot remove a folder in which a process is running, so the daemon runs in its own folder.
        cwd: files.folder,
        env: { ...env, ELECTRON_RUN_AS_NODE: "1" },
        detached: true,
        stdio: ["pipe", "pipe", log.fd],
        windowsHide: true,
      });
      const listens = listening(child, clock);
      child.stdin?.on("error", () => undefined);
      child.stdin?.end(JSON.stringify(config));
      problem = await listens;
      child.stdout?.destroy();
      child.unref();
    } finally {
      await log.close();
    }
  } catch (error) {
    problem = messageOf(error);
  }
  if (problem !== undefined) throw notStarted(problem);
}

/** Resolves to undefined once the daemon listens, or to what went wrong. */
function listening(child: ChildProcess, clock: Clock): Promise<Text | undefined> {
  return new Promise((resolve) => {
    const settle = (problem: Text | undefined): void => {
      timer.dispose();
      resolve(problem);
    };
    const timer = clock.after(LISTEN_TIMEOUT_MS, () => {
      child.kill("SIGKILL");
      settle(sentence("it didn't respond"));
    });
    child.once("error", (error) => settle(error.message));
    child.once("exit", (code) =>
      settle(code === EXIT_ALREADY_SERVED ? undefined : sentence("it ended (exit code {0})", String(code))),
    );
    let output = "";
    child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      output += text;
      if (output.includes(`${LISTENING}\n`)) settle(undefined);
    });
  });
}
