import assert from "node:assert/strict";
import { ServerFailure } from "../../../src/engine/ports.ts";
import { promptText } from "../../support/engine.ts";
import { hold } from "../../support/hold.ts";
import { ManualClock, settled } from "../../support/manual-clock.ts";
import { MemoryServer } from "../../support/memory-server.ts";
import { type MemoryWindow, memoryWindow, openWindow, storedRecord } from "../../support/memory-window.ts";
import type { EngineSettings } from "../../../src/engine/engine.ts";
import { shortID, type Task } from "../../../src/engine/task.ts";
import { answer } from "./builders.ts";

describe("A completed task that a subtask's notice wakes", () => {
  let clock: ManualClock;
  let server: MemoryServer;
  let window: MemoryWindow;
  let settings: Partial<EngineSettings>;
  let parent: string;
  let above: string;
  let below: string;
  /** Whether events get lost. */
  let deaf: boolean;

  const launch = async (parentSessionID: string): Promise<string> =>
    (await window.engine.launch({ prompt: "Work.", parentSessionID, launchedBy: "agent" })).id;
  const task = (): Task | undefined => window.engine.get(above);
  /** The notices in the parent's conversation. */
  const told = async (): Promise<readonly string[]> =>
    (await server.messages(parent))
      .filter(({ info }) => info.role === "user")
      .map(({ parts }) => parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n"));

  beforeEach(async () => {
    clock = new ManualClock();
    settings = { maxDepth: 2 };
    server = new MemoryServer({ now: () => clock.now() });
    parent = (await server.createSession({ title: "Parent", agent: "build" })).id;
    deaf = false;
    window = memoryWindow(server, clock, settings);
    server.onEvent(() => (deaf ? window.link.drop() : window.link.deliver()));
    await window.engine.connect();
    above = await launch(parent);
    below = await launch(above);
    await clock.advance(60_000);
    server.finish(above, "I wait for it.");
    await settled();
    server.finish(parent, "Fine.");
    await settled();
    assert.equal(task()?.status, "completed");
  });

  afterEach(() => window.kill());

  it("runs again, shows its requests, and notifies its parent of the new answer", async () => {
    server.finish(below, "Found it.");
    await settled();
    assert.ok(server.running().has(above));
    server.begin(above);
    await settled();
    assert.equal(task()?.status, "resumed");
    const request = server.ask(above);
    await settled();
    assert.deepEqual(
      window.engine.openRequests().map(({ request: { id } }) => id),
      [request.id],
    );
    server.reply(above, "once");
    server.finish(above, "It is in the cart.");
    await settled();
    assert.equal(task()?.status, "completed");
    assert.equal((await window.engine.output(above)).result, "It is in the cart.");
    const notices = await told();
    assert.equal(notices.length, 2);
    assert.match(notices[1] ?? "", /It is in the cart\./);
  });

  it("is followed while something is undone in its parent, which is told of its new answer alone", async () => {
    const toldBefore = (await told()).length;
    above = await launch(parent);
    below = await launch(above);
    server.undo(parent, "msg_undone");
    server.finish(above, "I wait for it.");
    await settled();
    server.finish(below, "Found it.");
    await settled();
    server.begin(above);
    await settled();
    assert.equal(task()?.status, "resumed");
    assert.equal((await told()).length, toldBefore);
    server.finish(above, "It is in the cart.");
    await settled();
    assert.equal((await told()).length, toldBefore);
    server.undo(parent);
    await settled();
    const notices = await told();
    assert.equal(notices.length, toldBefore + 1);
    assert.match(notices.at(-1) ?? "", /It is in the cart\./);
  });

  it("isn't woken by what a user cancels to clear it", async () => {
    server.begin(below);
    await settled();
    await window.engine.clear(above, { cancelRunning: true });
    await settled();
    assert.equal(window.engine.get(below)?.status, "cancelled");
    assert.ok(!server.running().has(above));
    assert.equal(task()?.status, "completed");
    assert.notEqual(task()?.clearedAt, undefined);
  });

  it("is told of its subtask's end if an agent clears it, which leaves the subtask alone", async () => {
    await window.engine.clear(above, { cancelRunning: true }, "agent");
    assert.equal(window.engine.get(below)?.status, "running");
    server.finish(below, "Found it.");
    await settled();
    assert.ok(server.running().has(above));
  });

  it("is found after the connection was lost, even if it has ended meanwhile", async () => {
    const { saveRecord } = server;
    server.saveRecord = () => Promise.reject(new ServerFailure("saveRecord", "unreachable", "Gone."));
    server.finish(below, "Found it.");
    await settled();
    window.engine.disconnect();
    server.finish(above, "It is in the cart.");
    await settled();
    server.saveRecord = saveRecord;
    assert.equal(task()?.status, "completed");
    await window.engine.connect();
    await settled();
    assert.equal((await window.engine.output(above)).result, "It is in the cart.");
    assert.match((await told()).at(-1) ?? "", /It is in the cart\./);
  });

  it("isn't taken to go on because someone else asks something in its session", async () => {
    server.finish(below, "Found it.");
    await settled();
    server.finish(above, "It is in the cart.");
    await settled();
    await clock.advance(1_000);
    const record = await storedRecord(server, above);
    await server.prompt(above, { messageID: "msg_other", agent: "build", parts: [{ text: "What is it?" }] });
    await settled();
    server.finish(above, "A cart.");
    await settled();
    assert.deepEqual(await storedRecord(server, above), record);
  });

  describe("in the next window", () => {
    /** The notice is stored, but the turn that it wakes begins only once the window has crashed. */
    async function wakeUnseen(end: () => unknown = () => server.finish(below, "Found it.")): Promise<void> {
      const { prompt } = server;
      server.prompt = (id, sent) =>
        prompt.call(server, id, { ...sent, noReply: sent.noReply || id === above });
      await end();
      await settled();
      server.prompt = prompt;
      window.kill();
      const asked = server.stored(above).findLast(({ info }) => info.role === "user");
      await server.prompt(above, { messageID: asked?.info.id ?? "", agent: "general", parts: [] });
      assert.ok(server.running().has(above));
      await clock.advance(1_000);
    }

    /** The sessions whose messages the next window reads. */
    async function reopen(): Promise<readonly string[]> {
      window.kill();
      const read = server.journal.length;
      window = await openWindow(server, clock, settings, 2);
      await settled();
      return server.journal
        .slice(read)
        .flatMap(({ call, sessionID = "" }) => (call === "messages" ? [sessionID] : []));
    }

    /** Has it fail to store that the notice is delivered. Returns what ends that. */
    function failDelivered(): () => void {
      const { saveRecord } = server;
      server.saveRecord = (record) =>
        record.id === below && record.notice.state === "delivered"
          ? Promise.reject(new ServerFailure("saveRecord", "unreachable", "Gone."))
          : saveRecord.call(server, record);
      return () => (server.saveRecord = saveRecord);
    }

    it("is followed while its turn runs", async () => {
      await wakeUnseen();
      assert.equal((await storedRecord(server, above)).status, "completed");
      await reopen();
      assert.equal(window.engine.get(below)?.notice.state, "delivered");
      assert.equal(task()?.status, "resumed");
    });

    it("is followed even if it isn't stored that the notice is delivered, and that can't be found out now", async () => {
      const { messages } = server;
      const heal = failDelivered();
      await wakeUnseen(() => window.engine.cancel(below, "person"));
      heal();
      assert.equal((await storedRecord(server, below)).notice.state, "pending");
      let reads = 0;
      server.messages = (id, limit) =>
        id === above && ++reads > 1 ? Promise.reject(new Error("Broken.")) : messages.call(server, id, limit);
      await reopen();
      assert.equal(window.engine.get(below)?.notice.state, "pending");
      assert.equal(task()?.status, "resumed");
    });

    it("isn't followed again once that turn is over, though it isn't stored that the notice is delivered", async () => {
      const heal = failDelivered();
      server.finish(below, "Found it.");
      await settled();
      server.useTool(above);
      await clock.advance(1_000);
      server.finish(above, "It is in the cart.");
      await settled();
      const record = await storedRecord(server, above);
      assert.equal(record.resumeCount, 1);
      heal();
      await reopen();
      assert.equal(window.engine.get(below)?.notice.state, "delivered");
      assert.deepEqual((await storedRecord(server, above)).resumeCount, 1);
      assert.equal(task()?.status, "completed");
    });

    it("isn't followed again if that turn ended in the moment in which the notice arrived", async () => {
      server.finish(below, "Found it.");
      await settled();
      server.finish(above, "It is in the cart.");
      await settled();
      await reopen();
      assert.deepEqual([task()?.status, task()?.resumeCount], ["completed", 1]);
    });

    it("isn't even read if its subtasks' notices came before its end, or can't wake it", async () => {
      server.finish(below, "Found it.");
      await clock.advance(1_000);
      server.finish(above, "It is in the cart.");
      await settled();
      await clock.advance(1_000);
      // An empty set of expected notices is left.
      window.engine.disconnect();
      const read = server.journal.length;
      await window.engine.connect();
      await settled();
      assert.ok(!server.journal.slice(read).some(({ call }) => call === "messages"));
      const byUser = await window.engine.launch({
        prompt: "Work.",
        parentSessionID: above,
        launchedBy: "person",
      });
      server.finish(byUser.id, "Found something else.");
      await settled();
      assert.equal(window.engine.get(byUser.id)?.notice.state, "delivered");
      await server.prompt(above, {
        messageID: "msg_other",
        agent: "build",
        parts: [{ text: "What is it?" }],
      });
      assert.deepEqual(await reopen(), []);
      assert.equal(task()?.status, "completed");
    });

    it("isn't even read if it has failed", async () => {
      const failed = await launch(parent);
      const part = await launch(failed);
      server.end(failed, { type: "failed", error: { name: "APIError", message: "Bad." } });
      await clock.advance(1_000);
      server.finish(part, "Found it.");
      await settled();
      assert.equal(window.engine.get(part)?.notice.state, "delivered");
      assert.ok(!(await reopen()).includes(failed));
    });
  });

  it("is found by a window that heard nothing of it when its notice is tried again", async () => {
    const { prompt } = server;
    server.prompt = async (id, sent) => {
      // It is stored, and its turn begins, but the call fails, and no event arrives.
      await prompt.call(server, id, sent);
      if (id !== above) return;
      server.prompt = prompt;
      throw new ServerFailure("prompt", "refused", "Overloaded.", 500);
    };
    server.finish(below, "Found it.");
    deaf = true;
    await settled();
    deaf = false;
    assert.ok(server.running().has(above));
    assert.equal(task()?.status, "completed");
    await clock.advance(1_000);
    assert.equal(task()?.status, "resumed");
  });

  it("goes on once for each notice, and not for what else happens in its session", async () => {
    const other = await launch(above);
    const { prompt } = server;
    server.prompt = (id, sent) => prompt.call(server, id, { ...sent, noReply: true });
    server.finish(below, "Found it.");
    await settled();
    await clock.advance(1_000);
    server.finish(other, "Found more.");
    await settled();
    server.prompt = prompt;
    const notices = server
      .stored(above)
      .flatMap(({ info }) => (info.role === "user" ? [info.id] : []))
      .slice(-2);
    const begin = async (id: string, parentID: string): Promise<void> => {
      await clock.advance(1_000);
      const { info } = answer({ id, parentID, sessionID: above, created: clock.now() });
      server.apply({ type: "message-changed", info });
      server.emit({ type: "message-changed", info });
      await settled();
    };
    const end = async (id: string, parentID: string): Promise<void> => {
      await clock.advance(1_000);
      const now = clock.now();
      const { info } = answer({
        ...{ id, parentID, sessionID: above, created: now, completed: now, finish: "end" },
      });
      server.apply({ type: "message-changed", info });
      server.emit({ type: "message-changed", info });
      await settled();
    };
    for (const [at, parentID] of notices.entries()) {
      await begin(`msg_answer${at}`, parentID);
      assert.deepEqual([task()?.status, task()?.resumeCount], ["resumed", at + 1]);
      await end(`msg_answer${at}`, parentID);
      assert.equal(task()?.status, "completed");
      await begin(`msg_more${at}`, parentID);
      assert.equal(task()?.status, "completed");
      await end(`msg_more${at}`, parentID);
    }
    assert.deepEqual(window.log, []);
  });

  it("is simply told if it is still at work", async () => {
    await window.engine.resume(above, "More.");
    server.finish(below, "Found it.");
    await settled();
    server.useTool(above);
    await settled();
    assert.deepEqual([task()?.status, task()?.resumeCount], ["resumed", 1]);
    assert.deepEqual(window.log, []);
  });

  it("shows its own requests only", async () => {
    const other = await launch(parent);
    server.ask(other);
    server.finish(below, "Found it.");
    await settled();
    server.begin(above);
    await settled();
    assert.deepEqual(
      [task()?.progress?.phase, window.engine.get(other)?.progress?.phase],
      ["starting", "needs-permission"],
    );
  });

  it("is not woken if it has no room for another turn: the notice is only stored", async () => {
    Object.assign(settings, { budget: { taskMinutes: 1 } });
    server.finish(below, "Found it.");
    await settled();
    assert.ok(!server.running().has(above));
    assert.equal(task()?.status, "completed");
  });

  it("keeps the request that it made before it could be followed", async () => {
    const { saveRecord } = server;
    server.saveRecord = () => Promise.reject(new ServerFailure("saveRecord", "unreachable", "Gone."));
    server.finish(below, "Found it.");
    await settled();
    server.begin(above);
    await clock.advance(1_000);
    const request = server.ask(above);
    await settled();
    window.engine.disconnect();
    server.saveRecord = saveRecord;
    await window.engine.connect();
    await settled();
    assert.equal(task()?.progress?.phase, "needs-permission");
    assert.deepEqual(
      window.engine.openRequests().map(({ request: { id } }) => id),
      [request.id],
    );
    await window.engine.answer(request, { type: "permission", reply: "once" });
    server.finish(above, "It is in the cart.");
    await settled();
    assert.equal(task()?.status, "completed");
  });

  it("counts what it did before that was noticed", async () => {
    const release = hold(server, "saveRecord", above);
    server.finish(below, "Found it.");
    await settled();
    server.useTool(above);
    await settled();
    assert.equal(task()?.status, "completed");
    release();
    await settled();
    assert.deepEqual([task()?.status, task()?.progress?.toolCalls], ["resumed", 1]);
    server.finish(above, "It is in the cart.");
    await settled();
    assert.deepEqual([task()?.status, task()?.toolCalls], ["completed", 1]);
  });

  it("runs again even if the subtask has gone on by then, or was deleted, and is in the list again", async () => {
    await window.engine.clear(above);
    await window.engine.steer(below, "Then the docs.", { after: true });
    server.finish(below, "Found it.");
    await settled();
    assert.equal(window.engine.get(below)?.status, "resumed");
    server.begin(above);
    await settled();
    assert.equal(task()?.status, "resumed");
    assert.equal(task()?.clearedAt, undefined);
    server.finish(above, "It is in the cart.");
    await settled();
    await server.deleteSession(below);
    await settled();
    await clock.advance(2_000);
    server.begin(above);
    await settled();
    assert.equal(task()?.status, "resumed");
    assert.equal(task()?.resumeCount, 2);
  });

  it("is retried with its own prompt, not with the notice, if it fails", async () => {
    server.finish(below, "Found it.");
    await settled();
    server.end(above, { type: "failed", error: { name: "APIError", message: "Bad." } });
    await settled();
    assert.equal(task()?.status, "error");
    assert.equal(await promptText(server, await window.engine.retry(above)), "Work.");
  });

  it("gives its parent the first answer later if that fails at first", async () => {
    const { prompt } = server;
    server.prompt = (id, sent) =>
      id === parent && !sent.noReply
        ? Promise.reject(new ServerFailure("prompt", "refused", "Busy.", 500))
        : prompt.call(server, id, sent);
    await window.engine.resume(above, "Look again.");
    server.finish(above, "I wait for it still.");
    await settled();
    server.finish(below, "Found it.");
    await settled();
    server.begin(above);
    await settled();
    assert.equal(task()?.status, "completed");
    assert.equal(task()?.notice.state, "pending");
    server.prompt = prompt;
    await clock.advance(5_000);
    assert.match((await told()).at(-1) ?? "", /I wait for it still\./);
  });

  describe("and that can't be stored at first", () => {
    let isBroken: boolean;

    beforeEach(async () => {
      const { saveRecord } = server;
      isBroken = true;
      server.saveRecord = (record) =>
        isBroken && record.id === above && record.status === "resumed"
          ? Promise.reject(new ServerFailure("saveRecord", "refused", "Full.", 500))
          : saveRecord.call(server, record);
      server.finish(below, "Found it.");
      await settled();
      assert.equal(task()?.status, "completed");
      isBroken = false;
    });

    it("is followed later", async () => {
      assert.deepEqual(
        window.log.filter((line) => line.startsWith("Couldn't follow")),
        [`Couldn't follow task ${shortID(above)}, which goes on: Full.`],
      );
      await clock.advance(5_000);
      assert.equal(task()?.status, "resumed");
    });

    it("is followed later even if it couldn't be read either", async () => {
      const { messages } = server;
      server.messages = (id, ...rest) =>
        id === above ? Promise.reject(new Error("Busy.")) : messages.call(server, id, ...rest);
      await clock.advance(5_000);
      assert.equal(task()?.status, "completed");
      server.messages = messages;
      await clock.advance(5_000);
      assert.equal(task()?.status, "resumed");
    });

    it("is tried again at each event, and besides by one timer, until the window is closed", async () => {
      isBroken = true;
      const tries = (): number => window.log.filter((line) => line.startsWith("Couldn't follow")).length;
      const { info } = (await server.messages(above)).at(-1) ?? assert.fail();
      for (let times = 0; times < 3; times++) server.emit({ type: "message-changed", info });
      await settled();
      assert.equal(tries(), 4);
      for (const expected of [5, 6]) {
        await clock.advance(5_000);
        assert.equal(tries(), expected);
      }
      window.engine.dispose();
      await clock.advance(20_000);
      assert.equal(tries(), 6);
    });

    it("is found at a reconnect, even if the subtask was deleted", async () => {
      await server.deleteSession(below);
      window.engine.disconnect();
      await window.engine.connect();
      await settled();
      assert.equal(task()?.status, "resumed");
    });
  });

  it("is retried with its prompt even if a message steered it", async () => {
    const next = await launch(parent);
    const part = await launch(next);
    server.begin(next);
    await window.engine.steer(next, "Also the docs.");
    server.useTool(next);
    server.finish(next, "I wait.");
    await settled();
    server.finish(part, "Found it.");
    await settled();
    server.end(next, { type: "failed", error: { name: "APIError", message: "Bad." } });
    await settled();
    assert.equal(window.engine.get(next)?.resumeCount, 1);
    assert.equal(await promptText(server, await window.engine.retry(next)), "Work.");
  });
});
