import assert from "node:assert/strict";
import { ChangeBatcher } from "../../../src/daemon/change-batcher.ts";
import { urgencyOf } from "../../../src/daemon/folder-feed.ts";
import type { Subagent } from "../../../src/engine/subagent.ts";
import type { Phase, Task } from "../../../src/engine/task.ts";
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

  it("progress is sent at most every 250 ms, each item once and in its latest state", async () => {
    let state = "a";
    for (const next of ["b", "c"]) {
      state = next;
      changes.note("one", () => session(state), "progress");
    }
    changes.note("two", () => session("two"), "progress");
    await clock.advance(249);
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

  it("what a model does while it works is progress; all that a user waits for is urgent", () => {
    const child = (phase: Phase | undefined, status: Subagent["status"] = "running"): Subagent =>
      ({ status, progress: phase && { phase } }) as Subagent;
    const urgency = (before: Phase, after: Phase): string =>
      urgencyOf({ before: child(before), after: child(after) });
    for (const before of ["thinking", "streaming", "tool"] as const)
      for (const after of ["thinking", "streaming", "tool"] as const)
        assert.equal(urgency(before, after), "progress");
    assert.equal(urgency("queued", "queued"), "progress");
    for (const phase of ["needs-permission", "needs-answer", "stalled", "retrying", "starting"] as const)
      assert.deepEqual([urgency("tool", phase), urgency(phase, "tool")], ["now", "now"]);
    assert.equal(urgencyOf({ before: child("streaming"), after: child(undefined, "idle") }), "now");
    const recorded = (revision: number): Task =>
      ({ ...child("tool"), launchedBy: "agent", revision }) as Task;
    assert.equal(urgencyOf({ before: recorded(1), after: recorded(2) }), "now");
    assert.equal(urgencyOf({ before: recorded(1), after: recorded(1) }), "progress");
    assert.equal(urgencyOf({ before: undefined, after: child("starting") }), "now");
    assert.equal(urgencyOf({ before: child("starting"), after: undefined }), "now");
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
