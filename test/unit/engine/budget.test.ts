import assert from "node:assert/strict";
import fc from "fast-check";
import { exceeded, isNearlyUsed, isUsedUp, mostUsed, requireLimits } from "../../../src/engine/budget.ts";
import { percentOf, type LimitUse } from "../../../src/engine/limit.ts";

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
});
