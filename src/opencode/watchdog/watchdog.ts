import { randomUUID } from "node:crypto";
import { rm } from "node:fs/promises";
import { messageOf, textOf } from "../../engine/errors.ts";
import { english } from "../../engine/sentence.ts";
import { startOf } from "../../state/processes.ts";
import { failures } from "../failures.ts";
import { writeServerState } from "../server-files.ts";
import type { ServerFault, WatchdogConfig, WatchdogMessage } from "./lease-protocol.ts";
import { LeaseServer } from "./lease-server.ts";
import { StartError, startServer } from "./server-process.ts";
import type { ServerProcess } from "./server-process.ts";

/** A server that crashes more often than this within the window is not started again. */
const MAX_CRASHES = 5;
const CRASH_WINDOW_MS = 2 * 60_000;
const FIRST_RESTART_DELAY_MS = 250;

/**
 * Owns the server of one folder: starts it, starts it again when it crashes, and ends it when no extension host has
 * held a lease for the grace period. The server never outlives it.
 */
export class Watchdog {
  private readonly ending = new AbortController();
  private status: WatchdogMessage = { type: "starting" };
  private leases: LeaseServer | undefined;
  private grace: NodeJS.Timeout | undefined;
  private failureTold = false;

  constructor(
    private readonly config: WatchdogConfig,
    /** The server's environment. */
    private readonly env: NodeJS.ProcessEnv,
    private readonly log: (line: string) => void,
  ) {}

  /** Resolves when everything has ended. Rejects with `AlreadyServed` if another watchdog serves the folder. */
  async run(onListening: () => void): Promise<void> {
    const leases = await LeaseServer.listen(this.config.files.socket, {
      status: () => this.status,
      onStop: () => this.end("a host asked to stop"),
      onDone: () => {
        if ((this.leases?.count ?? 0) <= 1) this.end("the last host is done");
      },
      onCount: () => this.watchLeases(),
    });
    this.leases = leases;
    this.watchLeases();
    onListening();
    try {
      const failure = await this.keepServing();
      if (failure) {
        this.tell({ type: "failed", failure });
        this.watchLeases();
        await this.ended();
      }
    } finally {
      clearTimeout(this.grace);
      leases.refuse();
      leases.close();
    }
  }

  /** Ends the server and the watchdog. */
  end(why: string): void {
    if (this.ending.signal.aborted) return;
    this.log(`ending: ${why}`);
    if (this.status.type !== "failed") this.tell({ type: "stopping" });
    this.ending.abort();
  }

  /** Resolves when the server was ended on purpose, or to why there is none any more. */
  private async keepServing(): Promise<ServerFault | undefined> {
    const { signal } = this.ending;
    for (let crashes: number[] = []; ;) {
      const server = await this.start();
      if (!("exited" in server)) return signal.aborted ? undefined : server;
      const how = english(await Promise.race([server.exited, this.ended()]));
      if (signal.aborted) return this.stop(server);
      crashes = [...crashes.filter((at) => at > Date.now() - CRASH_WINDOW_MS), Date.now()];
      // First of all: its port is anybody's now.
      if (crashes.length <= MAX_CRASHES)
        this.tell({ type: "starting", reason: `The OpenCode server ended unexpectedly (${how}).` });
      this.log(`the server crashed (${how})`);
      await this.withdraw();
      if (crashes.length > MAX_CRASHES) return failures.gaveUp(crashes.length, server.output);
      await this.pause(FIRST_RESTART_DELAY_MS * 2 ** (crashes.length - 1));
    }
  }

  private async start(): Promise<ServerProcess | ServerFault> {
    const { executable, directory, startTimeoutMs: timeoutMs } = this.config;
    const { env } = this;
    let server: ServerProcess | undefined;
    try {
      server = await startServer({ executable, directory, env, timeoutMs, signal: this.ending.signal });
      await this.announce(server);
      return server;
    } catch (error) {
      this.log(messageOf(error));
      // A server that cannot be described to anybody, as the disk is full, would be nobody's.
      await server?.stop();
      return error instanceof StartError ? error.failure : failures.startFailed(textOf(error));
    }
  }

  private async announce(server: ServerProcess): Promise<void> {
    const { directory, files } = this.config;
    const { pid = 0, access } = server;
    const run = randomUUID();
    await writeServerState(files.state, {
      url: access.url,
      password: access.password,
      run,
      pid,
      processStart: await startOf(pid),
      watchdogPid: process.pid,
      socket: files.socket,
      version: server.version,
      directory,
      startedAt: Date.now(),
    });
    this.log(`OpenCode ${server.version} runs at ${access.url}, process ${pid}`);
    // It may have ended meanwhile, and others may have its port.
    if (!this.ending.signal.aborted && server.isRunning) this.tell({ type: "ready", run });
  }

  private async stop(server: ServerProcess): Promise<undefined> {
    await this.withdraw();
    await server.stop();
  }

  /** From here on a host finds nothing and starts anew, so nothing of ours may be removed later. */
  private async withdraw(): Promise<void> {
    try {
      await rm(this.config.files.state, { force: true });
    } catch (error) {
      // Who reads it asks the watchdog whether it still holds.
      this.log(`the description of the server stays: ${messageOf(error)}`);
    }
    if (this.ending.signal.aborted) this.leases?.refuse();
  }

  private tell(message: WatchdogMessage): void {
    this.status = message;
    this.leases?.broadcast(message);
  }

  /** Starts or ends the grace period. A failure that somebody was told needs no grace once all have left. */
  private watchLeases(): void {
    clearTimeout(this.grace);
    const failed = this.status.type === "failed";
    if (this.leases?.count) this.failureTold ||= failed;
    else if (failed && this.failureTold) this.end("the failure was told");
    else this.grace = setTimeout(() => this.end("no host uses the server"), this.config.graceMs);
  }

  private ended(): Promise<string> {
    const { signal } = this.ending;
    return new Promise((resolve) => {
      if (signal.aborted) resolve("");
      else signal.addEventListener("abort", () => resolve(""), { once: true });
    });
  }

  private async pause(ms: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    await Promise.race([this.ended(), new Promise((resolve) => (timer = setTimeout(resolve, ms)))]);
    clearTimeout(timer);
  }
}
