import { readFileSync } from "node:fs";

/** Megabytes of a process. */
export interface Memory {
  /** With what it shares, as the code of its program. */
  readonly resident: number;
  /** Its part, where what is shared is divided by those who share it. */
  readonly proportional: number;
}

/** Of Linux. */
export function memoryOf(pid: number): Memory {
  const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
  const megabytes = (name: string): number =>
    (Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(rollup)?.[1]) * 1_024) / 1e6;
  return { resident: megabytes("Rss"), proportional: megabytes("Pss") };
}

/** Milliseconds of CPU that a process has used so far, to the kernel's hundredth of a second; on Linux. */
export function cpuTime(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // `pid (name) state …`, where the name may hold anything; user and system time are the 14th and 15th field.
  const [user, system] = stat
    .slice(stat.lastIndexOf(")") + 2)
    .split(" ")
    .slice(11, 13);
  return (Number(user) + Number(system)) * 10;
}
