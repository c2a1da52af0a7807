import assert from "node:assert/strict";
import { Refusal } from "../../../src/engine/errors.ts";
import { ServerFailure, type TaskMemoryStore } from "../../../src/engine/ports.ts";
import { TaskRegistry, type Entry } from "../../../src/engine/registry.ts";
import { sentence } from "../../../src/engine/sentence.ts";
import type { Session } from "../../../src/engine/server-model.ts";
import type { TaskRecord } from "../../../src/engine/task.ts";
import { goneSession } from "../../../src/engine/task-memory.ts";
import { settled } from "../../support/manual-clock.ts";
import { MemoryServer } from "../../support/memory-server.ts";
import { remembered } from "../../support/remembered.ts";
import { NO_TOKENS, record } from "./builders.ts";

describe("The registry of tasks", () => {
  let server: MemoryServer;
  let store: TaskMemoryStore;
  let registry: TaskRegistry;
  let log: string[];
  let changes: string[];
  let lost: string[];
  let discarded: string[];

  beforeEach(() => {
    server = new MemoryServer();
    store = remembered();
    open();
  });

  function open(): void {
    log = [];
    changes = [];
    lost = [];
    discarded = [];
    const note = (message: string): void => void log.push(message);
    const logger = { debug: note, info: note, warn: note, error: note };
    registry = new TaskRegistry(server, logger, () => 5_000, store);
    registry.onDidChange(({ id, before, after }) =>
      changes.push(`${id}: ${before?.description ?? "none"} → ${after?.description ?? "none"}`),
    );
    registry.onWillLose(({ record: { id } }) => lost.push(id));
    registry.onDidFindDiscarded((id) => discarded.push(id));
  }

  const sessionOf = (facts: Partial<TaskRecord>, changed: Partial<Session> = {}): Session => ({
    ...goneSession(record(facts)),
    ...changed,
  });
  const none = { kind: "none" } as const;
  const unreadable = { kind: "unreadable", reason: sentence("It is newer.") } as const;

  function apply(facts: Partial<TaskRecord> = {}, changed: Partial<Session> = {}): Entry {
    const entry = registry.applySession(sessionOf(facts, changed));
    assert.ok(entry);
    return entry;
  }

  /** Applies a task that the server has as well. */
  function stored(facts: Partial<TaskRecord> = {}): Entry {
    const session = sessionOf(facts);
    const { task } = session;
    assert.ok(task.kind === "task");
    server.put(session, undefined);
    void server.saveRecord(task.record);
    return apply(facts);
  }

  const FAILED = { status: "error", endedAt: 2_000 } as const;
  const TOLD = { state: "delivered", messageID: "msg_notice", at: 3_000 } as const;

  describe("takes in what the server tells", () => {
    it("but no record that is older, or as old, unless something was spent", () => {
      const entry = apply({ revision: 2, description: "New" });
      const before = registry.snapshot(entry);
      changes = [];
      for (const revision of [1, 2]) apply({ revision, description: "Old" });
      assert.deepEqual(changes, []);
      assert.equal(registry.snapshot(entry), before);
      apply({ revision: 3, description: "Newer" });
      assert.deepEqual(changes, ["ses_task: New → Newer"]);
    });

    for (const [what, spent] of Object.entries({
      cost: { cost: 1 },
      "tokens that were read": { tokens: { ...NO_TOKENS, input: 10 } },
      "tokens that were written": { tokens: { ...NO_TOKENS, output: 10 } },
    }))
      it(`and tells of ${what}, once`, () => {
        apply();
        changes = [];
        apply({}, spent);
        apply({}, spent);
        assert.equal(changes.length, 1);
      });

    it("and drops a task that it can't read any more, with the parent that it belonged to", () => {
      const entry = apply();
      assert.deepEqual(registry.tasksOf("ses_parent"), [entry]);
      changes = [];
      assert.equal(registry.applySession(sessionOf({}, { task: unreadable })), undefined);
      assert.deepEqual(changes, ["ses_task: A task → none"]);
      assert.deepEqual([registry.all(), registry.active(), registry.tasksOf("ses_parent")], [[], [], []]);
      // Nor is it a task at first.
      assert.equal(registry.applySession(sessionOf({}, { task: unreadable })), undefined);
      assert.ok(registry.session("ses_task"));
    });

    it("and keeps a task whose session comes without its record, with what it spent", () => {
      const entry = apply();
      changes = [];
      assert.equal(registry.applySession(sessionOf({}, { task: none, cost: 3 })), entry);
      assert.equal(registry.get("ses_task")?.cost, 3);
      assert.equal(changes.length, 1);
      assert.equal(registry.applySession(sessionOf({ id: "ses_other" }, { task: none })), undefined);
      assert.equal(registry.get("ses_other"), undefined);
    });

    it("and counts a task as active until it has ended, also one that goes on later", () => {
      const entry = apply();
      assert.deepEqual(registry.active(), [entry]);
      apply({ revision: 2, ...FAILED });
      assert.deepEqual(registry.active(), []);
      apply({ revision: 3, promptMessageID: "msg_more" });
      assert.deepEqual(registry.active(), [entry]);
      const ended = apply({ id: "ses_ended", ...FAILED });
      assert.ok(!registry.active().includes(ended));
    });
  });

  it("knows the parent that only the record names, and no end of a circle", () => {
    apply({}, { parentID: undefined });
    apply({ id: "ses_below", parentSessionID: "ses_task" });
    assert.equal(registry.parentOf("ses_task"), "ses_parent");
    assert.equal(registry.parentOf("ses_unknown"), undefined);
    assert.deepEqual([...registry.above("ses_below")], ["ses_task", "ses_parent"]);
    apply({ id: "ses_parent", parentSessionID: "ses_below" });
    assert.deepEqual([...registry.above("ses_below")], ["ses_task", "ses_parent", "ses_below"]);
  });

  it("finds the task of a call by call and parent", () => {
    const entry = apply({ callID: "call_1" });
    apply({ id: "ses_other", callID: "call_2" });
    assert.equal(registry.calledBy("call_1", "ses_parent"), entry);
    assert.equal(registry.calledBy("call_1", "ses_task"), undefined);
    assert.equal(registry.calledBy("call_3", "ses_parent"), undefined);
  });

  describe("when a session is gone", () => {
    it("keeps the task as lost while its parent is to be notified", () => {
      const entry = apply();
      assert.ok(registry.holds(entry));
      assert.equal(registry.forget("ses_task"), entry);
      assert.deepEqual(lost, ["ses_task"]);
      assert.deepEqual([registry.all(), registry.lost()], [[], [entry]]);
      assert.ok(registry.holds(entry));
      assert.equal(registry.isSettled(), false);
      registry.show(entry, { ...entry.record, ...FAILED, notice: TOLD });
      assert.deepEqual(registry.lost(), []);
      assert.ok(!registry.holds(entry));
      assert.ok(registry.isSettled());
    });

    it("loses nothing that had ended and was told", () => {
      apply({ ...FAILED, notice: TOLD });
      registry.forget("ses_task");
      assert.deepEqual([lost, registry.lost()], [[], []]);
      const refusal = registry.unknown("ses_task");
      assert.ok(refusal instanceof Refusal);
      assert.match(refusal.message, /A task/);
    });

    it("holds no earlier task of the same ID", () => {
      const entry = apply({ ...FAILED, notice: TOLD });
      registry.forget("ses_task");
      const again = apply({ ...FAILED, notice: TOLD });
      assert.deepEqual(
        [entry, again].map((each) => registry.holds(each)),
        [false, true],
      );
    });

    it("finds what an earlier process left unsettled and the server doesn't list", async () => {
      apply();
      apply({ id: "ses_listed" });
      await settled();
      open();
      assert.deepEqual(
        registry.missing().map(({ id }) => id),
        ["ses_task", "ses_listed"],
      );
      // Nothing of it is here yet.
      assert.ok(registry.isSettled());
      apply({ id: "ses_listed" });
      const [missing, ...others] = registry.missing();
      assert.ok(missing && others.length === 0);
      registry.lose(missing);
      assert.deepEqual(lost, ["ses_task"]);
      assert.deepEqual(registry.missing(), []);
      assert.equal(registry.lost().length, 1);
    });
  });

  it("shows no task of a launch that failed, now or later", () => {
    apply();
    registry.discard("msg_other");
    registry.discard("msg_prompt");
    assert.deepEqual([registry.all(), registry.lost(), discarded], [[], [], ["ses_task"]]);
    assert.equal(registry.applySession(sessionOf({})), undefined);
    assert.deepEqual(discarded, ["ses_task", "ses_task"]);
    assert.ok(registry.isSettled());
  });

  describe("stores records", () => {
    it("before it shows them, or after", async () => {
      const entry = stored();
      changes = [];
      const storing = registry.storeThenShow(entry, { ...entry.record, description: "First" });
      assert.deepEqual(changes, []);
      await storing;
      assert.deepEqual(changes, ["ses_task: A task → First"]);
      assert.ok(!registry.isUnstored(entry));
      const showing = registry.showThenStore(entry, { ...entry.record, description: "Second" });
      assert.deepEqual(changes.slice(1), ["ses_task: First → Second"]);
      assert.ok(registry.isUnstored(entry));
      await showing;
      assert.ok(!registry.isUnstored(entry));
      assert.deepEqual(changes.length, 2);
    });

    it("once more if that failed, and only then", async () => {
      const entry = stored();
      const { saveRecord } = server;
      server.saveRecord = async () => Promise.reject(new Error("The disk is full."));
      await assert.rejects(registry.showThenStore(entry, { ...entry.record, description: "First" }));
      assert.equal(registry.snapshot(entry).description, "First");
      server.saveRecord = saveRecord;
      await registry.flush(entry);
      const { length } = server.journal;
      await registry.flush(entry);
      assert.equal(server.journal.length, length);
      assert.ok(!registry.isUnstored(entry));
    });

    it("and forgets a task whose session turns out to be gone", async () => {
      const entry = apply();
      await registry.storeThenShow(entry, { ...entry.record, description: "First" });
      assert.deepEqual(registry.all(), []);
      assert.deepEqual(lost, ["ses_task"]);
      assert.match(log.join("\n"), /^The session of task \w+ is gone\.$/m);
    });

    it("but shows no stored record of a task that was removed meanwhile", async () => {
      const entry = stored({ ...FAILED, notice: TOLD });
      const storing = registry.storeThenShow(entry, { ...entry.record, description: "First" });
      registry.forget("ses_task");
      await storing;
      assert.deepEqual(registry.all(), []);
      assert.ok(!registry.isUnstored(entry));
    });

    it("and takes a lost answer as success if the server has just this record", async () => {
      const entry = stored();
      const { saveRecord } = server;
      const lostAnswer = new ServerFailure("PATCH", "unreachable", "Gone.");
      server.saveRecord = async (next) => {
        await saveRecord.call(server, next);
        throw lostAnswer;
      };
      await registry.storeThenShow(entry, { ...entry.record, description: "First" });
      assert.equal(registry.snapshot(entry).description, "First");
      server.saveRecord = async () => Promise.reject(lostAnswer);
      await assert.rejects(
        registry.storeThenShow(entry, { ...entry.record, description: "Second" }),
        lostAnswer,
      );
      // Another process has resumed the task with the same revision.
      server.saveRecord = async (next) => {
        await saveRecord.call(server, { ...next, promptMessageID: "msg_others" });
        throw lostAnswer;
      };
      await assert.rejects(
        registry.storeThenShow(entry, { ...entry.record, description: "Third" }),
        lostAnswer,
      );
      server.session = async () => undefined;
      await assert.rejects(
        registry.storeThenShow(entry, { ...entry.record, description: "Fourth" }),
        lostAnswer,
      );
    });

    it("but never takes a refusal as success", async () => {
      const entry = stored();
      const { saveRecord } = server;
      const refused = new ServerFailure("PATCH", "refused", "Another process was first.", 409);
      server.saveRecord = async (next) => {
        await saveRecord.call(server, next);
        throw refused;
      };
      await assert.rejects(registry.storeThenShow(entry, { ...entry.record, description: "First" }), refused);
      assert.equal(registry.snapshot(entry).description, "A task");
    });

    it("that were stored before, as newer than whatever took their place", async () => {
      const entry = stored({ revision: 4 });
      const before = entry.record;
      await registry.takeBack(entry, before);
      // The next revision, 5, may be on the server.
      assert.equal(entry.record.revision, 6);
      registry.show(entry, { ...entry.record, description: "Shown" });
      registry.show(entry, { ...entry.record, description: "Shown again" });
      await registry.takeBack(entry, before);
      assert.equal(entry.record.revision, 9);
      assert.equal(registry.snapshot(entry).description, "A task");
      assert.ok(!registry.isUnstored(entry));
    });
  });

  it("makes a new snapshot only after a change, and tells no one of what it doesn't hold", () => {
    const entry = apply();
    assert.equal(registry.snapshot(entry), registry.get("ses_task"));
    const before = registry.snapshot(entry);
    changes = [];
    registry.progressed(entry, () => (entry.work = undefined));
    assert.notEqual(registry.snapshot(entry), before);
    assert.equal(changes.length, 1);
    registry.forget("ses_task");
    changes = [];
    registry.progressed(entry);
    assert.deepEqual(changes, []);
  });

  it("tells no one anything after its end", () => {
    registry.dispose();
    apply();
    registry.forget("ses_task");
    apply();
    registry.discard("msg_prompt");
    assert.deepEqual([changes, lost, discarded], [[], [], []]);
  });
});
