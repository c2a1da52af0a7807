import assert from "node:assert/strict";
import { ServerFailure } from "../../../src/engine/ports.ts";
import { ManualClock, settled } from "../../support/manual-clock.ts";
import { MemoryServer } from "../../support/memory-server.ts";
import { type MemoryWindow, openWindow } from "../../support/memory-window.ts";

describe("What a folder knows of its tasks", () => {
  let clock: ManualClock;
  let server: MemoryServer;
  let window: MemoryWindow;
  let parent: string;
  let made = 0;

  beforeEach(async () => {
    clock = new ManualClock();
    server = new MemoryServer({ now: () => clock.now() });
    parent = await session("Parent");
    window = await openWindow(server, clock, { maxDepth: 3 });
  });

  afterEach(() => window.kill());

  const session = async (title: string, parentID?: string): Promise<string> =>
    (await server.createSession({ title, parentID, agent: "general" })).id;

  async function launch(of = parent, batchID?: string): Promise<string> {
    await clock.advance(1);
    const input = { prompt: "Work.", parentSessionID: of, launchedBy: "person", batchID } as const;
    return (await window.engine.launch(input)).id;
  }

  async function completed(of = parent): Promise<string> {
    const id = await launch(of);
    server.finish(id, "Done.");
    await settled();
    return id;
  }

  /** A running subagent that is no task. */
  async function working(of = parent): Promise<string> {
    await clock.advance(1);
    const id = await session("Look", of);
    const messageID = `msg_subagent${++made}`;
    await server.prompt(id, { messageID, agent: "general", parts: [{ text: "Look." }] });
    return id;
  }

  async function archive(id: string): Promise<void> {
    const found = await server.session(id);
    assert.ok(found);
    server.put({ ...found, archived: 1 }, undefined);
  }

  const ids = (children: readonly { readonly id: string }[]): readonly string[] =>
    children.map(({ id }) => id);

  it("lists nothing of an archived session, though all of it is known", async () => {
    const [task, cleared, subagent] = [await completed(), await completed(), await working()];
    await window.engine.clear(cleared);
    const { engine } = window;
    assert.deepEqual(ids(engine.list(parent)), [task]);
    assert.deepEqual(ids(engine.cleared(parent)), [cleared]);
    assert.deepEqual(ids(engine.children(parent)), [task, subagent]);
    await archive(parent);
    assert.deepEqual([engine.list(parent), engine.cleared(parent), engine.children(parent)], [[], [], []]);
    assert.deepEqual(ids(engine.allTasks()).toSorted(), [task, cleared].toSorted());
    assert.equal(engine.child(subagent)?.id, subagent);
    assert.equal(engine.child("ses_unknown"), undefined);
  });

  it("counts active tasks, and whether all parents have been told", async () => {
    const { engine } = window;
    assert.ok(engine.isSettled());
    const id = await launch();
    assert.deepEqual(ids(engine.active()), [id]);
    assert.ok(!engine.isSettled());
    server.finish(id, "Done.");
    await settled();
    assert.deepEqual(engine.active(), []);
    assert.ok(engine.isSettled());
  });

  it("has the requests of each task and subagent while it runs, and answers them", async () => {
    const { engine } = window;
    const [one, other] = [await launch(), await working()];
    const [first, second] = [server.ask(one), server.ask(other, "edit")];
    assert.deepEqual(ids(engine.requests), [first.id, second.id]);
    assert.deepEqual(ids(engine.pendingRequests(one)), [first.id]);
    assert.deepEqual(ids(engine.pendingRequests(other)), [second.id]);
    assert.deepEqual(
      engine.openRequests().map(({ request, child }) => [request.id, child.id]),
      [
        [first.id, one],
        [second.id, other],
      ],
    );
    // Answered elsewhere, or while there was no connection.
    await engine.answer(first, { type: "permission", reply: "once" });
    assert.deepEqual(engine.pendingRequests(one), []);
    await assert.rejects(engine.answer(first, { type: "permission", reply: "once" }), {
      reason: "not-found",
      message: "This request is no longer waiting.",
    });
    window.engine.disconnect();
    await assert.rejects(engine.answer({ ...first, id: "per_other" }, { type: "dismiss" }), {
      reason: "unreachable",
      message: "OpenCode isn't connected yet. Try again.",
    });
  });

  it("knows an answered request as answered before an event says so", async () => {
    const id = await launch();
    const request = server.ask(id);
    server.answer = async () => undefined;
    await window.engine.answer(request, { type: "permission", reply: "once" });
    assert.deepEqual(window.engine.requests, []);
  });

  it("finds batches by their name without the spaces around it, also of one parent alone", async () => {
    const { engine } = window;
    const other = await session("Other");
    const [one, two] = [await launch(parent, "names"), await launch(other, "names")];
    assert.deepEqual(ids(engine.batch(" names ")), [one, two]);
    assert.deepEqual(ids(engine.batch("names", other)), [two]);
    assert.throws(() => engine.batch("others"), {
      code: "unknown-batch",
      message: "Batch others doesn't exist. List the tasks to see their batches.",
    });
    server.finish(one, "Done.");
    await settled();
    await engine.clear(one);
    assert.throws(() => engine.batch("names", parent), { code: "unknown-batch" });
  });

  it("knows all below a session, tasks and others, the nearest first", async () => {
    const task = await launch();
    const subagent = await working(task);
    const below = await launch(subagent);
    const { engine } = window;
    assert.deepEqual(ids(engine.descendantsOf(parent)), [task, subagent, below]);
    assert.deepEqual(ids(engine.descendantsOf(below)), []);
  });

  it("stops a subagent with all below it, and refuses to stop one that is unknown", async () => {
    const subagent = await working();
    const below = await launch(subagent);
    const idle = await session("Idle", parent);
    const { engine } = window;
    await engine.stopSubagent(subagent);
    await settled();
    assert.equal(engine.get(below)?.status, "cancelled");
    assert.ok(!server.running().has(subagent));
    const aborts = (): number => server.journal.filter(({ call }) => call === "abort").length;
    const before = aborts();
    await engine.stopSubagent(idle);
    assert.equal(aborts(), before);
    await assert.rejects(engine.stopSubagent("ses_unknown"), { code: "unknown-session" });
  });

  it("refuses a message with a rejection while the same agent waits for another permission, as it would not read it", async () => {
    const { engine } = window;
    const [one, other] = [await launch(), await launch()];
    const [first, second] = [server.ask(one), server.ask(one, "edit")];
    server.ask(other);
    const rejection = { type: "permission", reply: "reject", message: "Use pnpm." } as const;
    await assert.rejects(engine.answer(first, rejection), {
      code: "wrong-status",
      message: /^The agent waits for another permission, too\. .* never reads the message\./,
    });
    assert.deepEqual(ids(engine.pendingRequests(one)), [first.id, second.id]);
    await engine.answer(second, { type: "permission", reply: "once" });
    await engine.answer(first, rejection);
    assert.deepEqual(engine.pendingRequests(one), []);
  });

  it("knows a request as answered that the server no longer has", async () => {
    const id = await launch();
    const request = server.ask(id);
    server.answer = () => Promise.reject(new ServerFailure("answer", "not-found", "It is gone."));
    const answering = window.engine.answer(request, { type: "permission", reply: "once" });
    await assert.rejects(answering, { reason: "not-found" });
    assert.deepEqual(window.engine.requests, []);
  });

  it("gives the call that made a request, once its input is known", async () => {
    const id = await launch();
    const { engine } = window;
    const request = server.ask(id);
    assert.equal(await engine.toolCall(request), undefined);
    const state = { status: "running", input: { command: "ls" }, start: 1 } as const;
    const tool = { type: "tool", id: "prt_1", sessionID: id, tool: "bash", state } as const;
    server.message = async (sessionID, messageID) => ({
      info: { role: "user", id: messageID, sessionID, created: 1, agent: "general" },
      parts: [
        { ...tool, messageID, callID: "call_other", state: { ...state, input: {} } },
        { ...tool, messageID, callID: "call_1" },
        { ...tool, messageID, callID: "call_new", state: { status: "pending", input: {} } },
      ],
    });
    const call = { messageID: "msg_1", callID: "call_1" };
    assert.deepEqual(await engine.toolCall({ ...request, call }), { tool: "bash", input: { command: "ls" } });
    for (const callID of ["call_2", "call_new"])
      assert.equal(await engine.toolCall({ ...request, call: { ...call, callID } }), undefined);
    server.message = async () => undefined;
    assert.equal(await engine.toolCall({ ...request, call }), undefined);
  });
});
