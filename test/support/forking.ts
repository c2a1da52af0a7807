import assert from "node:assert/strict";
import type { ForkSettings } from "../../src/engine/settings.ts";
import type { LaunchInput } from "../../src/engine/launcher.ts";
import type { AgentServer } from "../../src/engine/ports.ts";
import type { Message, Prompt } from "../../src/engine/server-model.ts";
import type { Task } from "../../src/engine/task.ts";
import { createSession, ended, openWindow, type EngineWindow } from "./engine.ts";
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

/** How a fork gets its conversation: as the server's copy, replayed into a new session, or as one text. */
export type Way = "copy" | "replay" | "text";
export const WAYS: readonly Way[] = ["copy", "replay", "text"];
/** Those in which something can be cut. */
export const REBUILDING: readonly Way[] = ["replay", "text"];

const FILLED_BY = { copy: "copySession", replay: "writeHistory", text: "prompt" } as const;

/** The limits of `fake/m2`, in tokens. */
const SMALL = { context: 100_000, output: 8_000 };

/** How the model sums a conversation up. */
export const SUMMARY = "The summary says blue.";

/** What is set besides the way. */
type WaySettings = Partial<ForkSettings> & { readonly hasReplay?: boolean };

/** A real server with a window on it and a conversation to fork, one way or another. */
export class Forking {
  /** The session whose conversation is forked, and that the forks are attached to. */
  parent = "";
  /** False: as on a server that conversations cannot be written to. */
  hasReplay = true;
  fork: ForkSettings = { maxToolResultChars: 1_500, maxTokens: 100_000, strategy: "auto" };
  maxConcurrentTasks = 0;
  /** What the engine gets in the place of calls to the server. */
  instead: Partial<AgentServer> = {};
  /** The last call by which a session got something to keep. */
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

  /** The server itself, past what stands in the place of its calls. */
  get real(): AgentServer {
    return this.window.connection.server;
  }

  /** Opens the window, again after it was closed. */
  async openWindow(): Promise<void> {
    const current = (): Pick<Forking, "fork" | "maxConcurrentTasks"> => this;
    const settings = {
      // The parent's conversation stays as it is, so that it can be forked again.
      notifyParent: false,
      get fork() {
        return current().fork;
      },
      get maxConcurrentTasks() {
        return current().maxConcurrentTasks;
      },
    };
    this.opened = await openWindow(this.server, settings, { between: (real) => this.between(real) });
  }

  /** Starts over with an empty conversation. */
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

  /** Forks from now on go this way where they can: a copy only where nothing is cut. */
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

  /** Puts messages into a new session. */
  seed(messages: readonly Message[], sessionID = this.parent): Promise<void> {
    return this.real.writeHistory(sessionID, messages);
  }

  async post(path: string, body: unknown): Promise<void> {
    const headers = { "content-type": "application/json" };
    const response = await this.server.fetch(path, { method: "POST", headers, body: JSON.stringify(body) });
    assert.ok(response.ok, `${path}: ${response.status}`);
    await response.arrayBuffer();
  }

  /** A turn of the parent, as a user asks for it, to its end. */
  say(text: string, ...files: readonly object[]): Promise<void> {
    const parts = [{ type: "text", text }, ...files];
    return this.post(`/session/${this.parent}/message`, { agent: "build", parts });
  }

  /** A turn of the parent that goes on. */
  begin(text: string): Promise<void> {
    const parts = [{ type: "text", text }];
    return this.post(`/session/${this.parent}/prompt_async`, { agent: "build", parts });
  }

  async parentIdle(): Promise<void> {
    await until("the end of the parent's turn", async () => !(await this.real.statuses()).has(this.parent));
  }

  /** Launches a fork of the parent, unless told otherwise. */
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

  /** A task that inherits nothing, to its end. */
  async plainTask(input: Partial<LaunchInput> = {}): Promise<Task> {
    return this.ended(await this.launch({ ...input, fork: undefined }));
  }

  requestsOf({ id }: Pick<Task, "id">): readonly ModelRequest[] {
    return this.model.requests.filter(({ sessionID, title }) => sessionID === id && !title);
  }

  /** What the task's model got with its first request. */
  async received({ id }: Pick<Task, "id">): Promise<Received> {
    const isFirst = ({ sessionID, title }: ModelRequest): boolean => sessionID === id && !title;
    return readReceived((await this.model.waitForRequest(isFirst)).messages);
  }

  /** What a fork of the parent gets that goes this way, and no other. */
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
          if (keeps || name === "copySession" || name === "writeHistory") this.filledBy = name;
          return Reflect.apply(member, receiver, args) as unknown;
        };
      },
    });
  }
}

/** The prompt of a fork, answered by this step. */
export function carryOn(step: ScriptStep = { text: "Forked." }): string {
  return script([step], "Carry on. ");
}
