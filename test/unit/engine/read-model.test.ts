import assert from "node:assert/strict";
import type {
  FolderSnapshot,
  MirroredRequest,
  MirroredSession,
  Refused,
} from "../../../src/engine/folder-changes.ts";
import { ReadModel } from "../../../src/engine/read-model.ts";
import type { Subagent } from "../../../src/engine/subagent.ts";
import type { Task } from "../../../src/engine/task.ts";
import { addRunningTasks, strictLogger } from "../../bench/support/memory-engine.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { MemoryServer } from "../../support/memory-server.ts";
import { type MemoryWindow, memoryWindow } from "../../support/memory-window.ts";
import { NO_TOKENS, record } from "./builders.ts";
import { EngineFeed } from "./engine-feed.ts";

describe("what a window knows of tasks", () => {
  describe("when it gets a full snapshot", () => {
    let server: MemoryServer;
    let window: MemoryWindow;
    let feed: EngineFeed;
    let model: ReadModel;
    let tasks: readonly string[];

    beforeEach(async () => {
      server = new MemoryServer();
      const clock = new ManualClock();
      window = memoryWindow(server, clock);
      ({ tasks } = await addRunningTasks(server, 2));
      await window.engine.connect();
      feed = new EngineFeed(window.engine);
      model = new ReadModel(clock, strictLogger);
      model.apply([{ type: "reset", snapshot: feed.snapshot() }]);
    });

    afterEach(() => window.kill());

    it("reports nothing if nothing changed, and keeps its objects", () => {
      const before = model.get(tasks[0] ?? "");
      const seen = eventsOf(model);
      model.apply([{ type: "reset", snapshot: feed.snapshot() }]);
      assert.deepEqual(seen, []);
      assert.equal(model.get(tasks[0] ?? ""), before);
    });

    it("keeps tasks and requests until they are read, then drops those that are gone", () => {
      const [kept = "", gone = ""] = tasks;
      server.ask(kept);
      window.link.deliver();
      model.apply(feed.changes());
      const asked = (): readonly string[] => model.openRequests().map(({ child }) => child.id);
      assert.deepEqual(asked(), [kept]);
      const nothing: FolderSnapshot = {
        connection: { kind: "connecting", detail: "" },
        sessions: [],
        tasks: [],
        subagents: [],
        requests: [],
        tombstones: [],
      };
      const { sessions, tasks: all, connection } = feed.snapshot();
      const { requests } = feed.snapshot();
      model.apply([{ type: "reset", snapshot: { ...nothing, requests } }]);
      assert.deepEqual(asked(), [kept]);
      model.apply([{ type: "reset", snapshot: nothing }]);
      assert.deepEqual(
        model.active().map(({ id }) => id),
        tasks,
      );
      assert.deepEqual(asked(), [kept]);
      const seen = eventsOf(model);
      const ended = all.flatMap((task) =>
        task.id === kept ? { ...task, status: "completed" as const } : [],
      );
      model.apply([
        ...ended.map((task) => ({ type: "task" as const, id: kept, task })),
        ...sessions
          .filter(({ id }) => id !== gone)
          .map((session) => ({ type: "session" as const, id: session.id, session })),
        { type: "connection", state: connection },
        { type: "requests", requests: [] },
      ]);
      assert.deepEqual(asked(), []);
      assert.deepEqual(
        seen.filter((event) => event.startsWith("task")),
        [`task ${kept} running → completed`, `task ${gone} running → undefined`],
      );
      assert.equal(model.session(gone), undefined);
      assert.equal(model.get(kept)?.status, "completed");
    });
  });

  describe("when it gets changes", () => {
    const connected = { kind: "connected", url: "http://memory", version: "1", own: true } as const;
    const task = (id: string, facts: Partial<Task> = {}): Task => ({
      ...record({ id }),
      cost: 0,
      tokens: NO_TOKENS,
      ...facts,
    });
    const session = (id: string, parentID?: string): MirroredSession =>
      ({ id, parentID, title: id, task: { kind: "none" } }) as MirroredSession;
    const subagent = (id: string): Subagent =>
      ({ id, parentSessionID: "ses_parent", status: "running" }) as unknown as Subagent;
    let model: ReadModel;
    let seen: string[];

    beforeEach(() => {
      model = new ReadModel(new ManualClock(), strictLogger);
      seen = eventsOf(model);
      model.onDidWarn(({ id }) => seen.push(`warning ${id}`));
      model.onDidRefuse((refused) => seen.push(`refused ${JSON.stringify(refused)}`));
      model.onDidChangeConnection(({ kind }) => seen.push(`connection ${kind}`));
      model.onDidChangeLatest((id) => seen.push(`latest ${id}`));
    });

    afterEach(() => model.dispose());

    it("knows nothing at first", () => {
      assert.deepEqual(model.connection, { kind: "disconnected" });
      assert.equal(model.latestSessionID, undefined);
      assert.deepEqual(
        [model.active(), model.sessions(), model.allTasks(), model.openRequests()],
        [[], [], [], []],
      );
    });

    it("knows each change, and tells of all of them once they are applied", () => {
      const known: unknown[] = [];
      model.onDidChangeSession(() => known.push(model.get("ses_b")?.status));
      const request = { id: "per_1", sessionID: "ses_a" } as MirroredRequest;
      model.apply([
        { type: "session", id: "ses_parent", session: session("ses_parent") },
        { type: "task", id: "ses_a", task: task("ses_a") },
        { type: "task", id: "ses_b", task: task("ses_b") },
        { type: "task", id: "ses_b", task: task("ses_b", { status: "completed" }) },
        { type: "subagent", id: "ses_c", subagent: subagent("ses_c") },
        { type: "requests", requests: [request] },
        { type: "latest-session", id: "ses_parent" },
        { type: "connection", state: connected },
        { type: "near-limit", task: task("ses_a") },
        { type: "refused", refused: { id: "ses_c" } as unknown as Refused },
      ]);
      assert.deepEqual(known, ["completed"]);
      assert.deepEqual(seen, [
        "session ses_parent",
        "task ses_a undefined → running",
        "task ses_b undefined → running",
        "task ses_b running → completed",
        "subagent ses_c",
        "requests",
        "latest ses_parent",
        "connection connected",
        "warning ses_a",
        'refused {"id":"ses_c"}',
      ]);
      assert.deepEqual(
        model.active().map(({ id }) => id),
        ["ses_a"],
      );
      assert.deepEqual(
        model.openRequests().map(({ request: { id }, child }) => [id, child.id]),
        [["per_1", "ses_a"]],
      );
      assert.deepEqual([model.connection, model.latestSessionID], [connected, "ses_parent"]);
    });

    it("says nothing of what goes that wasn't there, and remembers tasks whose session is gone", () => {
      model.apply([
        { type: "task", id: "ses_a", task: undefined },
        { type: "subagent", id: "ses_b", subagent: undefined },
      ]);
      assert.deepEqual(seen, []);
      model.apply([
        { type: "task", id: "ses_abcdef", task: task("ses_abcdef") },
        {
          type: "tombstone",
          tombstone: { id: "ses_abcdef", description: "Find it", parentSessionID: "ses_parent" },
        },
        { type: "task", id: "ses_abcdef", task: undefined },
      ]);
      assert.deepEqual(model.active(), []);
      assert.throws(() => model.find("abcdef"), { code: "session-gone" });
    });

    it("tells how a snapshot differs, and only that", () => {
      const first: FolderSnapshot = {
        connection: connected,
        sessions: [session("ses_parent"), session("ses_b", "ses_parent")],
        tasks: [task("ses_a"), task("ses_b")],
        subagents: [subagent("ses_c")],
        requests: [{ id: "per_1", sessionID: "ses_a" } as MirroredRequest],
        tombstones: [],
        latestSessionID: "ses_parent",
      };
      model.apply([{ type: "reset", snapshot: first }]);
      assert.deepEqual(seen.splice(0), [
        "task ses_a undefined → running",
        "task ses_b undefined → running",
        "session ses_parent",
        "session ses_b",
        "subagent ses_c",
        "requests",
        "latest ses_parent",
        "connection connected",
      ]);
      model.apply([{ type: "reset", snapshot: structuredClone(first) }]);
      assert.deepEqual(seen, []);
      const next = {
        ...first,
        tasks: [task("ses_b", { status: "completed" })],
        subagents: [],
        requests: [],
        sessions: [session("ses_parent"), { ...session("ses_b", "ses_parent"), title: "Other" }],
        latestSessionID: undefined,
        tombstones: [{ id: "ses_zzzzzz", description: "Gone", parentSessionID: "ses_parent" }],
      };
      model.apply([{ type: "reset", snapshot: next }]);
      assert.deepEqual(seen.splice(0), [
        "task ses_b running → completed",
        "task ses_a running → undefined",
        "session ses_b",
        "subagent ses_c",
        "requests",
        "latest undefined",
      ]);
      assert.deepEqual([model.active(), model.openRequests()], [[], []]);
      assert.equal(model.session("ses_b")?.title, "Other");
      assert.throws(() => model.find("zzzzzz"), { code: "session-gone" });
    });

    it("tells nobody once it is disposed", () => {
      model.dispose();
      model.apply([
        { type: "session", id: "ses_parent", session: session("ses_parent") },
        { type: "task", id: "ses_a", task: task("ses_a") },
        { type: "connection", state: connected },
      ]);
      assert.deepEqual(seen, []);
    });
  });
});

/** The events that listeners receive, one line each. */
function eventsOf(model: ReadModel): string[] {
  const seen: string[] = [];
  model.onDidChange(({ id, before, after }) => seen.push(`task ${id} ${before?.status} → ${after?.status}`));
  model.onDidChangeSession((id) => seen.push(`session ${id}`));
  model.onDidChangeSubagent(({ id }) => seen.push(`subagent ${id}`));
  model.onDidChangeRequests(() => seen.push("requests"));
  return seen;
}
