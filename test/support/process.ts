import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { until } from "./wait.ts";

/** A process and all of its child processes, which end together. */
export interface ProcessGroup {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly running: boolean;
  /** Resolves when the process itself has ended. */
  readonly ended: Promise<void>;
  /** Kills the whole group without giving it a chance to clean up. */
  kill(): Promise<void>;
  /** Asks the group to end; kills what is left after `graceMs`. */
  stop(graceMs?: number): Promise<void>;
}

/**
 * Starts a program in its own process group. The group is killed at the latest when this process ends (unless this
 * process is itself killed without a chance to clean up).
 */
export async function spawnGroup(
  program: string,
  args: readonly string[],
  options: { readonly cwd?: string; readonly env: NodeJS.ProcessEnv },
): Promise<ProcessGroup> {
  const posix = process.platform !== "win32";
  const child = spawn(program, args, { ...options, stdio: ["ignore", "pipe", "pipe"], detached: posix });
  await once(child, "spawn");
  const pid = child.pid;
  if (pid === undefined) throw new Error(`${program} did not start`);
  const signal = (name: NodeJS.Signals): void => {
    try {
      process.kill(posix ? -pid : pid, name);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    }
  };
  const killNow = (): void => signal("SIGKILL");
  exitOnSignals();
  process.once("exit", killNow);
  const ended = once(child, "exit").then(() => void process.off("exit", killNow));
  const running = (): boolean => child.exitCode === null && child.signalCode === null;
  return {
    child,
    pid,
    ended,
    get running() {
      return running();
    },
    async kill() {
      killNow();
      await ended;
    },
    async stop(graceMs = 5_000) {
      if (running()) {
        signal("SIGTERM");
        const timer = setTimeout(killNow, graceMs);
        await ended;
        clearTimeout(timer);
      }
      killNow();
    },
  };
}

/** Makes signals end this process in an orderly way, with its exit handlers, unless something else listens for them. */
function exitOnSignals(): void {
  for (const [name, code] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
    ["SIGHUP", 129],
  ] as const)
    if (process.listenerCount(name) === 0) process.once(name, () => process.exit(code));
}

/** The process that a command writes into this file, once it is there. */
export function processIn(file: string): Promise<number> {
  return until("the command", () => existsSync(file) && (Number(readFileSync(file, "utf8")) || undefined));
}
