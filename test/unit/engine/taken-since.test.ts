import assert from "node:assert/strict";
import { TaskRegistry } from "../../../src/engine/registry.ts";
import type { Session } from "../../../src/engine/server-model.ts";
import { sumTaken, takenSince, type TakenSince } from "../../../src/engine/taken-since.ts";
import type { TaskRecord } from "../../../src/engine/task.ts";
import { goneSession } from "../../../src/engine/task-memory.ts";
import type { WorkTime } from "../../../src/engine/work-time.ts";
import { MemoryServer } from "../../support/memory-server.ts";
import { remembered } from "../../support/remembered.ts";
import { NO_TOKENS, record } from "./builders.ts";

const SINCE = 10_000;
const NOW = 20_000;
const TOLD = { state: "skipped", reason: "No need." } as const;

describe("What was used since a time", () => {
  let registry: TaskRegistry;

  beforeEach(() => {
    const quiet = (): void => undefined;
    const logger = { debug: quiet, info: quiet, warn: quiet, error: quiet };
    registry = new TaskRegistry(new MemoryServer(), logger, () => NOW, remembered());
  });

  /** Each task has worked for a second. */
  const taken = (): TakenSince =>
    takenSince(registry, { of: () => 1_000 } as unknown as WorkTime, SINCE, NOW);

  function task(facts: Partial<TaskRecord> & { readonly id: string }, cost: number): void {
    const tokens = { ...NO_TOKENS, output: cost * 10 };
    registry.applySession({ ...goneSession(record(facts)), cost, tokens });
  }

  function session(id: string, parentID: string | undefined, cost: number): void {
    const made: Session = { ...goneSession(record({ id })), parentID, cost, task: { kind: "none" } };
    registry.applySession(made);
  }

  const ended = (createdAt: number, endedAt?: number): Partial<TaskRecord> => ({
    status: "completed",
    createdAt,
    endedAt,
    notice: TOLD,
  });

  it("is nothing without tasks", () => {
    session("ses_parent", undefined, 5);
    assert.deepEqual(taken(), { tasks: 0, launchedBefore: 0, cost: 0, tokens: NO_TOKENS, worked: 0 });
  });

  it("counts tasks that run, or ended since, also those that began before", () => {
    task({ id: "ses_runs", createdAt: 5_000 }, 1);
    task({ id: "ses_new", ...ended(SINCE, 12_000) }, 2);
    task({ id: "ses_just", ...ended(6_000, SINCE) }, 4);
    task({ id: "ses_old", ...ended(6_000, SINCE - 1) }, 8);
    task({ id: "ses_odd", ...ended(SINCE + 1) }, 16);
    assert.deepEqual(taken(), {
      tasks: 4,
      launchedBefore: 2,
      cost: 23,
      tokens: { ...NO_TOKENS, output: 230 },
      worked: 4_000,
    });
  });

  it("counts everything below such a task once, and nothing beside it", () => {
    task({ id: "ses_runs", createdAt: SINCE }, 1);
    task({ id: "ses_below", parentSessionID: "ses_runs", ...ended(6_000, 7_000) }, 2);
    session("ses_subagent", "ses_below", 4);
    session("ses_beside", "ses_parent", 8);
    assert.deepEqual([taken().tasks, taken().cost], [1, 7]);
  });

  it("ends where sessions are their own ancestors", () => {
    session("ses_a", "ses_b", 1);
    session("ses_b", "ses_a", 2);
    assert.equal(taken().cost, 0);
  });

  it("leaves out what a conversation had used before it became a task", () => {
    task({ id: "ses_runs", createdAt: SINCE, baseline: { ...NO_TOKENS, cost: 3, output: 10 } }, 4);
    assert.deepEqual([taken().cost, taken().tokens.output], [1, 30]);
  });

  it("is summed over folders", () => {
    const of = (n: number): TakenSince => ({
      tasks: n,
      launchedBefore: 2 * n,
      cost: 3 * n,
      tokens: { ...NO_TOKENS, input: 4 * n },
      worked: 5 * n,
    });
    assert.deepEqual(sumTaken([of(1), of(10)]), of(11));
    assert.deepEqual(sumTaken([]), { ...of(0), tokens: NO_TOKENS });
  });
});
