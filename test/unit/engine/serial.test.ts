import assert from "node:assert/strict";
import { Serial } from "../../../src/engine/serial.ts";
import { settled } from "../../support/manual-clock.ts";

describe("Jobs that run one at a time", () => {
  it("run in their order, also after one that failed, and each has its own outcome", async () => {
    const serial = new Serial();
    const ran: number[] = [];
    let finish: () => void = () => undefined;
    const first = serial.run(() => new Promise<void>((resolve) => (finish = resolve)));
    const second = serial.run(async () => {
      ran.push(2);
      throw new Error("Failed.");
    });
    const third = serial.run(async () => ran.push(3));
    const failed = assert.rejects(second, /Failed/);
    await settled();
    assert.deepEqual(ran, []);
    finish();
    await Promise.all([first, failed]);
    assert.equal(await third, 2);
    assert.deepEqual(ran, [2, 3]);
  });
});
