import { realpath } from "node:fs/promises";
import { DaemonFiles } from "../rpc/daemon-files.ts";
import { isLiving, signalGroup } from "../state/processes.ts";
import { reopenFolder } from "./reopen-folder.ts";

/** How often the daemon is looked for, in milliseconds. */
const LOOK_MS = 5_000;
/** How long the server may take to end by itself. */
const END_WITHIN_MS = 5_000;
/** The folders of this process: OpenCode loads the plugin for each, and the server is one. */
const GUARDED = Symbol.for("asyncagents.guarded");

/**
 * Keeps this server, which a daemon started, under a daemon. One that takes another's place is told of the folders, as
 * work may go on in them that no window shows; where none does, one is started. Where none can be, the server and what it
 * started end after `graceMs`, as nobody is left who would end them.
 */
export function guardServer(stateFolder: string, graceMs: number, directory: string): void {
  const process_ = process as { [GUARDED]?: Set<string> };
  if (process_[GUARDED]) return void process_[GUARDED].add(directory);
  const folders = (process_[GUARDED] = new Set([directory]));
  const files = new DaemonFiles(stateFolder);
  const everyMs = Math.min(LOOK_MS, graceMs);
  /** Of the daemon that knows of the folders. */
  let token: string | undefined;
  // Counted by timers, which do not go on while the machine sleeps.
  let aloneMs = 0;

  /** Undefined: no daemon runs. */
  const living = async (): Promise<string | undefined> => {
    const entry = await files.read();
    return entry && (await isLiving(entry)) ? entry.token : undefined;
  };
  const reopen = async (): Promise<void> => {
    for (const folder of folders)
      await reopenFolder(stateFolder, await realpath(folder), { whatWasUsed: true });
    token = await living();
  };
  const look = async (): Promise<void> => {
    const present = await living();
    token ??= present;
    if (present === undefined || present !== token) await reopen().catch(() => undefined);
    aloneMs = (await living()) === undefined ? aloneMs + everyMs : 0;
  };
  const keepLooking = async (): Promise<void> => {
    // Where nobody can say whether there is one, the server stays.
    await look().catch(() => (aloneMs = 0));
    if (aloneMs > graceMs) end();
    else setTimeout(() => void keepLooking(), everyMs).unref();
  };
  void keepLooking();
}

function end(): void {
  if (process.platform === "win32") process.exit();
  signalGroup(process.pid, "SIGTERM");
  setTimeout(() => signalGroup(process.pid, "SIGKILL"), END_WITHIN_MS).unref();
}
