import assert from "node:assert/strict";
import type { Caller, EngineSettings } from "../../../src/engine/engine.ts";
import { Refusal, type RefusalCode } from "../../../src/engine/errors.ts";
import type { TaskCommands } from "../../../src/engine/task-commands.ts";
import type { Task } from "../../../src/engine/task.ts";
import { runOf } from "../../../src/tools/runs.ts";
import type { ToolCaller, ToolResult } from "../../../src/tools/tool.ts";
import { ManualClock, settled } from "../../support/manual-clock.ts";
import { memoryWindow, type MemoryWindow } from "../../support/memory-window.ts";
import { MemoryServer } from "../../support/memory-server.ts";

/** A tool's name without the common prefix. */
type Name = "task" | "output" | "cancel" | "list" | "clear";

const WRITES: readonly string[] = [
  "createSession",
  "copySession",
  "writeHistory",
  "deleteSession",
  "saveRecord",
  "restrict",
  "prompt",
  "abort",
  "answer",
];

interface Facts {
  readonly prompt?: string;
  readonly description?: string;
  readonly batchID?: string;
  readonly parent?: string;
  readonly by?: Caller;
}

/** A window with the tools, on an in-memory server, and a session whose agent calls them. */
export class ToolWindow {
  readonly clock = new ManualClock();
  readonly server: MemoryServer;
  readonly window: MemoryWindow;
  /** The engine's commands that the tools use; tests may replace them. */
  commands: TaskCommands;
  parent = "";

  private constructor(settings: Partial<EngineSettings>) {
    this.server = new MemoryServer({ now: () => this.clock.now() });
    this.window = memoryWindow(this.server, this.clock, settings);
    this.commands = this.window.engine;
    this.server.onEvent(() => this.window.link.deliver());
  }

  static async open(settings: Partial<EngineSettings> = {}): Promise<ToolWindow> {
    const opened = new ToolWindow(settings);
    opened.parent = (await opened.server.createSession({ title: "Parent", agent: "build" })).id;
    await opened.engine.connect();
    return opened;
  }

  get engine() {
    return this.window.engine;
  }

  dispose(): void {
    this.window.kill();
  }

  call(
    tool: Name,
    input: unknown = {},
    { signal = new AbortController().signal, ...caller }: Partial<ToolCaller> & { signal?: AbortSignal } = {},
  ): Promise<ToolResult> {
    return runOf(`asyncagents_${tool}`)(input, {
      caller: { sessionID: this.parent, by: "agent", ...caller },
      known: this.engine,
      commands: this.commands,
      signal,
      now: () => this.clock.now(),
    });
  }

  async text(tool: Name, input: unknown = {}, caller: Partial<ToolCaller> = {}): Promise<string> {
    return (await this.call(tool, input, caller)).text;
  }

  /** Asserts that the call is refused with one sentence, and changes nothing. */
  async refuses(
    tool: Name,
    input: unknown,
    sentence: RegExp | string,
    code: RefusalCode = "invalid-argument",
    caller: Partial<ToolCaller> = {},
  ): Promise<void> {
    const before = this.writes;
    await assert.rejects(this.call(tool, input, caller), (error) => {
      assert.ok(error instanceof Refusal, String(error));
      if (typeof sentence === "string") assert.equal(error.message, sentence);
      else assert.match(error.message, sentence);
      assert.match(error.message, /^[^\n]+\.$/, "one sentence");
      assert.equal(error.code, code);
      return true;
    });
    assert.equal(this.writes, before, "nothing was changed");
  }

  /** The number of calls that have changed something on the server. */
  get writes(): number {
    return this.server.journal.filter(({ call }) => WRITES.includes(call)).length;
  }

  /** Launches a task through the engine. */
  launch({
    prompt = "Work.",
    description,
    batchID,
    parent = this.parent,
    by = "agent",
  }: Facts = {}): Promise<Task> {
    return this.engine.launch({ prompt, description, batchID, parentSessionID: parent, launchedBy: by });
  }

  /** Launches a task that ends with this answer after this many milliseconds. */
  async launchDone(answer = "42", ms = 12_000, facts: Facts = {}): Promise<Task> {
    const { id } = await this.launch(facts);
    await this.clock.advance(ms);
    this.server.finish(id, answer);
    await settled();
    return this.task(id);
  }

  /** The ID of a session that is not the caller's. */
  async otherSession(): Promise<string> {
    return (await this.server.createSession({ title: "Other", agent: "build" })).id;
  }

  task(id: string): Task {
    const task = this.engine.get(id);
    assert.ok(task, `There is no task ${id}.`);
    return task;
  }
}
