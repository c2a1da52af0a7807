import type { ActiveSession } from "../engine/active-session.ts";
import type { ConnectionFailure, ConnectionState } from "../engine/connection.ts";
import type { TaskEngine } from "../engine/engine.ts";
import { messageOf, Refusal, textOf } from "../engine/errors.ts";
import { Emitter, unlessCancelled, type Disposable, type Event, logged } from "../engine/event.ts";
import type { Clock, Logger } from "../engine/ports.ts";
import { sentence } from "../engine/sentence.ts";
import type { OpenCodeConnection } from "../opencode/connection.ts";
import type { Semaphore } from "./semaphore.ts";

/** The first delay before a failed read is repeated, in milliseconds. It doubles each time, up to the last one. */
const FIRST_RETRY_MS = 500;
const LAST_RETRY_MS = 10_000;

export interface ConnectingOptions {
  readonly connection: OpenCodeConnection;
  readonly engine: Pick<TaskEngine, "connect" | "disconnect">;
  readonly session: Pick<ActiveSession, "refresh">;
  /** Shared by all folders, as starting a server puts a heavy load on the machine. */
  readonly starts: Semaphore;
  /**
   * What to do unasked: connect, join a server that is already running, or nothing, as loading a folder that nobody
   * uses would burden the server.
   */
  readonly unasked: () => "connect" | "join" | "nothing";
  /** A user has left the folder while it waited for other folders' servers. */
  readonly left: () => void;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Combines a connection and its engine: handles those who wait for it, and reads the tasks once connected. */
export class Connecting implements Disposable {
  /** The read that was started last. */
  private reading: Promise<void> = Promise.resolve();
  private upToDate = false;
  /** Why the tasks could not be read. Reading is retried until it succeeds. */
  private readFailure: ConnectionFailure | undefined;
  private failedReads = 0;
  private retry: Disposable | undefined;
  private readonly changes: Emitter<void>;
  /** The state changed, or the tasks were read. */
  readonly onDidChange: Event<void>;
  /** Those who wait for a connection, each with a way to cancel the wait. */
  private readonly waits = new Set<AbortController>();
  /** How many of them wait until other folders' servers have started. */
  private queued = 0;
  private readonly disposables: readonly Disposable[];

  constructor(private readonly options: ConnectingOptions) {
    const { connection, logger } = options;
    this.changes = new Emitter(logged(logger, "the connection"));
    this.onDidChange = this.changes.event;
    this.disposables = [
      connection.onDidConnect(() => {
        this.failedReads = 0;
        this.readFailure = undefined;
        this.readUntilKnown();
      }),
      connection.onDidChangeState(({ kind }) => {
        if (kind !== "connected") this.lose();
        this.changes.fire();
      }),
    ];
  }

  /** The state shown to users: connected only once the tasks have been read. */
  get state(): ConnectionState {
    const { state } = this.options.connection;
    if (this.queued > 0 && (state.kind === "disconnected" || state.kind === "failed"))
      return { kind: "connecting", detail: sentence("Waiting for the servers of other folders…") };
    if (state.kind !== "connected" || this.upToDate) return state;
    return this.readFailure
      ? { kind: "failed", failure: this.readFailure }
      : { kind: "connecting", detail: "" };
  }

  /** Does what is to be done unasked. Never rejects. */
  async join(): Promise<void> {
    const { unasked, connection, logger } = this.options;
    const how = unasked();
    try {
      if (how === "connect") await this.connect();
      else if (how === "join" && (await connection.adopt())) await this.reading;
    } catch (error) {
      logger.warn(`Couldn't connect to the server of a folder that is used: ${messageOf(error)}`);
    }
  }

  /** Resolves once connected and up to date. */
  async connect(signal?: AbortSignal): Promise<void> {
    const wait = new AbortController();
    const stop = (): void => wait.abort();
    signal?.addEventListener("abort", stop);
    if (signal?.aborted) stop();
    this.waits.add(wait);
    try {
      if (this.options.connection.state.kind !== "connected") await this.connectInTurn(wait.signal);
      await unlessCancelled(this.readFailure ? this.readAnew() : this.reading, wait.signal, cancelled);
    } catch (error) {
      throw wait.signal.aborted ? cancelled() : error;
    } finally {
      this.waits.delete(wait);
      signal?.removeEventListener("abort", stop);
    }
  }

  /** Reads everything again from the server. */
  async refresh(): Promise<void> {
    if (this.options.connection.state.kind === "connected") return this.readAnew();
    await this.connect();
  }

  /** Cancels connecting for all who wait for it. A server that others use keeps running. */
  async cancel(): Promise<void> {
    const { connection } = this.options;
    const isReading = connection.state.kind === "connected" && this.state.kind === "connecting";
    this.leave();
    // A crashed server is restarted without anyone waiting for it, and its tasks are read.
    if (isReading || connection.state.kind === "connecting") await connection.disconnect();
  }

  /** Disconnects from the current server. */
  async disconnect(): Promise<void> {
    this.leave();
    await this.options.connection.disconnect();
  }

  /** Stops a server that the extension started, even one that is still starting, and disconnects. */
  async stopServer(): Promise<void> {
    this.leave();
    await this.options.connection.stopServer();
  }

  dispose(): void {
    this.giveUp();
    this.retry?.dispose();
    for (const subscription of this.disposables) subscription.dispose();
    this.changes.dispose();
  }

  private async connectInTurn(signal: AbortSignal): Promise<void> {
    const { connection } = this.options;
    // If a start is already in progress, join it; but one who is queued only looks for a running server.
    if (connection.state.kind === "connecting" && this.queued === 0) return connection.connect(signal);
    const leave = await this.turn(signal);
    await connection.connect(signal).finally(leave);
  }

  private async turn(signal: AbortSignal): Promise<() => void> {
    const { connection, starts } = this.options;
    if (!starts.isReached) return starts.enter(signal);
    this.countQueued(1);
    try {
      // Joining a server that is running is no start. Besides, one that no folder has joined yet counts as unused.
      if (await connection.adopt(signal)) return () => undefined;
      return await starts.enter(signal);
    } finally {
      this.countQueued(-1);
    }
  }

  private countQueued(change: number): void {
    this.queued += change;
    this.changes.fire();
  }

  private leave(): void {
    if (this.queued > 0) this.options.left();
    this.giveUp();
  }

  private giveUp(): void {
    for (const wait of this.waits) wait.abort();
  }

  private lose(): void {
    this.upToDate = false;
    this.readFailure = undefined;
    this.retry?.dispose();
    this.options.engine.disconnect();
  }

  /** Reads on request; a failure rejects the promise of the caller. */
  private readAnew(): Promise<void> {
    this.readFailure = undefined;
    this.changes.fire();
    return this.read();
  }

  /** A failed read says nothing about the next one, so it is repeated until it succeeds or the connection is lost. */
  private readUntilKnown(): void {
    this.read().catch(() => undefined);
  }

  private read(): Promise<void> {
    this.retry?.dispose();
    const reading: Promise<void> = this.readAll(() => this.reading === reading);
    return (this.reading = reading);
  }

  private async readAll(isLast: () => boolean): Promise<void> {
    const { connection, engine, session } = this.options;
    try {
      await engine.connect();
      await session.refresh();
      // If a newer read has started, its result counts.
      if (!isLast()) return await this.reading;
      // The connection may have been lost in the meantime.
      this.upToDate = connection.state.kind === "connected";
      this.readFailure = undefined;
      this.failedReads = 0;
    } catch (error) {
      if (isLast() && connection.state.kind === "connected") this.failRead(error);
      throw error;
    } finally {
      this.changes.fire();
    }
  }

  private failRead(error: unknown): void {
    const { clock, logger } = this.options;
    const delay = Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** this.failedReads++);
    logger.warn(`Couldn't read the tasks from the server: ${messageOf(error)}`);
    this.readFailure = {
      code: "gave-up",
      message: sentence("Couldn't read the tasks from the server: {0}", textOf(error)),
      remedy: sentence("Retrying automatically; refresh to retry now."),
    };
    this.retry = clock.after(delay, () => this.readUntilKnown());
  }
}

function cancelled(): Refusal {
  return new Refusal("cancelled-by-caller", sentence("Connecting was cancelled."));
}
