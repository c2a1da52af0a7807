import assert from "node:assert/strict";
import { BatchIDs, isGenerated } from "../../../src/engine/batch-ids.ts";
import type { TaskRegistry } from "../../../src/engine/registry.ts";
import type { TaskRecord } from "../../../src/engine/task.ts";
import { ManualClock } from "../../support/manual-clock.ts";

type Known = Pick<TaskRecord, "launchedBy" | "batchID" | "createdAt"> & {
  readonly status?: TaskRecord["status"];
  readonly clearedAt?: number;
};

describe("The batch of a new task", () => {
  const clock = new ManualClock();
  let tasks: Record<string, readonly Known[]>;
  let batches: BatchIDs;
  let number: number;

  beforeEach(() => {
    tasks = {};
    number = 0;
    const registry = {
      tasksOf: (parent: string) =>
        (tasks[parent] ?? []).map((record) => ({ record: { status: "running", ...record } })),
    };
    batches = new BatchIDs(registry as unknown as TaskRegistry, clock, () => (number++ % 97) / 97);
  });

  /** A generated ID that differs in its last letter. */
  const generated = (letter: string): string => `bat_0123456789ab${letter.repeat(14)}`;

  it("is the given one without the spaces around it, whoever launches it", () => {
    for (const launchedBy of ["person", "agent"] as const)
      assert.equal(batches.enter("ses_1", "  names ", launchedBy).id, "names");
  });

  it("is one of its own if a person launches it, also if the given one is blank", () => {
    tasks = { ses_1: [{ launchedBy: "person", batchID: generated("a"), createdAt: 1 }] };
    const ids = [undefined, "", "  ", undefined].map((given) => batches.enter("ses_1", given, "person").id);
    assert.equal(new Set(ids).size, ids.length);
    for (const id of ids) assert.ok(isGenerated(id), id);
  });

  it("is that of what the agent is launching at the same time, until all of it has its task", () => {
    const first = batches.enter("ses_1", undefined, "agent");
    const second = batches.enter("ses_1", " ", "agent");
    assert.ok(isGenerated(first.id));
    assert.equal(second.id, first.id);
    assert.notEqual(batches.enter("ses_2", undefined, "agent").id, first.id);
    first.leave();
    const third = batches.enter("ses_1", undefined, "agent");
    assert.equal(third.id, first.id);
    second.leave();
    third.leave();
    assert.notEqual(batches.enter("ses_1", undefined, "agent").id, first.id);
  });

  it("is the newest in which the same agent still has active tasks", () => {
    const agent = { launchedBy: "agent" } as const;
    tasks = {
      ses_1: [
        { ...agent, batchID: generated("b"), createdAt: 20 },
        { ...agent, batchID: generated("a"), createdAt: 10 },
        { ...agent, batchID: generated("c"), createdAt: 30, status: "completed" },
        { ...agent, batchID: generated("d"), createdAt: 40, clearedAt: 50 },
        { ...agent, batchID: "names", createdAt: 50 },
        { launchedBy: "person", batchID: generated("e"), createdAt: 60 },
      ],
    };
    assert.equal(batches.enter("ses_1", undefined, "agent").id, generated("b"));
    assert.notEqual(batches.enter("ses_2", undefined, "agent").id, generated("b"));
  });

  it("counts as generated only if it looks like that entirely", () => {
    assert.ok(isGenerated(generated("Z")));
    for (const id of [`x${generated("a")}`, `${generated("a")}x`, "bat_1", generated("_"), "names"])
      assert.ok(!isGenerated(id), id);
  });
});
