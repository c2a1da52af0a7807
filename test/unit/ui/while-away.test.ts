import assert from "node:assert/strict";
import { inWords } from "../../../src/daemon/request-words.ts";
import type { MirroredRequest } from "../../../src/engine/folder-changes.ts";
import { ReadModel } from "../../../src/engine/read-model.ts";
import { english } from "../../../src/engine/sentence.ts";
import type { PendingRequest } from "../../../src/engine/server-model.ts";
import type { Task } from "../../../src/engine/task.ts";
import type { NotifyUser } from "../../../src/ui/settings.ts";
import { newsWords, WhileAway, type News, type Seen } from "../../../src/ui/while-away.ts";
import { strictLogger } from "../../bench/support/memory-engine.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { record } from "../engine/builders.ts";

const CONNECTED = { kind: "connected", url: "http://memory", version: "1", own: true } as const;
const LEFT_AT = 1_000;

function task(id: string, values: Partial<Task> = {}): Task {
  const tokens = { input: 0, output: 0, reasoning: 0, cacheRead: 0, cacheWrite: 0 };
  return { ...record(), id, cost: 0, tokens, ...values };
}

function request(id: string, sessionID: string): MirroredRequest {
  const asked = {
    type: "permission",
    id,
    sessionID,
    permission: "bash",
    patterns: [],
    metadata: {},
    always: [],
  };
  return inWords(asked as PendingRequest, "/work");
}

describe("what happened while no window had a folder open", () => {
  let clock: ManualClock;
  let known: ReadModel;
  let state: { seen: Seen | undefined };
  let told: News[];
  let away: WhileAway;
  let setting: NotifyUser;

  beforeEach(() => {
    clock = new ManualClock();
    known = new ReadModel(clock, strictLogger);
    state = { seen: { at: LEFT_AT, requests: [] } };
    told = [];
    setting = "always";
    away = new WhileAway({
      known,
      state,
      clock,
      notifyUser: () => setting,
      show: (news) => void told.push(news),
    });
  });

  afterEach(() => away.dispose());

  function learn(tasks: readonly Task[], requests: readonly MirroredRequest[] = []): void {
    known.apply([
      {
        type: "reset",
        snapshot: { connection: CONNECTED, sessions: [], tasks, subagents: [], requests, tombstones: [] },
      },
    ]);
  }

  it("is reported once, as soon as everything is known: what ended since, and who needs the user", () => {
    const ended = (id: string, status: Task["status"], endedAt = LEFT_AT + 1): Task =>
      task(id, { status, endedAt });
    learn(
      [
        ended("ses_1", "completed"),
        ended("ses_2", "completed"),
        ended("ses_3", "error"),
        ended("ses_4", "completed", LEFT_AT - 1),
        ended("ses_5", "cancelled"),
        task("ses_6", { status: "completed", endedAt: LEFT_AT + 1, clearedAt: LEFT_AT + 2 }),
        task("ses_7", { status: "running" }),
      ],
      // An agent counts once.
      [request("per_1", "ses_7"), request("per_2", "ses_7")],
    );
    assert.deepEqual(told, [{ completed: 2, failed: 1, waiting: 1 }]);
    known.apply([{ type: "connection", state: { kind: "disconnected" } }]);
    learn([ended("ses_8", "error", LEFT_AT + 10)]);
    assert.equal(told.length, 1);
  });

  it("includes an end before the window closed that it hadn't noticed by then", () => {
    learn([task("ses_1", { status: "running" }), task("ses_2", { status: "running" })]);
    away.dispose();
    const next = new ReadModel(clock, strictLogger);
    const again = new WhileAway({
      known: next,
      state,
      clock,
      notifyUser: () => "always",
      show: (news) => void told.push(news),
    });
    const endedAt = clock.now() - 1;
    next.apply([
      { type: "task", id: "ses_1", task: task("ses_1", { status: "error", endedAt }) },
      { type: "task", id: "ses_2", task: task("ses_2", { status: "running" }) },
      { type: "task", id: "ses_3", task: task("ses_3", { status: "completed", endedAt }) },
      { type: "connection", state: CONNECTED },
    ]);
    again.dispose();
    assert.deepEqual(told, [{ completed: 0, failed: 1, waiting: 0 }]);
  });

  it("is not reported before the tasks are read", () => {
    const done = task("ses_1", { status: "completed", endedAt: LEFT_AT + 1 });
    known.apply([{ type: "task", id: done.id, task: done }]);
    assert.deepEqual(told, []);
    known.apply([{ type: "connection", state: CONNECTED }]);
    assert.deepEqual(told, [{ completed: 1, failed: 0, waiting: 0 }]);
  });

  it("is empty if nothing happened, or no window ever had the folder open", () => {
    learn([task("ses_1", { status: "completed", endedAt: LEFT_AT - 1 })]);
    away.dispose();
    const first = { seen: undefined };
    const another = new ReadModel(clock, strictLogger);
    const fresh = new WhileAway({
      known: another,
      state: first,
      clock,
      notifyUser: () => "always",
      show: () => assert.fail("told"),
    });
    another.apply([
      { type: "task", id: "ses_1", task: task("ses_1", { status: "completed", endedAt: 5 }) },
      { type: "connection", state: CONNECTED },
    ]);
    assert.deepEqual(told, []);
    assert.notEqual(first.seen, undefined);
    fresh.dispose();
  });

  it("covers new requests, which need no separate notification; requests seen before do", () => {
    state.seen = { at: LEFT_AT, requests: ["per_old"] };
    assert.ok(away.covers("per_old"));
    learn([task("ses_1", { status: "running" })], [request("per_old", "ses_1"), request("per_new", "ses_1")]);
    assert.deepEqual(told, [{ completed: 0, failed: 0, waiting: 1 }]);
    assert.ok(away.covers("per_new"));
    assert.ok(!away.covers("per_old"));
    assert.ok(!away.covers("per_later"));
  });

  it("covers no request if the user wants no summary", () => {
    setting = "never";
    learn([task("ses_1", { status: "running" })], [request("per_1", "ses_1")]);
    assert.deepEqual(told, []);
    assert.ok(!away.covers("per_1"));
  });

  it("is counted from what was last seen, which is stored at each end and request, else at intervals, and at disposal", async () => {
    const running = task("ses_1", { status: "running" });
    learn([running], [request("per_1", "ses_1")]);
    assert.deepEqual(state.seen?.requests, ["per_1"]);
    known.apply([{ type: "requests", requests: [] }]);
    assert.deepEqual(state.seen?.requests, []);
    const kept = state.seen;
    known.apply([{ type: "task", id: running.id, task: { ...running, cost: 1 } }]);
    assert.equal(state.seen, kept);
    await clock.advance(60_000);
    assert.ok((state.seen?.at ?? 0) > (kept?.at ?? Infinity));
    await clock.advance(5);
    known.apply([{ type: "task", id: running.id, task: { ...running, status: "cancelled" } }]);
    assert.equal(state.seen?.at, clock.now());
    await clock.advance(5);
    away.dispose();
    assert.equal(state.seen?.at, clock.now());
  });

  it("is worded with counts", () => {
    const words = (news: News): string => newsWords(news).map(english).join(", ");
    assert.equal(words({ completed: 3, failed: 1, waiting: 1 }), "3 completed, 1 failed, 1 needs you");
    assert.equal(words({ completed: 0, failed: 0, waiting: 2 }), "2 need you");
  });

  it("is reported without failures and requests only if the user wants to be notified of every end", () => {
    setting = "failures";
    learn([task("ses_1", { status: "completed", endedAt: LEFT_AT + 1 })]);
    assert.deepEqual(told, []);
  });

  it("is reported with a failure if the user wants to be notified of failures", () => {
    setting = "failures";
    learn([task("ses_1", { status: "error", endedAt: LEFT_AT + 1 })]);
    assert.equal(told.length, 1);
  });
});
