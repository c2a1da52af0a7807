import assert from "node:assert/strict";
import { LAUNCH_TOOL } from "../../../../src/engine/fork/inherited-history.ts";
import type { LaunchInput } from "../../../../src/engine/launcher.ts";
import { ServerFailure } from "../../../../src/engine/ports.ts";
import { shortID, type Task } from "../../../../src/engine/task.ts";
import { hold } from "../../../support/hold.ts";
import { settled, type ManualClock } from "../../../support/manual-clock.ts";
import type { MemoryServer } from "../../../support/memory-server.ts";
import { type MemoryWindow, newWindow, openWindow, POLL_MS } from "../../../support/memory-window.ts";

const GONE = new ServerFailure("GET", "unreachable", "Gone away.");

describe("The delivery of a fork", () => {
  let clock: ManualClock;
  let server: MemoryServer;
  let window: MemoryWindow;
  let parent: string;
  let source: string;

  beforeEach(async () => {
    ({ clock, server, window, parent } = await newWindow());
    const { id } = await window.engine.launch({
      prompt: "Look.",
      parentSessionID: parent,
      launchedBy: "person",
    });
    source = id;
    server.finish(id, "It is in the cart.");
    await settled();
  });

  afterEach(() => window.kill());

  async function fork(input: Partial<LaunchInput> = {}): Promise<string> {
    const { id } = await window.engine.launch({
      ...{ prompt: "Mend it.", parentSessionID: parent, launchedBy: "person" },
      fork: { sourceSessionID: source },
      ...input,
    });
    await settled();
    return id;
  }

  const task = (id: string): Task => window.engine.get(id) ?? assert.fail();
  /** The texts of the fork's conversation, without what only models read. */
  const texts = (id: string): readonly string[] =>
    server
      .stored(id)
      .flatMap(({ parts }) => parts)
      .flatMap((part) => (part.type === "text" && !part.synthetic ? [part.text] : []));
  const asked = (call: string, id: string): number =>
    server.journal.filter((entry) => entry.call === call && entry.sessionID === id).length;

  /** Has reads of the source's conversation fail. Returns what ends that. */
  function failReads(error: Error = GONE): () => void {
    const { messages } = server;
    server.messages = (id, limit) =>
      id === source ? Promise.reject(error) : messages.call(server, id, limit);
    return () => (server.messages = messages);
  }

  /** Has the server refuse to empty conversations, so that nothing can be cleared away. */
  function failClearing(error: Error = GONE): () => void {
    const { writeHistory } = server;
    server.writeHistory = (id, messages) =>
      messages.length === 0 ? Promise.reject(error) : writeHistory.call(server, id, messages);
    return () => (server.writeHistory = writeHistory);
  }

  /** Cancels a fork while its conversation is being read, which fails then. */
  async function cancelledUnread(): Promise<string> {
    const { messages } = server;
    let fail: () => void = () => undefined;
    const failing = new Promise<never>((_, reject) => (fail = () => reject(GONE)));
    server.messages = (id, limit) => (id === source ? failing : messages.call(server, id, limit));
    const id = await fork();
    const cancelling = window.engine.cancel(id, "agent");
    await settled();
    fail();
    await cancelling;
    server.messages = messages;
    return id;
  }

  it("gives it the conversation, then its prompt", async () => {
    const id = await fork();
    assert.deepEqual(texts(id), ["Look.", "It is in the cart.", "Mend it."]);
    assert.ok(server.running().has(id));
    assert.deepEqual(window.log, []);
  });

  it("is not begun again by a repeated call while it is under way, or once it is done", async () => {
    const release = hold(server, "messages", source);
    const call = { launchedBy: "agent", callingAgent: "build", callID: "call_1" } as const;
    const id = await fork(call);
    assert.equal(await fork(call), id);
    release();
    await settled();
    assert.equal(await fork(call), id);
    assert.deepEqual(texts(id), ["Look.", "It is in the cart.", "Mend it."]);
    assert.deepEqual([asked("prompt", id), asked("writeHistory", id)], [1, 1]);
  });

  it("is begun again by a repeated call if another window could not finish it", async () => {
    const call = { launchedBy: "agent", callingAgent: "build", callID: "call_1" } as const;
    hold(server, "messages", source);
    const id = await fork(call);
    window.kill();
    window = await openWindow(server, clock, {}, 2);
    await fork(call);
    assert.deepEqual(texts(id), ["Look.", "It is in the cart.", "Mend it."]);
    window.kill();
    window = await openWindow(server, clock, {}, 3);
    const written = asked("writeHistory", id);
    await fork(call);
    assert.deepEqual([asked("writeHistory", id), asked("prompt", id)], [written, 1]);
  });

  it("leaves the prompt out of the call that an agent launched it with, and of no other", async () => {
    await server.prompt(parent, { messageID: "msg_asks", agent: "build", parts: [{ text: "Go." }] });
    const { info } = server.stored(parent).at(-1) ?? assert.fail();
    const state = { status: "running", input: { prompt: "Mend it." }, start: 1 } as const;
    const place = { sessionID: parent, messageID: info.id };
    const part = {
      ...place,
      id: "prt_call",
      type: "tool",
      tool: LAUNCH_TOOL,
      callID: "call_1",
      state,
    } as const;
    server.apply({ type: "part-changed", part });
    for (const [launchedBy, isLeftOut] of [
      ["agent", true],
      ["person", false],
    ] as const) {
      const id = await fork({ launchedBy, callingAgent: "build", fork: { sourceSessionID: parent } });
      const calls = server.stored(id).flatMap(({ parts }) => parts.filter(({ type }) => type === "tool"));
      assert.equal(calls.length, 1);
      assert.equal(JSON.stringify(calls).includes("Mend it."), !isLeftOut, launchedBy);
    }
  });

  it("is begun again, twice, if the server can't be reached meanwhile", async () => {
    const [heal, release] = [failReads(), failClearing()];
    const id = await fork();
    assert.match(window.log.join("\n"), /^Couldn't remove the unfinished fork \S+: Gone away\.$/m);
    assert.equal(task(id).status, "running");
    await clock.advance(POLL_MS);
    assert.equal(task(id).status, "running");
    heal();
    release();
    await clock.advance(POLL_MS);
    assert.equal(task(id).status, "running");
    assert.deepEqual(texts(id), ["Look.", "It is in the cart.", "Mend it."]);
  });

  it("ends the task the third time", async () => {
    failReads();
    failClearing();
    const id = await fork();
    await clock.advance(2 * POLL_MS);
    assert.equal(task(id).status, "error");
    assert.deepEqual(task(id).error?.name, "ForkFailed");
    assert.equal(
      task(id).error?.message,
      "Couldn't transfer the conversation: Gone away. Launch a new task instead.",
    );
  });

  it("is given up if the task is cancelled meanwhile, but for the prompt, which a retry needs", async () => {
    const [heal, release] = [failReads(), failClearing()];
    const id = await fork();
    heal();
    release();
    await window.engine.cancel(id, "agent");
    await clock.advance(2 * POLL_MS);
    assert.equal(task(id).status, "cancelled");
    assert.deepEqual(texts(id), ["Mend it."]);
    assert.ok(!server.running().has(id));
    const retried = await window.engine.retry(id);
    await settled();
    assert.deepEqual(texts(retried.id), ["Look.", "It is in the cart.", "Mend it."]);
  });

  it("ends no task again that was cancelled while its conversation could not be read", async () => {
    const id = await cancelledUnread();
    await settled();
    assert.equal(task(id).status, "cancelled");
    assert.deepEqual(window.log, []);
  });

  it("keeps the prompt of a task that was cancelled while the server could not be reached", async () => {
    const release = failClearing();
    const id = await cancelledUnread();
    await clock.advance(1_200_000);
    assert.equal(task(id).status, "cancelled");
    assert.deepEqual(texts(id), []);
    release();
    await clock.advance(5_000);
    assert.deepEqual(texts(id), ["Mend it."]);
    const count = window.log.length;
    await clock.advance(60_000);
    assert.equal(window.log.length, count);
    assert.equal((await window.engine.retry(id)).status, "running");
  });

  it("deletes nothing that somebody has written since in the session of such a task", async () => {
    const release = failClearing();
    const id = await cancelledUnread();
    await clock.advance(1_000);
    await server.prompt(id, { messageID: "msg_own", agent: "general", parts: [{ text: "I go on here." }] });
    release();
    await clock.advance(20_000);
    assert.deepEqual(texts(id), ["I go on here."]);
  });

  for (const [what, error, expected] of [
    ["an error", new Error("No room"), "No room. Retry it as a new task."],
    ["an error that is a sentence", new Error("No room!"), "No room! Retry it as a new task."],
    ["an error with a sentence in it", new Error("No. Room"), "No. Room. Retry it as a new task."],
    [
      "a conversation that is gone",
      new ServerFailure("GET", "not-found", "Not found.", 404),
      "The conversation to fork doesn't exist in this folder. Select another one.",
    ],
  ] as const)
    it(`ends the task with the reason and a remedy: ${what}`, async () => {
      failReads(error);
      const id = await fork();
      assert.equal(task(id).status, "error");
      assert.equal(task(id).error?.message, `Couldn't transfer the conversation: ${expected}`);
      // A retry needs the prompt.
      assert.deepEqual(texts(id), ["Mend it."]);
      assert.ok(!server.running().has(id));
    });

  for (const [reason, isLast] of [
    ["refused", true],
    ["unreachable", false],
  ] as const)
    it(`is${isLast ? " not" : ""} begun again if what it left can't be removed: ${reason}`, async () => {
      failReads(new Error("No room."));
      failClearing(new ServerFailure("POST", reason, "Not now."));
      const id = await fork();
      assert.deepEqual(window.log, [`Couldn't remove the unfinished fork ${shortID(id)}: Not now.`]);
      assert.equal(task(id).status, isLast ? "error" : "running");
      if (isLast)
        assert.equal(
          task(id).error?.message,
          "Couldn't transfer the conversation: No room. Launch a new task instead.",
        );
    });

  it("leaves a fork that can be stopped like any task once its prompt was sent", async () => {
    const id = await fork();
    server.journal.length = 0;
    await window.engine.cancel(id, "agent");
    assert.equal(server.journal[0]?.call, "abort");
    assert.equal(asked("abort", id), 1);
  });
});
