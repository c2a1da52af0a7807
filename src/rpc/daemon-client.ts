import type { ConnectionFailure } from "../engine/connection.ts";
import { Emitter, type Disposable, type Event, logged } from "../engine/event.ts";
import type { Logger } from "../engine/ports.ts";
import { sentence, type Text } from "../engine/sentence.ts";
import type {
  DaemonNotifications,
  DaemonRequests,
  DaemonStatus,
  Diagnostics,
  Environment,
  FolderClient,
  OpenFolder,
} from "./contract.ts";
import { notReached, Silence } from "./daemon-failures.ts";
import { DaemonFiles } from "./daemon-files.ts";
import type { DaemonLink } from "./daemon-link.ts";
import { endDaemon, reachDaemon, type DaemonPlace } from "./reach-daemon.ts";
import { answered, closed, RemoteFolder, type DaemonAccess } from "./remote-folder.ts";
import type { AnswerOf, ParamsOf } from "./wire.ts";

/** The delay before the second retry. It doubles with each further one. */
const RETRY_MS = 100;
const LAST_RETRY_MS = 5_000;
/** After a connection that lasted this long, the next retry is immediate. */
const STABLE_MS = 5_000;

export type DaemonState =
  /** Also the initial state. */
  | { readonly kind: "connecting" }
  | { readonly kind: "connected" }
  /** The daemon is running, but has not responded for ten seconds. */
  | { readonly kind: "silent" }
  | { readonly kind: "failed"; readonly failure: ConnectionFailure };

/** A notification from the daemon. */
type Notification = {
  [M in keyof DaemonNotifications]: {
    readonly method: M;
    readonly params: Parameters<DaemonNotifications[M]>[0];
  };
}[keyof DaemonNotifications];

export interface DaemonClientOptions extends DaemonPlace {
  readonly env: Environment;
  readonly logger: Logger;
}

/**
 * A window's connection to the daemon. Finds or starts the daemon when the first folder is opened, and again whenever
 * the connection is lost.
 */
export class DaemonClient implements Disposable {
  private current: DaemonState = { kind: "connecting" };
  private readonly states: Emitter<DaemonState>;
  readonly onDidChangeState: Event<DaemonState>;
  private readonly folders = new Map<string, RemoteFolder>();
  private readonly access: DaemonAccess;
  /** The loop that keeps the window connected. */
  private running: Promise<void> | undefined;
  private link: DaemonLink | undefined;
  private next = new Awaited<DaemonLink>();
  /** Ends the pause between two attempts early. */
  private wake: (() => void) | undefined;
  /** The number of successive failed or short-lived connections. */
  private attempt = 0;
  private isDisposed = false;

  constructor(private readonly options: DaemonClientOptions) {
    this.states = new Emitter(logged(options.logger, "the daemon's state"));
    this.onDidChangeState = this.states.event;
    this.access = { ...options, link: () => this.connected() };
  }

  get state(): DaemonState {
    return this.current;
  }

  /** Opens a folder. Those that open the same directory, such as through a link, share it, and each disposes it once. */
  open(folder: OpenFolder): FolderClient {
    const { directory } = folder;
    const known = this.folders.get(directory);
    if (known) return known.share(folder);
    const remote = new RemoteFolder(folder, this.access, () => this.folders.delete(directory));
    this.folders.set(directory, remote);
    if (this.link?.isOpen) remote.attach(this.link);
    else this.run();
    return remote;
  }

  /** Whether a daemon was started and has not ended regularly. */
  async isStarted(): Promise<boolean> {
    return (await new DaemonFiles(this.options.stateFolder).read()) !== undefined;
  }

  /** The path of OpenCode's executable. Rejects with a `ConnectionError` if there is none that can be used. */
  findExecutable(path: string | undefined): Promise<string> {
    return this.ask("findExecutable", { path, env: this.options.env });
  }

  /**
   * The terminal command that installs OpenCode 1, for all programs or privately in the extension's own storage.
   * Undefined if nothing on this machine can do that.
   */
  installCommand(isPrivate: boolean): Promise<string | undefined> {
    return this.ask("installCommand", { isPrivate, env: this.options.env });
  }

  status(): Promise<DaemonStatus> {
    return this.ask("status");
  }

  diagnostics(): Promise<Diagnostics> {
    return this.ask("diagnostics");
  }

  /** The path of the daemon's log, whether or not a window is connected. */
  async logFile(): Promise<string> {
    return new DaemonFiles(this.options.stateFolder).log;
  }

  /** Cancels the tasks of these folders. Folders that no window has open are closed, and their servers end. */
  stop(directories: readonly string[]): Promise<void> {
    return this.ask("stop", { directories });
  }

  /** Kills the daemon's process, even if it hangs, and starts a new one. Servers and their tasks keep running. */
  async restart(): Promise<void> {
    await endDaemon(this.options, this.link?.isOpen ? this.link.pid : undefined);
    this.link?.close();
    await this.connected();
  }

  /** Disconnects from the daemon, whose work continues. */
  dispose(): void {
    this.isDisposed = true;
    for (const folder of [...this.folders.values()]) folder.dispose();
    this.link?.close();
    this.next.reject(closed("connect"));
    this.wake?.();
    this.states.dispose();
  }

  private ask<M extends keyof DaemonRequests>(
    method: M,
    ...params: ParamsOf<DaemonRequests[M]>
  ): Promise<AnswerOf<DaemonRequests[M]>> {
    return answered(
      method,
      method !== "stop",
      () => this.connected(),
      (link) => link.request(method, params),
    );
  }

  private connected(): Promise<DaemonLink> {
    if (this.isDisposed) return Promise.reject(closed("connect"));
    // A caller may notice the closed connection before `keepConnected` does.
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
      // The other end uses the same protocol.
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
      case "conversation": {
        const { directory, key, message } = notification.params;
        return this.folders.get(directory)?.show(key, message);
      }
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

  /** The first retry is immediate: usually the daemon was killed and can be restarted. */
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

/** A promise with external `resolve` and `reject`. A rejection that nobody waits for is not an error. */
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
