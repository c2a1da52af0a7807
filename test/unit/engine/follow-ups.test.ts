import assert from "node:assert/strict";
import type { LaunchInput } from "../../../src/engine/launcher.ts";
import { ServerFailure } from "../../../src/engine/ports.ts";
import type { Message } from "../../../src/engine/server-model.ts";
import { shortID, type Task, type TaskRecord } from "../../../src/engine/task.ts";
import { answerText, STEERING_MARK } from "../../../src/engine/turn.ts";
import { promptText } from "../../support/engine.ts";
import { hold } from "../../support/hold.ts";
import { settled, type ManualClock } from "../../support/manual-clock.ts";
import type { MemoryServer } from "../../support/memory-server.ts";
import { type MemoryWindow, newWindow, openWindow, storedRecord } from "../../support/memory-window.ts";

describe("Follow-ups", () => {
  let clock: ManualClock;
  let server: MemoryServer;
  let window: MemoryWindow;
  let parent: string;

  beforeEach(async () => {
    ({ clock, server, parent, window } = await newWindow({ maxDepth: 3 }));
  });

  afterEach(() => window.kill());

  async function launch(input: Partial<LaunchInput> = {}): Promise<string> {
    const { id } = await window.engine.launch({
      ...{ prompt: "Work.", parentSessionID: parent, launchedBy: "person" },
      ...input,
    });
    return id;
  }

  async function completed(input: Partial<LaunchInput> = {}): Promise<string> {
    const id = await launch(input);
    server.finish(id, "The answer.");
    await settled();
    return id;
  }

  async function failed(input: Partial<LaunchInput> = {}): Promise<string> {
    const id = await launch(input);
    // A fork gets its conversation first.
    await settled();
    server.end(id, { type: "failed", error: { name: "APIError", message: "No key." } });
    await settled();
    return id;
  }

  function task(id: string): Task {
    const found = window.engine.get(id);
    assert.ok(found);
    return found;
  }

  const stored = (id: string): Promise<TaskRecord> => storedRecord(server, id);

  const asked = async (id: string): Promise<readonly Message[]> =>
    (await server.messages(id)).filter(({ info }) => info.role === "user");
  const texts = async (id: string): Promise<readonly string[]> => (await asked(id)).map(answerText);

  /** From now on, the server can't store that a task is resumed. Returns a function that ends that. */
  function refuseResumes(): () => void {
    const { saveRecord } = server;
    server.saveRecord = async (record) => {
      if (record.status === "resumed") throw new ServerFailure("PATCH", "refused", "Disk full.", 500);
      return saveRecord.call(server, record);
    };
    return () => void (server.saveRecord = saveRecord);
  }

  describe("that are sent to a running task", () => {
    it("put a cleared task back into the list", async () => {
      const id = await completed();
      await window.engine.clear(id, {});
      assert.ok(!window.engine.list(parent).some((one) => one.id === id));
      await window.engine.resume(id, "More.");
      assert.equal(task(id).clearedAt, undefined);
      assert.ok(window.engine.list(parent).some((one) => one.id === id));
    });

    it("are read in the same turn, which counts as no resume", async () => {
      const id = await launch();
      const steered = await window.engine.steer(id, "Also the docs.");
      assert.deepEqual([steered.status, steered.resumeCount], ["running", 0]);
      assert.deepEqual(await texts(id), ["Work.", "Also the docs."]);
      server.finish(id, "Both.");
      await settled();
      assert.equal(task(id).status, "running");
      server.finish(id, "Both, really.");
      await settled();
      assert.equal((await window.engine.output(id)).result, "Both, really.");
    });

    it("are refused if they are empty, or if the task isn't running, with what to do instead", async () => {
      const id = await launch();
      await assert.rejects(window.engine.steer(id, " "), { code: "empty-prompt" });
      server.finish(id, "Done.");
      await settled();
      await assert.rejects(window.engine.steer(id, "More."), {
        code: "wrong-status",
        message: `Task ${shortID(id)} has completed. Resume it with your message instead.`,
      });
      const ended = await failed();
      for (const after of [false, true])
        await assert.rejects(window.engine.steer(ended, "More.", { after }), {
          code: "wrong-status",
          message: `Messages can only be sent to running tasks. Task ${shortID(ended)} has the status error; continue it as a new task.`,
        });
    });

    it("are refused before the task has started: in the queue, or while its conversation is built", async () => {
      const refusal = (id: string) => ({
        code: "wrong-status",
        message: `Task ${shortID(id)} hasn't started yet. Send the message when it is running.`,
      });
      const source = await completed();
      const release = hold(server, "messages", source);
      const fork = await launch({ fork: { sourceSessionID: source } });
      await assert.rejects(window.engine.steer(fork, "More."), refusal(fork));
      const kept = window.engine.steer(fork, "Then the docs.", { after: true });
      release();
      assert.equal((await kept).followUp?.text, "Then the docs.");
      window.kill();
      ({ clock, server, parent, window } = await newWindow({ maxConcurrentTasks: 1 }));
      await launch();
      const queued = await launch();
      await assert.rejects(window.engine.steer(queued, "More."), refusal(queued));
      await window.engine.steer(queued, "Then the docs.", { after: true });
    });

    it("are refused while a conversation has to be built again", async () => {
      const source = await completed();
      const gone = new ServerFailure("GET", "unreachable", "Gone away.");
      server.messages = () => Promise.reject(gone);
      server.writeHistory = () => Promise.reject(gone);
      const { id } = await window.engine.launch({
        ...{ prompt: "Work.", parentSessionID: parent, launchedBy: "person", parentMessageID: "msg_asks" },
        fork: { sourceSessionID: source },
      });
      await settled();
      await assert.rejects(window.engine.steer(id, "More."), {
        code: "wrong-status",
        message: /hasn't started/,
      });
    });

    it("are marked, and sent at once even if another one waits, which stays", async () => {
      const id = await launch();
      await window.engine.steer(id, "Then the docs.", { after: true });
      await window.engine.steer(id, "Also the tests.");
      const message = (await asked(id)).at(-1) ?? assert.fail();
      assert.match(message.info.id, /^msg_/);
      assert.deepEqual(
        message.parts.map((part) => part.type === "text" && part.metadata),
        [{ [STEERING_MARK]: true }],
      );
      assert.deepEqual((await stored(id)).followUp, { text: "Then the docs." });
    });

    it("leave an error behind that was reported before them", async () => {
      const id = await launch();
      server.emit({ type: "session-error", sessionID: id, error: { name: "APIError", message: "Busy." } });
      await settled();
      await window.engine.steer(id, "Also the docs.");
      window.engine.disconnect();
      // The server dies before it answers the message.
      server.crash();
      const { info } = server.stored(id).find((one) => one.info.role === "assistant") ?? assert.fail();
      assert.ok(info.role === "assistant");
      const completed = { ...info, completed: clock.now(), finish: "end" } as const;
      server.apply({ type: "message-changed", info: completed });
      await window.engine.connect();
      await clock.advance(10_000);
      assert.equal(task(id).status, "running");
      assert.ok(server.running().has(id));
    });

    it("are sent once for each call of an agent, also once the task has completed", async () => {
      const id = await launch({ launchedBy: "agent", callingAgent: "build" });
      const call = { sessionID: parent, agent: "build", callID: "call_1" };
      await window.engine.steer(id, "Also the docs.", { call });
      await window.engine.steer(id, "Also the docs.", { call });
      assert.equal((await asked(id)).length, 2);
      await window.engine.steer(id, "Also the docs.", { call: { ...call, callID: "call_2" } });
      await window.engine.steer(id, "And this.", { call: { sessionID: parent, agent: "build" } });
      await window.engine.steer(id, "And this.", { call: { sessionID: parent, agent: "build" } });
      assert.equal((await asked(id)).length, 5);
      server.finish(id, "All.");
      server.finish(id, "All.");
      await settled();
      assert.equal(task(id).status, "completed");
      await window.engine.steer(id, "Also the docs.", { call });
      assert.equal((await asked(id)).length, 5);
    });

    it("are refused if the agent that sends them is allowed less than the task", async () => {
      const id = await launch();
      await server.restrict(parent, [{ permission: "bash", pattern: "*", action: "deny" }]);
      const call = { sessionID: parent, agent: "build" };
      await assert.rejects(window.engine.steer(id, "More.", { call }), { code: "not-allowed" });
      assert.equal((await asked(id)).length, 1);
    });

    it("say what is known of them if no event confirms them", async () => {
      const id = await launch();
      server.onEvent(() => window.link.drop());
      window.link.drop();
      server.prompt = async () => undefined;
      const missing = assert.rejects(window.engine.steer(id, "More."), {
        reason: "unexpected-answer",
        message: "The server accepted the message but didn't store it. Try again.",
      });
      await clock.advance(5_000);
      await missing;
      const lost = assert.rejects(window.engine.steer(id, "More."), {
        reason: "unreachable",
        message:
          "The connection was lost while the message was sent. Check the task's output before you send it again.",
      });
      await settled();
      window.engine.disconnect();
      await lost;
    });
  });

  describe("that wait for the end of a turn", () => {
    it("are sent as one message when the task has completed", async () => {
      const id = await launch();
      await window.engine.steer(id, "Then the docs.", { after: true });
      await window.engine.steer(id, "And the tests.", { after: true });
      assert.equal((await asked(id)).length, 1);
      assert.deepEqual((await stored(id)).followUp, { text: "Then the docs.\n\nAnd the tests." });
      server.finish(id, "The answer.");
      await settled();
      assert.deepEqual(await texts(id), ["Work.", "Then the docs.\n\nAnd the tests."]);
      assert.deepEqual([task(id).status, task(id).resumeCount], ["resumed", 1]);
    });

    it("are sent at once if it has completed already", async () => {
      const id = await completed();
      await window.engine.steer(id, "Then the docs.", { after: true });
      assert.deepEqual(await texts(id), ["Work.", "Then the docs."]);
    });

    it("may have at most 1,500 bytes together, as they are stored with the task", async () => {
      const id = await launch();
      const refusal = {
        code: "invalid-argument",
        message: "The message is too long to wait for the task. Shorten it, or send it now.",
      };
      await assert.rejects(window.engine.steer(id, "é".repeat(750), { after: true }), refusal);
      await window.engine.steer(id, "é".repeat(749), { after: true });
      await assert.rejects(window.engine.steer(id, "x", { after: true }), refusal);
      assert.equal((await stored(id)).followUp?.text.length, 749);
    });

    it("wait in turn behind one that is being sent, and aren't sent with it", async () => {
      const id = await completed();
      const release = hold(server, "prompt", id);
      const first = window.engine.steer(id, "Then the docs.", { after: true });
      await settled();
      const second = window.engine.steer(id, "And the tests.", { after: true });
      release();
      await Promise.all([first, second]);
      assert.deepEqual(await texts(id), ["Work.", "Then the docs."]);
      assert.deepEqual((await stored(id)).followUp, { text: "And the tests." });
    });

    it("can be taken back, with their text, until they are sent", async () => {
      const id = await launch();
      await window.engine.steer(id, "Then the docs.", { after: true });
      assert.equal(await window.engine.withdraw(id), "Then the docs.");
      assert.equal((await stored(id)).followUp, undefined);
      await assert.rejects(window.engine.withdraw(id), {
        code: "wrong-status",
        message: `No message is waiting for task ${shortID(id)} to finish. It may have been sent.`,
      });
      server.finish(id, "The answer.");
      await settled();
      assert.equal(task(id).status, "completed");
    });

    for (const isSeen of [false, true])
      it(`don't make a task go on that is cancelled as it completes, ${isSeen ? "as" : "before"} that is known`, async () => {
        const id = await launch();
        await window.engine.steer(id, "Then the docs.", { after: true });
        const abort = server.abort.bind(server);
        if (isSeen) server.finish(id, "The answer.");
        else
          server.abort = async (sessionID) => {
            server.abort = abort;
            server.finish(id, "The answer.");
            await abort(sessionID);
          };
        const cancelled = await window.engine.cancel(id);
        await settled();
        await clock.advance(60_000);
        assert.equal(cancelled.status, "cancelled");
        assert.equal(task(id).status, "cancelled");
        assert.ok(!server.running().has(id));
        // It was sent, or waits for what continues the task.
        const isSent = (await texts(id)).includes("Then the docs.");
        assert.equal(task(id).followUp?.text, isSent ? undefined : "Then the docs.");
      });

    it("don't make it go on, even if something below it can't be stopped", async () => {
      const id = await launch();
      const below = await launch({ parentSessionID: id });
      await window.engine.steer(id, "Then the docs.", { after: true });
      const { abort } = server;
      server.abort = async (sessionID) => {
        if (sessionID === below) throw new Error("Not now.");
        if (task(id).status === "running") server.finish(id, "The answer.");
        await abort.call(server, sessionID);
      };
      await assert.rejects(window.engine.cancel(id), { code: "partly-done" });
      await settled();
      await clock.advance(60_000);
      assert.equal(task(id).status, "cancelled");
      assert.ok(!server.running().has(id));
    });

    it("are kept if the task fails, and go with what continues it", async () => {
      const id = await launch();
      await window.engine.steer(id, "Then the docs.", { after: true });
      server.end(id, { type: "failed", error: { name: "APIError", message: "No key." } });
      await settled();
      assert.deepEqual(await texts(id), ["Work."]);
      const next = await window.engine.continue(id, "Use the other key.");
      await settled();
      assert.equal((await texts(next.id)).at(-1), "Then the docs.\n\nUse the other key.");
      assert.equal((await stored(id)).followUp, undefined);
    });

    it("that couldn't be sent are logged, and sent at the next connect", async () => {
      const id = await launch();
      await window.engine.steer(id, "Then the docs.", { after: true });
      const allow = refuseResumes();
      server.finish(id, "The answer.");
      await settled();
      assert.match(window.log.join("\n"), new RegExp(`Couldn't send a message to task ${shortID(id)}: `));
      assert.equal(task(id).status, "completed");
      allow();
      window.engine.disconnect();
      await window.engine.connect();
      await settled();
      assert.deepEqual(await texts(id), ["Work.", "Then the docs."]);
    });

    it("that couldn't be sent for a moment are sent again, ever later, as long as there is a connection", async () => {
      const id = await launch();
      await window.engine.steer(id, "Then the docs.", { after: true });
      const { prompt } = server;
      let tries = 0;
      server.prompt = async (sessionID, ...rest) => {
        if (sessionID !== id) return prompt.call(server, sessionID, ...rest);
        tries++;
        throw new ServerFailure("POST", "refused", "Busy.", 503);
      };
      server.finish(id, "The answer.");
      await settled();
      assert.equal(tries, 1);
      await clock.advance(2_000);
      await clock.advance(4_000);
      assert.equal(tries, 3);
      window.engine.disconnect();
      await clock.advance(120_000);
      assert.equal(tries, 3);
      await window.engine.connect();
      await settled();
      assert.equal(tries, 4);
      server.prompt = prompt;
      await clock.advance(2_000);
      await settled();
      assert.deepEqual(await texts(id), ["Work.", "Then the docs."]);
    });

    it("don't count as running once their task is cleared", async () => {
      const [id, sibling] = [await launch(), await launch()];
      await window.engine.steer(id, "Then the docs.", { after: true });
      const allow = refuseResumes();
      server.finish(id, "The answer.");
      await settled();
      allow();
      await window.engine.clear(id);
      window.engine.disconnect();
      await window.engine.connect();
      server.finish(sibling, "The other answer.");
      await settled();
      const told = (await texts(parent)).at(-1) ?? "";
      assert.match(told, /2 of 2|All 2 tasks/);
    });

    it("are kept if the task is cancelled before they have arrived, and go with what continues it", async () => {
      const id = await launch();
      await window.engine.steer(id, "Then the docs.", { after: true });
      const { prompt } = server;
      server.prompt = async (sessionID, ...rest) => {
        if (sessionID !== id) return prompt.call(server, sessionID, ...rest);
        throw new ServerFailure("POST", "unreachable", "Timed out.");
      };
      server.finish(id, "The answer.");
      await settled();
      assert.equal(task(id).status, "resumed");
      assert.equal((await window.engine.cancel(id)).status, "cancelled");
      server.prompt = prompt;
      assert.deepEqual(task(id).followUp, { text: "Then the docs." });
      const next = await window.engine.continue(id);
      await settled();
      assert.equal((await texts(next.id)).at(-1), "Then the docs.");
    });

    it("that are refused when they are sent again wait, and their task fails", async () => {
      const id = await launch();
      await window.engine.steer(id, "Then the docs.", { after: true });
      const { prompt } = server;
      const refuse = (reason: "unreachable" | "refused"): void => {
        server.prompt = async (sessionID, given) => {
          if (sessionID === id) throw new ServerFailure("POST", reason, "The worktree is gone.");
          return prompt.call(server, sessionID, given);
        };
      };
      refuse("unreachable");
      server.finish(id, "The answer.");
      await settled();
      assert.equal(task(id).status, "resumed");
      // The next process knows of the message only what is in the record.
      window.kill();
      refuse("refused");
      window = await openWindow(server, clock);
      await clock.advance(60_000);
      assert.equal(task(id).status, "error");
      assert.equal(task(id).error?.name, "PromptLost");
      assert.deepEqual(task(id).followUp, { text: "Then the docs." });
      assert.match(window.log.join("\n"), /Couldn't send the follow-up of task .*The worktree is gone\./);
    });
  });

  describe("that resume a completed task", () => {
    it("begin another turn, whose result is read anew", async () => {
      const id = await completed();
      await window.engine.output(id);
      const before = await stored(id);
      assert.ok(before.retrievedAt !== undefined);
      await clock.advance(10);
      const resumed = await window.engine.resume(id, "More.");
      assert.deepEqual(
        [resumed.status, resumed.resumeCount, resumed.retrievedAt, resumed.startedAt],
        ["resumed", 1, undefined, clock.now()],
      );
      assert.deepEqual((await stored(id)).notice, { state: "none" });
      server.finish(id, "More of it.");
      await settled();
      assert.equal((await window.engine.output(id)).result, "More of it.");
      assert.equal((await stored(id)).notice.state, "delivered");
    });

    it("are refused if they are empty, or while it runs", async () => {
      const id = await launch();
      await assert.rejects(window.engine.resume(id, ""), { code: "empty-prompt" });
      await assert.rejects(window.engine.resume(id, "More."), { code: "wrong-status" });
      assert.equal((await asked(id)).length, 1);
    });

    it("find out that its session is gone", async () => {
      const id = await completed();
      server.onEvent(() => window.link.drop());
      await server.deleteSession(id);
      await assert.rejects(window.engine.resume(id, "More."), { code: "session-gone" });
      assert.equal(window.engine.get(id), undefined);
    });

    it("leave it completed if its agent or its model is gone, and say what to do", async () => {
      const ref = { providerID: "memory", modelID: "one" };
      const [agents, models] = [await server.agents(), [{ ref, name: "One", provider: "Memory" }]];
      Object.assign(server, { agents: async () => agents, models: async () => models });
      const id = await completed({ agent: "helper", model: ref });
      const refused = async (without: "agents" | "models", reason: string): Promise<void> => {
        Object.assign(server, { [without]: async () => [] });
        window.engine.catalog.forget();
        await assert.rejects(window.engine.resume(id, "More."), {
          message: `Task ${shortID(id)} can't be resumed, as ${reason}.`,
        });
        Object.assign(server, { agents: async () => agents, models: async () => models });
      };
      await refused("agents", 'agent "helper" no longer exists. Fork it with another agent');
      await refused("models", 'model "memory/one" no longer exists. Fork it with another model');
      Object.assign(server, { agents: async () => [] });
      window.engine.catalog.forget();
      await assert.rejects(window.engine.resume(id, "More.", { sessionID: parent }), {
        message: /Launch a new task, and put what it needs to know into the prompt\.$/,
      });
      Object.assign(server, { agents: async () => agents });
      assert.equal(task(id).status, "completed");
      assert.equal((await asked(id)).length, 1);
      window.engine.catalog.forget();
      assert.equal((await window.engine.resume(id, "More.")).resumeCount, 1);
    });

    it("leave it completed if the server refuses the prompt", async () => {
      const id = await completed();
      const before = await stored(id);
      const { prompt } = server;
      const refused = new ServerFailure("POST", "refused", "No such model.", 400);
      server.prompt = async (sessionID, sent) =>
        sessionID === id ? Promise.reject(refused) : prompt.call(server, sessionID, sent);
      await assert.rejects(window.engine.resume(id, "More."), refused);
      assert.equal(task(id).status, "completed");
      const after = await stored(id);
      assert.deepEqual({ ...after, revision: before.revision }, before);
      server.prompt = prompt;
      assert.equal((await window.engine.resume(id, "More.")).resumeCount, 1);
    });
  });

  describe("in place of a task that failed", () => {
    it("retry it with the same prompt, agent, batch and description", async () => {
      const files = [{ url: "file:///work/a.ts", mime: "text/plain", filename: "a.ts" }];
      const id = await failed({ batchID: "names", agent: "helper", description: "Look", files });
      const next = await window.engine.retry(id);
      assert.notEqual(next.id, id);
      assert.deepEqual(
        [next.insteadOf, next.batchID, next.agent, next.description, next.launchedBy, next.isForked],
        [id, "names", "helper", "Look", "person", false],
      );
      assert.equal(await promptText(server, next), "Work.");
      const [prompt] = await asked(next.id);
      assert.deepEqual(
        prompt?.parts.flatMap((part) => (part.type === "file" ? [part.filename] : [])),
        ["a.ts"],
      );
    });

    it("are refused for a task that runs or has completed", async () => {
      for (const [id, status] of [
        [await launch(), "running"],
        [await completed(), "completed"],
      ] as const)
        for (const replace of [window.engine.retry(id), window.engine.continue(id)])
          await assert.rejects(replace, {
            code: "wrong-status",
            message: `Only failed or cancelled tasks can be retried or continued. Task ${shortID(id)} has the status ${status}.`,
          });
    });

    it("are one task for equal calls at the same time, and refused for others", async () => {
      const id = await failed();
      const [one, other] = [window.engine.retry(id), window.engine.retry(id)];
      await assert.rejects(window.engine.continue(id), {
        code: "wrong-status",
        message: `Task ${shortID(id)} is already being retried or continued. Try again in a moment.`,
      });
      assert.equal((await one).id, (await other).id);
      assert.notEqual((await window.engine.retry(id)).id, (await one).id);
      const [first, second] = [window.engine.continue(id, "A"), window.engine.continue(id, "A")];
      await assert.rejects(window.engine.continue(id, "B"), { code: "wrong-status" });
      assert.equal((await first).id, (await second).id);
    });

    it("inherit the same part of the same conversation, or what is left of it", async () => {
      await server.prompt(parent, { messageID: "msg_asks", agent: "build", parts: [{ text: "Go." }] });
      server.finish(parent, "I do.");
      const id = await failed({
        fork: { sourceSessionID: parent, upToMessageID: "msg_asks", maxTokens: 500 },
        parentMessageID: "msg_asks",
      });
      const next = await window.engine.retry(id);
      assert.deepEqual([next.forkedFrom, next.forkOptions?.upToMessageID], [parent, "msg_asks"]);
      assert.equal(next.forkOptions?.maxTokens, 500);
      const { message } = server;
      server.message = async (sessionID, messageID) =>
        messageID === "msg_asks" ? undefined : message.call(server, sessionID, messageID);
      await settled();
      const last = await window.engine.retry(id);
      assert.notEqual(last.forkOptions?.upToMessageID, "msg_asks");
      assert.equal(last.forkOptions?.maxTokens, 500);
      assert.notEqual(last.parentMessageID, "msg_asks");
    });

    it("are refused if its prompt is gone", async () => {
      const id = await failed();
      server.message = async () => undefined;
      await assert.rejects(window.engine.retry(id), {
        code: "session-gone",
        message: `The prompt of task ${shortID(id)} no longer exists. Launch a new task instead.`,
      });
    });

    it("continue its whole conversation, by default with a plain request", async () => {
      const id = await failed();
      const next = await window.engine.continue(id);
      await settled();
      assert.deepEqual([next.insteadOf, next.forkedFrom, next.forkOptions?.carriesOn], [id, id, true]);
      assert.equal((await texts(next.id)).at(-1), "Continue where you left off.");
      assert.ok((await texts(next.id)).includes("Work."));
    });
  });
});
