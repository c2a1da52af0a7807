import type { ConnectionFailure } from "../engine/connection.ts";
import { Emitter, type Disposable, type Event } from "../engine/event.ts";
import { ServerFailure, type Logger } from "../engine/ports.ts";
import { sentence, type Text } from "../engine/sentence.ts";
import type { DaemonNotifications, DaemonStatus, FolderClient, OpenFolder } from "./contract.ts";
import { notReached, Silence } from "./daemon-failures.ts";
import { DaemonFiles } from "./daemon-files.ts";
import type { DaemonLink } from "./daemon-link.ts";
import { endDaemon, reachDaemon, type DaemonPlace } from "./reach-daemon.ts";
import { RemoteFolder, type DaemonAccess, type RemoteTranscript } from "./remote-folder.ts";

/** Before the second retry; each later one waits for twice as long. */
const RETRY_MS = 100;
const LAST_RETRY_MS = 5_000;
/** A connection that held so long was a good one: the next retry comes at once. */
const STABLE_MS = 5_000;

export type DaemonState =
  /** Or not asked for yet. */
  | { readonly kind: "connecting" }
  | { readonly kind: "connected" }
  /** It runs and has not answered for ten seconds. */
  | { readonly kind: "silent" }
  | { readonly kind: "failed"; readonly failure: ConnectionFailure };

/** A notification of the daemon. */
type Notification = {
  [M in keyof DaemonNotifications]: {
    readonly method: M;
    readonly params: Parameters<DaemonNotifications[M]>[0];
  };
}[keyof DaemonNotifications];

export interface DaemonClientOptions extends DaemonPlace {
  readonly logger: Logger;
}

/**
 * The way of a window to the daemon: finds it or starts it with the first folder that is opened, and finds it again
 * whenever it is lost.
 */
export class DaemonClient implements Disposable {
  private current: DaemonState = { kind: "connecting" };
  private readonly states: Emitter<DaemonState>;
  readonly onDidChangeState: Event<DaemonState>;
  private readonly folders = new Map<string, RemoteFolder>();
  private readonly transcripts = new Map<number, RemoteTranscript>();
  private readonly access: DaemonAccess;
  /** The work of finding the daemon again and again. */
  private running: Promise<void> | undefined;
  private link: DaemonLink | undefined;
  private next = new Awaited<DaemonLink>();
  /** Ends the present pause between two attempts. */
  private wake: (() => void) | undefined;
  /** How many connections were lost, or not made, one soon after the other. */
  private attempt = 0;
  private isDisposed = false;

  constructor(private readonly options: DaemonClientOptions) {
    const { logger } = options;
    this.states = new Emitter((error) => logger.error("A listener to the daemon's state failed.", error));
    this.onDidChangeState = this.states.event;
    this.access = { link: () => this.connected(), transcripts: this.transcripts, logger };
  }

  get state(): DaemonState {
    return this.current;
  }

  /** Of a folder there is one at a time. */
  open(folder: OpenFolder): FolderClient {
    const { directory } = folder;
    this.folders.get(directory)?.dispose();
    const remote = new RemoteFolder(folder, this.access, () => {
      if (this.folders.get(directory) === remote) this.folders.delete(directory);
    });
    this.folders.set(directory, remote);
    if (this.link?.isOpen) remote.attach(this.link);
    else this.run();
    return remote;
  }

  /** Whether a daemon was started and has not ended in good order. */
  async isStarted(): Promise<boolean> {
    return (await new DaemonFiles(this.options.stateFolder).read()) !== undefined;
  }

  async status(): Promise<DaemonStatus> {
    const link = await this.connected();
    return link.request("status", []);
  }

  /** Where the daemon logs, whether a window is connected or not. */
  async logFile(): Promise<string> {
    return new DaemonFiles(this.options.stateFolder).log;
  }

  /** Cancels the tasks of these folders; those that no window has open are left then, and their servers end. */
  async stop(directories: readonly string[]): Promise<void> {
    const link = await this.connected();
    return link.request("stop", [{ directories }]);
  }

  /** Ends the daemon's process, which may hang, and starts a new one. Servers and their work go on meanwhile. */
  async restart(): Promise<void> {
    await endDaemon(this.options, this.link?.isOpen ? this.link.pid : undefined);
    this.link?.close();
    await this.connected();
  }

  /** Leaves the daemon; its work goes on. */
  dispose(): void {
    this.isDisposed = true;
    for (const folder of [...this.folders.values()]) folder.dispose();
    this.link?.close();
    this.next.reject(left());
    this.wake?.();
    this.states.dispose();
  }

  private connected(): Promise<DaemonLink> {
    if (this.isDisposed) return Promise.reject(left());
    // Told by a call before `run` could see it.
    if (this.link && !this.link.isOpen) this.lose(this.link);
    if (this.current.kind === "failed" && this.wake) this.tryAgain(this.wake);
    this.run();
    return this.next.promise;
  }

  private tryAgain(now: () => void): void {
    this.setState({ kind: "connecting" });
    const detail = sentence("Starting the background process…");
    for (const folder of this.folders.values()) folder.setState({ kind: "connecting", detail });
    now();
  }

  private run(): void {
    this.running ??= this.keepConnected();
  }

  private async keepConnected(): Promise<void> {
    const { clock, logger } = this.options;
    while (!this.isDisposed) {
      let link: DaemonLink;
      try {
        link = await this.reach();
      } catch (error) {
        if (this.isDisposed) return;
        this.reachFailed(error);
        await this.pauseBeforeRetry();
        continue;
      }
      if (this.isDisposed) return link.close();
      const since = clock.now();
      this.connect(link);
      await link.closed;
      if (this.isDisposed) return;
      logger.info("Lost the connection to the background process.");
      if (clock.now() - since >= STABLE_MS) this.attempt = 0;
      this.lose(link);
      await this.pauseBeforeRetry();
    }
  }

  private async reach(): Promise<DaemonLink> {
    const link: DaemonLink = await reachDaemon(this.options, {
      // Of a daemon of the same protocol.
      hear: (method, params) => this.hear({ method, params } as Notification),
      onAnswer: (isSilent) =>
        this.link === link && this.setState({ kind: isSilent ? "silent" : "connected" }),
    });
    return link;
  }

  private hear(notification: Notification): void {
    switch (notification.method) {
      case "changes":
        return this.folders.get(notification.params.directory)?.take(notification.params.changes);
      case "transcript":
        return this.transcripts.get(notification.params.key)?.apply(notification.params.change);
      case "log":
        return this.options.logger[notification.params.level](notification.params.message);
    }
  }

  private connect(link: DaemonLink): void {
    this.link = link;
    for (const folder of this.folders.values()) folder.attach(link);
    this.setState({ kind: "connected" });
    this.next.resolve(link);
  }

  private lose(link: DaemonLink): void {
    if (this.link !== link) return;
    this.link = undefined;
    this.transcripts.clear();
    this.next = new Awaited();
    this.setState({ kind: "connecting" });
    this.reportLost(sentence("The connection to the background process was lost."));
  }

  private reachFailed(error: unknown): void {
    if (error instanceof Silence) {
      this.setState({ kind: "silent" });
      return this.reportLost(sentence("The background process isn't responding."));
    }
    const reason = notReached(error);
    const { failure } = reason;
    if (this.current.kind !== "failed")
      this.options.logger.error("Couldn't reach the background process.", error);
    this.setState({ kind: "failed", failure });
    for (const folder of this.folders.values()) folder.lose({ kind: "failed", failure });
    const { next } = this;
    this.next = new Awaited();
    next.reject(reason);
  }

  private reportLost(reason: Text): void {
    for (const folder of this.folders.values()) folder.lose({ kind: "reconnecting", reason });
  }

  /** The first retry comes at once: mostly, the daemon was killed, and can be started again. */
  private retryDelay(): number {
    return this.attempt === 0 ? 0 : Math.min(RETRY_MS * 2 ** (this.attempt - 1), LAST_RETRY_MS);
  }

  private async pauseBeforeRetry(): Promise<void> {
    const ms = this.retryDelay();
    this.attempt++;
    await new Promise<void>((resolve) => {
      const timer = this.options.clock.after(ms, () => this.wake?.());
      this.wake = () => {
        timer.dispose();
        this.wake = undefined;
        resolve();
      };
    });
  }

  private setState(state: DaemonState): void {
    if (state.kind === this.current.kind && state.kind !== "failed") return;
    this.current = state;
    this.states.fire(state);
  }
}

/** A promise that is settled from outside. That nobody waits for it is no error. */
class Awaited<T> {
  readonly promise: Promise<T>;
  resolve!: (value: T) => void;
  reject!: (error: Error) => void;

  constructor() {
    this.promise = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
    this.promise.catch(() => undefined);
  }
}

function left(): ServerFailure {
  return new ServerFailure("connect", "unreachable", sentence("This folder was closed."));
}
