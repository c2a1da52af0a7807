import assert from "node:assert/strict";
import type { EngineSettings } from "../../../src/engine/engine.ts";
import { hold } from "../../support/hold.ts";
import { ManualClock, settled } from "../../support/manual-clock.ts";
import { MemoryServer } from "../../support/memory-server.ts";
import { type MemoryWindow, openWindow } from "../../support/memory-window.ts";

describe("Once a task was stopped", () => {
  let server: MemoryServer;
  let window: MemoryWindow;
  let settings: { -readonly [K in keyof EngineSettings]?: EngineSettings[K] };
  let parent: string;

  beforeEach(async () => {
    const clock = new ManualClock();
    settings = { maxDepth: 2 };
    server = new MemoryServer({ now: () => clock.now() });
    parent = (await server.createSession({ title: "Parent", agent: "build" })).id;
    window = await openWindow(server, clock, settings);
  });

  afterEach(() => window.kill());

  const launch = async (parentSessionID: string): Promise<string> =>
    (await window.engine.launch({ prompt: "Work.", parentSessionID, launchedBy: "agent" })).id;

  const answersTo = (sessionID: string, messageID: string | undefined): readonly string[] =>
    server
      .stored(sessionID)
      .flatMap(({ info }) => (info.role === "assistant" && info.parentID === messageID ? [info.id] : []));

  it("the notice of a subtask that had ended before doesn't make it work again", async () => {
    const above = await launch(parent);
    const below = await launch(above);
    const release = hold(server, "messages", above);
    server.finish(below, "Found it.");
    await settled();
    await window.engine.cancel(above, "person");
    release();
    await settled();
    assert.equal(window.engine.get(below)?.notice.state, "delivered");
    const notice = server.stored(above).findLast(({ info }) => info.role === "user");
    assert.deepEqual(answersTo(above, notice?.info.id), []);
  });

  it("a turn that such a notice began nevertheless is stopped", async () => {
    const above = await launch(parent);
    const below = await launch(above);
    const release = hold(server, "prompt", above);
    server.finish(below, "Found it.");
    await settled();
    await window.engine.cancel(above, "person");
    release();
    await settled();
    assert.ok(!server.running().has(above));
  });

  it("a turn is stopped that a notice begins while its queued subtasks are being cancelled", async () => {
    settings.maxConcurrentTasks = 2;
    const above = await launch(parent);
    const [done, queued] = [await launch(above), await launch(above)];
    const release = hold(server, "saveRecord", queued);
    const cancelling = window.engine.cancel(above, "person");
    await settled();
    server.finish(done, "Found it.");
    await settled();
    release();
    await cancelling;
    await settled();
    assert.equal(window.engine.get(done)?.notice.state, "delivered");
    assert.deepEqual([...server.running().keys()], [parent]);
  });

  it("nothing is left running if its session is deleted while its queued subtasks are being cancelled", async () => {
    settings.maxConcurrentTasks = 2;
    const above = await launch(parent);
    const [, queued] = [await launch(above), await launch(above)];
    const release = hold(server, "saveRecord", queued);
    const cancelling = window.engine.cancel(above, "person");
    await settled();
    await server.deleteSession(above);
    await settled();
    release();
    await cancelling;
    await settled();
    assert.deepEqual([...server.running().keys()], []);
  });

  it("none of its queued subtasks gets the slot that becomes free", async () => {
    settings.maxConcurrentTasks = 1;
    const above = await launch(parent);
    const below = await launch(above);
    assert.equal(window.engine.get(below)?.progress?.phase, "queued");
    await window.engine.cancel(above, "person");
    await settled();
    assert.equal(window.engine.get(below)?.status, "cancelled");
    const prompts = server.journal.filter((entry) => entry.call === "prompt" && entry.sessionID === below);
    // Its prompt was only stored.
    assert.equal(prompts.length, 1);
  });

  it("nothing begins that it was launching while its conversation was read", async () => {
    const above = await launch(parent);
    const release = hold(server, "messages", above);
    const launching = assert.rejects(launch(above), { code: "wrong-status", message: /task was stopped/ });
    await settled();
    await window.engine.cancel(above, "person");
    release();
    await launching;
    assert.deepEqual(window.engine.list(above), []);
  });

  it("nothing begins that a subagent was launching while it was stopped", async () => {
    const { id } = await server.createSession({ title: "Look", parentID: parent, agent: "general" });
    await server.prompt(id, { messageID: "msg_look", agent: "general", parts: [{ text: "Look." }] });
    server.begin(id);
    await settled();
    const release = hold(server, "messages", id);
    const launching = assert.rejects(launch(id), { code: "wrong-status", message: /task was stopped/ });
    await settled();
    await window.engine.stopSubagent(id);
    await settled();
    release();
    await launching;
    assert.deepEqual(window.engine.list(id), []);
  });

  it("what a user retries begins, though the subagent that launched it completes meanwhile", async () => {
    const { id } = await server.createSession({ title: "Look", parentID: parent, agent: "general" });
    await server.prompt(id, { messageID: "msg_look", agent: "general", parts: [{ text: "Look." }] });
    server.begin(id);
    await settled();
    const failed = await launch(id);
    await window.engine.cancel(failed);
    const release = hold(server, "messages", id);
    const retrying = window.engine.retry(failed);
    await settled();
    server.finish(id, "Found.");
    await settled();
    release();
    assert.equal((await retrying).status, "running");
  });

  it("nothing begins that it was launching, also if what is above it was stopped before", async () => {
    settings.maxDepth = 3;
    const top = await launch(parent);
    const above = await launch(top);
    await window.engine.cancel(top, "person");
    const again = (await window.engine.retry(above)).id;
    const release = hold(server, "messages", again);
    const launching = assert.rejects(launch(again), { code: "wrong-status", message: /task was stopped/ });
    await settled();
    await window.engine.cancel(again, "person");
    release();
    await launching;
    assert.deepEqual(window.engine.list(again), []);
  });

  it("nothing begins that it was resuming while another change of that task was stored", async () => {
    const above = await launch(parent);
    const below = await launch(above);
    server.finish(below, "Found it.");
    await settled();
    const release = hold(server, "saveRecord", below);
    const renaming = window.engine.rename(below, "Another name");
    await settled();
    const resuming = window.engine.resume(below, "More.", { sessionID: above });
    const refused = assert.rejects(resuming, { code: "wrong-status", message: /your task was stopped/ });
    await settled();
    const cancelling = window.engine.cancel(above, "person");
    await settled();
    release();
    await Promise.all([renaming, refused, cancelling]);
    assert.equal(window.engine.get(below)?.status, "completed");
  });
});
