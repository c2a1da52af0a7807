import assert from "node:assert/strict";
import { ProgressTracker } from "../../../src/engine/progress.ts";
import { textPart, toolPart } from "./builders.ts";

const permission = {
  type: "permission",
  id: "per_1",
  sessionID: "ses_task",
  permission: "bash",
  patterns: [],
  always: [],
  metadata: {},
} as const;

describe("progress of a turn", () => {
  it("goes from starting to thinking, a tool and streaming", () => {
    const progress = new ProgressTracker(0);
    assert.equal(progress.snapshot().phase, "starting");
    progress.onStatus({ type: "busy" }, 1);
    assert.equal(progress.snapshot().phase, "thinking");
    progress.onPart(toolPart("a", "bash", "running"), 2);
    assert.equal(progress.snapshot().phase, "tool");
    progress.onPart(toolPart("a", "bash", "completed"), 3);
    assert.equal(progress.snapshot().phase, "thinking");
    progress.onPart(textPart(""), 4);
    assert.equal(progress.snapshot().phase, "streaming");
    assert.equal(progress.snapshot().lastUpdate, 4);
  });

  it("a call counts once, however often it is reported, and the last five are kept in order", () => {
    const progress = new ProgressTracker(0);
    for (const id of ["a", "b", "c", "d", "e", "f"])
      for (const status of ["pending", "running", "completed"] as const)
        progress.onPart(toolPart(id, id, status), 1);
    const { toolCalls, recentTools } = progress.snapshot();
    assert.equal(toolCalls, 6);
    assert.deepEqual(
      recentTools.map(({ tool }) => tool),
      ["b", "c", "d", "e", "f"],
    );
  });

  it("a completed call stays completed, whatever is read of it later", () => {
    const progress = new ProgressTracker(0);
    progress.onPart(toolPart("a", "bash", "completed"), 1);
    assert.equal(progress.onPart(toolPart("a", "bash", "running"), 2), false);
    assert.deepEqual(
      progress.snapshot().recentTools.map(({ status }) => status),
      ["completed"],
    );
  });

  it("two thousand deltas of one text are no visible change", () => {
    const progress = new ProgressTracker(0);
    progress.onPart(textPart(""), 0);
    const visible = Array.from({ length: 2_000 }, (_, i) => progress.onDelta("prt_text", i)).filter(Boolean);
    assert.equal(visible.length, 0);
    assert.equal(progress.snapshot().lastUpdate, 1_999);
  });

  it("the user's text is no progress of the model", () => {
    const progress = new ProgressTracker(0);
    progress.onPart(
      { ...textPart("Do it"), type: "text", text: "Do it", synthetic: false, start: undefined },
      1,
    );
    assert.equal(progress.snapshot().phase, "starting");
  });

  it("an open request takes precedence, until it is closed or no longer known", () => {
    const progress = new ProgressTracker(0);
    progress.onRequestAsked(permission, 1);
    assert.equal(progress.snapshot().phase, "needs-permission");
    assert.equal(progress.keepRequests(new Set(["per_1"])), false);
    assert.equal(progress.keepRequests(new Set()), true);
    assert.equal(progress.snapshot().phase, "starting");
  });

  it("stalls after the limit without an update, but not while it waits for the user or a retry", () => {
    const progress = new ProgressTracker(0);
    assert.equal(progress.checkStall(99, 100), false);
    assert.equal(progress.checkStall(100, 100), true);
    assert.equal(progress.snapshot().phase, "stalled");
    assert.equal(progress.onDelta("prt_text", 150), true);
    assert.equal(progress.snapshot().phase, "streaming");
    progress.onRequestAsked(permission, 160);
    assert.equal(progress.checkStall(10_000, 100), false);
    progress.onRequestClosed("per_1", 10_000);
    progress.onStatus({ type: "retry", attempt: 1, message: "later", next: 50_000 }, 10_000);
    assert.equal(progress.checkStall(40_000, 100), false);
    assert.equal(progress.checkStall(50_000, 100), true);
    assert.equal(progress.checkStall(60_000, 0), true, "a limit of 0 switches the warning off");
    assert.equal(progress.snapshot().phase, "retrying");
  });
});
