import assert from "node:assert/strict";
import type { EngineSettings } from "../../../src/engine/engine.ts";
import type { LaunchInput } from "../../../src/engine/launcher.ts";
import { NOTICE_MARK } from "../../../src/engine/asked.ts";
import { ServerFailure } from "../../../src/engine/ports.ts";
import { RESULT_MARK } from "../../../src/engine/received-result.ts";
import type { Message, Prompt, ToolPart } from "../../../src/engine/server-model.ts";
import type { NoticeState } from "../../../src/engine/task.ts";
import { settled, type ManualClock } from "../../support/manual-clock.ts";
import type { MemoryServer } from "../../support/memory-server.ts";
import { type MemoryWindow, newServer, openWindow, storedRecord } from "../../support/memory-window.ts";
import { answer, textPart } from "./builders.ts";

describe("A parent that is told of the end of a task", () => {
  let clock: ManualClock;
  let server: MemoryServer;
  let window: MemoryWindow;
  let parent: string;
  let sent: Prompt[];

  beforeEach(async () => {
    ({ clock, server, parent } = await newServer());
    sent = [];
    const { prompt } = server;
    server.prompt = async (sessionID, given) => {
      if (sessionID === parent) sent.push(given);
      return prompt.call(server, sessionID, given);
    };
    await open();
  });

  afterEach(() => window.kill());

  async function open(settings: Partial<EngineSettings> = {}): Promise<void> {
    window = await openWindow(server, clock, { maxDepth: 3, ...settings });
    await settled();
  }

  async function launch(input: Partial<LaunchInput> = {}): Promise<string> {
    const { id } = await window.engine.launch({
      ...{ prompt: "Work.", parentSessionID: parent, launchedBy: "person" },
      ...input,
    });
    return id;
  }

  async function finish(id: string, text = "The answer."): Promise<string> {
    server.finish(id, text);
    await settled();
    return id;
  }

  const completed = async (input: Partial<LaunchInput> = {}): Promise<string> => finish(await launch(input));
  const byAgent = { launchedBy: "agent", callingAgent: "build" } as const;

  async function notice(id: string): Promise<NoticeState> {
    return (await storedRecord(server, id)).notice;
  }

  const notices = async (): Promise<readonly Message[]> =>
    (await server.messages(parent)).filter(({ parts }) =>
      parts.some((part) => part.type === "text" && part.metadata?.[NOTICE_MARK] !== undefined),
    );

  async function ask(messageID: string, agent = "build"): Promise<void> {
    const model = { providerID: "acme", modelID: "large" };
    await server.prompt(parent, { messageID, agent, model, parts: [{ text: "Go." }] });
    sent.length = 0;
  }

  it("gets a line that users read and details that only models read, and answers only its own task's", async () => {
    const id = await completed();
    const [prompt] = sent;
    assert.equal(sent.length, 1);
    assert.equal(prompt?.noReply, true);
    assert.deepEqual(
      prompt.parts.map(({ synthetic = false, metadata }) => [synthetic, metadata?.[NOTICE_MARK]]),
      [
        [true, id],
        [false, id],
      ],
    );
    assert.match(prompt.parts[0]?.text ?? "", /The answer\./);
    assert.ok(!server.running().has(parent));
    assert.deepEqual(await notice(id), {
      state: "delivered",
      messageID: prompt.messageID,
      at: clock.now(),
    });
    await completed(byAgent);
    assert.equal(sent[1]?.noReply, false);
    assert.ok(server.running().has(parent));
  });

  it("is told as the agent and model of its newest prompt, or else as its own, or else as the main agent", async () => {
    await completed();
    assert.deepEqual([sent[0]?.agent, sent[0]?.model], ["build", undefined]);
    await ask("msg_asks", "helper");
    server.finish(parent, "I do.");
    // An answer may be by another agent.
    const { info } = answer({ sessionID: parent, agent: "other", completed: clock.now(), finish: "end" });
    server.apply({ type: "message-changed", info });
    await completed();
    assert.deepEqual([sent[0]?.agent, sent[0]?.model], ["helper", { providerID: "acme", modelID: "large" }]);
    parent = (await server.createSession({ title: "Without an agent" })).id;
    await completed();
    assert.equal(sent.at(-1)?.agent, "helper");
    server.agents = async () => [{ name: "worker", mode: "subagent", hidden: false, permission: [] }];
    window.kill();
    await open();
    parent = (await server.createSession({ title: "Without a main agent" })).id;
    await completed({ agent: "worker" });
    assert.equal(sent.at(-1)?.agent, "worker");
  });

  it("that is working is told of a person's task when it is idle, and of its own at once", async () => {
    const id = await launch();
    const own = await launch(byAgent);
    await ask("msg_asks");
    await finish(id);
    assert.deepEqual(sent, []);
    assert.equal((await notice(id)).state, "pending");
    await finish(own);
    assert.equal(sent.length, 1);
    server.finish(parent, "I do.");
    server.finish(parent, "Seen.");
    await settled();
    assert.equal(sent.length, 2);
    assert.equal((await notice(id)).state, "delivered");
  });

  it("that is gone isn't told, and the task says so", async () => {
    const id = await launch();
    const { session } = server;
    server.session = async (sessionID) =>
      sessionID === parent ? undefined : session.call(server, sessionID);
    server.emit({ type: "session-deleted", sessionID: parent });
    await finish(id);
    server.session = session;
    assert.deepEqual(await notice(id), {
      state: "skipped",
      reason: "The parent session no longer exists.",
    });
  });

  it("is told again after ever longer times if that fails, and of nothing after the connection is lost", async () => {
    const id = await launch();
    const { prompt } = server;
    server.prompt = async () => {
      sent.push({ messageID: "", agent: "", parts: [] });
      throw new ServerFailure("POST", "refused", "Overloaded.", 500);
    };
    await finish(id);
    assert.equal(sent.length, 1);
    assert.match(window.log.join("\n"), /^Couldn't notify the parent of task \S+: .*Overloaded/m);
    const failed = await notice(id);
    assert.ok(failed.state === "pending" && failed.attempts === 1);
    assert.match(failed.lastError ?? "", /Overloaded/);
    for (const [delay, count] of [
      [999, 1],
      [1, 2],
      [1_999, 2],
      [1, 3],
      [4_000, 4],
    ] as const) {
      await clock.advance(delay);
      assert.equal(sent.length, count, `after ${delay} more ms`);
    }
    window.engine.disconnect();
    await clock.advance(100_000);
    assert.equal(sent.length, 4);
    server.prompt = prompt;
    await window.engine.connect();
    await settled();
    assert.equal((await notice(id)).state, "delivered");
    assert.equal((await notices()).length, 1);
  });

  it("isn't told twice if an earlier process told it and couldn't store that", async () => {
    const id = await launch();
    const { saveRecord } = server;
    server.saveRecord = async () => Promise.reject(new ServerFailure("PATCH", "refused", "Disk full.", 500));
    await finish(id);
    assert.equal(sent.length, 1);
    window.kill();
    server.saveRecord = saveRecord;
    await open();
    assert.equal(sent.length, 1);
    assert.equal((await notice(id)).state, "delivered");
    assert.equal((await notices()).length, 1);
  });

  it("is told once more if the server lost the message just after it was stored, and not long after", async () => {
    const id = await completed();
    await server.writeHistory(parent, []);
    window.engine.disconnect();
    await window.engine.connect();
    await settled();
    assert.equal((await notices()).length, 1);
    const again = await notice(id);
    assert.ok(again.state === "delivered" && again.messageID === sent[0]?.messageID);
    await clock.advance(24 * 3_600_000);
    await server.writeHistory(parent, []);
    window.engine.disconnect();
    await window.engine.connect();
    await settled();
    assert.deepEqual(await notices(), []);
  });

  it("isn't told while something is undone in it, which the message would remove for good", async () => {
    for (const input of [{}, byAgent]) {
      sent.length = 0;
      server.undo(parent, "msg_undone");
      const id = await completed(input);
      await clock.advance(120_000);
      assert.equal(sent.length, 0);
      assert.equal((await notice(id)).state, "pending");
      server.undo(parent);
      await settled();
      assert.equal(sent.length, 1);
      assert.equal((await notice(id)).state, "delivered");
    }
  });

  for (const failures of [1, 2, 3])
    it(`is told that a task goes on whose waiting message could only be sent after ${failures} failures to tell it`, async () => {
      const id = await launch();
      await window.engine.steer(id, "Then the tests.", { after: true });
      const { prompt } = server;
      let left = failures;
      server.prompt = (sessionID, given) =>
        sessionID === parent && left-- > 0
          ? Promise.reject(new ServerFailure("POST", "refused", "Busy.", 503))
          : prompt.call(server, sessionID, given);
      await finish(id);
      await clock.advance(120_000);
      assert.equal(window.engine.get(id)?.status, "resumed");
      assert.equal(sent.length, 1);
      assert.doesNotMatch(JSON.stringify(sent), /tasks finished/);
    });

  describe("while something is undone in it", () => {
    it("isn't told because a task is resumed, which is refused until it is restored", async () => {
      server.undo(parent, "msg_undone");
      const id = await completed();
      await assert.rejects(window.engine.resume(id, "More."), /undone/);
      await clock.advance(120_000);
      assert.equal(sent.length, 0);
      assert.equal(window.engine.get(id)?.status, "completed");
      server.undo(parent);
      await settled();
      assert.equal(sent.length, 1);
      await window.engine.resume(id, "More.");
      await finish(id);
      assert.equal(sent.length, 2);
    });

    it("isn't told because a message waits for the task, which is sent once it is restored", async () => {
      const id = await launch();
      await window.engine.steer(id, "Then the tests.", { after: true });
      server.undo(parent, "msg_undone");
      await finish(id);
      await clock.advance(120_000);
      assert.equal(sent.length, 0);
      assert.equal(window.engine.get(id)?.status, "completed");
      server.undo(parent);
      await settled();
      assert.equal(sent.length, 1);
      assert.doesNotMatch(JSON.stringify(sent), /tasks finished/);
      assert.equal(window.engine.get(id)?.status, "resumed");
    });
  });

  it("learns how many others are still running, and how many there were", async () => {
    const [one, other] = [await launch(), await launch()];
    await finish(one);
    assert.match(sent[0]?.parts[1]?.text ?? "", /1 of 2/);
    await finish(other);
    assert.match(sent[1]?.parts[1]?.text ?? "", /2 of 2/);
    // No task was running when this one was launched.
    await clock.advance(1_000);
    await completed();
    assert.doesNotMatch(sent[2]?.parts[1]?.text ?? "", / of /);
  });

  it("is told before a task is resumed, even while it works", async () => {
    const id = await launch();
    await ask("msg_asks");
    await finish(id);
    assert.deepEqual(sent, []);
    await window.engine.resume(id, "More.");
    assert.equal(sent.length, 1);
    assert.deepEqual(await notice(id), { state: "none" });
  });

  describe("by an earlier process, which couldn't store that", () => {
    let id: string;

    async function tellUnstored(input: Partial<LaunchInput>): Promise<void> {
      id = await launch(input);
      const { saveRecord } = server;
      server.saveRecord = async () =>
        Promise.reject(new ServerFailure("PATCH", "refused", "Disk full.", 500));
      await finish(id);
      assert.equal(sent.length, 1);
      window.kill();
      server.saveRecord = saveRecord;
      await clock.advance(10);
    }

    it("is asked to answer if the server died before it did, whatever there is besides", async () => {
      const { prompt } = server;
      await ask("msg_earlier");
      server.finish(parent, "An earlier answer.");
      // The message is stored, but its turn never begins.
      server.prompt = async (sessionID, given) =>
        prompt.call(server, sessionID, { ...given, noReply: given.noReply || sessionID === parent });
      await tellUnstored(byAgent);
      server.prompt = prompt;
      const { model } = sent[0] ?? {};
      await prompt.call(server, parent, {
        ...{ messageID: "msg_later", agent: "build", model, noReply: true },
        parts: [{ text: "More." }],
      });
      sent.splice(1);
      await open();
      assert.equal(sent.length, 2);
      assert.deepEqual([sent[1]?.messageID, sent[1]?.parts], [sent[0]?.messageID, []]);
      assert.ok(server.running().has(parent));
      assert.equal((await notice(id)).state, "delivered");
    });

    it("is asked nothing if it has answered, or if a person launched the task", async () => {
      await tellUnstored(byAgent);
      server.finish(parent, "Seen.");
      await open();
      assert.equal(sent.length, 1);
      sent.length = 0;
      await tellUnstored({});
      await open();
      assert.equal(sent.length, 1);
      assert.ok(!server.running().has(parent));
    });

    it("isn't told again though so much has been written since that its newest messages don't show it", async () => {
      for (const input of [{}, byAgent]) {
        await tellUnstored(input);
        for (let index = 0; index < 25; index++)
          await server.prompt(parent, {
            ...{ messageID: `msg_later${clock.now()}${index}`, agent: "build", noReply: true },
            parts: [{ text: "More." }],
          });
        sent.length = 0;
        await open();
        assert.equal(sent.length, 0);
        assert.equal((await notice(id)).state, "delivered");
      }
    });
  });

  it("is only read as far as it may have been told: its newest messages, if these reach back to the end", async () => {
    const id = await launch();
    for (let index = 0; index < 25; index++)
      await server.prompt(parent, {
        ...{ messageID: `msg_earlier${index}`, agent: "build", noReply: true },
        parts: [{ text: "More." }],
      });
    await clock.advance(10);
    sent.length = 0;
    server.journal.length = 0;
    await finish(id);
    assert.equal(sent.length, 1);
    assert.ok(!server.journal.some(({ call }) => call === "message"));
  });

  it("that is working costs nothing until it is idle", async () => {
    await ask("msg_asks");
    const id = await completed();
    server.journal.length = 0;
    server.emit({ type: "session-status", sessionID: parent, status: { type: "busy" } });
    server.emit({ type: "part-changed", part: { ...textPart("So."), sessionID: parent } });
    server.emit({ type: "heartbeat" });
    await settled();
    assert.deepEqual(server.journal, []);
    assert.equal((await notice(id)).state, "pending");
  });

  it("that may have lost a message isn't told again if that can't be read, or it is gone", async () => {
    const id = await completed();
    const { message } = server;
    server.message = async () => Promise.reject(new Error("Broken."));
    window.engine.disconnect();
    await window.engine.connect();
    await settled();
    assert.equal((await notice(id)).state, "delivered");
    assert.equal(sent.length, 1);
    let reads = 0;
    server.message = async (...args) => {
      reads++;
      return message.call(server, ...args);
    };
    const orphan = await completed({ parentSessionID: id });
    window.engine.disconnect();
    const { sessions, session } = server;
    server.sessions = async () => (await sessions.call(server)).filter((one) => one.id !== id);
    server.session = async (one) => (one === id ? undefined : session.call(server, one));
    await window.engine.connect();
    await settled();
    assert.equal((await notice(orphan)).state, "delivered");
    assert.equal(reads, 0);
  });

  it("isn't told again by a timer once the connection is lost", async () => {
    const id = await launch();
    const { prompt } = server;
    server.prompt = async () => {
      window.engine.disconnect();
      throw new ServerFailure("POST", "refused", "Overloaded.", 500);
    };
    await finish(id);
    server.prompt = prompt;
    assert.equal((await notice(id)).state, "pending");
    assert.equal(clock.pending, 0);
  });

  it("is told again if the server accepts the message and stores nothing", async () => {
    const id = await launch();
    const { prompt } = server;
    server.prompt = async () => undefined;
    await finish(id);
    await clock.advance(60_000);
    assert.match(window.log.join("\n"), /: The server accepted the notification but didn't store it\.$/m);
    assert.equal((await notice(id)).state, "pending");
    server.prompt = prompt;
    await clock.advance(60_000);
    assert.equal((await notice(id)).state, "delivered");
  });

  it("learns that a result can no longer be read", async () => {
    await ask("msg_asks");
    const id = await completed();
    const { message } = server;
    server.message = async (sessionID, messageID) =>
      sessionID === id ? undefined : message.call(server, sessionID, messageID);
    server.finish(parent, "I do.");
    await settled();
    assert.match(
      sent[0]?.parts[0]?.text ?? "",
      /It can no longer be read: it was deleted from the session of the task\./,
    );
  });

  it("learns that a result can no longer be read because the whole session is gone", async () => {
    await ask("msg_asks");
    const id = await completed();
    const { message, session } = server;
    server.message = async (sessionID, messageID) =>
      sessionID === id ? undefined : message.call(server, sessionID, messageID);
    server.session = async (sessionID) => (sessionID === id ? undefined : session.call(server, sessionID));
    server.finish(parent, "I do.");
    await settled();
    assert.match(
      sent[0]?.parts[0]?.text ?? "",
      /It can no longer be read: the session of the task was deleted\./,
    );
  });

  describe("that waits for the task in a call", () => {
    const call = (state: ToolPart["state"], facts: Partial<ToolPart> = {}): ToolPart => ({
      ...{ id: "prt_call", sessionID: parent, messageID: "msg_waiting", type: "tool", callID: "call" },
      ...{ tool: "asyncagents_output", state, ...facts },
    });
    const running = (id: string) => ({ status: "running", input: { task_id: id }, start: 1 }) as const;
    const returned = (metadata: Readonly<Record<string, unknown>>) =>
      ({ status: "completed", input: {}, output: "", title: "", start: 1, end: 2, metadata }) as const;

    /** The parent's answer, with this call. */
    function answers(part: ToolPart): void {
      const { info } = answer({ id: "msg_waiting", sessionID: parent, created: clock.now() });
      server.apply({ type: "message-changed", info });
      server.apply({ type: "part-changed", part });
    }

    beforeEach(async () => {
      await ask("msg_asks");
    });

    it("is told nothing that the call returned, and otherwise when it returns", async () => {
      for (const received of [true, false]) {
        const id = await launch(byAgent);
        sent.length = 0;
        answers(call(running(id)));
        await finish(id);
        assert.equal((await notice(id)).state, "pending");
        assert.deepEqual(sent, []);
        const endedAt = window.engine.get(id)?.endedAt;
        const part = call(returned(received ? { [RESULT_MARK]: { taskID: id, endedAt } } : {}));
        answers(part);
        server.emit({ type: "part-changed", part });
        await settled();
        const { state, ...rest } = await notice(id);
        assert.equal(state, received ? "skipped" : "delivered");
        if (received)
          assert.deepEqual(rest, { reason: "The parent received the result through asyncagents_output." });
        assert.equal(sent.length, received ? 0 : 1);
      }
    });

    it("is told nothing that the call returned while that was found out", async () => {
      const id = await launch(byAgent);
      sent.length = 0;
      answers(call(running(id)));
      const { statuses } = server;
      server.statuses = async () => {
        const { endedAt } = window.engine.get(id) ?? {};
        if (endedAt === undefined) return statuses.call(server);
        answers(call(returned({ [RESULT_MARK]: { taskID: id, endedAt } })));
        return new Map();
      };
      await finish(id);
      assert.equal((await notice(id)).state, "skipped");
      assert.deepEqual(sent, []);
    });

    it("is told of a task whose call was left open by a dead turn", async () => {
      const id = await launch(byAgent);
      sent.length = 0;
      answers(call(running(id)));
      server.apply({ type: "session-status", sessionID: parent, status: { type: "idle" } });
      await finish(id);
      assert.equal((await notice(id)).state, "delivered");
      assert.equal(sent.length, 1);
    });

    it("of OpenCode's own tool is told when that returns without the result", async () => {
      const id = await launch(byAgent);
      sent.length = 0;
      const facts = { tool: "task", subagent: { sessionID: id } } as const;
      answers(call(running(id), facts));
      await finish(id);
      assert.equal((await notice(id)).state, "pending");
      const part = call(returned({}), facts);
      answers(part);
      server.emit({ type: "part-changed", part });
      await settled();
      assert.equal((await notice(id)).state, "delivered");
      assert.equal(sent.length, 1);
    });
  });

  it("learns nothing of the tasks of others", async () => {
    const other = (await server.createSession({ title: "Other", agent: "build" })).id;
    await launch({ parentSessionID: other });
    await completed();
    assert.doesNotMatch(sent[0]?.parts[1]?.text ?? "", / of /);
    assert.match(sent[0]?.parts[0]?.text ?? "", /All 1 tasks finished/);
  });

  it("learns of no result of a task that failed after it had written something", async () => {
    const id = await launch();
    server.write(id, "So far.");
    server.end(id, { type: "failed", error: { name: "APIError", message: "No key." } });
    await settled();
    assert.match(sent[0]?.parts[0]?.text ?? "", /Error \(APIError\):/);
    assert.doesNotMatch(sent[0]?.parts[0]?.text ?? "", /So far/);
  });

  it("that can't be told keeps a task from being resumed, and is told a second later", async () => {
    const id = await launch();
    await ask("msg_asks");
    await finish(id);
    const { prompt } = server;
    server.prompt = async () => Promise.reject(new ServerFailure("POST", "refused", "Overloaded.", 500));
    await assert.rejects(window.engine.resume(id, "More."), /Overloaded/);
    assert.equal(window.engine.get(id)?.status, "completed");
    server.prompt = prompt;
    server.finish(parent, "I do.");
    await clock.advance(1_000);
    assert.equal((await notice(id)).state, "delivered");
  });

  it("is told after a reconnect if the connection was lost while it was told", async () => {
    const id = await launch();
    server.finish(id, "The answer.");
    window.link.deliver();
    let isLost = true;
    const { prompt } = server;
    server.prompt = async (sessionID, given) => {
      if (isLost) window.engine.disconnect();
      isLost = false;
      return prompt.call(server, sessionID, given);
    };
    await settled();
    window.engine.disconnect();
    await settled();
    await window.engine.connect();
    await settled();
    assert.equal((await notice(id)).state, "delivered");
    assert.equal((await notices()).length, 1);
  });

  it("that is a stopped task isn't woken by a task below it", async () => {
    const above = await launch();
    const below = await launch({ ...byAgent, parentSessionID: above });
    server.end(above, { type: "failed", error: { name: "APIError", message: "No key." } });
    await settled();
    await finish(below);
    assert.ok(!server.running().has(above));
    assert.equal((await notice(below)).state, "delivered");
  });
});
