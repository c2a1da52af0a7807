import assert from "node:assert/strict";
import fc from "fast-check";
import {
  batchIsFull,
  exceeded,
  hasMinutes,
  hasNoRoom,
  isNearlyUsed,
  isOverAlready,
  isUsedUp,
  mostUsed,
  mostUsedOf,
  requireLimits,
  tokenSum,
} from "../../../src/engine/budget.ts";
import { type LimitMeasure, percentOf, type LimitUse } from "../../../src/engine/limit.ts";

const NAMES = ["taskCost", "taskTokens", "taskMinutes", "batchCost", "batchTokens", "batchMinutes"] as const;

describe("a budget", () => {
  const COST = { limit: "taskCost", scope: "task", measure: "cost" } as const;
  const NOTHING = { cost: 0, tokens: 0, minutes: 0 };

  it("without limits does not ask for the usage", () => {
    const asked = (): never => assert.fail("asked");
    assert.equal(mostUsed({}, "task", asked), undefined);
    assert.equal(mostUsed({ taskCost: null, batchCost: 1 }, "task", asked), undefined);
  });

  it("names the most used limit", () => {
    const use = mostUsed({ taskCost: 2, taskTokens: 100, taskMinutes: 10, batchCost: 0.1 }, "task", () => ({
      cost: 1,
      tokens: 90,
      minutes: 1,
    }));
    assert.deepEqual(use, { limit: "taskTokens", scope: "task", measure: "tokens", used: 90, amount: 100 });
  });

  it("warns from 80% on and ends at 100%", () => {
    const amounts = fc.double({ min: 1e-6, max: 1e9, noNaN: true });
    fc.assert(
      fc.property(amounts, amounts, (used, amount) => {
        const use: LimitUse = { ...COST, used, amount };
        assert.equal(isNearlyUsed(use), used / amount >= 0.8);
        assert.equal(isUsedUp(use), used >= amount);
        if (isUsedUp(use)) assert.ok(isNearlyUsed(use));
        else assert.ok(percentOf(use) <= 100);
      }),
    );
  });

  it("refuses a limit that is not a number greater than 0, and treats it as no limit for running tasks", () => {
    const bad = fc.oneof(
      fc.double({ max: -Number.MIN_VALUE }),
      fc.constantFrom(NaN, Infinity, "5", "", true, {}, []),
    );
    fc.assert(
      fc.property(fc.constantFrom(...NAMES), bad, (name, value) => {
        assert.throws(() => requireLimits({ [name]: value }), {
          code: "invalid-argument",
          message: `The limit asyncagents.budget.${name} must be a number greater than 0. Change it in the settings, or clear it for no limit.`,
        });
        for (const scope of ["task", "batch"] as const)
          assert.equal(
            mostUsed({ [name]: value }, scope, () => NOTHING),
            undefined,
          );
      }),
    );
    assert.throws(
      () => requireLimits({ taskCost: 0 }),
      /would stop every task immediately\. Clear it for no limit/,
    );
    requireLimits({ taskCost: 0.01, batchTokens: null, batchMinutes: undefined });
  });

  it("says why a task was stopped, and what the user can do", () => {
    const messages = [
      exceeded({ ...COST, used: 1.2, amount: 1 }),
      exceeded({ ...COST, used: 1.2, amount: 0.0015 }),
      exceeded({ limit: "batchTokens", scope: "batch", measure: "tokens", used: 600_000, amount: 500_000 }),
      exceeded({ limit: "taskMinutes", scope: "task", measure: "minutes", used: 1, amount: 1 }),
    ].map(({ name, message, sentence }) => {
      assert.equal(name, "BudgetExceeded");
      assert.ok(sentence, "It can be translated.");
      return message;
    });
    const remedy = "then retry or continue the task.";
    assert.deepEqual(messages, [
      `Stopped at its limit of $1.00. The user can increase the limit (asyncagents.budget.taskCost), ${remedy}`,
      `Stopped at its limit of $0.0015. The user can increase the limit (asyncagents.budget.taskCost), ${remedy}`,
      `Stopped because its batch reached its limit of 500,000 tokens. The user can increase the limit (asyncagents.budget.batchTokens), ${remedy}`,
      `Stopped at its limit of 1 minute. The user can increase the limit (asyncagents.budget.taskMinutes), ${remedy}`,
    ]);
  });

  it("says what was used of which limit, and what makes room", () => {
    const task = {
      limit: "taskTokens",
      scope: "task",
      measure: "tokens",
      used: 1_200,
      amount: 1_000,
    } as const;
    const batch = {
      limit: "batchMinutes",
      scope: "batch",
      measure: "minutes",
      used: 2.25,
      amount: 0.5,
    } as const;
    const id = "ses_1234567890";
    const texts = [
      hasNoRoom(id, task),
      hasNoRoom(id, batch),
      batchIsFull("names", batch),
      isOverAlready(id, task),
    ].map((refusal) => {
      assert.equal(refusal.code, "over-budget");
      return refusal.message;
    });
    const use = {
      task: "has used 1,200 tokens of its limit of 1,000 tokens (asyncagents.budget.taskTokens)",
      batch: "has used 2.3 minutes of its limit of 0.5 minutes (asyncagents.budget.batchMinutes)",
    };
    const remedy = "The user can increase the limit.";
    assert.deepEqual(texts, [
      `Task 567890 ${use.task}. ${remedy}`,
      `The batch of task 567890 ${use.batch}. ${remedy}`,
      `Batch names ${use.batch}. The user can increase the limit.`,
      "Subagent 567890 has used 1,200 tokens of the limit of 1,000 tokens (asyncagents.budget.taskTokens) and would be stopped as a task. Increase the limit, or adopt the subagent when it has finished.",
    ]);
  });

  it("shows amounts with as many digits as they need", () => {
    const shown = (measure: LimitMeasure, amount: number): string =>
      /limit of (.*?)\. The/.exec(
        exceeded({ limit: "taskCost", scope: "task", measure, used: 0, amount }).message,
      )?.[1] ?? "";
    assert.deepEqual(
      [0, 0.000_12, 0.009_99, 0.01, 12.345].map((amount) => shown("cost", amount)),
      ["$0.00", "$0.00012", "$0.01", "$0.01", "$12.35"],
    );
    assert.deepEqual(
      [0.012, 0.94, 0.96, 1, 1.26, 90].map((amount) => shown("minutes", amount)),
      ["0.01 minutes", "0.9 minutes", "1 minute", "1 minute", "1.3 minutes", "90 minutes"],
    );
  });

  it("counts tokens of all kinds", () => {
    const tokens = { input: 1, output: 20, reasoning: 300, cacheRead: 4_000, cacheWrite: 50_000 };
    assert.equal(tokenSum(tokens), 54_321);
  });

  it("has minutes if one of the limits of time is valid", () => {
    assert.ok(!hasMinutes({ taskCost: 1, taskMinutes: null, batchMinutes: -1 }));
    assert.ok(hasMinutes({ taskMinutes: 1 }) && hasMinutes({ batchMinutes: 1 }));
  });

  it("names the first of several limits that are used alike", () => {
    const first = { ...COST, used: 1, amount: 2 };
    const second = { ...COST, limit: "batchCost", scope: "batch", used: 2, amount: 4 } as const;
    assert.equal(mostUsedOf([undefined, first, second]), first);
    assert.equal(mostUsedOf([undefined]), undefined);
  });
});
