import assert from "node:assert/strict";
import { DisposableStore } from "../../../src/engine/disposable-store.ts";

describe("parts that are disposed together", () => {
  it("are disposed in the opposite order, even if one fails", () => {
    const ended: string[] = [];
    const parts = new DisposableStore();
    const part = (name: string): { dispose(): void } => ({ dispose: () => void ended.push(name) });
    const log = parts.add(part("log"));
    parts.add({
      dispose: () => {
        throw new Error("late");
      },
    });
    parts.add(part("view"));
    assert.throws(() => parts.dispose(), /late/);
    assert.deepEqual(ended, ["view", "log"]);
    assert.ok(log);
  });
});
