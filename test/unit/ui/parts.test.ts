import assert from "node:assert/strict";
import { Parts } from "../../../src/ui/parts.ts";

describe("the parts of a window", () => {
  it("are disposed in the opposite order, even if one fails", () => {
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
