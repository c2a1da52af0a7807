import assert from "node:assert/strict";
import { Emitter } from "../../../src/engine/event.ts";
import type { TaskChange } from "../../../src/engine/registry.ts";
import type { Task } from "../../../src/engine/task.ts";
import { blockingTime, waitForEnd, waitingTime } from "../../../src/engine/waiting.ts";
import { ManualClock, settled } from "../../support/manual-clock.ts";
import { NO_TOKENS, record } from "./builders.ts";

const task = (facts: Partial<Task> = {}): Task => ({
  ...record(),
  cost: 0,
  tokens: NO_TOKENS,
  ...facts,
});

describe("Waiting for tasks", () => {
  let clock: ManualClock;
  let changes: Emitter<TaskChange>;
  let tasks: Record<string, Task | undefined>;

  beforeEach(() => {
    clock = new ManualClock();
    changes = new Emitter((error) => {
      throw error;
    });
    tasks = { a: task({ id: "a" }), b: task({ id: "b", status: "resumed" }) };
  });

  function wait(ids: readonly string[], options: Parameters<typeof waitForEnd>[3] = {}): { over: string } {
    const state = { over: "" };
    const source = { get: (id: string) => tasks[id], onDidChange: changes.event };
    waitForEnd(source, clock, ids, options).then(
      () => (state.over = "ended"),
      (error: Error) => (state.over = error.message),
    );
    return state;
  }

  async function end(id: string, after: Task | undefined = task({ id, status: "completed" })): Promise<void> {
    tasks[id] = after;
    changes.fire({ id, before: undefined, after });
    await settled();
  }

  it("ends with the last of them, or with the first; one that is gone has ended", async () => {
    const [all, any] = [wait(["a", "b"]), wait(["a", "b"], { mode: "any" })];
    await end("c");
    assert.deepEqual([all.over, any.over], ["", ""]);
    await end("a");
    assert.deepEqual([all.over, any.over], ["", "ended"]);
    tasks["b"] = undefined;
    changes.fire({ id: "b", before: undefined, after: undefined });
    await settled();
    assert.equal(all.over, "ended");
    assert.equal(changes.size, 0);
  });

  it("ends at once if there is nothing to wait for, or no time", async () => {
    await end("a");
    const waits = [
      wait(["a"]),
      wait([]),
      wait([], { mode: "any" }),
      wait(["b"], { timeoutMs: 0 }),
      wait(["a", "b"], { mode: "any" }),
    ];
    await settled();
    assert.deepEqual(
      waits.map(({ over }) => over),
      waits.map(() => "ended"),
    );
    assert.deepEqual([changes.size, clock.pending], [0, 0]);
  });

  it("ends after its time, and leaves nothing behind", async () => {
    const state = wait(["a"], { timeoutMs: 1_000, signal: new AbortController().signal });
    await clock.advance(999);
    assert.equal(state.over, "");
    await clock.advance(1);
    assert.equal(state.over, "ended");
    assert.deepEqual([changes.size, clock.pending], [0, 0]);
  });

  it("can be cancelled, before and while it waits; the tasks continue", async () => {
    const controller = new AbortController();
    const state = wait(["a"], { timeoutMs: 1_000, signal: controller.signal });
    controller.abort();
    const early = wait(["a"], { signal: controller.signal });
    await settled();
    assert.deepEqual([state.over, early.over], Array(2).fill("Waiting was cancelled. The tasks continue."));
    assert.deepEqual([changes.size, clock.pending], [0, 0]);
  });

  it("has limits of its time", () => {
    assert.deepEqual(
      [blockingTime(), blockingTime(0), blockingTime(600), blockingTime(1e9)],
      [30_000, 0, 600_000, 600_000],
    );
    assert.deepEqual(
      [undefined, Infinity, 0, 5, 1e12].map((ms) => waitingTime(ms)),
      [undefined, undefined, 0, 5, 2_147_483_647],
    );
    for (const bad of [NaN, -1]) {
      assert.throws(() => blockingTime(bad), {
        code: "invalid-argument",
        message: "The timeout must be a number of seconds from 0 to 600.",
      });
      assert.throws(() => waitingTime(bad), {
        code: "invalid-argument",
        message: "The timeout must be a number of milliseconds, 0 or more.",
      });
    }
  });
});
