import assert from "node:assert/strict";
import { ChangeBatcher } from "../../../src/daemon/change-batcher.ts";
import type { FolderChange } from "../../../src/rpc/contract.ts";
import { strictLogger } from "../../bench/support/memory-engine.ts";
import { ManualClock, settled } from "../../support/manual-clock.ts";

describe("what windows are told of a folder", () => {
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

  it("progress is told every 100 ms at the most, each thing once and as it then is", async () => {
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

  it("what users wait for is told at once, with all that waits, in the order of what changed last", async () => {
    changes.note("one", () => session("one"), "progress");
    changes.note("two", () => session("two"), "progress");
    changes.note("one", () => session("one"), "now");
    assert.deepEqual(told, []);
    await settled();
    assert.deepEqual(ids(), [["two", "one"]]);
    await clock.advance(1_000);
    assert.equal(told.length, 1);
  });

  it("what happens twice is told twice, and a flush leaves nothing to be told", () => {
    changes.noteEvent(session("first"));
    changes.noteEvent(session("second"));
    changes.flush();
    changes.flush();
    assert.deepEqual(ids(), [["first", "second"]]);
    assert.equal(clock.pending, 0);
  });
});
