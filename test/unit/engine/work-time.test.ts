import assert from "node:assert/strict";
import { Emitter } from "../../../src/engine/event.ts";
import { freshID } from "../../../src/engine/ids.ts";
import type { Logger } from "../../../src/engine/ports.ts";
import { TaskRegistry, type Entry } from "../../../src/engine/registry.ts";
import type { Requests } from "../../../src/engine/requests.ts";
import type { TaskRecord } from "../../../src/engine/task.ts";
import { goneSession } from "../../../src/engine/task-memory.ts";
import { WorkTime } from "../../../src/engine/work-time.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { MemoryServer } from "../../support/memory-server.ts";
import { remembered } from "../../support/remembered.ts";
import { record } from "./builders.ts";

const SECOND = 1_000;

describe("The time that a task has worked", () => {
  let clock: ManualClock;
  let registry: TaskRegistry;
  let open: { readonly id: string; readonly sessionID: string }[];
  let asked: Emitter<void>;
  let work: WorkTime;
  let waits: [string, number][];

  beforeEach(() => {
    clock = new ManualClock();
    const quiet = (): void => undefined;
    const logger: Logger = { debug: quiet, info: quiet, warn: quiet, error: quiet };
    registry = new TaskRegistry(new MemoryServer(), logger, () => clock.now(), remembered());
    open = [];
    asked = new Emitter(quiet);
    const requests = { onDidChange: asked.event, ofWorking: () => open } as unknown as Requests;
    work = new WorkTime(registry, requests, clock, logger);
    waits = [];
    work.onDidWait(({ entry, waited }) => waits.push([entry.record.id, waited]));
  });

  function task(facts: Partial<TaskRecord> = {}): Entry {
    const now = clock.now();
    const made = record({ createdAt: now, startedAt: now, ...facts });
    return registry.applySession(goneSession(made)) ?? assert.fail();
  }

  /** Seconds of work until now. */
  const seconds = (entry: Entry): number => work.of(entry) / SECOND;
  const pass = (time: number): Promise<void> => clock.advance(time * SECOND);

  function ask(sessionID = "ses_task", at = clock.now()): void {
    open = [...open, { id: freshID("evt", at, () => 0), sessionID }];
    asked.fire();
  }

  function answer(): void {
    open = open.slice(1);
    asked.fire();
  }

  it("is that of its turn, and of the turns before it", async () => {
    const [first, later] = [task(), task({ id: "ses_later", worked: 5 * SECOND })];
    await pass(3);
    assert.deepEqual([first, later].map(seconds), [3, 8]);
    assert.equal(work.of(first, clock.now() - SECOND), 2 * SECOND);
    assert.equal(work.of(first, clock.now() - 60 * SECOND), 0);
  });

  it("is what its record says, or else the time of its turn, once it has ended", async () => {
    const now = clock.now();
    const ended = { status: "completed", endedAt: now + 2 * SECOND } as const;
    assert.equal(seconds(task({ ...ended, worked: SECOND })), 1);
    assert.equal(seconds(task({ id: "ses_old", ...ended })), 2);
    assert.equal(seconds(task({ id: "ses_odd", ...ended, endedAt: now - 5 })), 0);
    assert.equal(seconds(task({ id: "ses_never", ...ended, endedAt: undefined })), 0);
    await pass(10);
  });

  it("doesn't count while it is queued", async () => {
    const [queued, again] = [task({ queued: true }), task({ id: "ses_again", queued: true, worked: SECOND })];
    await pass(10);
    assert.deepEqual([queued, again].map(seconds), [0, 1]);
  });

  it("doesn't count while it, or what is below it, waits for the user", async () => {
    const [above, below] = [task(), task({ id: "ses_below", parentSessionID: "ses_task" })];
    const beside = task({ id: "ses_beside" });
    await pass(1);
    ask("ses_below");
    await pass(10);
    assert.deepEqual([above, below, beside].map(seconds), [1, 1, 11]);
    // A second request prolongs the wait.
    ask("ses_below");
    answer();
    await pass(5);
    assert.deepEqual([above, below].map(seconds), [1, 1]);
    assert.deepEqual(waits, []);
    answer();
    await pass(2);
    assert.deepEqual([above, below, beside].map(seconds), [3, 3, 18]);
    assert.deepEqual(waits, [
      ["ses_task", 15 * SECOND],
      ["ses_below", 15 * SECOND],
    ]);
    ask();
    await pass(4);
    answer();
    assert.equal(seconds(above), 3);
    assert.deepEqual(waits.at(-1), ["ses_task", 19 * SECOND]);
  });

  it("begins to stand still when the request was made, even if that is noticed later", async () => {
    const entry = task();
    await pass(10);
    ask("ses_task", clock.now() - 4 * SECOND);
    assert.equal(seconds(entry), 6);
    await pass(1);
    answer();
    assert.equal(seconds(entry), 6);
  });

  it("stands still from now on if a request seems to be older than the turn", async () => {
    await pass(100);
    const entry = task();
    await pass(2);
    ask("ses_task", clock.now() - 50 * SECOND);
    await pass(3);
    assert.equal(seconds(entry), 2);
  });

  it("stands still at once if what it launched before waits already when it is resumed", async () => {
    const entry = task({ status: "completed", endedAt: clock.now(), worked: 0 });
    task({ id: "ses_below", parentSessionID: "ses_task" });
    ask("ses_below");
    await pass(5);
    registry.show(entry, { ...entry.record, status: "resumed", endedAt: undefined, startedAt: clock.now() });
    await pass(5);
    assert.equal(seconds(entry), 0);
    answer();
    await pass(1);
    assert.equal(seconds(entry), 1);
  });

  it("stands still from the request on if a subagent waits already when it becomes a task", async () => {
    const startedAt = clock.now();
    await pass(3);
    ask();
    await pass(5);
    const entry = task({ startedAt });
    assert.equal(seconds(entry), 3);
    await pass(5);
    assert.equal(seconds(entry), 3);
    answer();
    await pass(1);
    assert.equal(seconds(entry), 4);
  });

  it("doesn't lose what a turn worked that ended during its last wait, or before it", async () => {
    const entry = task();
    await pass(4);
    ask();
    await pass(6);
    answer();
    await pass(1);
    const began = entry.record.startedAt;
    const at = (time: number): number => work.of(entry, began + time * SECOND) / SECOND;
    assert.deepEqual([2, 4, 7, 10, 11].map(at), [2, 4, 4, 4, 5]);
  });

  describe("when the machine has slept", () => {
    it("leaves that out, of every task that was working", async () => {
      const [entry, queued] = [task(), task({ id: "ses_queued", queued: true })];
      await pass(10);
      work.pause(8 * SECOND);
      assert.deepEqual([entry, queued].map(seconds), [2, 0]);
      assert.deepEqual(waits, [["ses_task", 8 * SECOND]]);
    });

    it("leaves out no more than the turn had", async () => {
      await pass(100);
      const entry = task();
      await pass(3);
      work.pause(60 * SECOND);
      assert.equal(seconds(entry), 0);
      await pass(1);
      assert.equal(seconds(entry), 1);
    });

    it("doesn't leave it out twice if it waits for the user", async () => {
      const entry = task();
      await pass(1);
      ask();
      await pass(10);
      work.pause(8 * SECOND);
      answer();
      assert.equal(seconds(entry), 1);
      assert.deepEqual(waits, [["ses_task", 10 * SECOND]]);
    });
  });

  it("isn't followed any more after its end", async () => {
    const entry = task();
    work.dispose();
    ask();
    await pass(3);
    answer();
    assert.equal(seconds(entry), 3);
    assert.deepEqual(waits, []);
  });
});
