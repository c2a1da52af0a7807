import type { BuildOptions } from "esbuild";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { EngineSettings } from "../../src/engine/engine.ts";
import type { Task } from "../../src/engine/task.ts";
import type { FolderChange, FolderClient, FolderSettings, FolderSnapshot } from "../../src/rpc/contract.ts";
import { DaemonClient } from "../../src/rpc/daemon-client.ts";
import { serverFiles } from "../../src/opencode/server-files.ts";
import { isAlive } from "../../src/state/processes.ts";
import { realClock } from "./engine.ts";
import { basicAuthorization, hermeticEnv, hermeticHome, modelConfig, openCodeBinary } from "./opencode.ts";
import type { ScriptedModel } from "./scripted-model.ts";
import { tempDir } from "./temp.ts";
import { until } from "./wait.ts";

/** A folder as one window follows it. */
export interface WatchedFolder extends FolderClient {
  /** As the changes that were told make it. */
  readonly tasks: ReadonlyMap<string, Task>;
  connection(): FolderSnapshot["connection"]["kind"];
}

/** One window: a client of the daemon, and its folder. */
export interface DaemonWindow {
  readonly client: DaemonClient;
  readonly folder: WatchedFolder;
  readonly log: readonly string[];
  close(): void;
}

/** A user's machine: a private state folder, a folder to work in, and the bundles of the product. */
export class DaemonDesk {
  readonly stateFolder = tempDir("state");
  readonly directory = tempDir("work");
  private readonly windows: DaemonWindow[] = [];
  /** The environment of its windows. */
  readonly env: Readonly<Record<string, string>>;

  private constructor(
    private readonly script: string,
    model: ScriptedModel,
    graceMs: number,
  ) {
    const env = { ...process.env, ...hermeticEnv(hermeticHome(), modelConfig(model)) };
    this.env = { ...(env as Record<string, string>), ASYNCAGENTS_DAEMON_GRACE_MS: String(graceMs) };
  }

  static async open(model: ScriptedModel, { graceMs = 60_000 } = {}): Promise<DaemonDesk> {
    return new DaemonDesk(await (bundles ??= buildBundles()), model, graceMs);
  }

  /** One more window on the folder; the daemon is started by the first one. */
  window(engine: Partial<EngineSettings> = {}, settings: Partial<FolderSettings> = {}): DaemonWindow {
    const log: string[] = [];
    const note =
      (level: string) =>
      (message: string): void =>
        void log.push(`${level} ${message}`);
    const client = new DaemonClient({
      stateFolder: this.stateFolder,
      version: "0.1.0",
      execPath: process.execPath,
      script: this.script,
      env: this.env,
      clock: realClock,
      logger: { debug: note("debug"), info: note("info"), warn: note("warn"), error: note("error") },
    });
    const folder = follow(
      client.open({
        directory: this.directory,
        env: this.env,
        settings: {
          engine: {
            pollInterval: 500,
            stallWarning: 0,
            notifyParent: true,
            maxDepth: 1,
            fork: { maxToolResultChars: 1_500, maxTokens: 100_000, strategy: "auto" },
            maxConcurrentTasks: 0,
            budget: {},
            ...engine,
          },
          server: { path: openCodeBinary(), startTimeoutMs: 60_000 },
          agentTools: true,
          keepWorkingMs: 3_600_000,
          watched: true,
          ...settings,
        },
      }),
    );
    const window = { client, folder, log, close: () => client.dispose() };
    this.windows.push(window);
    return window;
  }

  /** The process of the daemon; undefined: there is none. */
  daemonPid(): number | undefined {
    return readJson<{ pid: number }>(join(this.stateFolder, "daemon.json"))?.pid;
  }

  /** The server of the folder; undefined: there is none. */
  server(): RunningServer | undefined {
    return readJson<RunningServer>(serverFiles(this.stateFolder, this.directory).state);
  }

  /** Calls the server of the folder. */
  fetch(path: string, init: RequestInit = {}): Promise<Response> {
    const server = this.server();
    if (!server) throw new Error("There is no server.");
    const headers = new Headers(init.headers);
    headers.set("authorization", basicAuthorization(server.password));
    return fetch(server.url + path, { ...init, headers });
  }

  /** What the daemon logged. */
  log(): string {
    return readFileSync(join(this.stateFolder, "daemon.log"), "utf8");
  }

  /** Closes all windows, and ends what is left of the daemon and its server. */
  async close(): Promise<void> {
    for (const window of this.windows) window.close();
    const left = [this.daemonPid(), this.server()?.watchdogPid].filter((pid) => pid !== undefined);
    for (const pid of left) if (isAlive(pid)) process.kill(pid, "SIGTERM");
    await until("the end of the daemon and its server", () => !left.some(isAlive), 15_000);
  }
}

interface RunningServer {
  readonly url: string;
  readonly password: string;
  readonly pid: number;
  readonly watchdogPid: number;
}

/** Keeps what a window is told. */
function follow(folder: FolderClient): WatchedFolder {
  const tasks = new Map<string, Task>();
  let connection: FolderSnapshot["connection"]["kind"] = "disconnected";
  const apply = (change: FolderChange): void => {
    if (change.type === "reset") {
      tasks.clear();
      for (const task of change.snapshot.tasks) tasks.set(task.id, task);
      connection = change.snapshot.connection.kind;
    } else if (change.type === "connection") connection = change.state.kind;
    else if (change.type === "task" && change.task) tasks.set(change.id, change.task);
    else if (change.type === "task") tasks.delete(change.id);
  };
  folder.onDidChange((changes) => changes.forEach(apply));
  return Object.assign(folder, { tasks, connection: () => connection });
}

let bundles: Promise<string> | undefined;

/** The daemon and what it starts, as the extension brings them; built once. */
async function buildBundles(): Promise<string> {
  const { build } = await import("esbuild");
  const outdir = tempDir("dist");
  const common: BuildOptions = {
    bundle: true,
    platform: "node",
    logLevel: "error",
    mainFields: ["module", "main"],
  };
  const source = (path: string): string => join(import.meta.dirname, "../../src", path);
  const program = (path: string, name: string) =>
    build({ ...common, format: "cjs", entryPoints: [source(path)], outfile: join(outdir, name) });
  await Promise.all([
    program("daemon/main.ts", "daemon.cjs"),
    program("opencode/watchdog/main.ts", "watchdog.cjs"),
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

/** Undefined: there is no such file. */
function readJson<T>(path: string): T | undefined {
  try {
    return JSON.parse(readFileSync(path, "utf8")) as T;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
