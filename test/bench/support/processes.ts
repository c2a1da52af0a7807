import { readFileSync } from "node:fs";

/** The memory of a process in megabytes. */
export interface Memory {
  /** Includes memory shared with other processes, such as program code. */
  readonly resident: number;
  /** Shared memory is divided by the number of processes that share it. */
  readonly proportional: number;
}

/** Linux only. */
export function memoryOf(pid: number): Memory {
  const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
  const megabytes = (name: string): number =>
    (Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(rollup)?.[1]) * 1_024) / 1e6;
  return { resident: megabytes("Rss"), proportional: megabytes("Pss") };
}

/** Milliseconds of CPU time that a process has used so far, in steps of 10; Linux only. */
export function cpuTime(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // `pid (name) state …`, where the name may contain anything; user and system time are the 14th and 15th fields.
  const [user, system] = stat
    .slice(stat.lastIndexOf(")") + 2)
    .split(" ")
    .slice(11, 13);
  return (Number(user) + Number(system)) * 10;
}
