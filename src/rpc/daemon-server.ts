import { randomBytes } from "node:crypto";
import { createServer } from "node:net";
import type { Server, Socket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { messageOf } from "../engine/errors.ts";
import { Emitter, type Disposable, type Event, logged } from "../engine/event.ts";
import type { Clock, Logger } from "../engine/ports.ts";
import { ensurePrivateFolder } from "../state/private-files.ts";
import { startOf } from "../state/processes.ts";
import { StartLock } from "../state/start-lock.ts";
import { PROTOCOL_VERSION } from "./contract.ts";
import { listenExclusively, removeEntry, socketFor, writeEntry } from "./daemon-entry.ts";
import { connectTo, DaemonFiles, type DaemonEntry } from "./daemon-files.ts";
import type { FolderHost } from "./folder-host.ts";
import { ServedWindow } from "./served-window.ts";

/** The maximum of connections that have not proven the token, beyond which the oldest is closed. */
const MAX_STRANGERS = 32;
const GREETING_TIMEOUT_MS = 5_000;
const LOCK_RETRY_MS = 20;

export interface DaemonServerOptions {
  /** A folder that only this user can access. */
  readonly stateFolder: string;
  readonly host: FolderHost;
  /** The version of the extension. */
  readonly version: string;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The socket on which the daemon serves windows. */
export class DaemonServer implements Disposable {
  private readonly server: Server;
  /** Connections that have not proven the token, the oldest first. */
  private readonly strangers = new Set<ServedWindow>();
  private readonly admitted = new Set<ServedWindow>();
  private readonly windowChanges: Emitter<number>;
  /** Fires with the number of connected windows. */
  readonly onDidChangeWindows: Event<number>;

  private constructor(
    private readonly options: DaemonServerOptions,
    private readonly files: DaemonFiles,
    private readonly entry: DaemonEntry,
  ) {
    const { logger } = options;
    this.windowChanges = new Emitter(logged(logger, "windows"));
    this.onDidChangeWindows = this.windowChanges.event;
    this.server = createServer((socket) => this.meet(socket));
  }

  /** Undefined if another daemon already serves this user. */
  static async open(options: DaemonServerOptions): Promise<DaemonServer | undefined> {
    const files = new DaemonFiles(options.stateFolder);
    await ensurePrivateFolder(files.folder);
    for (;;) {
      // Held while a daemon checks that it is the only one, and publishes its entry.
      const lock = await StartLock.tryAcquire(`${files.entry}.lock`);
      try {
        if (await isServed(files)) return undefined;
        if (lock) return await DaemonServer.listen(options, files);
      } finally {
        await lock?.release();
      }
      await pause(LOCK_RETRY_MS);
    }
  }

  private static async listen(
    options: DaemonServerOptions,
    files: DaemonFiles,
  ): Promise<DaemonServer | undefined> {
    const entry: DaemonEntry = {
      socket: await socketFor(files),
      token: randomBytes(32).toString("base64url"),
      pid: process.pid,
      // Better a daemon whose start is unknown than none.
      processStart: await startOf(process.pid).catch(() => undefined),
      protocol: PROTOCOL_VERSION,
      version: options.version,
    };
    const daemon = new DaemonServer(options, files, entry);
    if (!(await listenExclusively(daemon.server, entry.socket))) return undefined;
    daemon.server.on("error", (error) => options.logger.error("The daemon's socket failed.", error));
    try {
      await writeEntry(files, entry);
    } catch (error) {
      daemon.dispose();
      throw error;
    }
    return daemon;
  }

  /** The number of connected windows. */
  get windows(): number {
    return this.admitted.size;
  }

  /**
   * Closes the connections to all windows.
   * @param keepsEntry whether the entry stays, by which the next window knows that there is something to come back to
   */
  dispose(keepsEntry = false): void {
    try {
      if (!keepsEntry) removeEntry(this.files, this.entry);
    } catch (error) {
      // Windows skip an entry if nothing answers at its socket.
      this.options.logger.warn(`Couldn't remove the background process's entry: ${messageOf(error)}`);
    }
    this.server.close();
    for (const window of [...this.strangers, ...this.admitted]) window.close();
    this.windowChanges.dispose();
  }

  private meet(socket: Socket): void {
    const { host, version, clock, logger } = this.options;
    const { token } = this.entry;
    const window = new ServedWindow(socket, { host, version, token, logger }, () => {
      deadline.dispose();
      this.strangers.delete(window);
      this.admitted.add(window);
      this.windowChanges.fire(this.windows);
    });
    const deadline = clock.after(GREETING_TIMEOUT_MS, () => window.close());
    this.strangers.add(window);
    const [oldest] = this.strangers;
    if (this.strangers.size > MAX_STRANGERS) oldest?.close();
    void window.closed.then(() => {
      deadline.dispose();
      this.strangers.delete(window);
      if (this.admitted.delete(window)) this.windowChanges.fire(this.windows);
    });
  }
}

/** Whether a daemon responds at the socket in the entry, which may be another than that of a new daemon. */
async function isServed(files: DaemonFiles): Promise<boolean> {
  const entry = await files.read();
  const socket = entry && (await connectTo(entry.socket));
  socket?.destroy();
  return socket !== undefined;
}
