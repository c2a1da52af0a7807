import { readdirSync, readFileSync } from "node:fs";

/** What runs for a desk, by what it is. */
export type Kind = "server" | "daemon" | "other";

export interface DeskProcess {
  readonly pid: number;
  readonly kind: Kind;
}

/** The processes whose home this is, zombies left out. Linux alone tells. */
export function deskProcesses(home: string): readonly DeskProcess[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => pid !== process.pid && `\0${read(pid, "environ")}`.includes(`\0HOME=${home}\0`))
    .map((pid) => ({ pid, kind: kindOf(read(pid, "cmdline")) }));
}

export function killAll(processes: readonly DeskProcess[]): void {
  for (const { pid } of processes)
    try {
      process.kill(pid, "SIGKILL");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    }
}

function kindOf(command: string): Kind {
  if (command.includes("daemon.cjs")) return "daemon";
  return command.includes("\0serve\0") ? "server" : "other";
}

/** Empty where the process has just ended. */
function read(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8");
  } catch {
    return "";
  }
}
