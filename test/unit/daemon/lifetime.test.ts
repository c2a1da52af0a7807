import assert from "node:assert/strict";
import { Lifetime } from "../../../src/daemon/lifetime.ts";
import { ManualClock } from "../../support/manual-clock.ts";

describe("how long the daemon lives", () => {
  let clock: ManualClock;
  let lifetime: Lifetime;
  let ends: number;

  beforeEach(() => {
    clock = new ManualClock();
    ends = 0;
    lifetime = new Lifetime(clock, 60_000, () => ends++);
  });
  afterEach(() => lifetime.dispose());

  it("it ends if no window connects for the grace period, which begins once windows can", async () => {
    await clock.advance(600_000);
    lifetime.follow({ windows: 0 });
    await clock.advance(59_999);
    assert.equal(ends, 0);
    await clock.advance(1);
    assert.equal(ends, 1);
  });

  it("it lives while a window is connected, and for the grace period after the last one", async () => {
    lifetime.follow({ windows: 1 });
    await clock.advance(600_000);
    lifetime.follow({ windows: 0 });
    await clock.advance(30_000);
    lifetime.follow({ windows: 1 });
    await clock.advance(600_000);
    lifetime.follow({ windows: 0 });
    await clock.advance(59_999);
    assert.equal(ends, 0);
    await clock.advance(1);
    assert.equal(ends, 1);
  });

  it("it lives while a folder is kept, and ends with the last one once the grace period is over", async () => {
    lifetime.follow({ windows: 1 });
    lifetime.follow({ folders: 1 });
    lifetime.follow({ windows: 0 });
    await clock.advance(600_000);
    assert.equal(ends, 0);
    lifetime.follow({ folders: 0 });
    await clock.advance(0);
    assert.equal(ends, 1);
  });

  it("it ends in time even if the machine's clock was set back", async () => {
    lifetime.follow({ windows: 1 });
    lifetime.follow({ windows: 0 });
    clock.sleep(-24 * 3_600_000);
    lifetime.follow({ folders: 0 });
    await clock.advance(60_000);
    assert.equal(ends, 1);
  });
});
