import { randomBytes } from "node:crypto";
import { Refusal } from "../engine/errors.ts";
import type { Clock } from "../engine/ports.ts";
import { sentence } from "../engine/sentence.ts";
import { codeOf } from "../state/json-files.ts";
import { isAlive, isSame } from "../state/processes.ts";
import { ensurePrivateFolder } from "../state/private-files.ts";
import { StartLock } from "../state/start-lock.ts";
import { PROTOCOL_VERSION, type Welcome } from "./contract.ts";
import { notStarted, outdated, Silence } from "./daemon-failures.ts";
import { connectTo, DaemonFiles, type DaemonEntry } from "./daemon-files.ts";
import { DaemonLink } from "./daemon-link.ts";
import { OtherProtocol } from "./failures.ts";
import { isProof, proofOf } from "./proof.ts";
import { startDaemon, type DaemonProgram } from "./start-daemon.ts";
import type { Hear } from "./wire.ts";
import { WireClosed } from "./wire-closed.ts";

/** How long the daemon may take to answer a greeting or a hand-over. */
const ANSWER_WITHIN_MS = 10_000;
/** How long starting the daemon may take, including by another window. */
const START_WITHIN_MS = 30_000;
const RETRY_MS = 50;
/** A daemon that ends before it is greeted is started again, but not without end. */
const MAX_STARTS = 2;
const END_WITHIN_MS = 5_000;

export interface DaemonPlace extends DaemonProgram {
  /** A folder that only this user can access. */
  readonly stateFolder: string;
  /** The version of the extension. */
  readonly version: string;
  readonly clock: Clock;
}

export interface LinkListener {
  readonly hear: Hear;
  readonly onAnswer: (isSilent: boolean) => void;
}

/** A daemon that responded: a usable one, or one of an older version. */
interface Found {
  readonly kind: "current" | "older";
  readonly link: DaemonLink;
}

/**
 * Connects to this user's daemon. Starts it if none is running, and replaces it if its version is older. Rejects with a
 * `ConnectionError` or `Silence`.
 */
export async function reachDaemon(place: DaemonPlace, listener: LinkListener): Promise<DaemonLink> {
  const { stateFolder, version, clock } = place;
  const files = new DaemonFiles(stateFolder);
  // Counted in timer ticks, which do not depend on the system clock.
  let waitedMs = 0;
  /** Ensures that only one process starts a daemon at a time. */
  let lock: StartLock | undefined;
  let starts = 0;
  try {
    for (;;) {
      const found = await find(files, place, listener);
      if (found?.kind === "current") return found.link;
      if (lock && (starts === 0 || (!found && starts < MAX_STARTS))) {
        if (found) await handOver(found.link, clock);
        // If another process has started a daemon first, that one already listens when this call returns.
        await startDaemon(place, { stateFolder, version }, files, clock);
        starts++;
        continue;
      }
      found?.link.close();
      if (!lock) {
        await ensurePrivateFolder(files.folder);
        lock = await StartLock.tryAcquire(files.lock);
        // Check again: another window may have started a daemon in the meantime.
        if (lock) continue;
      }
      if (waitedMs > START_WITHIN_MS) throw notStarted(sentence("it didn't respond"));
      await pause(clock, RETRY_MS);
      waitedMs += RETRY_MS;
    }
  } finally {
    await lock?.release();
  }
}

/** Undefined if no daemon is running. */
async function find(
  files: DaemonFiles,
  place: DaemonPlace,
  listener: LinkListener,
): Promise<Found | undefined> {
  const entry = await files.read();
  return entry && greet(entry, place, listener);
}

async function greet(
  entry: DaemonEntry,
  { version, clock }: DaemonPlace,
  { hear, onAnswer }: LinkListener,
): Promise<Found | undefined> {
  const socket = await connectTo(entry.socket).catch((error: unknown) => {
    // Too many connections are waiting to be accepted.
    throw codeOf(error) === "EAGAIN" ? new Silence() : error;
  });
  if (!socket) return undefined;
  const link = new DaemonLink(socket, hear);
  const nonce = randomBytes(16).toString("base64url");
  const proof = proofOf(entry.token, "window", nonce);
  // Whoever listens there may answer nothing.
  let welcome: Welcome | undefined;
  try {
    const hello = { nonce, proof, protocol: PROTOCOL_VERSION, version, pid: process.pid };
    welcome = await inTime(link.request("hello", [hello]), clock);
  } catch (error) {
    if (error instanceof OtherProtocol && error.older === "daemon") return { kind: "older", link };
    link.close();
    if (error instanceof OtherProtocol) throw outdated();
    // The daemon is ending, or it has just started and the entry still belongs to another one.
    if (error instanceof WireClosed || error instanceof Refusal) return undefined;
    throw error;
  }
  if (!welcome || !isProof(welcome.proof, entry.token, "daemon", nonce)) {
    link.close();
    return undefined;
  }
  if (isOlder(welcome.version, version)) return { kind: "older", link };
  link.follow(welcome.pid, clock, onAnswer);
  return { kind: "current", link };
}

/** Resolves when the daemon has ended. Its servers keep running. */
async function handOver(link: DaemonLink, clock: Clock): Promise<void> {
  try {
    await inTime(link.request("handOver", []), clock);
  } catch (error) {
    if (!(error instanceof WireClosed)) {
      link.close();
      throw error;
    }
  }
  await inTime(link.closed, clock);
}

/**
 * Kills the daemon's process, after verifying that it is the daemon.
 * @param linkedPid the process ID of a daemon to which there is an open connection
 */
export async function endDaemon(
  { stateFolder, clock }: Pick<DaemonPlace, "stateFolder" | "clock">,
  linkedPid: number | undefined,
): Promise<void> {
  const entry = await new DaemonFiles(stateFolder).read();
  if (!entry) return;
  const { pid, processStart } = entry;
  const isDaemon = (): Promise<boolean> => isSame(pid, processStart);
  if (pid !== linkedPid && !(await isDaemon())) {
    if (processStart !== undefined || !isAlive(pid)) return;
    throw new Refusal(
      "unavailable",
      sentence("Can't tell whether process {0} is the background process. Stop it yourself.", String(pid)),
    );
  }
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if (codeOf(error) !== "ESRCH") throw error;
  }
  // A look that fails doesn't tell that it has ended.
  const isThere = (): Promise<boolean> => isDaemon().catch(() => true);
  for (let waitedMs = 0; waitedMs < END_WITHIN_MS && (await isThere()); waitedMs += RETRY_MS)
    await pause(clock, RETRY_MS);
}

function inTime<T>(promise: Promise<T>, clock: Clock): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = clock.after(ANSWER_WITHIN_MS, () => reject(new Silence()));
    promise.then(resolve, reject).finally(() => timer.dispose());
  });
}

function pause(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => void clock.after(ms, resolve));
}

/** Compares the parts as numbers: 1.10.0 is newer than 1.9.0. */
export function isOlder(version: string, than: string): boolean {
  const [a, b] = [version, than].map((text) =>
    text.split(/[.-]/).map((part) => Number.parseInt(part, 10) || 0),
  );
  for (let at = 0; at < Math.max(a?.length ?? 0, b?.length ?? 0); at++) {
    const difference = (a?.[at] ?? 0) - (b?.[at] ?? 0);
    if (difference !== 0) return difference < 0;
  }
  return false;
}
