import assert from "node:assert/strict";
import { isNotice } from "../../../src/engine/asked.ts";
import type { ServerEvent } from "../../../src/engine/server-model.ts";
import type { TaskStatus } from "../../../src/engine/task.ts";
import { encodeRecord, RECORD_KEY } from "../../../src/opencode/record-codec.ts";
import { someOf } from "../../support/cases.ts";
import { ManualClock, settled } from "../../support/manual-clock.ts";
import { MemoryServer } from "../../support/memory-server.ts";
import { memoryWindow, POLL_MS } from "../../support/memory-window.ts";
import { recordedTurns, type RecordedTurn } from "../../support/recordings.ts";
import { record } from "./builders.ts";

/** How each recorded turn ended, by recording, session and the turn's number. */
const ENDS: Readonly<Record<string, TaskStatus>> = {
  "tool-turn: reference 1": "completed",
  // Two more prompts came in while it worked.
  "aborts: busy 1": "completed",
  "aborts: abort 1": "cancelled",
  // A new prompt after an abort.
  "aborts: abort 2": "completed",
  "aborts: abort2 1": "cancelled",
  "aborts: abort3 1": "cancelled",
  "errors: 401 1": "error",
  "errors: 400 1": "error",
  "errors: 500x1 1": "completed",
  "errors: 429x2 retry-after 1": "completed",
  // The compaction that follows fails as well.
  "errors: ctx overflow 1": "error",
  // Aborted while the model was being asked again.
  "errors: drop mid stream 1": "cancelled",
  "errors: unknown tool 1": "completed",
  "errors: bad args 1": "completed",
  "errors: reasoning 1": "completed",
  // Cut off at the model's limit, which still is an answer.
  "errors: length 1": "completed",
  "errors: todo 1": "completed",
  // A question that was answered, and one that was rejected.
  "requests: perm parent 1": "completed",
  "requests: perm parent 2": "error",
  // Permissions: once, rejected with a message, rejected without one, always, and by that.
  "requests: perm child 1": "completed",
  "requests: perm child 2": "completed",
  "requests: perm child 3": "error",
  "requests: perm child 4": "completed",
  "requests: perm child 5": "completed",
  "requests: perm child 6": "completed",
  // Aborted while a permission was asked for.
  "requests: perm child 7": "cancelled",
  "requests: perm child2 1": "completed",
};

const PARENT = "ses_parent";

/** The order in which the events of a turn, by number, reach the engine. */
interface Delivery {
  readonly order: readonly number[];
  /** The connection is lost before the delivery of this event, and comes back after the last. */
  readonly lostAt?: number;
}

/** Whether the engine reads the state at its latest event, or the state after all events. */
type Reading = "as told" | "ahead";

const numbers = (count: number): number[] => Array.from({ length: count }, (_, index) => index);

const DISTURBANCES: Readonly<Record<string, (count: number) => readonly Delivery[]>> = {
  "as recorded": (count) => [{ order: numbers(count) }],
  "any event dropped": (count) =>
    numbers(count).map((lost) => ({ order: numbers(count).filter((index) => index !== lost) })),
  "any event doubled": (count) =>
    numbers(count).map((twice) => ({
      order: numbers(count).flatMap((index) => (index === twice ? [index, index] : [index])),
    })),
  "any two neighbours swapped": (count) =>
    numbers(count - 1).map((first) => ({
      order: numbers(count).map((index) =>
        index === first ? first + 1 : index === first + 1 ? first : index,
      ),
    })),
  "a stream that ends anywhere": (count) =>
    numbers(count + 1).map((cut) => ({ order: numbers(count).slice(0, cut) })),
  "a connection lost anywhere and found again": (count) =>
    numbers(count + 1).map((lostAt) => ({ order: numbers(count), lostAt })),
};

const turns = ["tool-turn", "aborts", "errors", "requests"].flatMap(recordedTurns);
const name = ({ recording, title, number }: RecordedTurn): string => `${recording}: ${title} ${number}`;

describe("recorded turns", () => {
  it("all have a known end", () => {
    assert.deepEqual(turns.map(name), Object.keys(ENDS));
  });

  for (const [what, deliveries] of Object.entries(DISTURBANCES))
    for (const reading of ["as told", "ahead"] as const)
      describe(`with ${what}, read ${reading}`, () => {
        for (const turn of turns)
          it(`${name(turn)} ends, and its parent is notified once`, async () => {
            for (const delivery of someOf(deliveries(turn.events.length))) {
              const outcome = await replay(turn, delivery, reading);
              const expected = { changes: [`running → ${ENDS[name(turn)]}`], told: 1, sent: 1, log: [] };
              assert.deepEqual(outcome, expected, JSON.stringify(delivery));
            }
          });
      });
});

async function replay(turn: RecordedTurn, { order, lostAt }: Delivery, reading: Reading) {
  const { sessionID, prompt, before, events } = turn;
  const clock = new ManualClock(prompt.created);
  const server = new MemoryServer({ now: () => clock.now() });
  prepare(server, turn);
  for (const event of before) server.apply(event);
  const { engine, link, log } = memoryWindow(server, clock);
  const changes: string[] = [];
  engine.onDidChange(({ before, after }) => {
    if (before?.status !== after?.status && before) changes.push(`${before.status} → ${after?.status}`);
  });
  await engine.connect();

  let stored = 0;
  const store = (count: number): void => {
    for (; stored < count; stored++) server.apply(events[stored] as ServerEvent);
  };
  if (reading === "ahead") store(events.length);
  for (const [position, index] of order.entries()) {
    store(index + 1);
    if (position === lostAt) engine.disconnect();
    if (lostAt !== undefined && position >= lostAt) continue;
    server.emit(await withRecord(events[index] as ServerEvent, server));
    link.deliver();
    await settled();
  }
  store(events.length);
  if (lostAt !== undefined) {
    engine.disconnect();
    link.drop();
    await engine.connect();
  }
  // A stream that falls silent is not relied on once a heartbeat is missing.
  await clock.advance(5 * POLL_MS);

  const told = (await server.messages(PARENT)).filter(isNotice).length;
  const sent = server.journal.filter(
    ({ call, sessionID, parts }) => call === "prompt" && sessionID === PARENT && parts,
  );
  assert.equal(engine.get(sessionID)?.notice.state, "delivered");
  engine.dispose();
  return { changes, told, sent: sent.length, log };
}

/** Turns the session of the turn into a task's, just before its prompt arrives. */
function prepare(server: MemoryServer, { sessionID, prompt, events, before }: RecordedTurn): void {
  const facts = { title: "", directory: "/workspace", created: 0, updated: 0, cost: 0, permission: [] };
  const tokens = { input: 0, output: 0, reasoning: 0, cacheRead: 0, cacheWrite: 0 };
  const told = [...before, ...events].find((event) => event.type === "session-changed");
  const base = { ...facts, tokens, task: { kind: "none" } } as const;
  server.put({ ...base, id: PARENT, agent: "build" }, undefined);
  const task = record({
    id: sessionID,
    parentSessionID: PARENT,
    promptMessageID: prompt.id,
    createdAt: prompt.created,
    startedAt: prompt.created,
  });
  server.put({ ...base, ...told?.session, id: sessionID }, { [RECORD_KEY]: encodeRecord(task) });
}

/** Adds the record to a session event, because the recorded ones had none. */
async function withRecord(event: ServerEvent, server: MemoryServer): Promise<ServerEvent> {
  if (event.type !== "session-changed") return event;
  const { task } = (await server.session(event.session.id)) ?? event.session;
  return { ...event, session: { ...event.session, task } };
}
