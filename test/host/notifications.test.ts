import assert from "node:assert/strict";
import * as vscode from "vscode";
import { Emitter } from "../../src/engine/event.ts";
import { BUDGET_EXCEEDED } from "../../src/engine/limit.ts";
import type { TaskChange } from "../../src/engine/registry.ts";
import type { Task } from "../../src/engine/task.ts";
import { INTERRUPTED } from "../../src/engine/turn-errors.ts";
import { Notifications } from "../../src/ui/notifications.ts";
import type { NotificationContext } from "../../src/ui/task-notifications.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { until } from "../support/wait.ts";

const fail = (error: unknown): never => {
  throw error;
};

describe("notifications of ended tasks", () => {
  const { showErrorMessage } = vscode.window;
  let told: string[];
  let listed: readonly Task[];
  let clock: ManualClock;
  let changes: Emitter<TaskChange>;
  let notifyUser: ReturnType<NotificationContext["notifyUser"]>;
  let notifications: Notifications;

  beforeEach(() => {
    told = [];
    listed = [];
    clock = new ManualClock();
    changes = new Emitter<TaskChange>(fail);
    notifyUser = "always";
    vscode.window.showErrorMessage = async (message: string) => void told.push(message);
    const never = new Emitter<never>(fail).event;
    notifications = new Notifications({
      known: {
        list: () => listed,
        onDidChange: changes.event,
        onDidWarn: never,
        onDidRefuseSubagent: never,
      },
      tasks: { retry: fail, cancel: fail, cancelBatch: fail },
      clock,
      logger: { debug: fail, info: fail, warn: fail, error: fail },
      notifyUser: () => notifyUser,
      showOutput: () => undefined,
      showTasks: () => undefined,
      isShown: () => false,
    });
  });

  afterEach(() => {
    notifications.dispose();
    vscode.window.showErrorMessage = showErrorMessage;
  });

  /** Resolves when the end waits for others to be reported with it. */
  async function interrupt(id: string): Promise<void> {
    const before = { id, description: id, status: "running", launchedBy: "person" } as Task;
    const after: Task = { ...before, status: "error", endedAt: clock.now(), error: INTERRUPTED };
    changes.fire({ id, before, after });
    await until("that it waits for others", () => clock.pending > 0);
  }

  it("report once that a server stopped, for all tasks that it interrupted", async () => {
    for (const [id, ms] of [
      ["One", 0],
      ["Two", 1_900],
      ["Three", 1_900],
    ] as const) {
      await clock.advance(ms);
      await interrupt(id);
    }
    assert.deepEqual(told, []);
    await clock.advance(2_000);
    await until("the message", () => told.length > 0);
    assert.deepEqual(told, ["The OpenCode server stopped while 3 tasks were running."]);
    await interrupt("Later");
    await clock.advance(2_000);
    await until("the message", () => told.length > 1);
    assert.equal(
      told[1],
      'Task "Later" failed: The server stopped while the task was running. Retry it as a new task.',
    );
  });

  it("reports a batch of an agent's tasks that reached its limit once, in whatever order their ends arrive", async () => {
    const stopped = (id: string, endedAt: number, batchID: string): TaskChange => {
      const error = { name: BUDGET_EXCEEDED, message: "Stopped at its limit." };
      const before = { id, batchID, description: id, status: "running", launchedBy: "agent" } as Task;
      return { id, before, after: { ...before, status: "error", endedAt, error } };
    };
    // Two ends that arrive together: all tasks are known to have ended when the first change is fired.
    const pair = [stopped("One", 10, "a"), stopped("Two", 20, "a")];
    listed = pair.flatMap(({ after }) => after ?? []);
    for (const change of pair) changes.fire(change);
    // The end that came later arrives first.
    for (const change of [stopped("Four", 40, "b"), stopped("Three", 30, "b")]) changes.fire(change);
    changes.fire(stopped("Five", 6_000, "b"));
    await until("the messages", () => told.length >= 3);
    assert.deepEqual(
      told.map((text) => /"(\w+)"/.exec(text)?.[1]),
      ["One", "Four", "Five"],
    );
  });

  it("reports a batch of the user's tasks once, even if the last ends arrive together", async () => {
    const failed = (id: string, resumeCount = 0): TaskChange => {
      const error = { name: "APIError", message: "The key was refused." };
      const before = { id, batchID: "a", description: id, createdAt: 1, resumeCount } as Task;
      const task = { ...before, launchedBy: "person", status: "running" } as const;
      return { id, before: task, after: { ...task, status: "error", endedAt: 10, error } };
    };
    const pair = [failed("One"), failed("Two")];
    listed = pair.flatMap(({ after }) => after ?? []);
    for (const change of pair) changes.fire(change);
    listed = [];
    changes.fire(failed("Three"));
    await until("the messages", () => told.length >= 2);
    assert.equal(told.length, 2, told.join());
    assert.match(told.join(), /^Batch of 2: 2 failed,Task "Three"/);
  });

  it("are not shown if the user doesn't want them", async () => {
    notifyUser = "never";
    await interrupt("One");
    await interrupt("Two");
    await clock.advance(2_000);
    notifyUser = "always";
    await interrupt("Three");
    await clock.advance(2_000);
    await until("the message", () => told.length > 0);
    assert.match(told.join(), /^Task "Three"/);
  });
});
