import assert from "node:assert/strict";
import type { Child } from "../../src/engine/subagent.ts";
import type { Task } from "../../src/engine/task.ts";
import { createSession, ended, notices, openWindow, type EngineWindow } from "../support/engine.ts";
import { modelConfig, type OpenCodeServer } from "../support/opencode.ts";
import { script, type ScriptedModel, type ScriptStep } from "../support/scripted-model.ts";
import { setUp } from "../support/set-up.ts";
import { until } from "../support/wait.ts";

describe("adopting subagents that others launched", () => {
  let model: ScriptedModel;
  let server: OpenCodeServer;
  let window: EngineWindow;
  let parent: string;
  let made = 0;

  setUp(async (start) => {
    model = await start.model();
    const permission = { bash: { "*": "allow", "echo asked": "ask" } };
    server = await start.server({ model, config: { ...modelConfig(model), permission } });
    window = await start.engine(server);
  });

  beforeEach(async () => {
    parent = await createSession(server);
  });

  const post = (path: string, body: unknown, method = "POST"): Promise<Response> =>
    server.fetch(path, {
      method,
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
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

  const ask = (id: string, agent: string, ...steps: readonly ScriptStep[]): Promise<Response> =>
    post(`/session/${id}/prompt_async`, { agent, parts: [{ type: "text", text: script(steps) }] });

  /** A child session, as the terminal creates one. */
  async function createBelow(parentID = parent): Promise<string> {
    const answer = await post("/session", { parentID, title: "By hand", agent: "general" });
    const { id } = (await answer.json()) as { id: string };
    await until("the subagent", () => window.engine.child(id));
    return id;
  }

  const child = ({ engine } = window): Promise<Child> => until("the child", () => engine.children(parent)[0]);
  const isHeld = (gate: string) => model.waitForRequest(({ step }) => step.gate === gate);
  const bash = (command: string): ScriptStep => ({
    tools: [{ name: "bash", args: { command, description: command } }],
  });
  const rest = (...ids: readonly string[]): Promise<unknown> =>
    until("the sessions at rest", async () => {
      const busy = (await (await server.fetch("/session/status")).json()) as object;
      return ids.every((id) => !(id in busy));
    });
  const settledNotice = (id: string, { engine } = window): Promise<Task["notice"]> =>
    until("the notice", () => {
      const notice = engine.get(id)?.notice;
      return (notice?.state === "skipped" || notice?.state === "delivered") && notice;
    });

  it("a running subagent continues as a task, and its parent, whose own tool waits for it, gets no notice of that turn", async () => {
    await ask(parent, "build", delegate(bash("echo one"), { text: "found it", gate: "goes-on" }), {
      text: "ok",
    });
    const { id } = await child();
    await isHeld("goes-on");
    const adopted = await window.engine.adopt(id);
    assert.deepEqual(
      [adopted.status, adopted.launchedBy, adopted.description, adopted.agent, adopted.parentSessionID],
      ["running", "person", "Look", "general", parent],
    );
    assert.ok(adopted.adoptedAt);
    assert.equal(adopted.progress?.toolCalls, 1);
    assert.deepEqual(
      window.engine.children(parent).map((each) => each.id),
      [id],
    );
    model.release("goes-on");
    const task = await ended(window, id);
    assert.deepEqual([task.status, task.toolCalls], ["completed", 1]);
    assert.equal((await window.engine.output(id)).result, "found it");
    const notice = await settledNotice(id);
    assert.match(notice.state === "skipped" ? notice.reason : "", /OpenCode's task tool/);
    await rest(parent, id);
    assert.deepEqual(await notices(server, parent), []);
    // From now on no call waits for it.
    const resumed = await window.engine.resume(id, script([{ text: "more" }]));
    assert.deepEqual([resumed.status, resumed.resumeCount], ["resumed", 1]);
    assert.equal((await ended(window, id)).status, "completed");
    await until("the notice", async () => (await notices(server, parent)).length === 1);
    const [told] = await notices(server, parent);
    assert.match(told?.hidden ?? "", /more/);
  });

  for (const [how, stop] of [
    ["it is cancelled", (id: string) => window.engine.cancel(id)],
    ["its parent is stopped", () => server.fetch(`/session/${parent}/abort`, { method: "POST" })],
  ] as const)
    it(`an adopted subagent is cancelled when ${how}, and its parent gets no notice`, async () => {
      const gate = `stopped ${++made}`;
      await ask(parent, "build", delegate({ text: "begins", gate, gateAfterText: true }), { text: "ok" });
      const { id } = await child();
      await isHeld(gate);
      await window.engine.adopt(id);
      await stop(id);
      assert.equal((await ended(window, id)).status, "cancelled");
      assert.equal((await settledNotice(id)).state, "skipped");
      await rest(parent, id);
      assert.deepEqual(await notices(server, parent), []);
    });

  it("an adopted subagent that no tool waits for notifies its parent once", async () => {
    const id = await createBelow();
    await ask(id, "general", { text: "found it", gate: "alone" });
    await isHeld("alone");
    await window.engine.adopt(id);
    model.release("alone");
    await ended(window, id);
    assert.equal((await settledNotice(id)).state, "delivered");
    const told = await notices(server, parent);
    assert.equal(told.length, 1);
    assert.match(told[0]?.line ?? "", /"By hand" completed/);
    assert.match(told[0]?.hidden ?? "", /found it/);
  });

  it("an open request stays open after the adoption, and is answered as before", async () => {
    await ask(parent, "build", delegate(bash("echo asked"), { text: "allowed" }), { text: "ok" });
    const { id } = await child();
    const open = await until("the request", () => window.engine.openRequests()[0]);
    const adopted = await window.engine.adopt(id);
    assert.equal(adopted.progress?.phase, "needs-permission");
    assert.deepEqual(
      window.engine.openRequests().map(({ request }) => request.id),
      [open.request.id],
    );
    await window.engine.answer(open.request, { type: "permission", reply: "once" });
    assert.equal((await ended(window, id)).status, "completed");
    await rest(parent, id);
  });

  it("an idle subagent gets the status of its conversation, and its parent gets no notice", async () => {
    const failing = { status: 401, body: { error: { message: "key refused" } } };
    for (const [steps, status] of [
      [[bash("echo one"), { text: "found it" }], "completed"],
      [[failing], "error"],
    ] as const) {
      const id = await createBelow();
      await ask(id, "general", ...steps);
      await until("its end", () => window.engine.child(id)?.status !== "running" && answered(id));
      await rest(id);
      const adopted = await window.engine.adopt(id);
      assert.equal(adopted.status, status);
      assert.equal(adopted.error?.message, status === "error" ? "key refused" : undefined);
      assert.equal(adopted.toolCalls, steps.length - 1);
      assert.equal(adopted.notice.state, "skipped");
      assert.ok(adopted.endedAt !== undefined && adopted.endedAt >= adopted.startedAt);
      assert.deepEqual(await notices(server, parent), []);
      await server.fetch(`/session/${id}`, { method: "DELETE" });
    }
  });

  const answered = async (id: string): Promise<boolean> =>
    (await window.connection.server.messages(id)).some(
      ({ info }) => info.role === "assistant" && info.completed !== undefined && info.finish !== "tools",
    );

  it("an idle subagent is adopted and resumed in one step", async () => {
    const id = await createBelow();
    await ask(id, "general", { text: "first" });
    await until("its answer", () => answered(id));
    await rest(id);
    await until("its end in the window", () => window.engine.child(id)?.status !== "running");
    const resumed = await window.engine.resume(id, script([{ text: "second" }]));
    assert.deepEqual([resumed.status, resumed.resumeCount], ["resumed", 1]);
    await ended(window, id);
    assert.equal((await window.engine.output(id)).result, "second");
  });

  it("a subagent without a prompt, a root session, and one with a record of another version are refused", async () => {
    const id = await createBelow();
    await assert.rejects(window.engine.adopt(id), /has no prompt yet/);
    await assert.rejects(window.engine.adopt(parent), /Only subagents can be adopted/);
    await post(`/session/${id}`, { metadata: { asyncagents: { v: 99, id } } }, "PATCH");
    await until("the record", () => window.engine.child(id) === undefined);
    await assert.rejects(window.engine.adopt(id), /already has a task record.*newer version/);
    await assert.rejects(window.engine.adopt("ses_none"), { code: "unknown-session" });
  });

  it("other metadata of the session is kept", async () => {
    const id = await createBelow();
    await post(`/session/${id}`, { metadata: { other: { kept: true } } }, "PATCH");
    await ask(id, "general", { text: "first" });
    await until("its answer", () => answered(id));
    await window.engine.adopt(id);
    const { metadata } = (await (await server.fetch(`/session/${id}`)).json()) as {
      metadata: Record<string, unknown>;
    };
    assert.deepEqual(metadata["other"], { kept: true });
    assert.ok(JSON.stringify(metadata["asyncagents"]).length < 1_000);
  });

  it("an adopted subagent is cleared and restored, and its child can be adopted as well", async () => {
    const id = await createBelow();
    await ask(id, "general", { text: "found it" });
    const below = await createBelow(id);
    await ask(below, "general", { text: "deep" });
    await until("both answers", async () => (await answered(id)) && (await answered(below)));
    await rest(id, below);
    await window.engine.adopt(id);
    const deep = await window.engine.adopt(below);
    assert.deepEqual([deep.parentSessionID, deep.status], [id, "completed"]);
    await window.engine.clear(id);
    assert.deepEqual(window.engine.children(parent), []);
    await window.engine.restore(id);
    assert.deepEqual(
      window.engine.children(parent).map((each) => each.id),
      [id],
    );
  });

  it("another window follows an adopted subagent to its end after the window that adopted it closed", async () => {
    const first = await openWindow(server);
    const id = await createBelow();
    await until("the subagent", () => first.engine.child(id));
    await ask(id, "general", { text: "found it", gate: "handed on" });
    await isHeld("handed on");
    await first.engine.adopt(id);
    first.dispose();
    await until("the task", () => window.engine.get(id));
    model.release("handed on");
    assert.equal((await ended(window, id)).status, "completed");
    assert.equal((await settledNotice(id)).state, "delivered");
    assert.equal((await notices(server, parent)).length, 1);
  });
});
