import assert from "node:assert/strict";
import { ChangeBatcher } from "../../../src/daemon/change-batcher.ts";
import type { FolderChange } from "../../../src/rpc/contract.ts";
import { strictLogger } from "../../bench/support/memory-engine.ts";
import { ManualClock, settled } from "../../support/manual-clock.ts";

describe("changes that windows are sent of a folder", () => {
  let clock: ManualClock;
  let changes: ChangeBatcher;
  let told: (readonly FolderChange[])[];

  beforeEach(() => {
    clock = new ManualClock();
    changes = new ChangeBatcher(clock, strictLogger);
    told = [];
    changes.onDidFlush((batch) => told.push(batch));
  });
  afterEach(() => changes.dispose());

  const session = (id: string): FolderChange => ({ type: "session", id });
  const ids = (): unknown => told.map((batch) => batch.map((change) => "id" in change && change.id));

  it("progress is sent at most every 100 ms, each item once and in its latest state", async () => {
    let state = "a";
    for (const next of ["b", "c"]) {
      state = next;
      changes.note("one", () => session(state), "progress");
    }
    changes.note("two", () => session("two"), "progress");
    await clock.advance(99);
    assert.deepEqual(told, []);
    await clock.advance(1);
    assert.deepEqual(ids(), [["c", "two"]]);
    await clock.advance(1_000);
    assert.equal(told.length, 1);
  });

  it("an urgent change is sent at once with all pending ones, in the order of their last change", async () => {
    changes.note("one", () => session("one"), "progress");
    changes.note("two", () => session("two"), "progress");
    changes.note("one", () => session("one"), "now");
    assert.deepEqual(told, []);
    await settled();
    assert.deepEqual(ids(), [["two", "one"]]);
    await clock.advance(1_000);
    assert.equal(told.length, 1);
  });

  it("events are not merged, and a flush leaves nothing to send", () => {
    changes.noteEvent(session("first"));
    changes.noteEvent(session("second"));
    changes.flush();
    changes.flush();
    assert.deepEqual(ids(), [["first", "second"]]);
    assert.equal(clock.pending, 0);
  });
});
