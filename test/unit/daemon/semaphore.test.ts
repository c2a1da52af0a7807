import assert from "node:assert/strict";
import { Semaphore } from "../../../src/daemon/semaphore.ts";

describe("a semaphore", () => {
  const never = new AbortController().signal;

  it("admits a number at once, and the others in order as those leave", async () => {
    const semaphore = new Semaphore(2);
    const inside: number[] = [];
    const leave = [await semaphore.enter(never), await semaphore.enter(never)];
    assert.ok(semaphore.isReached);
    const waiting = [3, 4].map(async (name) => {
      const left = await semaphore.enter(never);
      inside.push(name);
      return left;
    });
    leave[0]?.();
    (await waiting[0])?.();
    await waiting[1];
    assert.deepEqual(inside, [3, 4]);
    assert.ok(semaphore.isReached);
    leave[1]?.();
    assert.ok(!semaphore.isReached);
  });

  it("takes no place for a caller that gives up, before or while it waits", async () => {
    const semaphore = new Semaphore(1);
    const abort = new AbortController();
    const leave = await semaphore.enter(never);
    const waiting = semaphore.enter(abort.signal);
    abort.abort(new Error("given up"));
    await assert.rejects(waiting, /given up/);
    await assert.rejects(semaphore.enter(abort.signal), /given up/);
    leave();
    assert.ok(!semaphore.isReached);
  });
});
