import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createRequire } from "node:module";
import { join } from "node:path";
import { buildSync } from "esbuild";
import type { Task } from "../../src/engine/task.ts";
import type { FolderCalls } from "../../src/rpc/contract.ts";
import type { DeskPlace } from "../support/daemon.ts";
import { openCodeBinary } from "../support/opencode.ts";
import { tempDir } from "../support/temp.ts";
import type { WindowAnswer, WindowRequest } from "./window.ts";

/** The window was killed before it answered. */
export class WindowGone extends Error {
  override readonly name = "WindowGone";
}

let program: string | undefined;

/** The program of such a process, built once: many of them start at the same time. */
function windowProgram(): string {
  if (program !== undefined) return program;
  const esbuild = createRequire(import.meta.url).resolve("esbuild");
  program = join(tempDir("window"), "window.mjs");
  buildSync({
    bundle: true,
    platform: "node",
    format: "esm",
    logLevel: "error",
    mainFields: ["module", "main"],
    entryPoints: [join(import.meta.dirname, "window.ts")],
    outfile: program,
    // What only builds bundles isn't found from the program's folder, and isn't used.
    alias: { esbuild },
    external: [esbuild],
    // Its CommonJS parts require modules of Node.
    banner: {
      js: 'import { createRequire as requireFrom } from "node:module"; const require = requireFrom(import.meta.url);',
    },
  });
  return program;
}

/** A window whose process can be killed. */
export class WindowProcess {
  private readonly child: ChildProcess;
  private readonly waiting = new Map<number, (answer: WindowAnswer) => void>();
  private asked = 0;
  private readonly ended: Promise<unknown>;

  /** @param url the address of the server, in the settings of the window */
  constructor(place: DeskPlace, url?: string) {
    this.child = fork(windowProgram(), [JSON.stringify({ place, url })], {
      execArgv: [],
      env: { ...process.env, TEST_OPENCODE: openCodeBinary() },
    });
    this.ended = once(this.child, "exit");
    this.child.on("message", (answer: WindowAnswer) => this.waiting.get(answer.id)?.(answer));
  }

  get isOpen(): boolean {
    return this.child.connected && this.child.exitCode === null && this.child.signalCode === null;
  }

  tasks(): Promise<readonly Task[]> {
    return this.ask("tasks", []) as Promise<readonly Task[]>;
  }

  call<M extends keyof FolderCalls>(
    method: M,
    ...args: Parameters<FolderCalls[M]>
  ): ReturnType<FolderCalls[M]> {
    return this.ask(method, args) as ReturnType<FolderCalls[M]>;
  }

  signal(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }

  async kill(): Promise<void> {
    this.signal("SIGKILL");
    await this.ended;
  }

  async close(): Promise<void> {
    if (this.isOpen) this.child.disconnect();
    await this.ended;
  }

  private async ask(method: WindowRequest["method"], args: readonly unknown[]): Promise<unknown> {
    if (!this.isOpen) throw new WindowGone();
    const id = ++this.asked;
    const answered = new Promise<WindowAnswer>((resolve) => this.waiting.set(id, resolve));
    this.child.send({ id, method, args } satisfies WindowRequest, () => undefined);
    const answer = await Promise.race([answered, this.ended.then(() => undefined)]);
    this.waiting.delete(id);
    if (!answer) throw new WindowGone();
    if (answer.error !== undefined) throw new Error(answer.error);
    return answer.value;
  }
}
