import { build, type BuildOptions, type Plugin } from "esbuild";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import type { ConnectionFailure } from "../../src/engine/connection.ts";
import type { EngineSettings } from "../../src/engine/engine.ts";
import type { Clock } from "../../src/engine/ports.ts";
import type { Task } from "../../src/engine/task.ts";
import {
  PROTOCOL_VERSION,
  type DaemonStatus,
  type FolderChange,
  type FolderClient,
  type FolderSettings,
  type FolderSnapshot,
} from "../../src/rpc/contract.ts";
import { DaemonClient } from "../../src/rpc/daemon-client.ts";
import { endAll } from "./background.ts";
import { DaemonState } from "./daemon-state.ts";
import { realClock } from "./engine.ts";
import { hermeticEnv, hermeticHome, modelConfig, openCodeBinary } from "./opencode.ts";
import type { ScriptedModel } from "./scripted-model.ts";
import { tempDir } from "./temp.ts";
import { ENGINE_SETTINGS } from "./engine-settings.ts";

/** A folder as followed by one window. */
interface WatchedFolder extends FolderClient {
  /** The tasks according to the changes received. */
  readonly tasks: ReadonlyMap<string, Task>;
  connection(): FolderSnapshot["connection"]["kind"];
  /** Whether an OpenCode 2 uses the server's database. */
  sharesDatabase(): boolean;
  /** Why the connection failed; undefined unless it did. */
  failure(): ConnectionFailure | undefined;
}

/** One window: a client of the daemon, and its folder. */
export interface DaemonWindow {
  readonly client: DaemonClient;
  readonly folder: WatchedFolder;
  /** The settings that it opened the folder with. */
  readonly settings: FolderSettings;
  readonly log: readonly string[];
  close(): void;
}

/** What the windows of a desk share; can be passed to another process. */
export interface DeskPlace {
  readonly stateFolder: string;
  readonly directory: string;
  /** The environment of the windows. */
  readonly env: Readonly<Record<string, string>>;
  /** The daemon's bundle. */
  readonly script: string;
}

export interface DeskOptions {
  /** How long the daemon and its folders stay without windows. */
  readonly graceMs?: number;
  readonly stateFolder?: string;
  /** The folder to work in. Defaults to a new empty one. */
  readonly directory?: string;
  /** The clock of its windows. */
  readonly clock?: Clock;
}

/** A user's machine: a private state folder, a folder to work in, and the bundles of the extension. */
export class DaemonDesk extends DaemonState {
  readonly env: DeskPlace["env"];
  private readonly release: Release;

  /** @param windows those of the user in all folders; this desk adds its own */
  constructor(
    readonly place: DeskPlace,
    private readonly windows: DaemonWindow[] = [],
    private readonly clock: Clock = realClock,
  ) {
    super(place.stateFolder, place.directory);
    this.env = place.env;
    this.release = { version: "0.1.0", Client: DaemonClient, script: place.script };
  }

  static async open(
    model: Pick<ScriptedModel, "url">,
    {
      graceMs = 60_000,
      stateFolder = tempDir("state"),
      directory = tempDir("work"),
      clock = realClock,
    }: DeskOptions = {},
  ): Promise<DaemonDesk> {
    const script = await (current ??= buildDaemon());
    const env = {
      ...(process.env as Record<string, string>),
      ...hermeticEnv(hermeticHome(), modelConfig(model)),
      ASYNCAGENTS_DAEMON_GRACE_MS: String(graceMs),
    };
    return new DaemonDesk({ stateFolder, directory, env, script }, [], clock);
  }

  /** Another folder of the same user. */
  elsewhere(directory = tempDir("work")): DaemonDesk {
    return new DaemonDesk({ ...this.place, directory }, this.windows, this.clock);
  }

  /**
   * Opens another window on the folder; the first one starts the daemon.
   * @param release the version of the extension in this window; by default the current one
   */
  window(
    engine: Partial<EngineSettings> = {},
    settings: Partial<FolderSettings> = {},
    release = this.release,
    directory = this.directory,
  ): DaemonWindow {
    const log: string[] = [];
    const client = this.client(release, (line) => void log.push(line));
    const complete: FolderSettings = {
      engine: {
        ...ENGINE_SETTINGS,
        ...engine,
      },
      server: { path: openCodeBinary(), startTimeoutMs: 60_000 },
      agentTools: true,
      keepWorkingMs: 3_600_000,
      watched: true,
      ...settings,
    };
    const folder = follow(client.open({ directory, env: this.env, settings: complete }));
    const window = { client, folder, settings: complete, log, close: () => client.dispose() };
    this.windows.push(window);
    return window;
  }

  /** The daemon's status, requested by a client that has no folder open. */
  status(): Promise<DaemonStatus> {
    return this.from((client) => client.status());
  }

  /** Stops the work in the folder; requested by a client that doesn't have it open. */
  stop(): Promise<void> {
    return this.from((client) => client.stop([this.directory]));
  }

  /** Closes all windows of the user. */
  closeWindows(): void {
    for (const window of this.windows.splice(0)) window.close();
  }

  /** Closes all windows of the user, because each would start the next daemon, and ends the daemon and its servers. */
  async close(): Promise<void> {
    this.closeWindows();
    await endAll(this.stateFolder);
  }

  private async from<T>(ask: (client: DaemonClient) => Promise<T>): Promise<T> {
    const client = this.client(this.release, () => undefined);
    try {
      return await ask(client);
    } finally {
      client.dispose();
    }
  }

  private client({ Client, version, script }: Release, note: (line: string) => void): DaemonClient {
    const level =
      (name: string) =>
      (message: string): void =>
        note(`${name} ${message}`);
    return new Client({
      stateFolder: this.stateFolder,
      version,
      execPath: process.execPath,
      script,
      env: this.env,
      clock: this.clock,
      logger: { debug: level("debug"), info: level("info"), warn: level("warn"), error: level("error") },
    });
  }
}

/** Applies the changes that a window receives. */
function follow(folder: FolderClient): WatchedFolder {
  const tasks = new Map<string, Task>();
  let connection: FolderSnapshot["connection"] = { kind: "disconnected" };
  const apply = (change: FolderChange): void => {
    if (change.type === "reset") {
      tasks.clear();
      for (const task of change.snapshot.tasks) tasks.set(task.id, task);
      connection = change.snapshot.connection;
    } else if (change.type === "connection") connection = change.state;
    else if (change.type === "task" && change.task) tasks.set(change.id, change.task);
    else if (change.type === "task") tasks.delete(change.id);
  };
  folder.onDidChange((changes) => changes.forEach(apply));
  return Object.assign(folder, {
    tasks,
    connection: () => connection.kind,
    sharesDatabase: () => connection.kind === "connected" && connection.sharesDatabase === true,
    failure: () => (connection.kind === "failed" ? connection.failure : undefined),
  });
}

/** A version of the extension. */
export interface Release {
  readonly version: string;
  /** The client that its windows use. */
  readonly Client: typeof DaemonClient;
  /** The daemon's bundle; the bundles of what it starts are in the same folder. */
  readonly script: string;
}

/** A version with a newer protocol, which the current version doesn't understand. */
export async function newerRelease(): Promise<Release> {
  const plugin: Plugin = {
    name: "raise the protocol",
    setup: ({ onLoad }) =>
      onLoad({ filter: /rpc.contract\.ts$/ }, async ({ path }) => {
        const source = await readFile(path, "utf8");
        const contents = source.replace(/(PROTOCOL_VERSION = )\d+/, `$1${PROTOCOL_VERSION + 1}`);
        if (contents === source) throw new Error("The protocol's version was not found.");
        return { contents, loader: "ts" };
      }),
  };
  const script = await buildDaemon([plugin]);
  const client = join(dirname(script), "client.mjs");
  await build({
    ...common,
    format: "esm",
    plugins: [plugin],
    entryPoints: [source("rpc/daemon-client.ts")],
    outfile: client,
    // Its CommonJS parts require modules of Node.
    banner: {
      js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);',
    },
  });
  const { DaemonClient: Client } = (await import(pathToFileURL(client).href)) as {
    readonly DaemonClient: typeof DaemonClient;
  };
  return { version: "0.2.0", Client, script };
}

let current: Promise<string> | undefined;

const common: BuildOptions = {
  bundle: true,
  platform: "node",
  logLevel: "error",
  mainFields: ["module", "main"],
};

/** Builds the daemon and what it starts, like the extension's own build. */
async function buildDaemon(plugins: Plugin[] = []): Promise<string> {
  const outdir = tempDir("dist");
  const program = (path: string, name: string) =>
    build({
      ...common,
      plugins,
      format: "cjs",
      entryPoints: [source(path)],
      outfile: join(outdir, name),
    });
  await Promise.all([
    program("daemon/main.ts", "daemon.cjs"),
    program("tokens/worker.ts", "tokenizer.cjs"),
    build({
      ...common,
      format: "esm",
      entryPoints: [source("plugin/main.ts")],
      outfile: join(outdir, "opencode-plugin.js"),
    }),
  ]);
  return join(outdir, "daemon.cjs");
}

function source(path: string): string {
  return join(import.meta.dirname, "../../src", path);
}
