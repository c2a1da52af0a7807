import assert from "node:assert/strict";
import fc from "fast-check";
import { exceeded, isNearlyUsed, isUsedUp, mostUsed, requireCeilings } from "../../../src/engine/budget.ts";
import { percentOf, type CeilingUse } from "../../../src/engine/ceiling.ts";

const NAMES = ["taskCost", "taskTokens", "taskMinutes", "batchCost", "batchTokens", "batchMinutes"] as const;

describe("a budget", () => {
  const COST = { ceiling: "taskCost", scope: "task", measure: "cost" } as const;
  const NOTHING = { cost: 0, tokens: 0, minutes: 0 };

  it("without ceilings asks nobody what was taken", () => {
    const asked = (): never => assert.fail("asked");
    assert.equal(mostUsed({}, "task", asked), undefined);
    assert.equal(mostUsed({ taskCost: null, batchCost: 1 }, "task", asked), undefined);
  });

  it("names the ceiling that is used most", () => {
    const use = mostUsed({ taskCost: 2, taskTokens: 100, taskMinutes: 10, batchCost: 0.1 }, "task", () => ({
      cost: 1,
      tokens: 90,
      minutes: 1,
    }));
    assert.deepEqual(use, { ceiling: "taskTokens", scope: "task", measure: "tokens", used: 90, limit: 100 });
  });

  it("warns from 80 % on and ends at 100 %", () => {
    const amount = fc.double({ min: 1e-6, max: 1e9, noNaN: true });
    fc.assert(
      fc.property(amount, amount, (used, limit) => {
        const use: CeilingUse = { ...COST, used, limit };
        assert.equal(isNearlyUsed(use), used / limit >= 0.8);
        assert.equal(isUsedUp(use), used >= limit);
        if (isUsedUp(use)) assert.ok(isNearlyUsed(use));
        else assert.ok(percentOf(use) <= 100);
      }),
    );
  });

  it("refuses a ceiling that is no number over 0, and takes it for none where something works", () => {
    const bad = fc.oneof(
      fc.double({ max: -Number.MIN_VALUE }),
      fc.constantFrom(NaN, Infinity, "5", "", true, {}, []),
    );
    fc.assert(
      fc.property(fc.constantFrom(...NAMES), bad, (name, value) => {
        assert.throws(() => requireCeilings({ [name]: value }), {
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
      () => requireCeilings({ taskCost: 0 }),
      /would stop every task immediately\. Clear it for no limit/,
    );
    requireCeilings({ taskCost: 0.01, batchTokens: null, batchMinutes: undefined });
  });

  it("says why a task was stopped, and who can do what about it", () => {
    const messages = [
      exceeded({ ...COST, used: 1.2, limit: 1 }),
      exceeded({ ...COST, used: 1.2, limit: 0.0015 }),
      exceeded({ ceiling: "batchTokens", scope: "batch", measure: "tokens", used: 600_000, limit: 500_000 }),
      exceeded({ ceiling: "taskMinutes", scope: "task", measure: "minutes", used: 1, limit: 1 }),
    ].map(({ name, message, sentence }) => {
      assert.equal(name, "BudgetExceeded");
      assert.ok(sentence, "It can be translated.");
      return message;
    });
    const remedy = "then retry the task, or fork it to continue.";
    assert.deepEqual(messages, [
      `Stopped at its limit of $1.00. The user can increase the limit (asyncagents.budget.taskCost), ${remedy}`,
      `Stopped at its limit of $0.0015. The user can increase the limit (asyncagents.budget.taskCost), ${remedy}`,
      `Stopped because its batch reached its limit of 500,000 tokens. The user can increase the limit (asyncagents.budget.batchTokens), ${remedy}`,
      `Stopped at its limit of 1 minute. The user can increase the limit (asyncagents.budget.taskMinutes), ${remedy}`,
    ]);
  });
});
