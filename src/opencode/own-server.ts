import { realpath } from "node:fs/promises";
import { ConnectionError } from "../engine/connection.ts";
import type { ServerAccess } from "./access.ts";
import type { Attachment, AttachmentListener, Search } from "./attachment.ts";
import { unlessCancelled } from "./cancel.ts";
import { failures } from "./failures.ts";
import { Lease } from "./lease.ts";
import { accessOf, readServerState, serverFiles } from "./server-files.ts";
import type { ServerFiles } from "./server-files.ts";
import type { WatchdogProgram } from "./start-watchdog.ts";
import type { WatchdogMessage } from "./watchdog/lease-protocol.ts";

/** What loading the folder may take at least: a server's first start installs what its plugins need. */
const MIN_LOAD_TIMEOUT_MS = 90_000;
/** How much longer than a start of the server a watchdog may be silent. */
const WATCHDOG_MARGIN_MS = 15_000;
/** How long the end of a server may take; after 5 s its watchdog kills it. */
const STOP_TIMEOUT_MS = 10_000;
/** A watchdog can end just as it is joined; then the next one is joined, or started. */
const JOIN_ATTEMPTS = 3;

export interface OwnServerOptions {
  readonly directory: string;
  readonly stateFolder: string;
  readonly configuredPath: string;
  readonly startTimeoutMs: number;
  readonly graceMs: number;
  readonly home: string;
  readonly watchdog: WatchdogProgram;
  /** The environment of a server that is started now. */
  readonly serverEnv: () => Promise<WatchdogProgram["env"]>;
}

/** Joins the server that a watchdog keeps for the folder. Undefined: there is none. */
export async function adoptOwnServer(
  options: OwnServerOptions,
  search: Search,
): Promise<Attachment | undefined> {
  const files = await filesOf(options);
  const lease = await Lease.open(files.socket);
  return lease && join(lease, files, options, search);
}

/** Joins the folder's server, after starting it if there is none. Throws a `ConnectionError` if that fails. */
export async function startOwnServer(options: OwnServerOptions, search: Search): Promise<Attachment> {
  const files = await filesOf(options);
  for (let attempt = 1; attempt <= JOIN_ATTEMPTS; attempt++) {
    const lease = (await Lease.open(files.socket)) ?? (await startAnew(files, options, search));
    const attachment = await join(lease, files, options, search);
    if (attachment) return attachment;
  }
  throw new ConnectionError(failures.lost());
}

/** Ends the folder's server, if a watchdog keeps one; resolves when it is gone. */
export async function stopOwnServer(options: OwnServerOptions): Promise<void> {
  const lease = await Lease.open((await filesOf(options)).socket);
  if (!lease) return;
  lease.requestStop();
  await within(STOP_TIMEOUT_MS, lease.closed);
  lease.release();
}

/** Most windows join a server that runs: what starting one takes is loaded by those that do not. */
async function startAnew(files: ServerFiles, options: OwnServerOptions, search: Search): Promise<Lease> {
  const { startOwnServer } = await import("./start-own-server.ts");
  return startOwnServer(files, options, search);
}

async function filesOf({ stateFolder, directory }: OwnServerOptions): Promise<ServerFiles> {
  return serverFiles(stateFolder, await realpath(directory));
}

/** Waits until the watchdog's server is ready. Undefined: the watchdog was about to end. */
async function join(
  lease: Lease,
  files: ServerFiles,
  { startTimeoutMs }: OwnServerOptions,
  { signal }: Search,
): Promise<Attachment | undefined> {
  const server = new OwnServer(lease, files, startTimeoutMs);
  try {
    await server.vouched(signal);
    return server;
  } catch (error) {
    server.leave();
    signal.throwIfAborted();
    if (error instanceof Ended) return undefined;
    throw error;
  }
}

/** The watchdog was told to end, or is gone. */
class Ended extends ConnectionError {
  constructor() {
    super(failures.lost());
  }
}

/** A server that a watchdog owns, held by a lease. */
class OwnServer implements Attachment {
  readonly own = true;
  readonly loadTimeoutMs: number;
  private listener: AttachmentListener | undefined;
  /** The watchdog's last word since it was asked. */
  private word: WatchdogMessage | undefined;
  private isStarting = false;
  private onWord: ((word: WatchdogMessage) => void) | undefined;

  constructor(
    private readonly lease: Lease,
    private readonly files: ServerFiles,
    private readonly startTimeoutMs: number,
  ) {
    this.loadTimeoutMs = Math.max(startTimeoutMs, MIN_LOAD_TIMEOUT_MS);
    void lease.closed.then(() => this.note({ type: "stopping" }));
    lease.listen((message) => {
      this.note(message);
      this.pass(message);
    });
  }

  watch(listener: AttachmentListener): void {
    this.listener = listener;
    void this.lease.closed.then(() => this.listener?.onLost());
  }

  leave(): void {
    this.listener = undefined;
    this.lease.release();
  }

  finish(): void {
    this.listener = undefined;
    this.lease.finish();
  }

  /** The watchdog alone knows whether the server is still the one that it started, so it is asked each time. */
  async vouched(signal: AbortSignal): Promise<ServerAccess> {
    this.word = undefined;
    this.lease.ask();
    for (;;) {
      const word: WatchdogMessage = this.word ?? (await this.nextWord(signal));
      if (word.type === "stopping") throw new Ended();
      if (word.type === "failed") throw new ConnectionError(word.failure);
      if (word.type === "ready") {
        const state = await readServerState(this.files.state);
        signal.throwIfAborted();
        // Another program may listen on the pipe; the name of the run is in a file of this user's.
        if (this.isLast(word) && state?.run === word.run) return accessOf(state);
      }
      if (this.isLast(word)) this.word = undefined;
    }
  }

  private isLast(word: WatchdogMessage): boolean {
    return this.word === word;
  }

  private note(word: WatchdogMessage): void {
    this.word = word;
    this.onWord?.(word);
  }

  /** A server that crashes again and again is started each time, and each time its watchdog says so. */
  private async nextWord(signal: AbortSignal): Promise<WatchdogMessage> {
    const word = new Promise<WatchdogMessage>((resolve) => (this.onWord = resolve));
    const heard = await within(this.startTimeoutMs + WATCHDOG_MARGIN_MS, unlessCancelled(word, signal));
    if (!heard) throw new ConnectionError(failures.startTimeout(this.startTimeoutMs));
    return heard;
  }

  private pass(message: WatchdogMessage): void {
    // Whoever asks while it is being started waits for that, and is not to hear of a crash once more.
    const isNews = message.type !== "starting" || !this.isStarting;
    this.isStarting = message.type === "starting";
    switch (message.type) {
      case "starting":
        return isNews ? this.listener?.onCrashed() : undefined;
      case "ready":
        return this.listener?.onRestarted();
      case "failed":
        return this.listener?.onFailed(message.failure);
      case "stopping":
        return this.listener?.onStopped();
    }
  }
}

/** Undefined: it took longer. */
async function within<T>(ms: number, promise: Promise<T>): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => (timer = setTimeout(() => resolve(undefined), ms)));
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
