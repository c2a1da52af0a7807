import assert from "node:assert/strict";
import * as vscode from "vscode";
import { Emitter } from "../../src/engine/event.ts";
import { freshID } from "../../src/engine/ids.ts";
import type { MirroredRequest } from "../../src/engine/folder-changes.ts";
import { BUDGET_EXCEEDED } from "../../src/engine/limit.ts";
import type { TaskChange } from "../../src/engine/registry.ts";
import type { OpenRequest } from "../../src/engine/requests.ts";
import type { Task } from "../../src/engine/task.ts";
import { INTERRUPTED } from "../../src/engine/turn-errors.ts";
import { Notifications, RequestNotifications } from "../../src/ui/notifications.ts";
import type { FlowContext } from "../../src/ui/requests/answer-flow.ts";
import type { NotificationContext } from "../../src/ui/task-notifications.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { until } from "../support/wait.ts";

const fail = (error: unknown): never => {
  throw error;
};

describe("notifications of ended tasks", () => {
  const { showErrorMessage, showInformationMessage } = vscode.window;
  let told: string[];
  let listed: readonly Task[];
  let active: readonly Task[];
  /** The tasks as they are now. */
  let ended: Map<string, Task>;
  let isListShown: boolean;
  /** The task whose output is in front of the user. */
  let outputShown: string | undefined;
  /** How often the user was led to the list. */
  let ledToList: number;
  /** The button that the user takes. */
  let taken: string | undefined;
  /** Closes the failure that is shown. */
  let close: () => void;
  let clock: ManualClock;
  let changes: Emitter<TaskChange>;
  let notifyUser: ReturnType<NotificationContext["notifyUser"]>;
  let notifications: Notifications;

  beforeEach(() => {
    told = [];
    listed = [];
    active = [];
    ended = new Map();
    isListShown = false;
    outputShown = undefined;
    ledToList = 0;
    taken = undefined;
    clock = new ManualClock();
    changes = new Emitter<TaskChange>(fail);
    notifyUser = "always";
    vscode.window.showErrorMessage = async (message: string, ...buttons: readonly unknown[]) => {
      told.push(message);
      const button = buttons.find((one) => one === taken);
      if (button !== undefined) return button as never;
      return new Promise<undefined>((resolve) => (close = () => resolve(undefined)));
    };
    vscode.window.showInformationMessage = async (message: string) => void told.push(message);
    const never = new Emitter<never>(fail).event;
    notifications = new Notifications({
      folders: { of: () => undefined },
      known: {
        get: (id) => ended.get(id),
        active: () => active,
        list: () => listed,
        onDidChange: changes.event,
        onDidWarn: never,
        onDidRefuse: never,
      },
      tasks: { cancel: fail, cancelBatch: fail },
      clock,
      logger: { debug: fail, info: fail, warn: fail, error: fail },
      notifyUser: () => notifyUser,
      showOutput: () => undefined,
      showTasks: () => void ledToList++,
      isShown: (id) => id === outputShown,
      isListShown: ({ id }) => isListShown && id !== "Elsewhere",
    });
  });

  afterEach(() => {
    notifications.dispose();
    Object.assign(vscode.window, { showErrorMessage, showInformationMessage });
  });

  const running = (id: string, facts: Partial<Task> = {}): Task =>
    ({ id, batchID: id, description: id, status: "running", launchedBy: "person", ...facts }) as Task;
  const failed = { status: "error", error: { name: "APIError", message: "The key was refused." } } as const;

  /** Resolves when the end waits for others. */
  async function end(before: Task, facts: Partial<Task> = { status: "completed" }): Promise<void> {
    const { id } = before;
    const after = { ...before, endedAt: clock.now(), ...facts } as Task;
    ended.set(id, after);
    changes.fire({ id, before, after });
    await until("that it waits for others", () => clock.pending > 0);
  }

  const tells = async (ms: number, ...expected: readonly string[]): Promise<void> => {
    await clock.advance(ms);
    await until(expected.join(), () => told.length >= expected.length);
    assert.deepEqual(told, expected);
  };

  it("report together what ends within 10 seconds, and at once when nothing else runs", async () => {
    const last = running("Last");
    active = [last];
    for (const id of ["One", "Two", "Three"]) {
      await end(running(id));
      await clock.advance(3_000);
    }
    assert.deepEqual(told, []);
    await tells(1_000, "3 tasks have ended: 3 completed");
    active = [];
    await end(last);
    await tells(500, "3 tasks have ended: 3 completed", 'Task "Last" completed.');
  });

  it("are not shown for what completed while the list is visible, or was cleared or resumed since", async () => {
    isListShown = true;
    await end(running("Bad"), failed);
    await clock.advance(500);
    assert.equal(told.length, 1);
    const good = running("Seen");
    ended.set("Seen", good);
    changes.fire({ id: "Seen", before: good, after: { ...good, status: "completed", endedAt: 1 } });
    isListShown = false;
    await end(running("Cleared"));
    ended.set("Cleared", { ...(ended.get("Cleared") as Task), clearedAt: 2 });
    await end(running("Resumed"));
    ended.set("Resumed", running("Resumed"));
    await end(running("Told"));
    await tells(500, 'Task "Bad" failed: The key was refused.', 'Task "Told" completed.');
  });

  it("are shown for what the visible list doesn't have, such as a task of another session", async () => {
    isListShown = true;
    await end(running("Elsewhere"));
    await tells(500, 'Task "Elsewhere" completed.');
  });

  it("are not shown for what ends in front of the user in its output, even if the list is hidden", async () => {
    outputShown = "Open";
    for (const facts of [failed, { status: "completed" } as const]) {
      const open = running("Open");
      const after = { ...open, ...facts, endedAt: 1 } as Task;
      ended.set("Open", after);
      changes.fire({ id: "Open", before: open, after });
    }
    await end(running("Elsewhere"), failed);
    await tells(500, 'Task "Elsewhere" failed: The key was refused.');
  });

  it("lead to the list if there are several", async () => {
    taken = "Show Tasks";
    for (const id of ["One", "Two"]) await end(running(id));
    await end(running("Three"), failed);
    await tells(500, "3 tasks have ended: 2 completed, 1 failed");
    await until("the list", () => ledToList === 1);
  });

  it("are not shown for a follow-up that the server refused, as the task had ended before", async () => {
    const before = running("Refused", { status: "resumed", resumeCount: 1 });
    const after: Task = { ...before, status: "completed", resumeCount: 0, endedAt: clock.now() };
    ended.set("Refused", after);
    changes.fire({ id: "Refused", before, after });
    await end(running("Told"));
    await tells(500, 'Task "Told" completed.');
  });

  it("wait while a failure is shown, and are then counted in one", async () => {
    await end(running("One"), failed);
    await clock.advance(500);
    for (const id of ["Two", "Three", "Four"]) {
      await end(running(id), failed);
      await clock.advance(10_000);
    }
    assert.equal(told.length, 1);
    ended.delete("Four");
    close();
    await tells(0, 'Task "One" failed: The key was refused.', "2 tasks have ended: 2 failed");
  });

  it("wait no longer than a minute for a failure, which Escape may have hidden", async () => {
    await end(running("One"), failed);
    await clock.advance(500);
    for (const id of ["Two", "Three"]) {
      await end(running(id), failed);
      await clock.advance(10_000);
    }
    assert.equal(told.length, 1);
    const expected = ['Task "One" failed: The key was refused.', "2 tasks have ended: 2 failed"];
    const [closeFirst] = [close];
    await tells(40_000, ...expected);
    // The end of the first one doesn't end the wait for the second.
    closeFirst();
    await end(running("Four"), failed);
    await tells(10_000, ...expected);
    close();
    await tells(0, ...expected, 'Task "Four" failed: The key was refused.');
  });

  it("report together what completes while a failure waits for another one", async () => {
    active = [running("Elsewhere")];
    await end(running("One"), failed);
    await clock.advance(10_000);
    await end(running("Two"), failed);
    await clock.advance(10_000);
    const expected = ['Task "One" failed: The key was refused.'];
    assert.deepEqual(told, expected);
    await end(running("Three"));
    await clock.advance(2_000);
    await end(running("Four"));
    await tells(1_000, ...expected);
    await tells(7_000, ...expected, "2 tasks have ended: 2 completed");
  });

  it("report once that a server stopped, for all tasks that it interrupted", async () => {
    const interrupted = { status: "error", error: INTERRUPTED } as const;
    active = [running("Elsewhere")];
    await end(running("One"), interrupted);
    await clock.advance(1_900);
    await end(running("Two"), interrupted);
    active = [];
    await end(running("Three"), interrupted);
    await tells(500, "The OpenCode server stopped while 3 tasks were running.");
  });

  it("report a batch of an agent's tasks that reached its limit once, in whatever order their ends arrive", async () => {
    const stopped = (id: string, endedAt: number, batchID: string): Promise<void> => {
      const error = { name: BUDGET_EXCEEDED, message: "Stopped at its limit." };
      return end(running(id, { batchID, launchedBy: "agent" }), { status: "error", endedAt, error });
    };
    await stopped("One", 10, "a");
    await stopped("Two", 20, "a");
    // The end that came later arrives first.
    await stopped("Four", 40, "b");
    await stopped("Three", 30, "b");
    await stopped("Five", 6_000, "b");
    await tells(500, "3 tasks have ended: 3 failed");
  });

  it("report a retry by itself, even if it was launched right after the task that failed", async () => {
    const batchID = "a";
    const first = running("Refused", { batchID, createdAt: 1, ...failed });
    const retry = running("Retry", { batchID, createdAt: 2, insteadOf: "Refused" });
    listed = [first, { ...retry, status: "completed" }];
    await end(retry);
    await tells(500, 'Task "Retry" completed.');
  });

  it("report a retry by itself, even in a batch of which nothing else runs, or that was reported", async () => {
    const batchID = freshID("bat", 1, Math.random);
    const pair = ["One", "Two"].map((id) => running(id, { batchID, createdAt: 1 }));
    const retry = running("Retry", { batchID, createdAt: 2, insteadOf: "Two" });
    listed = [...pair.map((task) => ({ ...task, ...failed, endedAt: 10 })), retry];
    for (const task of pair) await end(task, { ...failed, endedAt: 10 });
    await tells(500, "Batch of 2: 2 failed");
    listed = [...listed.slice(0, 2), { ...retry, status: "completed" }];
    await end(retry);
    await tells(500, "Batch of 2: 2 failed", 'Task "Retry" completed.');
  });

  it("don't report a failure that was retried or continued while another one was in front of the user", async () => {
    await end(running("One"), failed);
    await tells(500, 'Task "One" failed: The key was refused.');
    const two = running("Two", { parentSessionID: "ses_parent" });
    await end(two, failed);
    listed = [running("Again", { insteadOf: "Two" })];
    await clock.advance(60_000);
    assert.equal(told.length, 1);
  });

  it("report all tasks of a batch together, however long making their worktrees took", async () => {
    const batchID = freshID("bat", 1, Math.random);
    const pair = ["One", "Two"].map((id, at) => running(id, { batchID, createdAt: at * 60_000 }));
    listed = pair.map((task) => ({ ...task, ...failed, endedAt: 10 }));
    for (const task of pair) await end(task, { ...failed, endedAt: 10 });
    await tells(500, "Batch of 2: 2 failed");
  });

  it("report a batch of the user's tasks once, even if the last ends arrive together", async () => {
    const pair = ["One", "Two"].map((id) => running(id, { batchID: "a", createdAt: 1 }));
    listed = pair.map((task) => ({ ...task, ...failed, endedAt: 10 }));
    for (const task of pair) await end(task, { ...failed, endedAt: 10 });
    await tells(500, "Batch of 2: 2 failed");
  });

  it("report the rest of a batch if the last task that ran is gone", async () => {
    const batchID = freshID("bat", 1, Math.random);
    const [one, two, gone] = ["One", "Two", "Gone"].map((id) => running(id, { batchID, createdAt: 1 }));
    assert.ok(one && two && gone);
    const done = [one, two].map((task): Task => ({ ...task, status: "completed", endedAt: 10 }));
    listed = [...done, gone];
    for (const after of done) {
      ended.set(after.id, after);
      changes.fire({ id: after.id, before: { ...after, status: "running" }, after });
    }
    await clock.advance(60_000);
    assert.deepEqual(told, []);
    listed = done;
    changes.fire({ id: "Gone", before: gone, after: undefined });
    await until("the rest to be reported soon", () => clock.pending > 0);
    await tells(500, "Batch of 2: 2 completed");
  });

  it("are not shown if the user doesn't want them", async () => {
    notifyUser = "failures";
    const one = running("One");
    changes.fire({ id: "One", before: one, after: { ...one, status: "completed", endedAt: 1 } });
    await end(running("Two"), failed);
    await tells(500, 'Task "Two" failed: The key was refused.');
  });
});

describe("notifications of requests", () => {
  const { showWarningMessage } = vscode.window;

  afterEach(() => Object.assign(vscode.window, { showWarningMessage }));

  it("add to one that is in front of the user, and are shown again when the editor may have hidden that", async () => {
    let time = 1_000_000;
    const shown: string[] = [];
    const closes: (() => void)[] = [];
    vscode.window.showWarningMessage = async (message: string) => {
      shown.push(message);
      return new Promise<undefined>((resolve) => closes.push(() => resolve(undefined)));
    };
    const open: OpenRequest<MirroredRequest>[] = [];
    const changed = new Emitter<void>(fail);
    let looks = 0;
    const openRequests = (): readonly OpenRequest<MirroredRequest>[] => {
      looks++;
      return open;
    };
    const known = { openRequests, onDidChangeRequests: changed.event };
    const folders = { of: () => undefined, follow: () => ({ dispose: () => undefined }) };
    const context = { known, folders, logger: { error: fail } } as unknown as FlowContext;
    const notifications = new RequestNotifications(
      context,
      () => false,
      () => time,
    );
    const asks = (...ids: readonly string[]): void => {
      for (const id of ids) open.push({ request: { id }, child: { id } } as never);
      changed.fire();
    };
    try {
      asks("one", "two");
      await until("the first", () => shown.length === 1);
      time += 9_000;
      const asksMore = async (id: string): Promise<void> => {
        const before = looks;
        asks(id);
        await until("a look at it", () => looks > before);
      };
      await asksMore("three");
      time += 2_000;
      asks("four");
      await until("the second", () => shown.length === 2);
      closes[0]?.();
      await asksMore("five");
      const of = (count: number): string => `${count} requests from agents are waiting for you.`;
      assert.deepEqual(shown, [of(2), of(4)]);
    } finally {
      notifications.dispose();
    }
  });
});
