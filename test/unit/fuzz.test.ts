import { fuzz, TARGETS } from "../fuzz/targets.ts";

/** Few, as this is the short form of `npm run fuzz`. The seed is fixed, so that a failure is not a matter of luck. */
const CASES = 40;
const SEED = 1;

describe("hostile data", () => {
  for (const target of TARGETS)
    it(`neither crashes nor loses anything, nor fails without a reason: ${target.name}`, () =>
      fuzz(target, SEED, CASES));
});
