import { execFile, spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { codeOf } from "./json-files.ts";

/** Whether a process of this ID runs on this machine, whoever's it is. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOf(error) === "EPERM";
  }
}

/** Signals a process and its group (POSIX). False: nobody is left there. */
export function signalGroup(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-pid, signal);
  } catch (error) {
    // EPERM is what macOS says of a group in which all have ended and are still to be reaped.
    if (["ESRCH", "EPERM"].includes(codeOf(error))) return false;
    throw error;
  }
}

/** Ends a process and its descendants on Windows, which knows no process groups; its own tool does it. */
export function endTree(pid: number): void {
  spawn("taskkill", ["/pid", String(pid), "/T", "/F"], { stdio: "ignore", windowsHide: true }).on(
    "error",
    () => process.kill(pid),
  );
}

/**
 * When the process started, as the system counts it: with its ID, this tells it from every other process, also from
 * one that is given the same ID later. Undefined: it does not run, or the system does not say (Windows).
 */
export async function startOf(pid: number): Promise<string | undefined> {
  if (process.platform === "win32") return undefined;
  try {
    return await (process.platform === "linux" ? startOnLinux(pid) : startByPs(pid));
  } catch {
    return undefined;
  }
}

/** A process as a file tells of it. */
export interface DescribedProcess {
  readonly pid: number;
  /** See {@link startOf}. */
  readonly processStart?: string | undefined;
}

/** Whether the process that `start` was recorded of still runs. False where the system does not say. */
export async function isSame(pid: number, start: string | undefined): Promise<boolean> {
  return start !== undefined && (await startOf(pid)) === start;
}

/** As {@link isSame}; where the system does not say (Windows), whether any process has the ID. */
export async function isLiving({ pid, processStart }: DescribedProcess): Promise<boolean> {
  return process.platform === "win32" ? isAlive(pid) : isSame(pid, processStart);
}

async function startOnLinux(pid: number): Promise<string | undefined> {
  const [stat, boot] = await Promise.all([
    readFile(`/proc/${pid}/stat`, "utf8"),
    readFile("/proc/sys/kernel/random/boot_id", "utf8"),
  ]);
  // `pid (name) state …`, where the name may hold anything; the start in ticks since the boot is the 22nd field.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  // A zombie has ended: its ports are others' already.
  if (fields[0] === "Z" || fields[0] === "X") return undefined;
  return fields[19] && `${boot.trim()} ${fields[19]}`;
}

async function startByPs(pid: number): Promise<string | undefined> {
  // The same for everybody who asks, in whatever language and time zone.
  const env = { LC_ALL: "C", TZ: "UTC" };
  const { stdout } = await promisify(execFile)("/bin/ps", ["-o", "lstart=", "-p", String(pid)], { env });
  return stdout.trim() || undefined;
}

/** What a process has in memory, in bytes. Undefined: it does not run, or the system does not say (all but Linux). */
export async function memoryOf(pid: number): Promise<number | undefined> {
  try {
    const [, kilobytes] = /^VmRSS:\s*(\d+) kB$/m.exec(await readFile(`/proc/${pid}/status`, "utf8")) ?? [];
    return kilobytes === undefined ? undefined : Number(kilobytes) * 1_024;
  } catch {
    return undefined;
  }
}
