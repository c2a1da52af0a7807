import assert from "node:assert/strict";
import { Refusal } from "../../../src/engine/errors.ts";
import type { TaskRecord } from "../../../src/engine/task.ts";
import { encodeRecord, RECORD_KEY } from "../../../src/opencode/record-codec.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { MemoryServer } from "../../support/memory-server.ts";
import { type MemoryWindow, memoryWindow } from "../../support/memory-window.ts";
import { noWorktrees } from "../../support/no-worktrees.ts";
import { record } from "./builders.ts";

const WORKTREE = { name: "port-the-printer-abcd", directory: "/trees/port-the-printer-abcd", base: "abcd" };

describe("deleting a task's session", () => {
  let server: MemoryServer;
  let window: MemoryWindow;
  let parentSessionID: string;
  let isMade: boolean;

  beforeEach(async () => {
    isMade = true;
    const clock = new ManualClock();
    server = new MemoryServer({ now: () => clock.now() });
    window = memoryWindow(server, clock, {}, 1, undefined, { ...noWorktrees, exists: async () => isMade });
    parentSessionID = (await server.createSession({ title: "Parent", agent: "build" })).id;
  });

  afterEach(() => window.kill());

  async function completed(parentID: string, facts: Partial<TaskRecord> = {}): Promise<string> {
    const session = await server.createSession({ title: "A task", parentID, agent: "general" });
    const task = record({ id: session.id, parentSessionID: parentID, status: "completed", ...facts });
    server.put(session, { [RECORD_KEY]: encodeRecord(task) });
    return session.id;
  }

  const isThere = (id: string): boolean => server.known().some((session) => session.id === id);

  it("is refused while the task or one below it has a worktree", async () => {
    const outer = await completed(parentSessionID);
    const inner = await completed(outer, { worktree: WORKTREE });
    await window.engine.connect();
    for (const id of [outer, inner])
      await assert.rejects(
        window.engine.clear(id, { deleteSession: true }),
        (error) => error instanceof Refusal && error.code === "has-worktree",
      );
    assert.ok(isThere(outer) && isThere(inner));
    assert.equal(window.engine.get(outer)?.clearedAt, undefined);
  });

  it("is done once the worktree was discarded", async () => {
    isMade = false;
    const id = await completed(parentSessionID, { worktree: { ...WORKTREE, outcome: "discarded" } });
    await window.engine.connect();
    await window.engine.clear(id, { deleteSession: true });
    assert.ok(!isThere(id));
  });
});
