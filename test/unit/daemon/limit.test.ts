import assert from "node:assert/strict";
import { Limit } from "../../../src/daemon/limit.ts";

describe("a limit", () => {
  const never = new AbortController().signal;

  it("admits a number at once, and the others in order as those leave", async () => {
    const limit = new Limit(2);
    const inside: number[] = [];
    const leave = [await limit.enter(never), await limit.enter(never)];
    assert.ok(limit.isReached);
    const waiting = [3, 4].map(async (name) => {
      const left = await limit.enter(never);
      inside.push(name);
      return left;
    });
    leave[0]?.();
    (await waiting[0])?.();
    await waiting[1];
    assert.deepEqual(inside, [3, 4]);
    assert.ok(limit.isReached);
    leave[1]?.();
    assert.ok(!limit.isReached);
  });

  it("takes no place for a caller that gives up, before or while it waits", async () => {
    const limit = new Limit(1);
    const abort = new AbortController();
    const leave = await limit.enter(never);
    const waiting = limit.enter(abort.signal);
    abort.abort(new Error("given up"));
    await assert.rejects(waiting, /given up/);
    await assert.rejects(limit.enter(abort.signal), /given up/);
    leave();
    assert.ok(!limit.isReached);
  });
});
