import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createCommandHandler, createWindowCommands } from "../../src/bridge/window-commands.ts";
import { WriterElection } from "../../src/bridge/writer-election.ts";
import type { EngineSettings } from "../../src/engine/engine.ts";
import type { TaskCommands } from "../../src/engine/task-commands.ts";
import { openWindow, realClock, type EngineWindow } from "./engine.ts";
import type { OpenCodeServer } from "./opencode.ts";
import { tempDir } from "./temp.ts";
import type { Said, Told } from "./window-process.ts";

/** What a window needs to know of a server; can be told to another process. */
export type ReachableServer = Pick<OpenCodeServer, "url" | "password" | "directory" | "env">;

/** One of several windows on one server and folder. */
export interface SharedWindow extends EngineWindow {
  readonly election: WriterElection;
  /** As the surface of this window has them. */
  readonly commands: TaskCommands;
}

/** Opens a window that shares the server with those that have the same seat, and waits until its role is known. */
export async function openSharedWindow(
  server: ReachableServer,
  seat: string,
  settings: Partial<EngineSettings> = {},
): Promise<SharedWindow> {
  const window = await openWindow(server, settings, undefined, realClock, "follows");
  const { engine } = window;
  const election = new WriterElection({
    seat,
    handle: createCommandHandler(engine),
    setWriting: (writing) => engine.setWriting(writing),
    clock: realClock,
    logger: { debug() {}, info() {}, warn() {}, error() {} },
  });
  await election.start();
  return {
    ...window,
    election,
    commands: createWindowCommands(engine, election, realClock),
    dispose() {
      election.dispose();
      window.dispose();
    },
  };
}

/** A process of its own that takes part as a window does. */
export interface WindowProcess {
  tell(told: Told): Promise<Said>;
  /** Ends it as a crash would. */
  kill(): Promise<void>;
}

/** Starts such processes; the program is built once for all. */
export async function windowProcesses(count: number): Promise<readonly WindowProcess[]> {
  const program = await (bundle ??= buildProgram());
  return Promise.all(Array.from({ length: count }, () => start(program)));
}

let bundle: Promise<string> | undefined;

async function buildProgram(): Promise<string> {
  const { build } = await import("esbuild");
  const outfile = join(tempDir("window"), "window.cjs");
  const entryPoints = [join(import.meta.dirname, "window-process.ts")];
  await build({
    entryPoints,
    outfile,
    bundle: true,
    platform: "node",
    format: "cjs",
    target: "node20",
    external: ["esbuild"],
    logLevel: "error",
    logOverride: { "empty-import-meta": "silent" },
  });
  return outfile;
}

async function start(program: string): Promise<WindowProcess> {
  const child: ChildProcess = fork(program, { execArgv: [] });
  const ended = once(child, "exit");
  await once(child, "spawn");
  return {
    async tell(told) {
      const answer = once(child, "message") as Promise<[Said]>;
      child.send(told);
      const [said] = await answer;
      if (said.failure !== undefined) throw new Error(said.failure);
      return said;
    },
    async kill() {
      child.kill("SIGKILL");
      await ended;
    },
  };
}
