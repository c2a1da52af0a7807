import assert from "node:assert/strict";
import type { ForkSettings } from "../../src/engine/settings.ts";
import type { LaunchInput } from "../../src/engine/launcher.ts";
import type { AgentServer } from "../../src/engine/ports.ts";
import type { Message, Prompt } from "../../src/engine/server-model.ts";
import type { Task } from "../../src/engine/task.ts";
import { createSession, ended, openWindow, type EngineWindow, type EngineWindowOptions } from "./engine.ts";
import { modelConfig, startOpenCode, type OpenCodeServer } from "./opencode.ts";
import { readReceived, type Received } from "./received.ts";
import {
  lastUserText,
  script,
  startScriptedModel,
  type ModelRequest,
  type ScriptedModel,
  type ScriptStep,
} from "./scripted-model.ts";
import { until } from "./wait.ts";

/** How a fork gets its conversation: as a copy made by the server, replayed into a new session, or as one text. */
export type Way = "copy" | "replay" | "text";
export const WAYS: readonly Way[] = ["copy", "replay", "text"];
/** The ways in which the conversation can be cut. */
export const REBUILDING: readonly Way[] = ["replay", "text"];

const FILLED_BY = { copy: "copySession", replay: "writeHistory", text: "prompt" } as const;

/** The limits of `fake/m2`, in tokens. */
const SMALL = { context: 100_000, output: 8_000 };

/** The model's summary of a conversation. */
export const SUMMARY = "The summary says blue.";

/** Settings in addition to the way. */
type WaySettings = Partial<ForkSettings> & { readonly hasReplay?: boolean };

/** A real server with a window, and a conversation that can be forked in different ways. */
export class Forking {
  /** The session whose conversation is forked, and which is the parent of the forks. */
  parent = "";
  /** Whether conversations can be written to the server. */
  hasReplay = true;
  fork: ForkSettings = { maxToolResultChars: 1_500, maxTokens: 100_000, strategy: "auto" };
  maxConcurrentTasks = 0;
  /** Replaces calls of the engine to the server. */
  instead: Partial<AgentServer> = {};
  /** The last call that filled a session with a conversation. */
  private filledBy: string | undefined;
  private opened: EngineWindow | undefined;

  private constructor(
    readonly model: ScriptedModel,
    readonly server: OpenCodeServer,
  ) {}

  static async start(): Promise<Forking> {
    const model = await startScriptedModel({
      fallback: ({ messages }) => ({ text: /summar/i.test(lastUserText(messages)) ? SUMMARY : "Yes." }),
    });
    const { provider } = modelConfig(model) as {
      provider: { fake: { models: Record<"m" | "m2", object> } };
    };
    const { m, m2 } = provider.fake.models;
    Object.assign(m, { cost: { input: 1, output: 1 } });
    Object.assign(m2, { limit: SMALL });
    const forking = new Forking(model, await startOpenCode({ model, config: { provider } }));
    await forking.openWindow();
    return forking;
  }

  get window(): EngineWindow {
    assert.ok(this.opened);
    return this.opened;
  }

  get engine(): EngineWindow["engine"] {
    return this.window.engine;
  }

  /** The server itself, without the replaced calls. */
  get real(): AgentServer {
    return this.window.connection.server;
  }

  /** Opens the window, also again after it was closed. */
  async openWindow({
    between = (real) => real,
    clock,
  }: Pick<EngineWindowOptions, "between" | "clock"> = {}): Promise<void> {
    const current = (): Pick<Forking, "fork" | "maxConcurrentTasks"> => this;
    const settings = {
      // Notices would change the parent's conversation, which is forked again later.
      notifyParent: false,
      get fork() {
        return current().fork;
      },
      get maxConcurrentTasks() {
        return current().maxConcurrentTasks;
      },
    };
    this.opened = await openWindow(this.server, settings, {
      between: (real) => this.between(between(real)),
      clock,
    });
  }

  /** Resets the options, and starts a new conversation. */
  async reset(): Promise<void> {
    this.use("replay");
    this.maxConcurrentTasks = 0;
    this.instead = {};
    this.parent = await this.newSession();
  }

  async stop(): Promise<void> {
    this.opened?.dispose();
    await this.server.stop();
    await this.model.stop();
  }

  /** Makes later forks go this way if possible: a copy is possible only if nothing is cut. */
  use(way: Way, { hasReplay = way !== "text", ...settings }: WaySettings = {}): void {
    this.hasReplay = hasReplay;
    const strategy = way === "copy" ? "fork" : "replay";
    this.fork = { maxToolResultChars: 1_500, maxTokens: 100_000, strategy, ...settings };
  }

  async newSession(): Promise<string> {
    const id = await createSession(this.server, "Source");
    await until("the session to be known", () => this.engine.session(id));
    return id;
  }

  /** Writes messages to a new session. */
  seed(messages: readonly Message[], sessionID = this.parent): Promise<void> {
    return this.real.writeHistory(sessionID, messages);
  }

  async post(path: string, body: unknown): Promise<void> {
    const headers = { "content-type": "application/json" };
    const response = await this.server.fetch(path, { method: "POST", headers, body: JSON.stringify(body) });
    assert.ok(response.ok, `${path}: ${response.status}`);
    await response.arrayBuffer();
  }

  /** Runs a turn of the parent with a user's prompt to its end. */
  say(text: string, ...files: readonly object[]): Promise<void> {
    const parts = [{ type: "text", text }, ...files];
    return this.post(`/session/${this.parent}/message`, { agent: "build", parts });
  }

  /** Starts a turn of the parent without waiting for its end. */
  begin(text: string): Promise<void> {
    const parts = [{ type: "text", text }];
    return this.post(`/session/${this.parent}/prompt_async`, { agent: "build", parts });
  }

  async parentIdle(): Promise<void> {
    await until("the end of the parent's turn", async () => !(await this.real.statuses()).has(this.parent));
  }

  /** Launches a task, by default a fork of the parent. */
  launch(input: Partial<LaunchInput> = {}): Promise<Task> {
    return this.engine.launch({
      prompt: carryOn(),
      description: "Fork",
      agent: "build",
      parentSessionID: this.parent,
      launchedBy: "person",
      fork: { sourceSessionID: this.parent },
      ...input,
    });
  }

  ended({ id }: Pick<Task, "id">): Promise<Task> {
    return ended(this.window, id);
  }

  /** Launches a task that inherits nothing, and waits for its end. */
  async plainTask(input: Partial<LaunchInput> = {}): Promise<Task> {
    return this.ended(await this.launch({ ...input, fork: undefined }));
  }

  requestsOf({ id }: Pick<Task, "id">): readonly ModelRequest[] {
    return this.model.requests.filter(({ sessionID, title }) => sessionID === id && !title);
  }

  /** What the task's model receives with its first request. */
  async received({ id }: Pick<Task, "id">): Promise<Received> {
    const isFirst = ({ sessionID, title }: ModelRequest): boolean => sessionID === id && !title;
    return readReceived((await this.model.waitForRequest(isFirst)).messages);
  }

  /** What a fork of the parent receives; asserts that the fork goes this way. */
  async forked(way: Way, settings?: WaySettings): Promise<Received> {
    this.use(way, settings);
    this.filledBy = undefined;
    const task = await this.launch();
    const received = await this.received(task);
    const hasSomething = received.heard.length > 0 || way === "copy";
    assert.equal(this.filledBy, hasSomething ? FILLED_BY[way] : undefined);
    assert.equal((await this.ended(task)).status, "completed");
    return received;
  }

  private between(real: AgentServer): AgentServer {
    return new Proxy(real, {
      get: (target, name, receiver): unknown => {
        if (name === "canWriteHistory" && !this.hasReplay) return () => Promise.resolve(false);
        const member: unknown =
          this.instead[name as keyof AgentServer] ?? Reflect.get(target, name, receiver);
        if (typeof member !== "function" || name === "onEvent") return member;
        return (...args: unknown[]): unknown => {
          const keeps = name === "prompt" && (args[1] as Prompt).noReply;
          const writes = name === "writeHistory" && (args[1] as readonly Message[]).length > 0;
          if (keeps || name === "copySession" || writes) this.filledBy = name;
          return Reflect.apply(member, receiver, args) as unknown;
        };
      },
    });
  }
}

/** The prompt of a fork, which the model answers with this step. */
export function carryOn(step: ScriptStep = { text: "Forked." }): string {
  return script([step], "Carry on. ");
}
