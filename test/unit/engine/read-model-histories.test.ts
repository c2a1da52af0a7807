import assert from "node:assert/strict";
import fc from "fast-check";
import { casesOf } from "../../support/cases.ts";
import type { TaskEngine } from "../../../src/engine/engine.ts";
import { Refusal } from "../../../src/engine/errors.ts";
import { ReadModel } from "../../../src/engine/read-model.ts";
import type { OpenRequest, RequestRef } from "../../../src/engine/requests.ts";
import type { Session } from "../../../src/engine/server-model.ts";
import { strictLogger } from "../../bench/support/memory-engine.ts";
import { EngineFeed, throughSocket } from "./engine-feed.ts";
import { histories, World, type History } from "./lifecycle-world.ts";

describe("what a window knows of tasks, from the changes that an engine sends", function () {
  // Hundreds of histories are run, even on a busy machine.
  this.timeout(60_000);

  it("is what the engine knows, after every step of any history", async () => {
    const property = fc.asyncProperty(histories, (history) => follow(history, "changes"));
    await fc.assert(property, { numRuns: casesOf(100), seed: 20_261_122 });
  });

  it("is the same, with the same changes reported, if each step sends a full snapshot", async () => {
    const property = fc.asyncProperty(histories, (history) => follow(history, "resets"));
    await fc.assert(property, { numRuns: casesOf(50), seed: 20_261_123 });
  });
});

/** Runs a history, and compares after each step the known state and the reported changes. */
async function follow({ limit, steps }: History, told: "changes" | "resets"): Promise<void> {
  let engine!: TaskEngine;
  let feed!: EngineFeed;
  let isNew = true;
  const world = new World(limit, (window) => {
    engine = window.engine;
    feed = new EngineFeed(engine);
    isNew = true;
  });
  const model = new ReadModel(world.clock, strictLogger);
  const tasks = new Map<string, unknown>();
  model.onDidChange(({ id, before, after }) => {
    assert.deepEqual(tasks.get(id), before && throughSocket(before));
    if (after) tasks.set(id, throughSocket(after));
    else tasks.delete(id);
  });
  const compare = (): void => {
    const isReset = isNew || told === "resets";
    model.apply(isReset ? [{ type: "reset", snapshot: feed.snapshot() }] : feed.changes());
    isNew = false;
    const known = engine.sessions().flatMap(({ id }) => engine.get(id) ?? []);
    assert.deepEqual(answers(model), answers(engine));
    assert.deepEqual(sorted([...tasks.values()]), sorted(throughSocket(known)));
  };
  await world.start();
  compare();
  for (const step of steps) {
    await world.take(step);
    compare();
  }
  await world.calmDown();
  compare();
}

type Known = Pick<
  ReadModel,
  "list" | "children" | "child" | "get" | "find" | "active" | "unreadable" | "batch" | "totals"
> & {
  openRequests(): readonly OpenRequest[];
  pendingRequests(id: string): readonly RequestRef[];
  session(id: string): Pick<Session, "title"> | undefined;
  sessions(): readonly Pick<Session, "id">[];
};

/** The results of all queries, as they would come out of a socket. */
function answers(known: Known): unknown {
  const sessions = known.sessions().map(({ id }) => id);
  const tasks = sessions.flatMap((id) => known.get(id) ?? []);
  const references = [...sessions.flatMap((id) => [id, id.slice(-6), id.slice(-2)]), "", "ses_", "nothing"];
  return throughSocket({
    sessions,
    active: sorted(known.active()),
    requests: known.openRequests().map(({ request, child }) => [request.id, child]),
    found: references.map((reference) => [
      answer(() => known.find(reference).id),
      ...sessions.slice(0, 2).map((parent) => answer(() => known.find(reference, parent).id)),
      answer(() => known.pendingRequests(reference).map(({ id }) => id)),
    ]),
    each: sessions.map((id) => ({
      title: known.session(id)?.title,
      task: known.get(id),
      child: known.child(id),
      list: known.list(id),
      children: known.children(id),
      unreadable: known.unreadable(id),
      totals: known.totals([id]),
    })),
    batches: [...new Set(tasks.map(({ batchID }) => batchID)), "none"].map((batchID) =>
      answer(() => known.batch(batchID).map(({ id }) => id)),
    ),
    totals: known.totals(tasks.map(({ id }) => id)),
  });
}

/** The result, or the refusal. */
function answer(ask: () => unknown): unknown {
  try {
    return ask();
  } catch (error) {
    assert.ok(error instanceof Refusal, String(error));
    return [error.code, error.text];
  }
}

/** Sorts tasks that have no defined order. */
function sorted<T>(tasks: readonly T[]): readonly T[] {
  const id = (task: T): string => (task as { readonly id: string }).id;
  return [...tasks].sort((a, b) => (id(a) < id(b) ? -1 : 1));
}
