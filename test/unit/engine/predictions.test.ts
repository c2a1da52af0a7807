import assert from "node:assert/strict";
import type { WorktreeState } from "../../../src/engine/ports.ts";
import { Predictions } from "../../../src/engine/predictions.ts";
import type { Entry, TaskRegistry } from "../../../src/engine/registry.ts";
import type { Part } from "../../../src/engine/server-model.ts";
import type { Task, TaskWorktree } from "../../../src/engine/task.ts";
import type { TaskWorktrees } from "../../../src/engine/task-worktrees.ts";
import { ManualClock, settled } from "../../support/manual-clock.ts";

interface Call {
  readonly names: readonly string[];
  readonly changed: readonly string[];
  readonly signal: AbortSignal;
  finish(states: Readonly<Record<string, Partial<WorktreeState>>>): void;
  fail(): void;
}

describe("Predictions", () => {
  let clock: ManualClock;
  let entries: Map<string, Entry>;
  let calls: Call[];
  let told: string[];
  let warnings: string[];
  let predictions: Predictions;

  beforeEach(() => {
    clock = new ManualClock();
    entries = new Map();
    calls = [];
    told = [];
    warnings = [];
    const predict = (worktrees: readonly TaskWorktree[], changed: ReadonlySet<string>, signal: AbortSignal) =>
      new Promise<ReadonlyMap<string, WorktreeState>>((resolve, reject) => {
        const nothing = { files: 1, added: 1, removed: 0, conflicts: [] };
        calls.push({
          names: worktrees.map(({ name }) => name),
          changed: [...changed],
          signal,
          finish: (states) =>
            resolve(new Map(Object.entries(states).map(([name, state]) => [name, { ...nothing, ...state }]))),
          fail: () => reject(new Error("Git failed.")),
        });
      });
    const ports = { worktrees: { predict }, clock, logger: { warn: (text: string) => warnings.push(text) } };
    const registry = {
      all: () => [...entries.values()],
      progressed: (entry: Entry, apply: () => void) => {
        apply();
        told.push(entry.record.id);
      },
    };
    predictions = new Predictions(
      ports as unknown as ConstructorParameters<typeof Predictions>[0],
      registry as unknown as TaskRegistry,
      {
        ownerOf: (id: string) => (entries.get(id)?.record.worktree ? entries.get(id) : undefined),
      } as TaskWorktrees,
    );
  });

  function add(id: string, facts: Partial<Task> = {}): void {
    const worktree = { name: `tree-${id}`, directory: `/trees/${id}`, base: "base" };
    const record = { id, description: id, status: "running", worktree, ...facts } as Task;
    entries.set(id, { record } as unknown as Entry);
    predictions.taskChanged({ id, before: undefined, after: record });
  }

  function change(id: string, facts: Partial<Task>): void {
    const entry = entries.get(id) ?? assert.fail();
    const before = entry.record as Task;
    const after = { ...before, ...facts };
    entry.record = after;
    predictions.taskChanged({ id, before, after });
  }

  const patch: Part = { type: "other", kind: "patch", id: "p", sessionID: "", messageID: "m" };
  const step = (sessionID: string, part: Partial<Part> = {}): void =>
    predictions.accept({ type: "part-changed", part: { ...patch, ...part, sessionID } as Part });

  const wrote = { type: "tool", files: { access: "write", paths: [] } } as Partial<Part>;

  it("reads a task when it appears and after steps that changed files, and what changes meanwhile once after a pause", async () => {
    add("a");
    add("b");
    assert.equal(calls.length, 0);
    await clock.advance(300);
    assert.deepEqual(
      [calls[0]?.names, calls[0]?.changed],
      [
        ["tree-a", "tree-b"],
        ["tree-a", "tree-b"],
      ],
    );
    step("a");
    step("a", wrote);
    await clock.advance(10_000);
    assert.equal(calls.length, 1);
    calls[0]?.finish({});
    await clock.advance(39_999);
    assert.equal(calls.length, 1);
    await clock.advance(1);
    assert.deepEqual(
      calls.slice(1).map(({ changed }) => changed),
      [["tree-a"]],
    );
    calls[1]?.finish({});
    await clock.advance(100_000);
    assert.equal(calls.length, 2);
  });

  it("reads a worktree again in which the user saved a file, and those of ended tasks after other programs", async () => {
    add("a");
    add("ab", { status: "completed" });
    await clock.advance(300);
    calls[0]?.finish({});
    for (const [act, changed] of [
      [() => predictions.userChanged("/trees/a"), ["tree-a"]],
      [() => predictions.predictSoon(), []],
      [() => predictions.predictAll(), ["tree-ab"]],
    ] as const) {
      await clock.advance(100_000);
      act();
      await clock.advance(300);
      assert.deepEqual(calls.at(-1)?.changed, changed);
      calls.at(-1)?.finish({});
    }
    assert.equal(calls.length, 4);
  });

  it("pauses between readings however often files change", async () => {
    add("a");
    await clock.advance(300);
    for (let second = 0; second < 100; second++) {
      const running = calls.at(-1);
      step("a");
      await clock.advance(1_000);
      running?.finish({});
    }
    // Each takes a second or more, and is followed by a pause of four times that.
    assert.ok(calls.length > 10 && calls.length <= 21, String(calls.length));
  });

  for (const [what, took, pause] of [
    ["longer if reading takes longer", 2_000, 8_000],
    ["for at most five minutes, as the machine may have slept in the meantime", 8 * 3_600_000, 300_000],
  ] as const)
    it(`pauses ${what}`, async () => {
      add("a");
      await clock.advance(300);
      await clock.advance(took);
      calls[0]?.finish({});
      await settled();
      step("a");
      await clock.advance(pause - 1);
      assert.equal(calls.length, 1);
      await clock.advance(1);
      assert.equal(calls.length, 2);
    });

  it("does nothing for tasks in the folder, nor for work that was decided on, cleared or is not set up", async () => {
    const worktree = { name: "tree", directory: "/tree", base: "base" };
    add("plain", { worktree: undefined });
    add("back", { worktree: { ...worktree, outcome: "broughtBack" } });
    add("new", { worktree: { ...worktree, setup: "pending" } });
    add("gone", { clearedAt: 1 });
    step("plain");
    predictions.predictSoon();
    await clock.advance(10_000);
    await predictions.flush();
    assert.equal(calls.length, 0);
    change("new", { worktree });
    await clock.advance(300);
    assert.deepEqual(calls[0]?.names, ["tree"]);
  });

  it("reads nothing again for other events, or for changes of a task that don't concern its files", async () => {
    add("a");
    await clock.advance(300);
    calls[0]?.finish({});
    await settled();
    step("a", { type: "other", kind: "step-finish" });
    step("a", { type: "tool", files: { access: "read", paths: ["/x"] } });
    step("a", { type: "tool" });
    change("a", { toolCalls: 7 });
    await clock.advance(10_000);
    assert.equal(calls.length, 1);
    change("a", { status: "completed" });
    await clock.advance(300);
    assert.equal(calls.length, 2);
  });

  it("compares with the folder again after a step there, without reading worktrees", async () => {
    add("a");
    await clock.advance(300);
    calls[0]?.finish({});
    await settled();
    step("plain");
    await clock.advance(300);
    assert.deepEqual(calls[1]?.changed, []);
  });

  it("shows the result with the names of the tasks, and only if it is new", async () => {
    add("a");
    add("b");
    await clock.advance(300);
    const conflicts = [
      { paths: ["x"] },
      { worktree: "tree-b", paths: ["x", "y"] },
      { worktree: "other", paths: ["z"] },
    ];
    calls[0]?.finish({ "tree-a": { files: 2, conflicts } });
    await settled();
    assert.deepEqual(told, ["a"]);
    const shown = { files: 2, added: 1, removed: 0 };
    assert.deepEqual(entries.get("a")?.work, {
      ...shown,
      conflicts: [
        { paths: ["x"], count: 1 },
        { paths: ["x", "y"], count: 2, task: { id: "b", description: "b" } },
      ],
    });
    predictions.predictSoon();
    await clock.advance(300);
    calls[1]?.finish({ "tree-a": { files: 2, conflicts } });
    await settled();
    assert.deepEqual(told, ["a"]);
    predictions.predictSoon();
    await clock.advance(300);
    calls[2]?.finish({});
    await settled();
    assert.equal(entries.get("a")?.work, undefined);
  });

  it("lists at most 50 files of a conflict, and counts all", async () => {
    add("a");
    await clock.advance(300);
    const paths = Array.from({ length: 60 }, (_, index) => `${index}`);
    calls[0]?.finish({ "tree-a": { conflicts: [{ paths }] } });
    await settled();
    const [one] = entries.get("a")?.work?.conflicts ?? [];
    assert.deepEqual([one?.paths.length, one?.count], [50, 60]);
  });

  it("notes a failure in the log, and reads the same again next time", async () => {
    add("a");
    await clock.advance(300);
    calls[0]?.fail();
    await settled();
    assert.deepEqual(warnings, ["Couldn't predict conflicts: Git failed."]);
    predictions.predictSoon();
    await clock.advance(300);
    assert.deepEqual(calls[1]?.changed, ["tree-a"]);
  });

  it("can be waited for", async () => {
    await predictions.flush();
    add("a");
    let isDone = false;
    const done = predictions.flush().then(() => (isDone = true));
    await settled();
    assert.equal(calls.length, 1);
    step("a");
    const later = predictions.flush();
    calls[0]?.finish({});
    await settled();
    assert.deepEqual([calls.length, isDone], [2, true]);
    calls[1]?.finish({});
    await Promise.all([done, later]);
    await clock.advance(10_000);
    assert.equal(calls.length, 2);
  });

  it("is waited for for half a minute at most, as a disk can hang", async () => {
    add("a");
    let isDone = false;
    const done = predictions.flush().then(() => (isDone = true));
    await clock.advance(29_999);
    assert.equal(isDone, false);
    await clock.advance(1);
    await done;
  });

  it("can be waited for while files keep changing", async () => {
    add("a");
    await clock.advance(300);
    step("a");
    const done = predictions.flush();
    calls[0]?.finish({});
    await settled();
    step("a");
    calls[1]?.finish({});
    await done;
    assert.equal(calls.length, 2);
    await clock.advance(300);
    assert.equal(calls.length, 3);
  });

  it("is cancelled when it is disposed, and shows nothing more", async () => {
    add("a");
    await clock.advance(300);
    predictions.dispose();
    assert.equal(calls[0]?.signal.aborted, true);
    calls[0]?.finish({ "tree-a": {} });
    step("a");
    await clock.advance(10_000);
    assert.deepEqual([calls.length, told], [1, []]);
  });
});
