import { ConnectionError, type ConnectionFailure } from "../engine/connection.ts";
import { messageOf, textOf } from "../engine/errors.ts";
import { Emitter, type Disposable, logged } from "../engine/event.ts";
import type { Clock, Logger } from "../engine/ports.ts";
import { english } from "../engine/sentence.ts";
import type { Attachment, RunningServer } from "./attachment.ts";
import { unlessCancelled } from "./cancel.ts";
import { failures } from "./failures.ts";
import type { ServerFiles } from "./server-files.ts";
import { ServerProcess } from "./server-process.ts";
import type { ServerProgram } from "./server-program.ts";

/** The minimum timeout for loading a folder: on first use, the server installs the folder's plugins. */
const MIN_LOAD_TIMEOUT_MS = 90_000;
/** A server that crashes more often than this within the window is not restarted. */
const MAX_CRASHES = 5;
const CRASH_WINDOW_MS = 2 * 60_000;
const FIRST_RESTART_DELAY_MS = 250;

export interface OwnServerOptions {
  /** Undefined if the server was started with another one: it isn't restarted after a crash. */
  readonly program: ServerProgram | undefined;
  /** The key that its files are named after. */
  readonly key: string;
  readonly files: ServerFiles;
  readonly startTimeoutMs: number;
  /** How long the server keeps running after the last folder left it temporarily, in milliseconds. */
  readonly graceMs: number;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** A server for all folders with the same program: starts it, restarts it after crashes, ends it. */
export class OwnServer {
  private readonly users = new Set<Attachment>();
  private readonly ending = new AbortController();
  private readonly changes: Emitter<void>;
  private grace: Disposable | undefined;
  /** Undefined while the server is starting, and after it has ended. */
  private run: ServerProcess | undefined;
  private failure: ConnectionFailure | undefined;
  private isLeft = false;
  /** When this daemon joined its process. Undefined if this daemon started it. */
  private joinedAt: number | undefined;
  /** Whether it has crashed and isn't restarted, so that each of its folders needs the server of its own program. */
  isGone = false;
  /** Resolves when the server has ended or could not be started. */
  readonly over: Promise<void>;

  /** @param joined the process, if it is already running */
  constructor(
    private readonly options: OwnServerOptions,
    joined?: ServerProcess,
  ) {
    this.changes = new Emitter(logged(options.logger, "the server"));
    this.joinedAt = joined && options.clock.now();
    this.over = this.serve(joined);
  }

  /** Whether the server can no longer be used. */
  get isEnding(): boolean {
    return this.ending.signal.aborted || this.isGone || this.failure !== undefined;
  }

  /** Attaches one folder to the server. */
  attach(): Attachment {
    this.grace?.dispose();
    const attachment: Attachment = {
      own: true,
      key: this.options.key,
      loadTimeoutMs: Math.max(this.options.startTimeoutMs, MIN_LOAD_TIMEOUT_MS),
      running: (signal) => this.running(signal),
      leave: () => this.release(attachment, this.run ? this.options.graceMs : 0),
      finish: () => this.release(attachment, 0),
      giveUp: () => this.release(attachment, this.reclaimableMs()),
    };
    this.users.add(attachment);
    return attachment;
  }

  /** Leaves the server to the next daemon. If it is ending or not running yet, resolves once it is gone. */
  async leave(): Promise<void> {
    this.isLeft = true;
    this.grace?.dispose();
    // Nobody would guard a server that is started (again) after the daemon has gone.
    if (!this.run) this.ending.abort();
    if (this.isEnding) await this.over;
  }

  /** Ends the server even if it is in use. Resolves when it is gone. */
  stop(why: string): Promise<void> {
    this.options.logger.info(`Stopping the OpenCode server: ${why}.`);
    this.ending.abort();
    return this.over;
  }

  /** How long folders of the daemon that this one replaced may still come back for the server and what runs in it. */
  private reclaimableMs(): number {
    const { joinedAt } = this;
    const { graceMs, clock } = this.options;
    return joinedAt === undefined ? 0 : Math.min(graceMs, Math.max(0, joinedAt + graceMs - clock.now()));
  }

  private release(attachment: Attachment, graceMs: number): void {
    if (!this.users.delete(attachment) || this.users.size > 0 || this.isLeft) return;
    const end = () => void this.stop("nobody uses it");
    if (graceMs === 0) end();
    else this.grace = this.options.clock.after(graceMs, end);
  }

  private async running(signal: AbortSignal): Promise<RunningServer | ConnectionFailure | "stopped"> {
    for (;;) {
      signal.throwIfAborted();
      if (this.failure) return this.failure;
      if (this.isEnding) return "stopped";
      let subscription: Disposable | undefined;
      const change = new Promise<void>((resolve) => (subscription = this.changes.event(resolve)));
      try {
        const { run } = this;
        if (run && (await run.isRunning())) return { ...run.access, pid: run.pid, ended: run.exited };
        await unlessCancelled(change, signal);
      } finally {
        subscription?.dispose();
      }
    }
  }

  private async serve(joined: ServerProcess | undefined): Promise<void> {
    try {
      await this.keepServing(joined);
    } catch (error) {
      if (!this.ending.signal.aborted)
        this.failure = error instanceof ConnectionError ? error.failure : failures.startFailed(textOf(error));
    }
    this.run = undefined;
    this.grace?.dispose();
    this.changes.fire();
  }

  /** Resolves when the server was ended on purpose. Rejects when it cannot be started (again). */
  private async keepServing(joined: ServerProcess | undefined): Promise<void> {
    const { signal } = this.ending;
    const { program } = this.options;
    let running = joined;
    let failedStarts = 0;
    for (let crashes: number[] = []; ; running = undefined) {
      let run: ServerProcess | undefined;
      try {
        run = running ?? (program && (await this.start(program)));
      } catch (error) {
        // What made the server crash, such as too little memory, can keep it from starting for a moment as well.
        const isSlow = error instanceof ConnectionError && error.failure.code === "start-timeout";
        if (crashes.length === 0 || isSlow || ++failedStarts > MAX_CRASHES || signal.aborted) throw error;
        this.options.logger.warn(`Couldn't start the OpenCode server again: ${messageOf(error)}`);
        await this.pauseAfter(failedStarts);
        continue;
      }
      failedStarts = 0;
      if (!run) return void (this.isGone = true);
      this.run = run;
      this.changes.fire();
      const how = await unlessCancelled(run.exited, signal).catch(() => undefined);
      this.run = undefined;
      if (how === undefined) return run.stop();
      if (this.isLeft) return;
      this.options.logger.warn(`The OpenCode server ended unexpectedly (${english(how)}).`);
      await run.forget();
      this.joinedAt = undefined;
      const now = this.options.clock.now();
      crashes = [...crashes.filter((at) => at > now - CRASH_WINDOW_MS), now];
      if (crashes.length > MAX_CRASHES)
        throw new ConnectionError(failures.gaveUp(crashes.length, await run.output()));
      await this.pauseAfter(crashes.length);
    }
  }

  private async start(program: ServerProgram): Promise<ServerProcess> {
    const { files, startTimeoutMs: timeoutMs, logger } = this.options;
    const { signal } = this.ending;
    const run = await ServerProcess.start({ program, files, timeoutMs, signal });
    logger.info(`OpenCode ${run.version} is running at ${run.access.url} (process ${run.pid}).`);
    return run;
  }

  private pauseAfter(failures: number): Promise<void> {
    const ms = FIRST_RESTART_DELAY_MS * 2 ** (failures - 1);
    const pause = new Promise<void>((resolve) => this.options.clock.after(ms, resolve));
    return unlessCancelled(pause, this.ending.signal);
  }
}
