import { readdirSync, readFileSync } from "node:fs";

/** A process that runs for a desk, and its kind. */
export type Kind = "server" | "daemon" | "other";

export interface DeskProcess {
  readonly pid: number;
  readonly kind: Kind;
}

/** The processes with this home, without zombies; Linux only. */
export function deskProcesses(home: string): readonly DeskProcess[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => pid !== process.pid && `\0${read(pid, "environ")}`.includes(`\0HOME=${home}\0`))
    .map((pid) => ({ pid, kind: kindOf(read(pid, "cmdline")) }));
}

export function signalAll(processes: readonly DeskProcess[], signal: NodeJS.Signals): void {
  for (const { pid } of processes)
    try {
      process.kill(pid, signal);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    }
}

function kindOf(command: string): Kind {
  if (command.includes("daemon.cjs")) return "daemon";
  return command.includes("\0serve\0") ? "server" : "other";
}

/** Empty if the process has just ended. */
function read(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8");
  } catch {
    return "";
  }
}
