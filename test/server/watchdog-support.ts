import { readFileSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { build } from "esbuild";
import type { ConnectionFailure } from "../../src/engine/connection.ts";
import { ConnectionError } from "../../src/engine/connection.ts";
import type { Clock, Logger } from "../../src/engine/ports.ts";
import { createOpenCodeConnection } from "../../src/opencode/connection.ts";
import type { ConnectionOptions, OpenCodeConnection, ServerSettings } from "../../src/opencode/connection.ts";
import { isAlive } from "../../src/state/processes.ts";
import { hermeticEnv, hermeticHome, openCodeBinary } from "../support/opencode.ts";
import { tempDir } from "../support/temp.ts";
import { until } from "../support/wait.ts";

let bundle: Promise<string> | undefined;

/** The watchdog as one file, built once. */
export function watchdogBundle(): Promise<string> {
  return (bundle ??= buildWatchdog());
}

async function buildWatchdog(): Promise<string> {
  const outfile = join(tempDir("watchdog"), "watchdog.cjs");
  const entryPoints = [join(import.meta.dirname, "../../src/opencode/watchdog/main.ts")];
  await build({ entryPoints, outfile, bundle: true, platform: "node", format: "cjs", target: "node20" });
  return outfile;
}

export const realClock: Clock = {
  now: () => Date.now(),
  after(ms, callback) {
    const timer = setTimeout(callback, ms);
    return { dispose: () => clearTimeout(timer) };
  },
};

export const silentLogger: Logger = { debug() {}, info() {}, warn() {}, error() {} };

/** What the windows of one user share: a folder to work in, a folder for state, a home, an executable. */
export class Desk {
  readonly directory = tempDir("work");
  readonly stateFolder = tempDir("state");
  private readonly windows: OpenCodeConnection[] = [];
  /** The environment of its windows. */
  readonly env: Readonly<Record<string, string | undefined>>;

  private constructor(
    private readonly watchdogScript: string,
    private readonly binary: string,
    env: Readonly<Record<string, string>>,
    readonly graceMs: number,
  ) {
    this.env = { ...process.env, ...hermeticEnv(hermeticHome()), ...env };
  }

  static async open({ binary = openCodeBinary(), graceMs = 1_000, env = {} } = {}): Promise<Desk> {
    return new Desk(await watchdogBundle(), binary, env, graceMs);
  }

  /** One more window on the folder. */
  window(
    settings: Partial<ServerSettings> = {},
    options: Partial<ConnectionOptions> = {},
  ): OpenCodeConnection {
    const connection = createOpenCodeConnection({
      directory: this.directory,
      settings: () => ({ url: undefined, path: this.binary, startTimeoutMs: 30_000, ...settings }),
      password: () => Promise.resolve(undefined),
      watchdogScript: this.watchdogScript,
      execPath: process.execPath,
      env: this.env,
      stateFolder: this.stateFolder,
      graceMs: this.graceMs,
      clock: realClock,
      logger: silentLogger,
      ...options,
    });
    this.windows.push(connection);
    return connection;
  }

  /** The server's state file; undefined if there is none. */
  state(): { url: string; password: string; pid: number; watchdogPid: number; socket: string } | undefined {
    const name = this.files().find((file) => file.endsWith(".json"));
    return name && JSON.parse(readFileSync(join(this.stateFolder, name), "utf8"));
  }

  files(): string[] {
    return readdirSync(this.stateFolder);
  }

  /** Closes all windows and waits until nothing runs any more. */
  async close(): Promise<void> {
    const state = this.state();
    for (const window of this.windows) window.dispose();
    if (state) await until("the end of the server", () => isGone(state), this.graceMs + 10_000);
  }
}

/** Whether neither server nor watchdog runs. */
export function isGone(state: { pid: number; watchdogPid: number }): boolean {
  return !isAlive(state.pid) && !isAlive(state.watchdogPid);
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

/** A program that looks like `opencode serve`, for what the real one does too slowly or never. */
export const fakeServer = join(dirname(import.meta.filename), "watchdog-fake-server.mjs");
