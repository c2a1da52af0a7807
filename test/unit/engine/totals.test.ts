import assert from "node:assert/strict";
import type { Progress, Task, TokenUsage } from "../../../src/engine/task.ts";
import { spent, totals } from "../../../src/engine/totals.ts";
import { NO_TOKENS, record } from "./builders.ts";

const task = (facts: Partial<Task> = {}): Task => ({
  ...record(),
  cost: 0,
  tokens: NO_TOKENS,
  ...facts,
});

describe("What tasks used together", () => {
  const tokens = (input: number): TokenUsage => ({
    ...{ input, output: 10 * input, reasoning: 100 * input },
    ...{ cacheRead: 1_000 * input, cacheWrite: 10_000 * input },
  });
  const session = (id: string, cost: number, input: number) => ({ id, cost, tokens: tokens(input) });

  it("counts each session once, with those below them, and of tasks only their own part", () => {
    const sessions = [session("a", 100, 9), session("b", 2, 2), session("c", 4, 3), session("gone", 8, 4)];
    const tasks = [
      task({ id: "a", cost: 1, tokens: tokens(1), createdAt: 50, status: "completed", endedAt: 400 }),
      task({ id: "b", cost: 2, tokens: tokens(2), createdAt: 100, toolCalls: 3 }),
      task({ id: "never", createdAt: 70, status: "cancelled" }),
    ].map((one) => (one.id === "b" ? { ...one, progress: { toolCalls: 4 } as Progress } : one));
    const source = {
      session: (id: string) => sessions.find((one) => one.id === id),
      descendantsOf: (id: string) => (id === "a" ? sessions.slice(1, 3) : []),
      get: (id: string) => tasks.find((one) => one.id === id),
    };
    assert.deepEqual(totals(source, ["a", "b", "unknown"], 1_000), {
      tasks: 2,
      cost: 7,
      tokens: tokens(6),
      toolCalls: 7,
      duration: 950,
    });
    assert.deepEqual(totals(source, ["a"], 1_000).duration, 950);
    assert.deepEqual(totals({ ...source, descendantsOf: () => [] }, ["a"], 1_000).duration, 350);
    const none = totals(source, ["c"], 1_000);
    assert.deepEqual([none.tasks, none.cost, none.duration], [0, 4, 0]);
  });

  it("leaves out what was copied from another conversation", () => {
    assert.deepEqual(spent({ cost: 3, tokens: tokens(5) }, undefined), { cost: 3, tokens: tokens(5) });
    const own = spent({ cost: 3, tokens: tokens(5) }, { cost: 1, ...tokens(2) });
    assert.deepEqual(own, { cost: 2, tokens: tokens(3) });
  });
});
