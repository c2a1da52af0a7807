import assert from "node:assert/strict";
import type { Budget } from "../../src/engine/limit.ts";
import type { LaunchInput } from "../../src/engine/launcher.ts";
import type { Task } from "../../src/engine/task.ts";
import { createSession, ended, notices, type EngineWindow } from "../support/engine.ts";
import { modelConfig, type OpenCodeServer } from "../support/opencode.ts";
import { script, type ScriptedModel, type ScriptStep } from "../support/scripted-model.ts";
import { setUp } from "../support/set-up.ts";
import { until } from "../support/wait.ts";

/** A step that costs 40 cents, at a dollar for a million tokens, and goes on. */
const USAGE = { prompt_tokens: 399_000, completion_tokens: 1_000, total_tokens: 400_000 };
const STEP: ScriptStep = { usage: USAGE, tools: [{ name: "glob", args: { pattern: "*.none" } }] };

describe("limits on a real server", () => {
  let model: ScriptedModel;
  let server: OpenCodeServer;
  let parent: string;

  const openEngine = setUp(async (start) => {
    model = await start.model();
    const { provider } = modelConfig(model) as {
      provider: { fake: { models: Record<"m", { limit?: { context: number; output: number } }> } };
    };
    // Room for steps this large, or the server compacts the conversation.
    Object.assign(provider.fake.models.m, {
      cost: { input: 1, output: 1 },
      limit: { context: 10_000_000, output: 10_000 },
    });
    // By default OpenCode allows a child session no subagents of its own.
    // A task here has a subagent.
    server = await start.server({ model, config: { provider, subagent_depth: 2 } });
  });

  beforeEach(async () => {
    parent = await createSession(server);
  });

  const open = (budget: Budget): Promise<EngineWindow> => openEngine(server, { budget });

  const input = (steps: readonly ScriptStep[], facts: Partial<LaunchInput> = {}): LaunchInput => ({
    prompt: script(steps),
    description: "Dear",
    agent: "general",
    parentSessionID: parent,
    launchedBy: "person",
    ...facts,
  });

  async function isIdle(): Promise<boolean> {
    const statuses = (await (await server.fetch("/session/status")).json()) as object;
    return Object.keys(statuses).length === 0;
  }

  it("a task is warned of near its limit, another one is stopped at it, and the parent is notified once of the reason", async () => {
    const window = await open({ taskCost: 1 });
    const warnings: Task[] = [];
    window.engine.onDidWarn((task) => warnings.push(task));
    const held = { text: "Third.", gate: "dear", gateAfterText: true };
    const { id } = await window.engine.launch(input([STEP, STEP, held, { text: "never" }]));
    const last = await model.waitForRequest(
      ({ sessionID, step }) => sessionID === id && step.gate === "dear",
    );
    // The cost of a step is reported when the step ends, while the turn continues.
    await until("the warning", () => warnings.length === 1);
    assert.equal(warnings[0]?.nearLimit?.used.toFixed(2), "0.80");
    assert.equal(window.engine.get(id)?.status, "running");
    const more = await window.engine.launch(input([STEP, STEP, STEP, { text: "never", gate: "over" }]));
    const { status, error } = await ended(window, more.id);
    assert.deepEqual([status, error?.name], ["error", "BudgetExceeded"]);
    assert.match(error?.message ?? "", /limit of \$1\.00 .*|asyncagents\.budget\.taskCost/);
    await until("its notice", async () => (await notices(server, parent)).length === 1);
    const [notice] = await notices(server, parent);
    assert.match(
      notice?.hidden ?? "",
      /Error \(BudgetExceeded\):\n<from-task-\w+>\nStopped at its limit of \$1\.00\./,
    );
    assert.equal(window.engine.get(id)?.status, "running");
    assert.equal(last.aborted, false);
    await window.engine.cancel(id, "agent");
    await until("an idle server", isIdle);
    assert.equal((await notices(server, parent)).length, 1);
    assert.equal(window.engine.get(more.id)?.status, "error");
  });

  it("a subagent's steps count toward the limit of its task, and it stops with the task", async () => {
    const window = await open({ taskCost: 1 });
    const inner = script(
      [STEP, STEP, STEP, { text: "inner", gate: "inner", gateAfterText: true }],
      "Inner. ",
    );
    const args = { description: "inner", prompt: inner, subagent_type: "general" };
    const { id } = await window.engine.launch(
      input([{ tools: [{ name: "task", args }] }], { agent: "build" }),
    );
    const { error } = await ended(window, id);
    assert.equal(error?.name, "BudgetExceeded");
    await until("an idle server", isIdle);
  });

  it("a limit in minutes stops a task whose model is silent", async () => {
    const window = await open({ taskMinutes: 0.02 });
    const { id } = await window.engine.launch(input([{ hang: true }]));
    const { error } = await ended(window, id);
    assert.match(error?.message ?? "", /^Stopped at its limit of 0\.02 minutes/);
    await until("an idle server", isIdle);
  });

  it("a batch is stopped as a whole, including a queued task", async () => {
    const window = await openEngine(server, { budget: { batchCost: 1 }, maxConcurrentTasks: 2 });
    const batchID = "bat-dear";
    const dear = [STEP, STEP, { text: "held", gate: "held-batch", gateAfterText: true }];
    const tasks: Task[] = [];
    for (const steps of [dear, dear, [{ text: "never asked" }]])
      tasks.push(await window.engine.launch(input(steps, { batchID })));
    const outcomes = await Promise.all(tasks.map(({ id }) => ended(window, id)));
    assert.deepEqual(
      outcomes.map(({ error }) => error?.name),
      ["BudgetExceeded", "BudgetExceeded", "BudgetExceeded"],
    );
    assert.ok(!model.requests.some(({ sessionID }) => sessionID === tasks[2]?.id));
    await until("the notices", async () => (await notices(server, parent)).length === 3);
    await assert.rejects(window.engine.launch(input([], { batchID })), { code: "over-budget" });
    await until("an idle server", isIdle);
  });
});
