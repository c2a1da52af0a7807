import assert from "node:assert/strict";
import { Refusal } from "../../../src/engine/errors.ts";
import type { Task } from "../../../src/engine/task.ts";
import { settled, type ManualClock } from "../../support/manual-clock.ts";
import type { MemoryServer } from "../../support/memory-server.ts";
import { type MemoryWindow, newServer, openWindow } from "../../support/memory-window.ts";

describe("Repeated calls of agents", () => {
  let clock: ManualClock;
  let server: MemoryServer;
  let window: MemoryWindow;
  let parent: string;

  beforeEach(async () => {
    ({ clock, server, parent } = await newServer());
    window = await open();
  });

  afterEach(() => window.kill());

  /** A window like after a reload: it knows what the server knows. */
  async function open(): Promise<MemoryWindow> {
    const opened = await openWindow(server, clock);
    return opened;
  }

  const launch = (callID?: string): Promise<Task> =>
    window.engine.launch({ prompt: "Work.", parentSessionID: parent, launchedBy: "agent", callID });

  const resume = (id: string): Promise<Task> =>
    window.engine.resume(id, "More.", { sessionID: parent, callID: "msg/resume" });

  async function completed(): Promise<string> {
    const { id } = await launch();
    server.finish(id, "Done.");
    await settled();
    assert.equal(window.engine.get(id)?.status, "completed");
    return id;
  }

  /** A resume's calls before the prompt read the session, and write the record. */
  const dieBeforeThePrompt = (): void => window.link.fail("late", 2);

  const prompts = (id: string): readonly (string | undefined)[] =>
    server.journal.flatMap(({ call, sessionID, messageID }) =>
      call === "prompt" && sessionID === id ? [messageID] : [],
    );

  it("launch one task, concurrently or one after the other", async () => {
    const [first, second] = await Promise.all([launch("msg/call"), launch("msg/call")]);
    assert.equal(first.id, second.id);
    assert.equal((await launch("msg/call")).id, first.id);
    assert.notEqual((await launch("msg/other")).id, first.id);
  });

  it("send the prompt of a task whose window was killed before it did", async () => {
    // The calls before this one: agents, the parent's newest message, the session.
    window.link.fail("late", 3);
    void launch("msg/call").catch(() => undefined);
    await settled();
    window.kill();
    window = await open();
    const [task] = window.engine.list(parent);
    assert.ok(task);
    assert.deepEqual(prompts(task.id), []);
    assert.equal((await launch("msg/call")).id, task.id);
    assert.deepEqual(prompts(task.id), [task.promptMessageID]);
    assert.equal(window.engine.list(parent).length, 1);
  });

  it("resume once, even if the window was killed before the prompt was sent", async () => {
    const id = await completed();
    const before = prompts(id).length;
    dieBeforeThePrompt();
    void resume(id).catch(() => undefined);
    await settled();
    window.kill();
    window = await open();
    const found = window.engine.get(id);
    assert.equal(found?.status, "resumed");
    assert.equal(prompts(id).length, before, "the prompt did not arrive");

    const again = await resume(id);
    assert.equal(again.status, "resumed");
    assert.equal(again.resumeCount, 1);
    assert.deepEqual(prompts(id).slice(before), [found.promptMessageID]);
    await resume(id);
    assert.equal(prompts(id).length, before + 1);
    assert.equal(window.engine.get(id)?.resumeCount, 1);
  });

  it("do not report a resume whose prompt was lost as completed, and do not resume it again", async () => {
    const id = await completed();
    dieBeforeThePrompt();
    void resume(id).catch(() => undefined);
    await settled();
    window.kill();
    window = await open();
    await clock.advance(20_000);
    assert.equal(window.engine.get(id)?.error?.name, "PromptLost");
    assert.equal((await resume(id)).status, "error");
  });

  it("send nothing for a resume that is refused, not even the pending notice", async () => {
    const { id } = await window.engine.launch({
      prompt: "Work.",
      parentSessionID: parent,
      launchedBy: "person",
    });
    // The parent is running, so the notice of a user's task waits.
    await server.prompt(parent, { messageID: "msg_busy", agent: "build", parts: [{ text: "Busy." }] });
    server.end(id, { type: "failed", error: { name: "APIError", message: "Bad." } });
    await settled();
    assert.equal(window.engine.get(id)?.notice.state, "pending");
    const before = prompts(parent).length;
    await assert.rejects(window.engine.resume(id, "More."), Refusal);
    assert.equal(prompts(parent).length, before);
  });
});
