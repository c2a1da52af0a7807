import assert from "node:assert/strict";
import type { PendingRequest } from "../../../src/engine/server-model.ts";
import { shortID, type Span } from "../../../src/engine/task.ts";
import { ManualClock, settled } from "../../support/manual-clock.ts";
import { MemoryServer } from "../../support/memory-server.ts";
import { type MemoryWindow, memoryWindow } from "../../support/memory-window.ts";

const MINUTE = 60_000;

describe("the past times of tasks", () => {
  let clock: ManualClock;
  let server: MemoryServer;
  let start: number;
  let windows: MemoryWindow[];

  beforeEach(() => {
    clock = new ManualClock();
    server = new MemoryServer({ now: () => clock.now() });
    start = clock.now();
    windows = [];
  });

  afterEach(() => {
    for (const window of windows) window.kill();
  });

  async function open(): Promise<MemoryWindow> {
    const window = memoryWindow(server, clock, {}, windows.length + 1);
    windows.push(window);
    server.onEvent(() => window.link.deliver());
    await window.engine.connect();
    return window;
  }

  async function launch({ engine }: MemoryWindow): Promise<string> {
    const parentSessionID = (await server.createSession({ title: "Parent", agent: "build" })).id;
    const { id } = await engine.launch({ prompt: "Work.", parentSessionID, launchedBy: "person" });
    server.begin(id);
    return id;
  }

  async function wait(id: string, minutes: number): Promise<void> {
    server.ask(id);
    await clock.advance(minutes * MINUTE);
    server.reply(id, "once");
    await settled();
  }

  /** In minutes since the start. */
  const spans = ({ engine }: MemoryWindow, id: string): readonly Span[] | undefined =>
    engine
      .get(id)
      ?.spans?.map(([what, from, to]): Span => [
        what,
        Math.round((from - start) / MINUTE),
        Math.round((to - start) / MINUTE),
      ]);

  it("are its waits for the user, which an engine that starts later still knows", async () => {
    const window = await open();
    const id = await launch(window);
    await clock.advance(MINUTE);
    await wait(id, 5);
    await clock.advance(MINUTE);
    await wait(id, 2);
    const waited = [
      ["wait", 1, 6],
      ["wait", 7, 9],
    ];
    assert.deepEqual(spans(window, id), waited);
    window.kill();
    const next = await open();
    assert.deepEqual(spans(next, id), waited);
  });

  it("are stored by a connected engine only, as another one may be writing the record", async () => {
    const window = await open();
    const id = await launch(window);
    server.ask(id);
    await clock.advance(5 * MINUTE);
    window.engine.disconnect();
    const written = (): number => server.journal.filter(({ call }) => call === "saveRecord").length;
    const before = written();
    server.reply(id, "once");
    await settled();
    assert.equal(written(), before);
    await window.engine.connect();
    await settled();
    assert.deepEqual(spans(window, id), [["wait", 0, 5]]);
  });

  it("begin when the first of several requests was made", async () => {
    const window = await open();
    const id = await launch(window);
    server.ask(id);
    await clock.advance(2 * MINUTE);
    const other = server.ask(id);
    await clock.advance(MINUTE);
    await server.answer(other, { type: "permission", reply: "once" });
    await settled();
    for (const request of await server.pendingRequests())
      await server.answer(request, { type: "permission", reply: "once" });
    await settled();
    assert.deepEqual(spans(window, id), [["wait", 0, 3]]);
  });

  it("begin when they are seen if the ID of the request holds no time", async () => {
    const window = await open();
    const id = await launch(window);
    await clock.advance(MINUTE);
    const request: PendingRequest = {
      type: "permission",
      id: "per_00000000000000000000000000",
      sessionID: id,
      permission: "bash",
      patterns: ["*"],
      always: ["*"],
      metadata: {},
    };
    server.emit({ type: "request-asked", request });
    await clock.advance(MINUTE);
    server.emit({ type: "request-closed", sessionID: id, requestID: request.id });
    await settled();
    assert.deepEqual(spans(window, id), [["wait", 1, 2]]);
  });

  it("are lost without harm with a deleted session, or if they can't be stored", async () => {
    const window = await open();
    const id = await launch(window);
    server.ask(id);
    await settled();
    const { saveRecord } = server;
    server.saveRecord = () => Promise.reject(new Error("Full."));
    server.reply(id, "once");
    await settled();
    assert.deepEqual([...window.log].sort(), [
      `Couldn't store how long task ${shortID(id)} waited: Full.`,
      `Couldn't store that task ${shortID(id)} waited: Full.`,
    ]);
    server.saveRecord = saveRecord;
    const other = await launch(window);
    server.ask(other);
    await settled();
    await server.deleteSession(other);
    await settled();
    assert.equal(window.engine.get(other), undefined);
    assert.deepEqual(window.log.slice(2), [`The session of task ${shortID(other)} is gone.`]);
  });

  it("end with the task if it ends while it waits", async () => {
    const window = await open();
    const id = await launch(window);
    server.ask(id);
    await clock.advance(3 * MINUTE);
    await window.engine.cancel(id);
    await settled();
    assert.deepEqual(spans(window, id), [["wait", 0, 3]]);
  });

  it("are its earlier turns, too, once it is resumed", async () => {
    const window = await open();
    const id = await launch(window);
    await wait(id, 1);
    await clock.advance(MINUTE);
    server.finish(id, "Done.");
    await settled();
    await clock.advance(30 * MINUTE);
    await window.engine.resume(id, "More.");
    assert.deepEqual(spans(window, id), [
      ["wait", 0, 1],
      ["turn", 0, 2],
    ]);
  });

  it("are not the waits of what it launched", async () => {
    const window = await open();
    const id = await launch(window);
    const below = (await server.createSession({ title: "Look", parentID: id, agent: "general" })).id;
    await server.prompt(below, { messageID: "msg_below", agent: "general", parts: [{ text: "Look." }] });
    server.begin(below);
    await wait(below, 2);
    assert.equal(spans(window, id), undefined);
  });

  it("are the last twelve, because the record must stay small", async () => {
    const window = await open();
    const id = await launch(window);
    for (let at = 0; at < 14; at++) await wait(id, 1);
    assert.equal(spans(window, id)?.length, 12);
    assert.deepEqual(spans(window, id)?.at(-1), ["wait", 13, 14]);
  });
});
