import { realpath } from "node:fs/promises";
import { ConnectionError } from "../engine/connection.ts";
import type { ConnectionFailure } from "../engine/connection.ts";
import type { ServerAccess } from "./access.ts";
import type { Attachment, AttachmentListener, Search } from "./attachment.ts";
import { failures } from "./failures.ts";
import { awaitHealth, healthFailure } from "./health.ts";
import { Lease } from "./lease.ts";
import { accessOf, readServerState, serverFiles } from "./server-files.ts";
import type { ServerFiles, ServerState } from "./server-files.ts";
import type { WatchdogProgram } from "./start-watchdog.ts";
import type { WatchdogMessage } from "./watchdog/lease-protocol.ts";

const HEALTH_TIMEOUT_MS = 5_000;
/** What loading the folder may take at least: a server's first start installs what its plugins need. */
const MIN_LOAD_TIMEOUT_MS = 90_000;
/** How much longer than the server a watchdog may take to say how the start went. */
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
  const server = new OwnServer(lease, files, Math.max(startTimeoutMs, MIN_LOAD_TIMEOUT_MS));
  const give = () => server.leave();
  if (signal.aborted) give();
  signal.addEventListener("abort", give, { once: true });
  try {
    const outcome = await within(startTimeoutMs + WATCHDOG_MARGIN_MS, server.settled);
    signal.throwIfAborted();
    if (outcome === "ready" && (await server.refresh())) return server;
    if (typeof outcome === "object") throw new ConnectionError(outcome);
    if (outcome === undefined) throw new ConnectionError(failures.startTimeout(startTimeoutMs));
    server.leave();
    return undefined;
  } catch (error) {
    server.leave();
    throw error;
  } finally {
    signal.removeEventListener("abort", give);
  }
}

/** A server that a watchdog owns, held by a lease. */
class OwnServer implements Attachment {
  readonly own = true;
  /** What became of the start that this lease joined. */
  readonly settled: Promise<"ready" | "ended" | ConnectionFailure>;
  private settle!: (outcome: "ready" | "ended" | ConnectionFailure) => void;
  private state: ServerState | undefined;
  private listener: AttachmentListener | undefined;

  constructor(
    private readonly lease: Lease,
    private readonly files: ServerFiles,
    readonly loadTimeoutMs: number,
  ) {
    this.settled = new Promise((resolve) => (this.settle = resolve));
    void lease.closed.then(() => this.settle("ended"));
    lease.listen((message) => this.hear(message));
  }

  get access(): ServerAccess {
    if (!this.state) throw new Error("The server is not ready.");
    return accessOf(this.state);
  }

  watch(listener: AttachmentListener): void {
    this.listener = listener;
    void this.lease.closed.then(() => this.listener?.onLost());
  }

  leave(): void {
    this.listener = undefined;
    this.lease.release();
  }

  /** Reads anew where the server is. False: it is gone, or on the move. Throws a `ConnectionError` if it is too old. */
  async refresh(): Promise<boolean> {
    const state = await readServerState(this.files.state);
    if (!state) return false;
    const health = await awaitHealth(accessOf(state), HEALTH_TIMEOUT_MS);
    if (health.kind !== "healthy") return false;
    const failure = healthFailure(health, state.url);
    if (failure) throw new ConnectionError(failure);
    this.state = state;
    return true;
  }

  private hear(message: WatchdogMessage): void {
    switch (message.type) {
      case "starting":
        return;
      case "ready":
        return this.settle("ready");
      case "restarted":
        void this.follow();
        return;
      case "failed":
        this.settle(message.failure);
        return this.listener?.onFailed(message.failure);
      case "stopping":
        this.settle("ended");
        return this.listener?.onStopped();
    }
  }

  private async follow(): Promise<void> {
    try {
      if (await this.refresh()) this.listener?.onRestarted();
    } catch (error) {
      this.listener?.onFailed(error instanceof ConnectionError ? error.failure : failures.lost());
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
