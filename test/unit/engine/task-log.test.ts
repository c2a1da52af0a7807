import assert from "node:assert/strict";
import { Emitter } from "../../../src/engine/event.ts";
import type { Logger } from "../../../src/engine/ports.ts";
import type { TaskChange, TaskRegistry } from "../../../src/engine/registry.ts";
import type { Phase, Progress, Task, TaskRecord } from "../../../src/engine/task.ts";
import { logTasks } from "../../../src/engine/task-log.ts";
import { NO_TOKENS, record } from "./builders.ts";

describe("The log of a task", () => {
  const changes = new Emitter<TaskChange>((error) => {
    throw error;
  });
  let log: string[];

  beforeEach(() => {
    log = [];
    const registry = { onDidChange: changes.event } as unknown as TaskRegistry;
    const logger = { info: (line: string) => void log.push(line) } as unknown as Logger;
    logTasks(registry, logger);
  });

  afterEach(() => changes.dispose());

  const task = (facts: Partial<Task> = {}): Task => ({
    ...record({ id: "ses_abcdef" }),
    cost: 0,
    tokens: NO_TOKENS,
    ...facts,
  });

  function lines(before: Partial<Task> | undefined, after: Partial<Task> | undefined): readonly string[] {
    log.length = 0;
    changes.fire({ id: "ses_abcdef", before: before && task(before), after: after && task(after) });
    return log.map((line) => {
      assert.ok(line.startsWith("Task abcdef: ") && line.endsWith("."), line);
      return line.slice("Task abcdef: ".length, -1);
    });
  }

  it("begins with where it comes from", () => {
    const batchID = "bat_0123456789abABCDEFGHIJKLMN";
    assert.deepEqual(lines(undefined, { batchID }), [
      `running, session ses_abcdef of ses_parent, launched by the user, agent general, batch ${batchID}`,
    ]);
    const all: Partial<TaskRecord> = {
      queued: true,
      launchedBy: "agent",
      batchID: "bat_ the secret plan",
      model: { providerID: "acme", modelID: "large" },
      forkedFrom: "ses_source",
      insteadOf: "ses_failed",
    };
    assert.deepEqual(lines(undefined, all), [
      "queued, session ses_abcdef of ses_parent, launched by an agent, agent general, model acme/large, named batch, forked from ses_source, instead of ses_failed",
    ]);
    const worktree = { name: "fix-the-bug-12ab", directory: "/a", base: "abc" };
    const [opening = ""] = lines(undefined, { worktree });
    assert.match(opening, /, worktree \S+$/);
    assert.doesNotMatch(opening, /the-bug/);
  });

  it("says nothing of one that had ended before it was known, and that one is gone", () => {
    assert.deepEqual(lines(undefined, { status: "completed" }), []);
    assert.deepEqual(lines(undefined, undefined), []);
    assert.deepEqual(lines({}, undefined), ["removed from the list"]);
    assert.deepEqual(lines({}, {}), []);
  });

  it("has its start, its end and its follow-ups", () => {
    assert.deepEqual(lines({ queued: true }, {}), ["started"]);
    assert.deepEqual(lines({ queued: true }, { queued: true }), []);
    const ended = { startedAt: 1_000, endedAt: 13_400, toolCalls: 3 };
    assert.deepEqual(lines({}, { ...ended, status: "completed" }), [
      "running → completed after 12 s, 3 tool calls so far",
    ]);
    const error = { name: "APIError", message: "Not logged." };
    assert.deepEqual(lines({ queued: true }, { ...ended, status: "error", error }), [
      "running → error (APIError) after 12 s, 3 tool calls so far",
    ]);
    const completed: Partial<Task> = { ...ended, status: "completed" };
    const resumed: Partial<Task> = { status: "resumed", resumeCount: 1 };
    assert.deepEqual(lines(completed, resumed), ["completed → resumed"]);
    assert.deepEqual(lines(resumed, { ...resumed, resumeCount: 2 }), ["resumed → resumed"]);
    assert.deepEqual(lines(resumed, completed), ["follow-up refused"]);
    assert.deepEqual(lines({}, { status: "cancelled" }), ["running → cancelled"]);
  });

  it("has what it waits for", () => {
    const progress = (phase: Phase): Partial<Task> => ({ progress: { phase } as Progress });
    const waits: readonly Phase[] = ["needs-permission", "needs-answer", "retrying", "stalled"];
    for (const phase of waits) {
      assert.deepEqual(lines(progress("streaming"), progress(phase)), [`waits (${phase})`]);
      assert.deepEqual(lines(progress(phase), progress("streaming")), ["continues"]);
      assert.deepEqual(lines(progress(phase), progress(phase)), []);
    }
    assert.deepEqual(lines(progress("streaming"), progress("tool")), []);
    assert.deepEqual(lines({}, progress("stalled")), ["waits (stalled)"]);
    const ended: Partial<Task> = { status: "cancelled" };
    assert.deepEqual(lines({ ...ended, ...progress("stalled") }, { ...ended, ...progress("streaming") }), []);
  });

  it("has what became of its worktree", () => {
    const worktree = { name: "fix", directory: "/a", base: "abc" };
    const pending = { ...worktree, setup: "pending" } as const;
    assert.deepEqual(lines({ worktree: pending }, { worktree }), ["worktree set up"]);
    assert.deepEqual(lines({ worktree: pending }, { worktree: { ...pending } }), []);
    const discarded = { ...worktree, outcome: "discarded" } as const;
    assert.deepEqual(lines({ worktree }, { worktree: discarded }), ["work discarded"]);
    assert.deepEqual(lines({ worktree: discarded }, { worktree }), ["work in its worktree again"]);
    assert.deepEqual(lines({ worktree }, {}), []);
  });

  it("has what its parent was told", () => {
    const pending = { state: "pending", messageID: "msg_1", attempts: 0 } as const;
    const delivered = { state: "delivered", messageID: "msg_1", at: 5 } as const;
    const skipped = { state: "skipped", reason: "Turned off in the settings." } as const;
    assert.deepEqual(lines({}, { notice: pending }), ["notice msg_1 is due"]);
    assert.deepEqual(lines({ notice: pending }, { notice: { ...pending } }), []);
    assert.deepEqual(lines({ notice: pending }, { notice: { ...pending, attempts: 2 } }), [
      "notice not delivered, attempt 2",
    ]);
    assert.deepEqual(lines({ notice: pending }, { notice: delivered }), ["notice msg_1 delivered"]);
    assert.deepEqual(lines({ notice: delivered }, { notice: { ...delivered, at: 6 } }), []);
    assert.deepEqual(lines({ notice: delivered }, { notice: { ...delivered, messageID: "msg_2" } }), [
      "notice msg_2 delivered",
    ]);
    assert.deepEqual(lines({}, { notice: skipped }), ["no notice: Turned off in the settings"]);
    assert.deepEqual(lines({ notice: skipped }, { notice: { ...skipped } }), []);
    assert.deepEqual(lines({ notice: delivered }, { notice: { state: "none" } }), []);
  });

  it("has that it was cleared and restored", () => {
    assert.deepEqual(lines({}, { clearedAt: 5 }), ["cleared"]);
    assert.deepEqual(lines({ clearedAt: 5 }, {}), ["restored"]);
    assert.deepEqual(lines({ clearedAt: 5 }, { clearedAt: 5 }), []);
  });
});
