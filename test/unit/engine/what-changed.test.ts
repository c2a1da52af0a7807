import assert from "node:assert/strict";
import { ServerFailure } from "../../../src/engine/ports.ts";
import { answerText } from "../../../src/engine/turn.ts";
import { promptText } from "../../support/engine.ts";
import { hold } from "../../support/hold.ts";
import { ManualClock, settled } from "../../support/manual-clock.ts";
import type { MemoryServer } from "../../support/memory-server.ts";
import { memoryWindow, type MemoryWindow, newWindow, POLL_MS } from "../../support/memory-window.ts";

describe("What a command changed", () => {
  let server: MemoryServer;
  let window: MemoryWindow;
  let parent: string;
  let clock: ManualClock;

  beforeEach(async () => {
    ({ clock, server, parent, window } = await newWindow({ maxDepth: 2 }));
  });

  afterEach(() => window.kill());

  const launch = async (parentSessionID: string, launchedBy: "agent" | "person" = "agent"): Promise<string> =>
    (await window.engine.launch({ prompt: "Work.", parentSessionID, launchedBy })).id;

  it("does not include a failed task: it is not run again when a task that it launched ends", async () => {
    const above = await launch(parent);
    const below = await launch(above);
    server.end(above, { type: "failed", error: { name: "APIError", message: "Bad." } });
    await settled();
    server.finish(below, "Done.");
    await settled();
    assert.equal(window.engine.get(below)?.notice.state, "delivered");
    assert.ok(!server.running().has(above));
  });

  const listed = (): readonly string[] => window.engine.list(parent).map(({ id }) => id);
  const reconnect = async (): Promise<void> => {
    window.engine.disconnect();
    await window.engine.connect();
  };

  it("is nothing if a clear is refused: the task stays in the list, also after a reconnect", async () => {
    const id = await launch(parent);
    server.finish(id, "Done.");
    await settled();
    // Writing the record, and reading whether it was stored anyway.
    window.link.fail("refused", 0);
    window.link.fail("refused", 1);
    await assert.rejects(window.engine.clear(id), /could not be reached/);
    assert.deepEqual(listed(), [id]);
    await reconnect();
    assert.deepEqual(listed(), [id]);
  });

  it("is what was stored if only the answer is lost: the task is cleared", async () => {
    const id = await launch(parent);
    server.finish(id, "Done.");
    await settled();
    window.link.fail("answer-lost", 0);
    assert.notEqual((await window.engine.clear(id)).clearedAt, undefined);
    assert.deepEqual(listed(), []);
  });

  it("is everything but a subtask that could not be stopped, and the error of the cancel says so", async () => {
    const above = await launch(parent);
    const below = await launch(above);
    // The calls before: abort, conversation, record and statuses; then the abort of the subtask.
    window.link.fail("refused", 4);
    await assert.rejects(window.engine.cancel(above, "agent"), {
      message: `Stopped task ${above.slice(-6)}, but not all of its subtasks: The server could not be reached for POST /session/${below}/abort.`,
    });
    assert.equal(window.engine.get(above)?.status, "cancelled");
    assert.equal(window.engine.get(below)?.status, "running");
  });

  it("is, of a launch or resume by an agent whose task is stopped meanwhile, nothing: neither runs", async () => {
    const above = await launch(parent);
    const resumed = await launch(above);
    server.finish(resumed, "Done.");
    await settled();
    const held: (() => void)[] = [];
    const hold = (): Promise<void> => new Promise((resolve) => held.push(resolve));
    const { createSession, session } = server;
    server.createSession = async (...args) => {
      await hold();
      return createSession.call(server, ...args);
    };
    server.session = async (...args) => {
      if (args[0] === resumed) await hold();
      return session.call(server, ...args);
    };
    const calls = [launch(above), window.engine.resume(resumed, "More.", { sessionID: above })].map((call) =>
      assert.rejects(call, { code: "wrong-status", message: /your task was stopped/ }),
    );
    await settled();
    assert.equal(held.length, 2);
    await window.engine.cancel(above);
    for (const release of held) release();
    await Promise.all(calls);
    await settled();
    // The conversation that was told of the cancelled task answers.
    assert.deepEqual([...server.running().keys()], [parent]);
    assert.deepEqual(
      window.engine.list(above).map(({ id, status }) => [id, status]),
      [[resumed, "completed"]],
    );
  });

  it("is, of a continued task whose prompt did not arrive, the new task, and the message that waited still does", async () => {
    const id = await launch(parent);
    await window.engine.steer(id, "Then the docs.", { after: true });
    server.end(id, { type: "failed", error: { name: "APIError", message: "Bad." } });
    await settled();
    const { prompt, writeHistory } = server;
    const cut = (): Promise<never> => Promise.reject(new Error("cut off"));
    Object.assign(server, { prompt: cut, writeHistory: cut });
    const next = await window.engine.continue(id);
    Object.assign(server, { prompt, writeHistory });
    await settled();
    const { error } = window.engine.get(next.id) ?? {};
    assert.equal(error?.name, "ForkFailed");
    assert.match(error.message, /cut off\. Launch a new task instead\.$/);
    assert.deepEqual(window.engine.get(id)?.followUp, { text: "Then the docs." });
    const again = await window.engine.continue(id);
    await settled();
    assert.match(await promptText(server, window.engine.get(again.id)), /Then the docs\./);
    assert.equal(window.engine.get(id)?.followUp, undefined);
  });

  it("is, of a continued fork that never got its conversation, another fork of the same one", async () => {
    const source = await launch(parent);
    server.finish(source, "The answer.");
    await settled();
    const release = hold(server, "messages", source);
    const fork = { sourceSessionID: source };
    const input = { prompt: "More.", parentSessionID: parent, launchedBy: "person", fork } as const;
    const { id } = await window.engine.launch(input);
    const cancelling = window.engine.cancel(id);
    release();
    await cancelling;
    await settled();
    assert.equal(window.engine.get(id)?.status, "cancelled");
    const next = await window.engine.continue(id, "And the docs.");
    await settled();
    const texts = (await server.messages(next.id)).map(answerText);
    assert.deepEqual(texts.slice(0, 3), ["Work.", "The answer.", "More.\n\nAnd the docs."]);
    assert.equal(next.forkedFrom, source);
    await server.writeHistory(id, []);
    await assert.rejects(window.engine.continue(id), { code: "session-gone" });
  });

  it("is, of a continued task whose fork is built again after a lost connection, the message, which isn't sent twice", async () => {
    const id = await launch(parent);
    await window.engine.steer(id, "Then the docs.", { after: true });
    server.end(id, { type: "failed", error: { name: "APIError", message: "Bad." } });
    await settled();
    const { prompt, writeHistory } = server;
    const cut = (): Promise<never> =>
      Promise.reject(new ServerFailure("prompt", "unreachable", "The server is gone."));
    Object.assign(server, { prompt: cut, writeHistory: cut });
    const next = await window.engine.continue(id);
    window.engine.disconnect();
    assert.deepEqual(window.engine.get(id)?.followUp, { text: "Then the docs." });
    Object.assign(server, { prompt, writeHistory });
    await window.engine.connect();
    await settled();
    assert.match(await promptText(server, next), /Then the docs\./);
    server.finish(next.id, "Done.");
    await settled();
    assert.equal(window.engine.get(id)?.followUp, undefined);
  });

  it("is nothing if the connection is lost while a fork is built, which is built once it is back", async () => {
    const source = await launch(parent);
    server.finish(source, "The answer.");
    await settled();
    const { writeHistory } = server;
    server.writeHistory = () =>
      Promise.reject(new ServerFailure("writeHistory", "unreachable", "The server is gone."));
    const fork = { sourceSessionID: source };
    const input = { prompt: "More.", parentSessionID: parent, launchedBy: "person", fork } as const;
    const { id } = await window.engine.launch(input);
    await settled();
    window.engine.disconnect();
    assert.equal(window.engine.get(id)?.status, "running");
    server.writeHistory = writeHistory;
    await window.engine.connect();
    await settled();
    const texts = (await server.messages(id)).map(answerText);
    assert.deepEqual(texts.slice(0, 3), ["Work.", "The answer.", "More."]);
    server.finish(id, "Done.");
    await settled();
    assert.equal(window.engine.get(id)?.status, "completed");
  });

  /** Launches a fork that is written as text. */
  const forkAsText = async (send: MemoryServer["prompt"]): Promise<string> => {
    const source = await launch(parent);
    server.finish(source, "The answer.");
    await settled();
    window.kill();
    const fork = { maxToolResultChars: 1_500, maxTokens: 100_000, strategy: "replay" } as const;
    window = memoryWindow(server, clock, { fork });
    await window.engine.connect();
    server.canWriteHistory = async () => false;
    server.prompt = send;
    const { id } = await window.engine.launch({
      prompt: "More.",
      parentSessionID: parent,
      launchedBy: "person",
      fork: { sourceSessionID: source },
    });
    await clock.advance(1_000);
    return id;
  };

  it("is nothing if the server ends before it has stored a fork's text, which it accepted", async () => {
    const { prompt, message, writeHistory } = server;
    const sent: string[] = [];
    const id = await forkAsText(async (_, { parts }) => void sent.push(JSON.stringify(parts)));
    assert.equal(sent.length, 1, "the prompt waits for the text");
    assert.match(sent.join(), /The answer\./);
    const gone = (): Promise<never> => Promise.reject(new ServerFailure("", "unreachable", "It is gone."));
    Object.assign(server, { message: gone, prompt: gone, writeHistory: gone });
    await clock.advance(1_000);
    window.engine.disconnect();
    assert.equal(window.engine.get(id)?.status, "running");
    Object.assign(server, { message, prompt, writeHistory });
    await window.engine.connect();
    await settled();
    const [text, asked] = await server.messages(id);
    assert.match(JSON.stringify(text?.parts), /The answer\./);
    assert.equal(asked && answerText(asked), "More.");
  });

  it("is the end of a fork whose text the server accepts and never stores", async () => {
    const { prompt } = server;
    const id = await forkAsText(async (sessionID, sent) => {
      if (sent.parts.some(({ synthetic }) => !synthetic)) await prompt.call(server, sessionID, sent);
    });
    await clock.advance(20_000);
    const { status, error } = window.engine.get(id) ?? {};
    assert.equal(status, "error");
    assert.match(error?.message ?? "", /accepted the conversation but didn't store it\. Retry it/);
  });

  it("is, of a fork whose conversation the server never takes though it is connected, the end of the task", async () => {
    const source = await launch(parent);
    server.finish(source, "The answer.");
    await settled();
    let calls = 0;
    server.writeHistory = () => {
      calls++;
      return Promise.reject(new ServerFailure("writeHistory", "unreachable", "No answer in 60 s."));
    };
    const fork = { sourceSessionID: source };
    const input = { prompt: "More.", parentSessionID: parent, launchedBy: "person", fork } as const;
    const { id } = await window.engine.launch(input);
    await clock.advance(POLL_MS);
    assert.equal(window.engine.get(id)?.status, "running");
    await clock.advance(10 * POLL_MS);
    const { status, error } = window.engine.get(id) ?? {};
    assert.equal(status, "error");
    assert.match(error?.message ?? "", /No answer in 60 s\. Launch a new task instead\.$/);
    // Each attempt removes what it left.
    assert.equal(calls, 6);
  });

  it("is, of such a fork, its conversation and prompt, even if the prompt alone was stored before", async () => {
    const source = await launch(parent);
    server.finish(source, "The answer.");
    await settled();
    const { writeHistory, prompt } = server;
    const gone = (): ServerFailure => new ServerFailure("POST", "unreachable", "The server is gone.");
    server.writeHistory = () => {
      server.writeHistory = writeHistory;
      return Promise.reject(gone());
    };
    server.prompt = async (...args) => {
      await prompt.call(server, ...args);
      throw gone();
    };
    const fork = { sourceSessionID: source };
    const input = { prompt: "More.", parentSessionID: parent, launchedBy: "person", fork } as const;
    const { id } = await window.engine.launch(input);
    await settled();
    assert.deepEqual((await server.messages(id)).map(answerText), ["More."]);
    server.prompt = prompt;
    await reconnect();
    await settled();
    const texts = (await server.messages(id)).map(answerText);
    assert.deepEqual(texts.slice(0, 3), ["Work.", "The answer.", "More."]);
  });

  it("is nothing if a request is answered before the requests were read, and the error doesn't say that it is gone", async () => {
    const id = await launch(parent);
    const request = server.ask(id);
    const next = memoryWindow(server, new ManualClock());
    const answer = (): Promise<void> => next.engine.answer(request, { type: "permission", reply: "once" });
    await assert.rejects(answer(), { reason: "unreachable" });
    await next.engine.connect();
    await answer();
    await assert.rejects(answer(), { reason: "not-found" });
    next.kill();
  });

  it("is nothing if a task is cleared while a follow-up to it is being sent: the clear is refused", async () => {
    const id = await launch(parent);
    server.finish(id, "Done.");
    await settled();
    const goOn = hold(server, "session", id);
    const resuming = window.engine.resume(id, "More.");
    await settled();
    const clearing = assert.rejects(window.engine.clear(id), { code: "still-running" });
    goOn();
    await Promise.all([resuming, clearing]);
    assert.deepEqual([window.engine.get(id)?.status, listed()], ["resumed", [id]]);
  });

  it("is nothing if a resume can't learn whether the task's new state was stored: it stays completed", async () => {
    const id = await launch(parent);
    server.finish(id, "Done.");
    await settled();
    // The calls before: reading the session. Then the record is stored, and reading whether it was fails.
    window.link.fail("answer-lost", 1);
    window.link.fail("refused", 2);
    await assert.rejects(window.engine.resume(id, "More."), /could not be reached/);
    window.link.heal();
    await settled();
    assert.equal(window.engine.get(id)?.status, "completed");
    await reconnect();
    await clock.advance(20_000);
    const task = window.engine.get(id);
    assert.deepEqual([task?.status, task?.resumeCount], ["completed", 0]);
    const again = memoryWindow(server, clock);
    await again.engine.connect();
    assert.equal(again.engine.get(id)?.status, "completed");
    again.kill();
    await window.engine.resume(id, "More.");
    assert.equal(window.engine.get(id)?.status, "resumed");
  });

  for (const [how, reason] of [
    ["is refused", "refused"],
    ["gets no answer", "unreachable"],
  ] as const)
    it(`is nothing if another process resumes the task meanwhile, so that the record ${how}: that one's follow-up stays`, async () => {
      const id = await launch(parent);
      server.finish(id, "Done.");
      await settled();
      const other = memoryWindow(server, clock);
      await other.engine.connect();
      const { saveRecord } = server;
      server.saveRecord = async () => {
        server.saveRecord = saveRecord;
        await other.engine.resume(id, "Theirs.");
        throw new ServerFailure("saveRecord", reason, "It wasn't stored.");
      };
      await assert.rejects(window.engine.resume(id, "Ours."), /It wasn't stored/);
      await settled();
      other.kill();
      const task = window.engine.get(id);
      assert.equal(task?.status, "resumed");
      assert.equal(await promptText(server, task), "Theirs.");
      await reconnect();
      assert.equal(window.engine.get(id)?.status, "resumed");
    });

  it("is nothing if a task is continued with a message while it is retried, and the message isn't dropped silently", async () => {
    const id = await launch(parent);
    server.end(id, { type: "failed", error: { name: "APIError", message: "Bad." } });
    await settled();
    const retrying = [window.engine.retry(id), window.engine.retry(id)];
    await assert.rejects(window.engine.continue(id, "Use B."), {
      code: "wrong-status",
      message: /already being retried or continued\. Try again/,
    });
    const [one, other] = await Promise.all(retrying);
    assert.equal(one?.id, other?.id);
    const next = await window.engine.continue(id, "Use B.");
    await settled();
    assert.match(await promptText(server, window.engine.get(next.id)), /Use B\./);
  });

  it("is, of a result that is read while a follow-up is being sent, not that the next result was read", async () => {
    const id = await launch(parent);
    server.finish(id, "Done.");
    await settled();
    const goOn = hold(server, "session", id);
    const resuming = window.engine.resume(id, "More.");
    await settled();
    const reading = window.engine.output(id);
    await settled();
    goOn();
    await Promise.all([resuming, reading]);
    server.finish(id, "Done again.");
    await settled();
    const { status, retrievedAt } = window.engine.get(id) ?? {};
    assert.deepEqual([status, retrievedAt], ["completed", undefined]);
  });

  it("is also a running subtask, whose notice is left out because its parent was stopped", async () => {
    const above = await launch(parent);
    const below = await launch(above);
    await window.engine.cancel(above, "person");
    const task = window.engine.get(below);
    assert.equal(task?.status, "cancelled");
    assert.deepEqual(task.notice, { state: "skipped", reason: "The parent was stopped too." });
  });

  it("is, for a batch, the tasks that could be cancelled, and the error says so", async () => {
    const [one, other] = [await launch(parent), await launch(parent)];
    const batchID = window.engine.get(one)?.batchID ?? "";
    window.link.fail("refused", 0);
    await assert.rejects(window.engine.cancelBatch(batchID), {
      message: `Cancelled 1 of 2 tasks. The server could not be reached for POST /session/${one}/abort.`,
    });
    assert.equal(window.engine.get(one)?.status, "running");
    assert.equal(window.engine.get(other)?.status, "cancelled");
  });

  it("is everything if a launch loses only the answer to the creation of its session: the task is running", async () => {
    // The calls before this one: agents, the parent's newest message.
    window.link.fail("answer-lost", 2);
    const id = await launch(parent, "person");
    assert.deepEqual(listed(), [id]);
    assert.ok(server.running().has(id));
  });

  it("is nothing if a launch cannot learn whether its session was created: the session is removed later, and nobody is notified", async () => {
    const before = server.known().length;
    window.link.fail("answer-lost", 2);
    // Reading whether it was created, and its removal.
    for (const call of [3, 4, 5]) window.link.fail("refused", call);
    await assert.rejects(launch(parent, "person"), /could not be reached for POST \/session/);
    await settled();
    assert.equal(server.known().length, before + 1);
    assert.deepEqual(listed(), []);
    window.link.heal();
    await reconnect();
    await settled();
    assert.equal(server.known().length, before);
    assert.deepEqual(listed(), []);
    assert.deepEqual(server.stored(parent), []);
  });
});
