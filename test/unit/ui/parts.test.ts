import assert from "node:assert/strict";
import { Parts } from "../../../src/ui/parts.ts";

describe("the parts of a window", () => {
  it("end in the opposite order, so that each has those that it was built on, and all though one fails", () => {
    const ended: string[] = [];
    const parts = new Parts();
    const part = (name: string): { dispose(): void } => ({ dispose: () => void ended.push(name) });
    const log = parts.own(part("log"));
    parts.own({
      dispose: () => {
        throw new Error("late");
      },
    });
    parts.own(part("view"));
    assert.throws(() => parts.dispose(), /late/);
    assert.deepEqual(ended, ["view", "log"]);
    assert.ok(log);
  });
});
