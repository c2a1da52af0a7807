import assert from "node:assert/strict";
import { NOTICE_MARK } from "../../../src/engine/asked.ts";
import type { Session } from "../../../src/engine/server-model.ts";
import type { Child, Subagent, SubagentChange } from "../../../src/engine/subagent.ts";
import { ManualClock, settled } from "../../support/manual-clock.ts";
import { MemoryServer } from "../../support/memory-server.ts";
import { type MemoryWindow, memoryWindow } from "../../support/memory-window.ts";
import { record } from "./builders.ts";

describe("Subagents that others launched", () => {
  let clock: ManualClock;
  let server: MemoryServer;
  let window: MemoryWindow;
  let parent: string;
  let isListening: boolean;
  let made = 0;

  beforeEach(async () => {
    clock = new ManualClock();
    server = new MemoryServer({ now: () => clock.now() });
    parent = await session("Parent");
    window = memoryWindow(server, clock);
    isListening = false;
    server.onEvent(() => (isListening ? window.link.deliver() : window.link.drop()));
  });

  afterEach(() => window.kill());

  const connect = (): Promise<void> => {
    isListening = true;
    return window.engine.connect();
  };
  const disconnect = (): void => {
    isListening = false;
    window.engine.disconnect();
  };

  const session = async (title: string, parentID?: string): Promise<string> =>
    (await server.createSession({ title, parentID, agent: "general" })).id;

  const ask = (id: string): Promise<void> =>
    server.prompt(id, { messageID: `msg_subagent${++made}`, agent: "general", parts: [{ text: "Look." }] });

  /** A running subagent that the window knows. */
  async function working(of = parent): Promise<string> {
    const id = await session("Look", of);
    await ask(id);
    return id;
  }

  function subagent(id: string): Subagent {
    const child = window.engine.child(id);
    assert.ok(child?.launchedBy === "other", `no subagent: ${JSON.stringify(child)}`);
    return child;
  }

  function stored(id: string): Session {
    const found = server.known().find((session) => session.id === id);
    assert.ok(found);
    return found;
  }

  const ids = (children: readonly Child[]): string[] => children.map(({ id }) => id);
  const calls = (call: string): number => server.journal.filter((entry) => entry.call === call).length;

  async function launch(of = parent): Promise<string> {
    const input = { prompt: "Work.", parentSessionID: of, launchedBy: "person" } as const;
    return (await window.engine.launch(input)).id;
  }

  it("are listed with the tasks of a session in the order of their creation", async () => {
    await connect();
    const first = await session("First", parent);
    await clock.advance(1);
    const task = await launch();
    await clock.advance(1);
    const last = await session("Last", parent);
    assert.deepEqual(ids(window.engine.children(parent)), [first, task, last]);
    assert.deepEqual(ids(window.engine.list(parent)), [task]);
    const below = await session("Below", last);
    assert.deepEqual(ids(window.engine.children(last)), [below]);
    await window.engine.clear(task, { cancelRunning: true });
    assert.deepEqual(ids(window.engine.children(parent)), [first, last]);
    await clock.advance(1);
    const other = await launch();
    assert.deepEqual(ids(window.engine.children(parent)), [first, last, other]);
    await server.deleteSession(other);
    assert.deepEqual(ids(window.engine.children(parent)), [first, last]);
  });

  it("do not include a root, a task (even without its record), a session with an unreadable record, an archived session", async () => {
    await connect();
    const task = await launch();
    server.put(stored(task), {});
    const unreadable = await session("Future", parent);
    server.put(stored(unreadable), { asyncagents: { v: 99, id: unreadable } });
    const archived = await session("Old", parent);
    server.put({ ...stored(archived), archived: clock.now() }, undefined);
    assert.deepEqual(ids(window.engine.children(parent)), [task]);
    for (const id of [parent, unreadable, archived]) assert.equal(window.engine.child(id), undefined);
    // An archived session has no listed children.
    await session("Below", archived);
    assert.deepEqual(window.engine.children(archived), []);
  });

  it("become tasks when a record appears, and are removed as subagents", async () => {
    await connect();
    const id = await session("Linked later", parent);
    const changes: SubagentChange[] = [];
    window.engine.onDidChangeSubagent((change) => changes.push(change));
    await server.saveRecord(record({ id, parentSessionID: parent, status: "completed" }));
    assert.deepEqual(ids(window.engine.list(parent)), [id]);
    assert.deepEqual(ids(window.engine.children(parent)), [id]);
    assert.equal(window.engine.child(id)?.launchedBy, "person");
    assert.deepEqual(
      changes.map(({ before, after }) => [before?.id, after]),
      [[id, undefined]],
    );
  });

  it("are idle until they are seen running, then report what they do", async () => {
    await connect();
    const id = await session("Look", parent);
    assert.equal(subagent(id).status, "idle");
    assert.equal(subagent(id).startedAt, subagent(id).createdAt);
    await clock.advance(5_000);
    await ask(id);
    assert.equal(subagent(id).status, "running");
    assert.equal(subagent(id).startedAt, clock.now());
    assert.equal(subagent(id).endedAt, undefined);
    server.useTool(id, "grep");
    assert.deepEqual(subagent(id).progress?.toolCounts, { grep: 1 });
    await clock.advance(2_000);
    server.finish(id, "Found.");
    assert.equal(subagent(id).status, "idle");
    assert.equal(subagent(id).endedAt, clock.now());
    assert.equal(subagent(id).toolCalls, 1);
    await ask(id);
    server.useTool(id);
    server.finish(id, "More.");
    assert.equal(subagent(id).toolCalls, 2);
  });

  it("change once when a turn ends, even if that is reported twice", async () => {
    await connect();
    const id = await working();
    const statuses: (string | undefined)[] = [];
    window.engine.onDidChangeSubagent(({ before, after }) => {
      if (before?.status !== after?.status) statuses.push(after?.status);
    });
    server.end(id, { type: "failed", error: { name: "APIError", message: "No key." } });
    assert.deepEqual(statuses, ["error"]);
    assert.deepEqual(subagent(id).error, { name: "APIError", message: "No key." });
  });

  for (const [how, ending, status] of [
    ["an abort", { type: "aborted" }, "cancelled"],
    ["a permission turned down", { type: "refused" }, "idle"],
    ["an answer", { type: "completed", text: "Found." }, "idle"],
  ] as const)
    it(`are ${status} after ${how}`, async () => {
      await connect();
      const id = await working();
      server.end(id, ending);
      assert.equal(subagent(id).status, status);
      assert.equal(subagent(id).error, undefined);
    });

  it("are cancelled by an abort between two attempts, which leaves no error", async () => {
    await connect();
    const id = await working();
    server.retry(id);
    assert.equal(subagent(id).progress?.phase, "retrying");
    await window.engine.stopSubagent(id);
    assert.equal(subagent(id).status, "cancelled");
  });

  it("are stalled after a silence until their next update, and watched only while they are running", async () => {
    window.kill();
    window = memoryWindow(server, clock, { stallWarning: 60_000 });
    server.onEvent(() => window.link.deliver());
    await connect();
    const phase = (id: string) => subagent(id).progress?.phase;
    const [silent, asking] = [await working(), await working()];
    server.ask(asking);
    await clock.advance(59_000);
    assert.equal(phase(silent), "thinking");
    await clock.advance(16_000);
    assert.deepEqual([phase(silent), phase(asking)], ["stalled", "needs-permission"]);
    server.write(silent, "Here I am");
    assert.equal(phase(silent), "streaming");
    disconnect();
    await clock.advance(120_000);
    assert.equal(phase(silent), "streaming");
    await connect();
    server.finish(silent, "Found.");
    server.end(asking, { type: "aborted" });
    await clock.advance(60_000);
    assert.equal(clock.pending, 0);
  });

  it("are at work again with the next word of their model, as tasks are, and their conversation gets that word", async () => {
    window.kill();
    window = memoryWindow(server, clock, { stallWarning: 60_000 });
    server.onEvent(() => window.link.deliver());
    await connect();
    const ids = [await working(), await launch()];
    for (const id of ids) server.write(id, "Here");
    const transcripts = await Promise.all(ids.map((id) => window.engine.transcript(id)));
    const phases = () => ids.map((id) => window.engine.child(id)?.progress?.phase);
    await clock.advance(75_000);
    assert.deepEqual(phases(), ["stalled", "stalled"]);
    const parts = transcripts.map(
      ({ messages }) => messages.at(-1)?.parts.at(-1) ?? assert.fail("no answer"),
    );
    for (const { sessionID, messageID, id: partID } of parts)
      server.emit({ type: "part-delta", sessionID, messageID, partID, field: "text", delta: " I am" });
    assert.deepEqual(phases(), ["streaming", "streaming"]);
    for (const { messages } of transcripts) {
      const part = messages.at(-1)?.parts.at(-1);
      assert.equal(part?.type === "text" && part.text, "Here I am");
    }
    for (const transcript of transcripts) transcript.dispose();
  });

  it("do not fail because of an error after which the turn continues", async () => {
    await connect();
    const id = await working();
    server.overflow(id);
    assert.equal(subagent(id).status, "running");
    server.finish(id, "Summary.");
    server.finish(id, "Found.");
    assert.equal(subagent(id).status, "idle");
  });

  it("cost no request if there are none, and one if there are", async () => {
    await connect();
    assert.equal(calls("statuses"), 0);
    await session("Look", parent);
    await connect();
    assert.equal(calls("statuses"), 1);
    assert.equal(calls("messages"), 0);
  });

  it("that are running when the window connects are found, with their open request", async () => {
    const id = await working();
    server.useTool(id, "read");
    server.finish(id, "The turn before.");
    await clock.advance(1_000);
    await ask(id);
    server.useTool(id, "grep");
    const request = server.ask(id);
    const began = clock.now();
    await clock.advance(60_000);
    await connect();
    await settled();
    assert.equal(subagent(id).status, "running");
    assert.equal(subagent(id).startedAt, began);
    assert.equal(subagent(id).progress?.phase, "needs-permission");
    assert.deepEqual(subagent(id).progress?.toolCounts, { grep: 1, bash: 1 });
    assert.deepEqual(window.engine.openRequests(), [{ request, child: subagent(id) }]);
  });

  it("that were told of the end of a task, or compacted, when the window connects began with their prompt", async () => {
    const [told, compacted] = [await working(), await working()];
    const began = clock.now();
    const request = server.ask(told);
    server.useTool(compacted, "read");
    await clock.advance(1_000);
    const parts = [{ text: "Task ended.", metadata: { [NOTICE_MARK]: "ses_x" } }];
    await server.prompt(told, { messageID: "msg_notice", agent: "general", parts });
    server.overflow(compacted);
    await connect();
    await settled();
    assert.deepEqual([subagent(told).startedAt, subagent(compacted).startedAt], [began, began]);
    assert.deepEqual(window.engine.openRequests(), [{ request, child: subagent(told) }]);
    assert.equal(subagent(told).progress?.phase, "needs-permission");
    assert.deepEqual(subagent(compacted).progress?.toolCounts, { read: 1 });
  });

  it("that were woken by the end of a task began with its notice", async () => {
    const id = await working();
    server.useTool(id, "read");
    server.finish(id, "Launched.");
    await clock.advance(1_000);
    const parts = [{ text: "Task ended.", metadata: { [NOTICE_MARK]: "ses_x" } }];
    await server.prompt(id, { messageID: "msg_notice", agent: "general", parts });
    const began = clock.now();
    server.useTool(id, "grep");
    await clock.advance(1_000);
    await connect();
    await settled();
    assert.equal(subagent(id).startedAt, began);
    assert.deepEqual(subagent(id).progress?.toolCounts, { grep: 1 });
  });

  it("stay running while the connection is lost, and are idle after it if they ended", async () => {
    await connect();
    const [ends, stays] = [await working(), await working()];
    server.useTool(ends);
    disconnect();
    const ended = clock.now() + 1_000;
    await clock.advance(1_000);
    server.end(ends, { type: "failed", error: { name: "APIError", message: "No key." } });
    server.put({ ...stored(ends), updated: ended }, undefined);
    await clock.advance(1_000);
    assert.deepEqual([subagent(ends).status, subagent(stays).status], ["running", "running"]);
    await connect();
    assert.deepEqual([subagent(ends).status, subagent(stays).status], ["idle", "running"]);
    assert.equal(subagent(ends).endedAt, ended);
    assert.equal(subagent(ends).error, undefined);
    server.finish(stays, "Found.");
    assert.equal(subagent(stays).status, "idle");
  });

  it("that were created, deleted or answered while the connection was lost are up to date after it", async () => {
    await connect();
    const [gone, asking] = [await working(), await working()];
    const request = server.ask(asking);
    disconnect();
    await server.deleteSession(gone);
    await server.answer(request, { type: "permission", reply: "once" });
    const came = await working();
    await connect();
    assert.deepEqual(ids(window.engine.children(parent)), [asking, came]);
    assert.deepEqual(window.engine.openRequests(), []);
    assert.equal(subagent(asking).progress?.phase, "thinking");
  });

  it("that end while the window reads the statuses are not reported as running", async () => {
    const id = await working();
    // The calls before this one: sessions, permissions and questions.
    window.link.fail("answer-late", 2);
    const connecting = connect();
    await settled();
    server.finish(id, "Found.");
    window.link.release();
    await connecting;
    assert.equal(subagent(id).status, "idle");
  });

  it("that fail while everything is read again are reported as failed", async () => {
    await connect();
    const id = await working();
    window.link.fail("answer-late");
    const connecting = connect();
    await settled();
    server.begin(id);
    server.end(id, { type: "failed", error: { name: "APIError", message: "No credit" } });
    window.link.release();
    await connecting;
    assert.equal(subagent(id).error?.message, "No credit");
    assert.equal(subagent(id).status, "error");
  });

  it("stay running if what they did so far cannot be read", async () => {
    const id = await working();
    window.link.fail("refused", 3);
    await connect();
    await settled();
    assert.equal(subagent(id).status, "running");
    assert.match(window.log.join("\n"), /Couldn't read what subagent \w+ is doing/);
  });

  it("are stopped with all running descendants: subagents are aborted, tasks cancelled, others left alone", async () => {
    await connect();
    const top = await working();
    const resting = await session("Resting", top);
    const task = await launch(resting);
    const deep = await working(task);
    const aside = await working();
    await window.engine.stopSubagent(top);
    assert.deepEqual([subagent(top).status, subagent(deep).status], ["cancelled", "cancelled"]);
    assert.equal(window.engine.get(task)?.status, "cancelled");
    assert.deepEqual([subagent(resting).status, subagent(aside).status], ["idle", "running"]);
    const aborted = server.journal.flatMap(({ call, sessionID }) => (call === "abort" ? [sessionID] : []));
    assert.deepEqual(aborted.sort(), [top, task, deep].sort());
  });

  it("are stopped when a task above them is cancelled", async () => {
    await connect();
    const task = await launch();
    const below = await working(await working(task));
    await window.engine.cancel(task);
    assert.equal(subagent(below).status, "cancelled");
  });

  describe("and requests for the user", () => {
    let changes: number;

    beforeEach(async () => {
      await connect();
      changes = 0;
      window.engine.onDidChangeRequests(() => changes++);
    });

    const open = (): string[] => window.engine.openRequests().map(({ request }) => request.id);

    it("are listed with their requests among those of tasks, oldest first", async () => {
      const task = await launch();
      const deep = await working(task);
      const requests = [server.ask(deep), server.ask(task)];
      assert.deepEqual(
        open(),
        requests.map(({ id }) => id),
      );
      assert.deepEqual(ids(window.engine.openRequests().map(({ child }) => child)), [deep, task]);
      assert.equal(subagent(deep).progress?.phase, "needs-permission");
      assert.equal(changes, 2);
      await window.engine.answer(requests[0]!, { type: "permission", reply: "once" });
      assert.deepEqual(open(), [requests[1]?.id]);
      assert.equal(subagent(deep).progress?.phase, "thinking");
    });

    it("keep their requests while everything is read again", async () => {
      const asked = server.ask(await working());
      const gone = server.ask(await working());
      await server.answer(gone, { type: "permission", reply: "once" });
      const seen: string[][] = [];
      window.engine.onDidChangeRequests(() => seen.push(open()));
      await connect();
      assert.ok(seen.length > 0);
      for (const each of seen) assert.deepEqual(each, [asked.id]);
    });

    it("keep a request that was asked before their window noticed that they run", async () => {
      const late = memoryWindow(server, clock);
      await late.engine.connect();
      const asked = server.ask(await working());
      await clock.advance(100);
      late.link.deliver();
      await late.engine.connect();
      assert.deepEqual(
        late.engine.openRequests().map(({ request }) => request.id),
        [asked.id],
      );
      late.kill();
    });

    it("lose their requests once they are stopped, even when they run again", async () => {
      const id = await working();
      server.ask(id);
      changes = 0;
      await window.engine.stopSubagent(id);
      assert.deepEqual(open(), []);
      assert.deepEqual(window.engine.pendingRequests(id), []);
      assert.ok(changes > 0);
      // The server itself keeps the request forever.
      assert.equal((await server.pendingRequests()).length, 1);
      await connect();
      assert.deepEqual(open(), []);
      assert.deepEqual(window.engine.pendingRequests(id), []);
      await clock.advance(1);
      await ask(id);
      assert.deepEqual(open(), []);
      assert.equal(subagent(id).progress?.phase, "thinking");
      await connect();
      assert.deepEqual(open(), []);
      assert.equal(subagent(id).progress?.phase, "thinking");
      const asked = server.ask(id);
      await connect();
      assert.deepEqual(open(), [asked.id]);
      // A new process learns from the conversation when the turn began.
      window.kill();
      window = memoryWindow(server, clock);
      await connect();
      await settled();
      assert.deepEqual(open(), [asked.id]);
      await server.answer(asked, { type: "permission", reply: "once" });
      window.link.deliver();
      assert.equal(subagent(id).progress?.phase, "thinking");
    });

    it("lose their requests once their session is deleted or their task is cancelled", async () => {
      const [id, task] = [await working(), await launch()];
      server.ask(id);
      server.ask(task);
      changes = 0;
      await server.deleteSession(id);
      assert.equal(open().length, 1);
      await window.engine.cancel(task);
      assert.equal(open().length, 0);
      assert.ok(changes >= 2);
    });

    it("are reported at a connect", async () => {
      disconnect();
      const id = await working();
      server.ask(id);
      changes = 0;
      await connect();
      assert.equal(open().length, 1);
      assert.ok(changes > 0);
    });
  });
});
