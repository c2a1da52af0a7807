import { spawnSync } from "node:child_process";
import { readdirSync, writeFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import type { DaemonDesk } from "../support/daemon.ts";
import { fill, freeze } from "../support/small-disk.ts";
import { takePort, type Stranger } from "../support/stranger.ts";
import { deskProcesses, signalAll, type DeskProcess } from "./desk-processes.ts";
import type { Blow, Victim } from "./plan.ts";
import type { UnrulyProxy } from "./unruly-proxy.ts";
import type { WindowProcess } from "./window-process.ts";

/** What blows fall on. */
export interface Field {
  readonly desk: DaemonDesk;
  readonly home: string;
  /** The file that sets the daemon's clock. */
  readonly clock: string;
  readonly proxy: UnrulyProxy | undefined;
  windows: readonly WindowProcess[];
  openWindow(): WindowProcess;
  /** Times at which a server was killed, in milliseconds since 1970. */
  readonly serverDeaths: number[];
  readonly strangers: Stranger[];
  kills: number;
}

/** Carries out one blow. Resolves when it is over. */
export async function strike(blow: Blow, field: Field): Promise<void> {
  switch (blow.kind) {
    case "kill":
      return kill(blow, field);
    case "stop":
      return stop(blow.victims, blow.forMs, field);
    case "disk":
      return obstruct(blow, field);
    case "descriptors":
      return takeDescriptors(blow.forMs, field);
    case "clock":
      return writeFileSync(field.clock, String(blow.byMs));
    case "network":
      return field.proxy?.misbehave(blow.how, blow.forMs);
  }
}

async function kill(
  { victims, reopenAfter, portTaken }: Extract<Blow, { kind: "kill" }>,
  field: Field,
): Promise<void> {
  const processes = processesOf(victims, field);
  const hitsServer = processes.some(({ kind }) => kind === "server");
  const url = hitsServer && portTaken ? field.desk.server()?.url : undefined;
  if (hitsServer) field.serverDeaths.push(Date.now());
  signalAll(processes, "SIGKILL");
  field.kills += processes.length;
  if (url !== undefined && !field.strangers.some((stranger) => stranger.url === url))
    field.strangers.push(await takePort(Number(new URL(url).port)));
  if (!victims.includes("window")) return;
  const [window, ...others] = field.windows;
  field.kills++;
  await window?.kill();
  await delay(reopenAfter);
  field.windows = [field.openWindow(), ...others];
}

async function stop(victims: readonly Victim[], forMs: number, field: Field): Promise<void> {
  const processes = processesOf(victims, field);
  const [window] = field.windows;
  signalAll(processes, "SIGSTOP");
  if (victims.includes("window")) window?.signal("SIGSTOP");
  await delay(forMs);
  signalAll(processes, "SIGCONT");
  if (victims.includes("window")) window?.signal("SIGCONT");
}

/** The state folder, in which the daemon keeps its files, takes nothing for a while. */
async function obstruct(
  { how, forMs }: Extract<Blow, { kind: "disk" }>,
  { desk: { stateFolder } }: Field,
): Promise<void> {
  const clear = how === "full" ? fill(stateFolder) : freeze(stateFolder);
  await delay(forMs);
  clear?.();
}

async function takeDescriptors(forMs: number, field: Field): Promise<void> {
  const limited = processesOf(["daemon"], field).map(({ pid }) => ({ pid, limit: openFiles(pid) }));
  const limit = (pid: number, to: number): void =>
    void spawnSync("prlimit", ["--pid", String(pid), `--nofile=${to}:`]);
  for (const { pid, limit: used } of limited) limit(pid, used);
  await delay(forMs);
  for (const { pid } of limited) limit(pid, 1_024);
}

function openFiles(pid: number): number {
  try {
    return readdirSync(`/proc/${pid}/fd`).length;
  } catch {
    // It has just ended.
    return 0;
  }
}

function processesOf(victims: readonly Victim[], { home }: Field): readonly DeskProcess[] {
  return deskProcesses(home).filter(({ kind }) => victims.includes(kind as Victim));
}
