import assert from "node:assert/strict";
import { search } from "../../src/daemon/conversation/search.ts";
import type { Clock } from "../../src/engine/ports.ts";
import type { Task } from "../../src/engine/task.ts";
import { createSession, ended, realClock, type EngineWindow } from "../support/engine.ts";
import { type OpenCodeServer } from "../support/opencode.ts";
import { script, type ScriptedModel, type ScriptStep } from "../support/scripted-model.ts";
import { setUp } from "../support/set-up.ts";
import { until } from "../support/wait.ts";

describe("output of a task", () => {
  let model: ScriptedModel;
  let server: OpenCodeServer;
  let window: EngineWindow;
  let parent: string;
  /** The delays in milliseconds of all timers that were set, and the timers that are still pending. */
  const delays: number[] = [];
  const timers = new Set<object>();
  const clock: Clock = {
    now: () => realClock.now(),
    after(ms, callback) {
      delays.push(ms);
      const key = {};
      timers.add(key);
      const timer = realClock.after(ms, () => {
        timers.delete(key);
        callback();
      });
      return {
        dispose() {
          timers.delete(key);
          timer.dispose();
        },
      };
    },
  };

  setUp(async (start) => {
    model = await start.model();
    server = await start.server({ model });
    window = await start.engine(server, {}, { clock });
    parent = await createSession(server);
  });

  const launch = (step: ScriptStep): Promise<Task> =>
    window.engine.launch({
      prompt: script([step]),
      agent: "general",
      parentSessionID: parent,
      launchedBy: "person",
    });

  it("[OUT-2] of a running task returns status and progress at once", async () => {
    const { id } = await launch({ text: "slow", gate: "out-2" });
    await model.waitForRequest(({ sessionID }) => sessionID === id);
    const { task, result } = await window.engine.output(id);
    assert.equal(task.status, "running");
    assert.equal(task.progress?.toolCalls, 0);
    assert.equal(task.retrievedAt, undefined);
    assert.equal(result, undefined);
    model.release("out-2");
    await ended(window, id);
  });

  it("[OUT-3] with block returns when the task completes, fails or is cancelled, in the same form as without", async () => {
    const ends: readonly (readonly [ScriptStep, string])[] = [
      [{ text: "Good.", gate: "out-3" }, "completed"],
      [{ status: 400, body: { error: { message: "Bad." } } }, "error"],
    ];
    for (const [step, status] of ends) {
      const { id } = await launch(step);
      const blocked = window.engine.output(id, { block: true });
      model.release("out-3");
      const waited = await blocked;
      const atOnce = await window.engine.output(id);
      assert.equal(waited.task.status, status);
      assert.deepEqual(Object.keys(waited), Object.keys(atOnce));
      assert.equal(waited.result, atOnce.result);
    }
    const { id } = await launch({ text: "x", gate: "never", gateAfterText: true });
    const blocked = window.engine.output(id, { block: true });
    await window.engine.cancel(id);
    assert.equal((await blocked).task.status, "cancelled");
  });

  it("[OUT-4] with block and a timeout returns the current status at the timeout", async () => {
    const { id } = await launch({ text: "slow", gate: "out-4" });
    const { task } = await window.engine.output(id, { block: true, timeout: 0.05 });
    assert.equal(task.status, "running");
    assert.equal((await window.engine.output(id, { block: true, timeout: 0 })).task.status, "running");
    model.release("out-4");
    await ended(window, id);
  });

  it("[OUT-5] with block waits 30 s by default and at most 600 s; an invalid timeout is refused", async () => {
    const { id } = await launch({ text: "slow", gate: "out-5" });
    delays.length = 0;
    const all = [undefined, 600, 601, 1e9, Infinity].map((timeout) =>
      window.engine.output(id, { block: true, timeout }),
    );
    assert.deepEqual(delays, [30_000, 600_000, 600_000, 600_000, 600_000]);
    for (const timeout of [-1, NaN])
      await assert.rejects(window.engine.output(id, { block: true, timeout }), /number of seconds/);
    model.release("out-5");
    for (const { task } of await Promise.all(all)) assert.equal(task.status, "completed");
  });

  it("[OUT-6] without block ignores the timeout, even an invalid one", async () => {
    const { id } = await launch({ text: "slow", gate: "out-6" });
    assert.equal((await window.engine.output(id, { timeout: 600 })).task.status, "running");
    assert.equal((await window.engine.output(id, { block: false, timeout: -1 })).task.status, "running");
    model.release("out-6");
    await ended(window, id);
  });

  it("is found by any text of its conversation: what the model has written so far, prompts and tool calls", async () => {
    const { id } = await launch({ text: "The lexer\nskips needles.", gate: "search", gateAfterText: true });
    await until("what is being streamed", async () => {
      const [hit] = await search(window.engine, id, "SKIPS  needles", server.directory);
      return hit?.line === "skips needles." && hit.nth === 0;
    });
    model.release("search");
    await ended(window, id);
    const [hit] = await search(window.engine, id, "skips needles", server.directory);
    assert.equal(hit?.line, "skips needles.");
    assert.deepEqual(await search(window.engine, id, "parser", server.directory), []);
    await assert.rejects(search(window.engine, "ses_nowhere", "needles", server.directory), /doesn't exist/);
  });

  it("[OUT-8] with block leaves no timer behind", async () => {
    const { id } = await launch({ text: "done", gate: "out-8" });
    const before = timers.size;
    const blocked = [1, 2, 3].map(() => window.engine.output(id, { block: true }));
    assert.equal(timers.size, before + 3);
    model.release("out-8");
    await Promise.all(blocked);
    await until("no timer of a waiting call", () => timers.size <= before);
  });

  it("leaves no timer once no task is running, so nothing is polled", async () => {
    const { id } = await launch({ text: "the last one" });
    assert.ok(timers.size > 0, "while it is active there is a timer");
    await ended(window, id);
    await until("the notice", () => window.engine.get(id)?.notice.state === "delivered");
    await until("no timer", () => timers.size === 0);
  });

  it("stops waiting at once when the caller aborts, and the task continues", async () => {
    const { id } = await launch({ text: "goes on", gate: "out-abort" });
    const caller = new AbortController();
    const blocked = window.engine.output(id, { block: true, signal: caller.signal });
    caller.abort();
    await assert.rejects(blocked, /Waiting was cancelled/);
    assert.equal(window.engine.get(id)?.status, "running");
    model.release("out-abort");
    await ended(window, id);
  });

  it("refuses unknown, ambiguous, empty and malformed IDs with a reason", async () => {
    const ids = [await launch({ text: "a" }), await launch({ text: "b" })].map(({ id }) => id);
    await assert.rejects(window.engine.output("zzzzzzzz"), /Task zzzzzzzz doesn't exist/);
    await assert.rejects(
      window.engine.output(ids[0]?.slice(0, 7) ?? ""),
      /Several tasks match ses_.*Use more of the ID/,
    );
    await assert.rejects(window.engine.output("ses_"), /ses_ is too short for a task ID/);
    await assert.rejects(window.engine.output("  "), /The task ID is empty/);
    await assert.rejects(window.engine.output("../etc\n"), /Task .* doesn't exist/);
    assert.equal((await window.engine.output(ids[0]?.slice(-6) ?? "")).task.id, ids[0]);
    for (const id of ids) await ended(window, id);
  });
});
