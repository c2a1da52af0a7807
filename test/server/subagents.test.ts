import assert from "node:assert/strict";
import { isTask, type Subagent } from "../../src/engine/subagent.ts";
import { createSession, openWindow, type EngineWindow } from "../support/engine.ts";
import { modelConfig, type OpenCodeServer } from "../support/opencode.ts";
import { script, type ScriptedModel, type ScriptStep } from "../support/scripted-model.ts";
import { setUp } from "../support/set-up.ts";
import { until } from "../support/wait.ts";

describe("subagents that others launched", () => {
  let model: ScriptedModel;
  let server: OpenCodeServer;
  let window: EngineWindow;
  let parent: string;
  let made = 0;

  setUp(async (start) => {
    model = await start.model();
    const permission = { bash: { "*": "allow", "echo asked": "ask" }, glob: "ask" };
    // By default OpenCode allows a child session no subagents of its own.
    server = await start.server({ model, config: { ...modelConfig(model), permission, subagent_depth: 3 } });
    window = await start.engine(server);
  });

  beforeEach(async () => {
    parent = await createSession(server);
  });

  /** A step that calls OpenCode's own tool, for a subagent that answers with these steps. */
  const delegate = (...steps: readonly ScriptStep[]): ScriptStep => {
    const args = {
      description: "Look",
      prompt: script(steps, `Look ${++made}. `),
      subagent_type: "general",
    };
    return { tools: [{ name: "task", args }] };
  };

  const post = (path: string, body: unknown, method = "POST"): Promise<Response> =>
    server.fetch(path, {
      method,
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });

  /** A user in the terminal asks the parent session something. */
  const ask = (...steps: readonly ScriptStep[]): Promise<Response> =>
    post(`/session/${parent}/prompt_async`, {
      agent: "build",
      parts: [{ type: "text", text: script(steps) }],
    });

  const subagent = (of = parent, { engine } = window): Promise<Subagent> =>
    until("the subagent", () => {
      const [child] = engine.children(of);
      return child?.launchedBy === "other" && child;
    });
  const status = (id: string): string | undefined => window.engine.child(id)?.status;
  const toBe = (id: string, wanted: Subagent["status"]) =>
    until(`the subagent to be ${wanted}`, () => status(id) === wanted);

  const isHeld = (gate: string) => model.waitForRequest(({ step }) => step.gate === gate);
  const bash = (command: string): ScriptStep => ({
    tools: [{ name: "bash", args: { command, description: command } }],
  });

  it("a subagent of OpenCode's own tool appears under its session, is followed, and becomes idle", async () => {
    const phases = new Set<string | undefined>();
    const subscription = window.engine.onDidChangeSubagent(({ after }) => phases.add(after?.progress?.phase));
    await ask(delegate(bash("echo one"), { text: "found it", gate: "appears" }), { text: "ok" });
    const { id } = await subagent();
    await isHeld("appears");
    const running = window.engine.child(id);
    assert.ok(running && !isTask(running));
    assert.equal(running.status, "running");
    assert.equal(running.parentSessionID, parent);
    assert.match(running.description, /^Look/);
    assert.equal(running.agent, "general");
    assert.deepEqual(running.model, { providerID: "fake", modelID: "m" });
    assert.deepEqual(running.progress?.toolCounts, { bash: 1 });
    assert.deepEqual(window.engine.list(parent), []);
    model.release("appears");
    await toBe(id, "idle");
    subscription.dispose();
    assert.ok(phases.has("tool") && phases.has("streaming"));
    const ended = await until("what it took", () => {
      const child = window.engine.child(id);
      return child && child.tokens.output > running.tokens.output && child;
    });
    assert.equal(ended.toolCalls, 1);
    assert.equal(ended.progress, undefined);
    assert.ok(ended.endedAt !== undefined && ended.endedAt >= ended.startedAt);
    const transcript = await window.engine.transcript(id);
    assert.match(JSON.stringify(transcript.messages.at(-1)?.parts), /found it/);
    transcript.dispose();
  });

  it("a subagent is stopped together with its child task", async () => {
    await ask(delegate({ text: "begins", gate: "stopped", gateAfterText: true }), { text: "ok" });
    const { id } = await subagent();
    const stream = await isHeld("stopped");
    const below = await window.engine.launch({
      prompt: script([{ text: "begins", gate: "below", gateAfterText: true }]),
      agent: "general",
      parentSessionID: id,
      launchedBy: "person",
    });
    const streamBelow = await isHeld("below");
    await window.engine.stopSubagent(id);
    await until("the end of both streams", () => stream.aborted && streamBelow.aborted);
    await toBe(id, "cancelled");
    assert.equal(window.engine.get(below.id)?.status, "cancelled");
    assert.equal(window.engine.child(id)?.error, undefined);
    await until("the abort told to its end", async () => (await busy()).length === 0);
    assert.equal(status(id), "cancelled");
  });

  const busy = async (): Promise<readonly string[]> =>
    Object.keys((await (await server.fetch("/session/status")).json()) as object);

  it("a subagent whose model fails says why, and runs again with the next prompt", async () => {
    await ask(delegate({ status: 401, body: { error: { message: "key refused" } } }), { text: "ok" });
    const { id } = await subagent();
    await toBe(id, "error");
    assert.deepEqual(window.engine.child(id)?.error, { name: "APIError", message: "key refused" });
    await until("the end of the parent's turn", async () => (await busy()).length === 0);
    const parts = [{ type: "text", text: script([{ text: "again", gate: "anew" }]) }];
    await post(`/session/${id}/prompt_async`, { agent: "general", parts });
    await isHeld("anew");
    await toBe(id, "running");
    assert.equal(window.engine.child(id)?.error, undefined);
    model.release("anew");
    await toBe(id, "idle");
  });

  it("a subagent's request is among the open requests until it is answered", async () => {
    let changes = 0;
    const subscription = window.engine.onDidChangeRequests(() => changes++);
    await ask(delegate(bash("echo asked"), { text: "allowed" }), { text: "ok" });
    const { id } = await subagent();
    const open = await until("the request", () =>
      window.engine.openRequests().find(({ child }) => child.id === id),
    );
    assert.equal(open.request.type, "permission");
    assert.deepEqual(window.engine.pendingRequests(id), [open.request]);
    await until("its phase", () => window.engine.child(id)?.progress?.phase === "needs-permission");
    assert.equal(changes, 1);
    await window.engine.answer(open.request, { type: "permission", reply: "once" });
    assert.deepEqual(window.engine.openRequests(), []);
    assert.equal(changes, 2);
    await toBe(id, "idle");
    subscription.dispose();
  });

  it("the request of a stopped subagent is no longer open", async () => {
    await ask(delegate(bash("echo asked"), { text: "never" }), { text: "ok" });
    const { id } = await subagent();
    await until("the request", () => window.engine.openRequests().length === 1);
    await window.engine.stopSubagent(id);
    await toBe(id, "cancelled");
    assert.deepEqual(window.engine.openRequests(), []);
    // The server itself keeps the request forever.
    const later = await openWindow(server);
    assert.deepEqual(later.engine.openRequests(), []);
    later.dispose();
  });

  it("a subagent's request stays known after a reconnect, even while the server cannot list it", async () => {
    const glob: ScriptStep = { tools: [{ name: "glob", args: { pattern: "*.ts" } }] };
    await ask(delegate(glob, { text: "allowed" }), { text: "ok" });
    const { id } = await subagent();
    const open = await until("the request", () =>
      window.engine.openRequests().find(({ child }) => child.id === id),
    );
    assert.equal((await server.fetch("/permission")).status, 400);
    await window.engine.connect();
    assert.deepEqual(
      window.engine.openRequests().map(({ request }) => request.id),
      [open.request.id],
    );
    assert.equal(window.engine.child(id)?.progress?.phase, "needs-permission");
    await window.engine.answer(open.request, { type: "permission", reply: "once" });
    await toBe(id, "idle");
  });

  it("a subagent of a task is its child, and cancelling the task stops it", async () => {
    const task = await window.engine.launch({
      prompt: script([delegate({ text: "begins", gate: "nested", gateAfterText: true })]),
      agent: "build",
      parentSessionID: parent,
      launchedBy: "person",
    });
    const { id } = await subagent(task.id);
    const stream = await isHeld("nested");
    assert.deepEqual(
      window.engine.children(parent).map((child) => child.id),
      [task.id],
    );
    await window.engine.cancel(task.id);
    await until("the end of the inner stream", () => stream.aborted);
    await toBe(id, "cancelled");
  });

  it("a running subagent is found by a window opened later, with its calls so far", async () => {
    await ask(delegate(bash("echo one"), { text: "found", gate: "later" }), { text: "ok" });
    const { id } = await subagent();
    await isHeld("later");
    const later = await openWindow(server);
    const found = await until("its calls", () => {
      const child = later.engine.child(id);
      return child?.progress?.toolCalls === 1 && child;
    });
    assert.equal(found.status, "running");
    const prompt = (await later.connection.server.messages(id)).findLast(({ info }) => info.role === "user");
    assert.equal(found.startedAt, prompt?.info.created);
    model.release("later");
    await until("its end in both windows", () =>
      [window, later].every(({ engine }) => engine.child(id)?.status === "idle"),
    );
    later.dispose();
  });

  it("a subagent whose server was killed is idle after the reconnect, and can be prompted again", async () => {
    await ask(delegate({ text: "begins", gate: "died", gateAfterText: true }));
    const { id } = await subagent();
    await isHeld("died");
    await server.restart();
    await toBe(id, "idle");
    const parts = [{ type: "text", text: script([{ text: "again", gate: "alive" }]) }];
    await post(`/session/${id}/prompt_async`, { agent: "general", parts });
    await isHeld("alive");
    await toBe(id, "running");
    model.release("alive");
    await toBe(id, "idle");
  });

  it("an archived or deleted subagent is gone", async () => {
    await ask(delegate({ text: "first" }), delegate({ text: "second" }), { text: "ok" });
    await until("both at rest", async () => children().length === 2 && (await busy()).length === 0);
    const [first, second] = children();
    assert.ok(first && second && first.createdAt < second.createdAt);
    await post(`/session/${first.id}`, { time: { archived: Date.now() } }, "PATCH");
    await until("one less", () => children().length === 1);
    assert.equal(window.engine.child(first.id), undefined);
    await server.fetch(`/session/${second.id}`, { method: "DELETE" });
    await until("none", () => children().length === 0);
    await assert.rejects(window.engine.stopSubagent(second.id), { code: "unknown-session" });
    await post(`/session/${first.id}`, { time: { archived: 0 } }, "PATCH");
    await until("the first again", () => children()[0]?.id === first.id);
  });

  const children = () => window.engine.children(parent);
});
