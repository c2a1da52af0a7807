import assert from "node:assert/strict";
import type { Scenario } from "../faults/plan.ts";
import { runRound, type Outcome } from "../faults/round.ts";
import { startScriptedModel } from "../support/scripted-model.ts";

/** One of each scenario. `npm run faults` runs many more. */
const ROUNDS: readonly (readonly [Scenario, number])[] = [
  ["kills", 2007],
  ["stops", 1],
  ["two windows", 1],
  ["strangers", 1],
  ["disk", 1],
  ["descriptors", 1],
  ["clock", 1],
  ["network", 1],
];
const AT_ONCE = 4;

describe("faults at random moments", function () {
  this.timeout(240_000);

  it("lose no work, end no task falsely, notify each parent once, and leave nothing behind", async function () {
    if (process.platform !== "linux") return this.skip();
    const model = await startScriptedModel();
    const outcomes: Outcome[] = [];
    const rounds = [...ROUNDS];
    const lane = async (): Promise<void> => {
      for (let round = rounds.shift(); round; round = rounds.shift()) {
        const outcome = await runRound(model, ...round);
        if (outcome) outcomes.push(outcome);
      }
    };
    try {
      await Promise.all(Array.from({ length: AT_ONCE }, lane));
    } finally {
      await model.stop();
    }
    const failed = outcomes.filter(({ faults }) => faults.length > 0);
    assert.deepEqual(
      failed.map(({ scenario, seed, plan, faults }) => ({ scenario, seed, plan, faults })),
      [],
    );
  });
});
