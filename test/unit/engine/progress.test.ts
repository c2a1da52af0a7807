import assert from "node:assert/strict";
import { ProgressTracker } from "../../../src/engine/progress.ts";
import type { Part } from "../../../src/engine/server-model.ts";
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

  it("tells of each change that users see, and of nothing else", () => {
    const progress = new ProgressTracker(0);
    const busy = { type: "busy" } as const;
    const retry = { type: "retry", attempt: 1, message: "later", next: 50 } as const;
    assert.equal(progress.onStatus(busy, 1), true);
    assert.equal(progress.onStatus(busy, 2), false);
    assert.equal(progress.onStatus(retry, 3), true);
    assert.equal(progress.onStatus({ ...retry, message: "much later" }, 4), false);
    assert.equal(progress.onStatus({ ...retry, attempt: 2 }, 5), true);
    assert.equal(progress.onStatus(busy, 6), true);
    progress.onPart(textPart(""), 7);
    assert.equal(progress.onStatus(busy, 8), false);
    assert.equal(progress.snapshot().phase, "streaming");
    assert.equal(new ProgressTracker(0).onStatus({ type: "idle" }, 1), false);
  });

  it("tells when a call begins, gets a title, or ends", () => {
    const progress = new ProgressTracker(0);
    progress.onStatus({ type: "busy" }, 1);
    const pending = toolPart("a", "bash", "pending");
    const running = toolPart("a", "bash", "running");
    assert.ok(running.type === "tool" && running.state.status === "running");
    const titled = { ...running, state: { ...running.state, title: "List files" } };
    assert.equal(progress.onPart(pending, 2), true);
    assert.equal(progress.snapshot().phase, "tool");
    assert.equal(progress.onPart(pending, 3), false);
    assert.equal(progress.onPart(running, 4), true);
    assert.equal(progress.onPart(titled, 5), true);
    assert.equal(progress.onPart({ ...titled, state: { ...titled.state, title: "" } }, 6), false);
    assert.equal(progress.onPart(running, 7), false);
    assert.deepEqual(progress.snapshot().recentTools, [
      { tool: "bash", title: "List files", status: "running" },
    ]);
    assert.equal(progress.onPart(toolPart("a", "bash", "error"), 8), true);
    assert.equal(progress.onPart(running, 9), false);
    assert.equal(progress.snapshot().phase, "thinking");
  });

  it("thinks while the model reasons, and after its text", () => {
    const progress = new ProgressTracker(0);
    const reasoning = { ...textPart("Hm"), id: "prt_reasoning", type: "reasoning" } as Part;
    assert.equal(progress.onPart(reasoning, 1), true);
    assert.equal(progress.onPart(reasoning, 2), false);
    assert.equal(progress.onDelta("prt_reasoning", 3), false);
    assert.equal(progress.snapshot().phase, "thinking");
    assert.equal(progress.onDelta("prt_text", 4), true);
    assert.equal(progress.snapshot().phase, "streaming");
    assert.equal(progress.onPart(textPart("All.", { end: 5 }), 5), true);
    assert.equal(progress.snapshot().phase, "thinking");
    progress.checkStall(1_000, 100);
    assert.equal(progress.onPart(reasoning, 1_001), true);
  });

  it("tells of each request once, and takes only events that say how a turn goes", () => {
    const progress = new ProgressTracker(0);
    assert.equal(progress.accept({ type: "request-asked", request: permission }, 1), true);
    assert.equal(progress.accept({ type: "request-asked", request: permission }, 2), false);
    assert.equal(progress.accept({ type: "session-deleted", sessionID: "ses_task" }, 3), false);
    assert.equal(progress.snapshot().lastUpdate, 2);
  });

  it("waits for its slot, and for the setup command of its worktree", () => {
    const progress = new ProgressTracker(0, true);
    assert.equal(progress.snapshot().phase, "queued");
    progress.onSetup(5);
    assert.deepEqual([progress.snapshot().phase, progress.snapshot().lastUpdate], ["setting-up", 5]);
  });
});
