import { realpath } from "node:fs/promises";
import { type DaemonEntry, DaemonFiles } from "../rpc/daemon-files.ts";
import { mayBeLiving, signalGroup } from "../state/processes.ts";
import { reopenFolder } from "./reopen-folder.ts";

/** How often to check for a daemon, in milliseconds. */
const LOOK_MS = 5_000;
/** How long to wait for the server to exit by itself. */
const END_WITHIN_MS = 5_000;
/** The folders of this process. OpenCode loads the plugin once per folder, but they share one server. */
const GUARDED = Symbol.for("asyncagents.guarded");

/**
 * Ensures that this server, which a daemon started, always has a daemon. If the daemon is replaced, the new one is told
 * to reopen the folders, since tasks may be running there without a window. If there is no daemon, one is started. If
 * that fails, the server and its child processes end after `graceMs`, as nobody else would end them. Resolves after the
 * first look.
 */
export async function guardServer(stateFolder: string, graceMs: number, directory: string): Promise<void> {
  const process_ = process as { [GUARDED]?: Set<string> };
  if (process_[GUARDED]) return void process_[GUARDED].add(directory);
  const folders = (process_[GUARDED] = new Set([directory]));
  const files = new DaemonFiles(stateFolder);
  const everyMs = Math.min(LOOK_MS, graceMs);
  /** The token of the daemon that knows the folders. */
  let token: string | undefined;
  // Counted in timer ticks, which pause while the machine sleeps.
  let aloneMs = 0;

  /** The daemon that was running at the last look. Its file may be deleted or replaced while it runs. */
  let seen: DaemonEntry | undefined;
  /** The token of the running daemon. Undefined if there is none. */
  const living = async (): Promise<string | undefined> => {
    for (const entry of [await files.read(), seen]) {
      if (!entry || !(await mayBeLiving(entry))) continue;
      seen = entry;
      return entry.token;
    }
    // Another process may get its number.
    return (seen = undefined);
  };
  const reopen = async (): Promise<void> => {
    let haveAll = true;
    // The daemon knows this server's password, and would take it for the user's if the folder's settings name another one.
    const environment = {
      ...process.env,
      OPENCODE_SERVER_USERNAME: undefined,
      OPENCODE_SERVER_PASSWORD: undefined,
    };
    for (const folder of folders) {
      const path = await realpath(folder).catch((error: unknown) => {
        const isGone = /^(ENOENT|ENOTDIR)$/.test((error as NodeJS.ErrnoException).code ?? "");
        // A worktree of a task may have been removed.
        if (isGone) folders.delete(folder);
        // Any other reason may pass, such as too many open files.
        else haveAll = false;
      });
      if (path !== undefined) {
        const wasAsked = await reopenFolder(stateFolder, path, { onlyIfUsed: true, environment }).catch(
          () => false,
        );
        haveAll &&= wasAsked;
      }
    }
    // Otherwise, the next look tries it again.
    if (haveAll) token = await living();
  };
  let isFirst = true;
  const look = async (): Promise<void> => {
    const present = await living();
    if (isFirst) token = present;
    isFirst = false;
    if (present === undefined || present !== token) await reopen().catch(() => undefined);
    aloneMs = (await living()) === undefined ? aloneMs + everyMs : 0;
  };
  const keepLooking = async (): Promise<void> => {
    // If it is unknown whether a daemon is running, the server stays.
    await look().catch(() => (aloneMs = 0));
    if (aloneMs > graceMs) end();
    else setTimeout(() => void keepLooking(), everyMs).unref();
  };
  await keepLooking();
}

function end(): void {
  if (process.platform === "win32") process.exit();
  signalGroup(process.pid, "SIGTERM");
  setTimeout(() => signalGroup(process.pid, "SIGKILL"), END_WITHIN_MS).unref();
}
