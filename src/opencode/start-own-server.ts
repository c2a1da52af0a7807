import { realpath } from "node:fs/promises";
import { dirname } from "node:path";
import { ConnectionError } from "../engine/connection.ts";
import { ensurePrivateFolder } from "../state/private-files.ts";
import type { Search } from "./attachment.ts";
import { sentence } from "../engine/sentence.ts";
import { failures } from "./failures.ts";
import { endOrphan } from "./end-orphan.ts";
import { findOpenCode } from "./find-opencode.ts";
import { Lease } from "./lease.ts";
import type { OwnServerOptions } from "./own-server.ts";
import type { ServerFiles } from "./server-files.ts";
import { StartLock } from "../state/start-lock.ts";
import { startWatchdog } from "./start-watchdog.ts";

const LOCK_PAUSE_MS = 50;

/** Starts the folder's server under a watchdog, or joins the one that another window has started meanwhile. */
export async function startOwnServer(
  files: ServerFiles,
  options: OwnServerOptions,
  search: Search,
): Promise<Lease> {
  const { watchdog, configuredPath, home, startTimeoutMs, graceMs } = options;
  search.onProgress(sentence("Looking for OpenCode…"));
  const executable = await findOpenCode({ configuredPath, env: watchdog.env, home });
  search.onProgress(sentence("Starting OpenCode…"));
  await ensurePrivateFolder(dirname(files.state));
  const lockOrLease = await acquireLock(files, search.signal);
  if (lockOrLease instanceof Lease) return lockOrLease;
  try {
    const directory = await realpath(options.directory);
    await endOrphan(files.state);
    search.signal.throwIfAborted();
    const config = { directory, executable, files, startTimeoutMs, graceMs };
    await startWatchdog({ ...watchdog, env: await options.serverEnv() }, config);
    const lease = await Lease.open(files.socket);
    if (!lease) throw new ConnectionError(failures.startFailed(sentence("its watchdog process ended")));
    return lease;
  } finally {
    await lockOrLease.release();
  }
}

/** The lock, or a lease if meanwhile another window has started the watchdog. */
async function acquireLock(files: ServerFiles, signal: AbortSignal): Promise<StartLock | Lease> {
  for (;;) {
    signal.throwIfAborted();
    const lock = await StartLock.tryAcquire(files.lock);
    const lease = await Lease.open(files.socket);
    if (lease) {
      await lock?.release();
      return lease;
    }
    if (lock) return lock;
    await new Promise((resolve) => setTimeout(resolve, LOCK_PAUSE_MS));
  }
}
