import assert from "node:assert/strict";
import { runRound, type Outcome } from "../faults/round.ts";
import { startScriptedModel } from "../support/scripted-model.ts";

/** Together, these rounds kill everything that can be killed, cold and warm. `npm run faults` runs many more. */
const SEEDS = [2005, 2007, 2009, 2011, 2013, 2017];
const AT_ONCE = 3;

describe("crashes at random moments", function () {
  this.timeout(240_000);

  it("lose no work, end no task falsely, notify each parent once, and leave nothing behind", async function () {
    if (process.platform !== "linux") return this.skip();
    const model = await startScriptedModel();
    const outcomes: Outcome[] = [];
    const seeds = [...SEEDS];
    const lane = async (): Promise<void> => {
      for (let seed = seeds.shift(); seed !== undefined; seed = seeds.shift())
        outcomes.push(await runRound(model, seed));
    };
    try {
      await Promise.all(Array.from({ length: AT_ONCE }, lane));
    } finally {
      await model.stop();
    }
    const failed = outcomes.filter(({ faults }) => faults.length > 0);
    assert.deepEqual(
      failed.map(({ seed, plan, faults }) => ({ seed, plan, faults })),
      [],
    );
  });
});
