import assert from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";
import type { EngineSettings } from "../../src/engine/engine.ts";
import type { Task } from "../../src/engine/task.ts";
import { createSession, ended, notices, type EngineWindow } from "../support/engine.ts";
import { modelConfig, type OpenCodeServer } from "../support/opencode.ts";
import { script, type ScriptedModel, type ScriptStep } from "../support/scripted-model.ts";
import { setUp } from "../support/set-up.ts";
import { until } from "../support/wait.ts";

describe("queue, batches and descendants", () => {
  let model: ScriptedModel;
  let server: OpenCodeServer;
  let parent: string;

  const openEngine = setUp(async (start) => {
    model = await start.model();
    // By default OpenCode allows a child session no subagents of its own.
    // A task here has a subagent.
    server = await start.server({ model, config: { ...modelConfig(model), subagent_depth: 2 } });
  });

  beforeEach(async () => {
    parent = await createSession(server);
  });

  async function open(settings: Partial<EngineSettings> = {}): Promise<EngineWindow> {
    const window = await openEngine(server, settings);
    return window;
  }

  const launch = (
    window: EngineWindow,
    step: ScriptStep,
    batchID?: string,
    parentSessionID = parent,
    launchedBy: Task["launchedBy"] = "person",
  ): Promise<Task> =>
    window.engine.launch({
      prompt: script([step]),
      description: `Task ${step.gate ?? step.text}`,
      agent: "general",
      parentSessionID,
      launchedBy,
      batchID,
    });

  const phases = (window: EngineWindow): readonly (string | undefined)[] =>
    window.engine.list(parent).map(({ status, progress }) => progress?.phase ?? status);

  const isAsked = (taskID: string): boolean => model.requests.some(({ sessionID }) => sessionID === taskID);

  it("only as many tasks as allowed run at once; the others are queued and start in order", async () => {
    const window = await open({ maxConcurrentTasks: 2 });
    const gates = ["q1", "q2", "q3", "q4"];
    const tasks = await Promise.all(gates.map((gate) => launch(window, { text: gate, gate })));
    await until("two requests", () => tasks.filter(({ id }) => isAsked(id)).length === 2);
    const waiting = tasks.filter(({ id }) => window.engine.get(id)?.progress?.phase === "queued");
    assert.equal(waiting.length, 2);
    assert.ok(waiting.every(({ status }) => status === "running"));
    const [working] = tasks.filter(({ id }) => !waiting.some((other) => other.id === id));
    assert.ok(working && waiting[0] && waiting[1]);
    await window.engine.cancel(working.id);
    const oldest = window.engine.list(parent).find(({ id }) => waiting.some((other) => other.id === id));
    await until("the start of the one that waited longest", () => isAsked(oldest?.id ?? ""));
    for (const gate of gates) model.release(gate);
    for (const { id } of tasks) await ended(window, id);
    assert.deepEqual(phases(window).filter((status) => status === "completed").length, 3);
  });

  it("a queued task can be cancelled, and its prompt never reaches the model", async () => {
    const window = await open({ maxConcurrentTasks: 1 });
    const first = await launch(window, { text: "x", gate: "hold-1" });
    const second = await launch(window, { text: "never asked" });
    assert.equal((await window.engine.cancel(second.id)).status, "cancelled");
    model.release("hold-1");
    await ended(window, first.id);
    await until("both notices", async () => (await notices(server, parent)).length === 2);
    assert.ok(!isAsked(second.id));
  });

  it("a task that waits for the user takes no slot, and may exceed the limit when it continues", async () => {
    const window = await open({ maxConcurrentTasks: 1 });
    const asking = await launch(window, { tools: [{ name: "read", args: { filePath: "/etc/hostname" } }] });
    const request = await until("the request", () => window.engine.requests[0]);
    const [second, third] = [
      await launch(window, { text: "second", gate: "hold-8" }),
      await launch(window, { text: "third" }),
    ];
    await model.waitForRequest(({ sessionID }) => sessionID === second.id);
    const expected = ["needs-permission", "thinking", "queued"];
    await until(expected.join(), () => isDeepStrictEqual(phases(window), expected));
    await window.engine.answer(request, { type: "permission", reply: "once" });
    await ended(window, asking.id);
    assert.ok(!isAsked(third.id));
    model.release("hold-8");
    await ended(window, second.id);
    await ended(window, third.id);
  });

  it("a queued task starts when a running one begins to wait for the user", async () => {
    const window = await open({ maxConcurrentTasks: 1 });
    const asking = await launch(window, {
      gate: "hold-9",
      tools: [{ name: "read", args: { filePath: "/etc/hostname" } }],
    });
    const second = await launch(window, { text: "second" });
    await model.waitForRequest(({ sessionID }) => sessionID === asking.id);
    assert.deepEqual(phases(window).at(-1), "queued");
    model.release("hold-9");
    await ended(window, second.id);
    assert.equal(window.engine.get(asking.id)?.progress?.phase, "needs-permission");
    await window.engine.cancel(asking.id);
  });

  it("a queued task survives a reload of the window", async () => {
    const before = await open({ maxConcurrentTasks: 1 });
    const first = await launch(before, { text: "x", gate: "hold-2" });
    const second = await launch(before, { text: "after the reload" });
    await model.waitForRequest(({ sessionID }) => sessionID === first.id);
    before.dispose();
    const after = await open({ maxConcurrentTasks: 1 });
    assert.deepEqual(phases(after).at(-1), "queued");
    model.release("hold-2");
    await ended(after, second.id);
    assert.equal((await after.engine.output(second.id)).result, "after the reload");
  });

  it("[BAT-1] tasks that an agent launches while another of its tasks is running share a batch; each task of a user has its own", async () => {
    const window = await open();
    const byAgent = (text: string): Promise<Task> =>
      launch(window, { text, gate: `bat-${text}` }, undefined, parent, "agent");
    const [first, second] = await Promise.all([byAgent("a"), byAgent("b")]);
    const byPerson = await launch(window, { text: "c", gate: "bat-c" });
    const another = await launch(window, { text: "d", gate: "bat-d" });
    const third = await byAgent("e");
    assert.equal(first.batchID, second.batchID);
    assert.equal(first.batchID, third.batchID);
    assert.equal(new Set([first, byPerson, another].map(({ batchID }) => batchID)).size, 3);
    // Cancelled as the agent, so that the parent gets no notice, for which it has no answer in this test.
    const cancelled = await window.engine.cancelBatch(first.batchID, parent, "agent");
    assert.deepEqual(cancelled.map(({ id }) => id).sort(), [first, second, third].map(({ id }) => id).sort());
    const later = await byAgent("f");
    assert.notEqual(later.batchID, first.batchID);
    await window.engine.cancel(later.id, "agent");
    model.release("bat-c");
    model.release("bat-d");
    await Promise.all([byPerson, another].map(({ id }) => ended(window, id)));
  });

  it("[BAT-1] a batch is listed, waited for, cancelled and cleared as one", async () => {
    const window = await open();
    const quick = await launch(window, { text: "quick" }, "bat-given");
    const slow = await launch(window, { text: "slow", gate: "never", gateAfterText: true }, "bat-given");
    const other = await launch(window, { text: "other", gate: "bat-other" }, "bat-else");
    const ids = window.engine.batch("bat-given").map(({ id }) => id);
    assert.deepEqual(ids, [quick.id, slow.id]);
    const any = await window.engine.wait(ids, { mode: "any" });
    assert.deepEqual(
      any.map(({ status }) => status),
      ["completed", "running"],
    );
    await assert.rejects(window.engine.clearBatch("bat-given"), /still running/);
    const cancelled = await window.engine.cancelBatch("bat-given");
    assert.deepEqual(
      cancelled.map(({ id, status }) => [id, status]),
      [[slow.id, "cancelled"]],
    );
    assert.equal((await window.engine.wait(ids, { mode: "all" })).length, 2);
    await window.engine.clearBatch("bat-given");
    assert.deepEqual(
      window.engine.list(parent).map(({ id }) => id),
      [other.id],
    );
    await assert.rejects(window.engine.cancelBatch("bat-none"), /Batch bat-none doesn't exist/);
    model.release("bat-other");
    await ended(window, other.id);
  });

  it("the usage of tasks is summed over them and their descendants, each session once", async () => {
    const window = await open();
    const usage = { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 };
    const above = await ended(window, (await launch(window, { text: "above", usage }, "bat-sum")).id);
    const below = await ended(
      window,
      (await launch(window, { text: "below", usage }, "bat-sum", above.id)).id,
    );
    await until("the tokens of both", () => window.engine.totals([above.id]).tokens.input === 200);
    const both = window.engine.totals([above.id, below.id]);
    assert.equal(both.tasks, 2);
    assert.equal(both.tokens.input, 200);
    assert.equal(both.tokens.output, 20);
    assert.ok(both.duration > 0);
  });

  it("[STA-3] a cancel also stops a child of the task", async () => {
    const window = await open();
    const above = await launch(window, { text: "above", gate: "never-1", gateAfterText: true });
    const below = await launch(
      window,
      { text: "below", gate: "never-2", gateAfterText: true },
      undefined,
      above.id,
    );
    const requests = [above, below].map(({ id }) =>
      model.waitForRequest(({ sessionID }) => sessionID === id),
    );
    const streams = await Promise.all(requests);
    await window.engine.cancel(above.id);
    assert.equal(window.engine.get(below.id)?.status, "cancelled");
    await until("the end of both streams", () => streams.every(({ aborted }) => aborted));
    await until("an idle server", async () => {
      const statuses = (await (await server.fetch("/session/status")).json()) as object;
      return Object.keys(statuses).length === 0;
    });
  });

  it("[STA-3] a cancel stops the subagent that OpenCode's own tool launched", async () => {
    const window = await open();
    const inner = script([{ text: "inner", gate: "never-3", gateAfterText: true }], "Inner. ");
    const args = { description: "inner", prompt: inner, subagent_type: "general" };
    const task = await window.engine.launch({
      prompt: script([{ tools: [{ name: "task", args }] }], "Outer. "),
      agent: "build",
      parentSessionID: parent,
      launchedBy: "person",
    });
    const request = await model.waitForRequest(({ step }) => step.gate === "never-3");
    await window.engine.cancel(task.id);
    await until("the end of the inner stream", () => request.aborted);
  });

  it("clearing can delete the conversation as well", async () => {
    const window = await open();
    const { id } = await ended(window, (await launch(window, { text: "secret" })).id);
    await window.engine.clear(id, { deleteSession: true });
    await until("the end of the session", async () => (await server.fetch(`/session/${id}`)).status === 404);
    assert.equal(window.engine.get(id), undefined);
  });

  it("[OUT-7] the tasks of an archived session are not listed", async () => {
    const window = await open();
    await ended(window, (await launch(window, { text: "x" })).id);
    await server.fetch(`/session/${parent}`, {
      method: "PATCH",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ time: { archived: Date.now() } }),
    });
    await until("the empty list", () => window.engine.list(parent).length === 0);
  });
});
