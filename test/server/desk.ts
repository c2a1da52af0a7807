import { readFileSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import type { ConnectionFailure } from "../../src/engine/connection.ts";
import { ConnectionError } from "../../src/engine/connection.ts";
import type { Clock, Logger } from "../../src/engine/ports.ts";
import {
  OpenCodeConnection,
  type ConnectionOptions,
  type ServerSettings,
} from "../../src/opencode/connection.ts";
import { OwnServers } from "../../src/opencode/own-servers.ts";
import { keyOf } from "../../src/opencode/server-program.ts";
import { serverFiles, serverKeys } from "../../src/opencode/server-files.ts";
import { ServerEvents } from "../../src/opencode/server-events.ts";
import { hermeticEnv, hermeticHome, openCodeBinary } from "../support/opencode.ts";
import { tempDir } from "../support/temp.ts";

export const realClock: Clock = {
  now: () => Date.now(),
  after(ms, callback) {
    const timer = setTimeout(callback, ms);
    return { dispose: () => clearTimeout(timer) };
  },
};

/** A clock whose timers are due early. */
export const hastyClock: Clock = {
  ...realClock,
  after: (ms, callback) => realClock.after(ms / 20, callback),
};

export const silentLogger: Logger = { debug() {}, info() {}, warn() {}, error() {} };

/** What one user's folders share: a state folder, a home, an executable, and a daemon's servers. */
export class Desk {
  /** The default folder of its connections. */
  readonly directory = tempDir("work");
  readonly stateFolder = tempDir("state");
  private readonly connections: OpenCodeConnection[] = [];
  private current: OwnServers;
  /** The environment of its windows. */
  readonly env: Readonly<Record<string, string | undefined>>;

  private constructor(
    private readonly binary: string,
    env: Readonly<Record<string, string>>,
    readonly graceMs: number,
    private readonly clock: Clock,
  ) {
    this.env = { ...process.env, ...hermeticEnv(hermeticHome()), ...env };
    this.current = this.createServers();
  }

  /** @param options.clock that of the servers */
  static open({ binary = openCodeBinary(), graceMs = 1_000, env = {}, clock = realClock } = {}): Desk {
    return new Desk(binary, env, graceMs, clock);
  }

  /** The servers of the current daemon. */
  get servers(): OwnServers {
    return this.current;
  }

  /** Replaces the daemon with the next one. */
  async nextDaemon(): Promise<void> {
    await this.leave();
    this.current = this.createServers();
  }

  /** Creates a connection, like each folder of the daemon has. */
  connection(
    settings: Partial<ServerSettings> = {},
    options: Partial<ConnectionOptions> = {},
  ): OpenCodeConnection {
    const connection = new OpenCodeConnection({
      directory: this.directory,
      settings: () => ({ url: undefined, path: this.binary, startTimeoutMs: 30_000, ...settings }),
      password: () => Promise.resolve(undefined),
      ownServers: this.servers,
      env: this.env,
      events: new ServerEvents(options.clock ?? realClock),
      clock: realClock,
      logger: silentLogger,
      ...options,
    });
    this.connections.push(connection);
    return connection;
  }

  /** The description of the server; undefined if there is none. */
  state(): { url: string; password: string; pid: number } | undefined {
    const [key] = serverKeys(this.files());
    return key && JSON.parse(readFileSync(join(this.stateFolder, `server-${key}.json`), "utf8"));
  }

  /** The path of the description of its folder's server. */
  statePath(): string {
    return serverFiles(this.stateFolder, keyOf({ executable: this.binary, env: this.env })).state;
  }

  files(): string[] {
    return readdirSync(this.stateFolder);
  }

  /** Leaves all servers, and waits until no process is left. */
  async close(): Promise<void> {
    for (const connection of this.connections) connection.finish();
    await this.nextDaemon();
    await this.servers.sweep();
  }

  private createServers(): OwnServers {
    const { stateFolder, graceMs, clock } = this;
    return new OwnServers({ stateFolder, graceMs, clock, logger: silentLogger });
  }

  private async leave(): Promise<void> {
    const left = this.current.leave();
    for (const connection of this.connections.splice(0)) connection.dispose();
    await left;
  }
}

/** The failure that the promise rejects with. */
export async function failureOf(promise: Promise<unknown>): Promise<ConnectionFailure> {
  try {
    await promise;
  } catch (error) {
    if (error instanceof ConnectionError) return error.failure;
    throw error;
  }
  throw new Error("It did not fail.");
}

/** A program that acts like `opencode serve`, for what the real one does too slowly or never. */
export const fakeServer = join(dirname(import.meta.filename), "fake-server.mjs");

/** A program that acts like `opencode` of version 2. */
export const fakeOpenCode2 = join(dirname(import.meta.filename), "fake-opencode2.mjs");
