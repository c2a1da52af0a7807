import { execFile, spawn } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { codeOf } from "./json-files.ts";

/**
 * What a look at a process fails with if it isn't there or the system hides it, as it may those of other users. 1 is the
 * exit code of `ps`.
 */
const NOT_THERE = ["ENOENT", "ESRCH", "EPERM", "EACCES", "1"];

/** Whether a process with this ID is running on this machine, under any user. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOf(error) === "EPERM";
  }
}

/** Signals all processes of a group (POSIX). False if none is left. */
export function signalGroup(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-pid, signal);
  } catch (error) {
    // macOS reports EPERM for a group whose processes have all ended but not been reaped.
    if (["ESRCH", "EPERM"].includes(codeOf(error))) return false;
    throw error;
  }
}

/** Ends a process and its descendants on Windows, which has no process groups, with the system's own tool. */
export function endTree(pid: number): void {
  const tool = spawn("taskkill", ["/pid", String(pid), "/T", "/F"], { stdio: "ignore", windowsHide: true });
  tool.on("error", () => {
    try {
      process.kill(pid);
    } catch {
      // It has ended by itself. Nobody could catch the error here.
    }
  });
}

/**
 * The start time of a process in the system's format. Together with the process ID it identifies the process, even
 * after the ID is reused. Undefined if the process is not running, or the system does not report it (Windows). Rejects if
 * the look itself failed, such as for too many open files: that says nothing about the process.
 */
export async function startOf(pid: number): Promise<string | undefined> {
  if (process.platform === "win32") return undefined;
  return ifThere(process.platform === "linux" ? startOnLinux(pid) : startByPs(pid));
}

/** A process as described in a file. */
export interface DescribedProcess {
  readonly pid: number;
  /** See {@link startOf}. */
  readonly processStart?: string | undefined;
}

/**
 * Whether the process whose start was recorded is still running. False if the system does not report starts. Rejects like
 * {@link startOf}.
 */
export async function isSame(pid: number, start: string | undefined): Promise<boolean> {
  return start !== undefined && (await startOf(pid)) === start;
}

/** Like {@link isSame}, but on Windows, which does not report starts, whether any process has the ID. */
export async function isLiving({ pid, processStart }: DescribedProcess): Promise<boolean> {
  return process.platform === "win32" ? isAlive(pid) : isSame(pid, processStart);
}

/**
 * Whether the described process is running or may be: if its start could not be recorded, whether any process has the ID.
 * For decisions that harm if a living process counts as gone; nothing may be sent to it or signalled. Rejects like
 * {@link startOf}.
 */
export async function mayBeLiving({ pid, processStart }: DescribedProcess): Promise<boolean> {
  return processStart === undefined ? isAlive(pid) : isSame(pid, processStart);
}

/**
 * The variables that a process was started with; Linux only. Undefined if it is not running or belongs to another user.
 * Rejects if the look itself failed.
 */
export async function environmentOf(pid: number): Promise<string | undefined> {
  return ifThere(readFile(`/proc/${pid}/environ`, "utf8"));
}

/** The processes of a group, zombies included; Linux only. Rejects if looking for them failed. */
export async function membersOf(group: number): Promise<readonly number[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name)).map(Number);
  const groups = await Promise.all(pids.map(async (pid) => (await ifThere(statOf(pid)))?.[2]));
  return pids.filter((_, index) => groups[index] === String(group));
}

/** What the look at a process finds. Undefined if there is no process. */
async function ifThere<T>(look: Promise<T>): Promise<T | undefined> {
  try {
    return await look;
  } catch (error) {
    if (NOT_THERE.includes(codeOf(error))) return undefined;
    throw error;
  }
}

/** The fields of `/proc/PID/stat` from the third on: state, parent, group, … */
async function statOf(pid: number): Promise<readonly string[]> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8");
  // `pid (name) state …`, where the name may contain any characters.
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
}

async function startOnLinux(pid: number): Promise<string | undefined> {
  const [fields, boot] = await Promise.all([
    statOf(pid),
    readFile("/proc/sys/kernel/random/boot_id", "utf8"),
  ]);
  // A zombie has ended: other processes may already use its ports.
  if (fields[0] === "Z" || fields[0] === "X") return undefined;
  // Field 22 is the start in clock ticks since boot.
  return fields[19] && `${boot.trim()} ${fields[19]}`;
}

async function startByPs(pid: number): Promise<string | undefined> {
  // Makes the output independent of the caller's language and time zone.
  const env = { LC_ALL: "C", TZ: "UTC" };
  const { stdout } = await promisify(execFile)("/bin/ps", ["-o", "lstart=", "-p", String(pid)], { env });
  return stdout.trim() || undefined;
}

/** The resident memory of a process in bytes. Undefined if it is not running, or on systems other than Linux. */
export async function memoryOf(pid: number): Promise<number | undefined> {
  try {
    const [, kilobytes] = /^VmRSS:\s*(\d+) kB$/m.exec(await readFile(`/proc/${pid}/status`, "utf8")) ?? [];
    return kilobytes === undefined ? undefined : Number(kilobytes) * 1_024;
  } catch {
    return undefined;
  }
}
