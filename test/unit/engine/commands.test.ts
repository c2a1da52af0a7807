import assert from "node:assert/strict";
import type { EngineSettings } from "../../../src/engine/engine.ts";
import type { LaunchInput } from "../../../src/engine/launcher.ts";
import { ServerFailure } from "../../../src/engine/ports.ts";
import type { PermissionRule } from "../../../src/engine/server-model.ts";
import { shortID, type Task, type TaskRecord } from "../../../src/engine/task.ts";
import { settled, type ManualClock } from "../../support/manual-clock.ts";
import type { MemoryServer } from "../../support/memory-server.ts";
import { type MemoryWindow, newServer, openWindow, storedRecord } from "../../support/memory-window.ts";
import { answer } from "./builders.ts";

const NO_AGENT_TOOLS: PermissionRule = { permission: "asyncagents_*", pattern: "*", action: "deny" };

describe("Commands for tasks", () => {
  let clock: ManualClock;
  let server: MemoryServer;
  let window: MemoryWindow;
  let parent: string;

  beforeEach(async () => {
    ({ clock, server, parent } = await newServer());
    await open();
  });

  afterEach(() => window.kill());

  async function open(settings: Partial<EngineSettings> = {}): Promise<void> {
    window = await openWindow(server, clock, settings);
  }

  async function reopen(settings: Partial<EngineSettings>): Promise<void> {
    window.kill();
    await open(settings);
  }

  const launch = (input: Partial<LaunchInput> = {}): Promise<Task> =>
    window.engine.launch({ prompt: "Work.", parentSessionID: parent, launchedBy: "person", ...input });

  async function completed(input: Partial<LaunchInput> = {}): Promise<Task> {
    const { id } = await launch(input);
    server.finish(id, "The answer.");
    await settled();
    return task(id);
  }

  function task(id: string): Task {
    const found = window.engine.get(id);
    assert.ok(found);
    return found;
  }

  const aborted = (): readonly (string | undefined)[] =>
    server.journal.flatMap(({ call, sessionID }) => (call === "abort" ? [sessionID] : []));

  const ask = (id: string, messageID: string): Promise<void> =>
    server.prompt(id, { messageID, agent: "build", parts: [{ text: "Go." }] });

  const defined = (options: object | undefined): object =>
    Object.fromEntries(Object.entries(options ?? {}).filter(([, value]) => value !== undefined));

  const stored = (id: string): Promise<TaskRecord> => storedRecord(server, id);

  describe("that launch them", () => {
    it("refuse an empty prompt and a batch ID that is too long, before anything is sent", async () => {
      const { length } = server.journal;
      await assert.rejects(launch({ prompt: " \n" }), { code: "empty-prompt" });
      await assert.rejects(launch({ batchID: "b".repeat(101) }), {
        code: "invalid-argument",
        message: "The batch ID is longer than 100 characters.",
      });
      assert.equal(server.journal.length, length);
      assert.equal((await launch({ batchID: "b".repeat(100) })).batchID, "b".repeat(100));
    });

    it("by agents run as an agent made for tasks, even if the default is one for users", async () => {
      await reopen({ defaultAgent: "build" });
      assert.equal((await launch()).agent, "build");
      const call = { launchedBy: "agent", callingAgent: "build" } as const;
      assert.equal((await launch(call)).agent, "general");
      await reopen({ defaultAgent: "nobody" });
      await assert.rejects(launch(call), { code: "unknown-agent" });
    });

    it("give what an agent launches no tools for tasks of its own at the last depth, and then refuse", async () => {
      await reopen({ maxDepth: 2 });
      const byAgent = { launchedBy: "agent", callingAgent: "build" } as const;
      const first = await launch(byAgent);
      assert.deepEqual((await server.session(first.id))?.permission, []);
      const second = await launch({ ...byAgent, parentSessionID: first.id });
      assert.deepEqual((await server.session(second.id))?.permission, [NO_AGENT_TOOLS]);
      await assert.rejects(launch({ ...byAgent, parentSessionID: second.id }), {
        code: "too-deep",
        message:
          "Agents at this depth may not launch tasks (asyncagents.maxDepth is 2); do the work yourself.",
      });
      // A person may.
      await launch({ parentSessionID: second.id });
    });

    it("are retried and continued by the user at any depth", async () => {
      await reopen({ maxDepth: 1 });
      const { id } = await launch({ launchedBy: "agent", callingAgent: "build" });
      await window.engine.cancel(id);
      await reopen({ maxDepth: 0 });
      assert.equal((await window.engine.retry(id)).insteadOf, id);
    });

    it("never limit what a person launches", async () => {
      await server.restrict(parent, [{ permission: "bash", pattern: "*", action: "deny" }]);
      await reopen({ maxDepth: 3 });
      assert.deepEqual((await server.session((await launch()).id))?.permission, []);
    });

    it("use the agent of the settings, which is offered first", async () => {
      const names = async (): Promise<readonly string[]> =>
        (await window.engine.agents()).map(({ name }) => name);
      assert.deepEqual(await names(), ["general", "helper", "build"]);
      assert.equal((await launch()).agent, "general");
      await reopen({ defaultAgent: "build" });
      assert.deepEqual(await names(), ["build", "general", "helper"]);
      assert.equal((await launch()).agent, "build");
      assert.equal((await launch({ agent: "helper" })).agent, "helper");
    });

    it("answer a repeated call with the same task, also while the first one is being answered", async () => {
      const call = { launchedBy: "agent", callingAgent: "build", callID: "call_1" } as const;
      const [first, second] = await Promise.all([launch(call), launch(call)]);
      assert.equal(first.id, second.id);
      assert.equal((await launch(call)).id, first.id);
      const other = (await server.createSession({ title: "Other", agent: "build" })).id;
      assert.notEqual((await launch({ ...call, parentSessionID: other })).id, first.id);
      assert.notEqual((await launch({ ...call, callID: "call_2" })).id, first.id);
    });

    it("name the newest message of the parent as the one that asked", async () => {
      assert.equal((await launch()).parentMessageID, undefined);
      await ask(parent, "msg_asks");
      server.finish(parent, "I do.");
      const { messageID } = server.journal.findLast(({ call }) => call === "prompt") ?? {};
      assert.equal(messageID, "msg_asks");
      const newest = (await server.messages(parent, 1))[0]?.info.id;
      assert.ok(newest !== undefined && newest !== "msg_asks");
      assert.equal((await launch()).parentMessageID, newest);
      assert.equal((await launch({ parentMessageID: "msg_asks" })).parentMessageID, "msg_asks");
    });

    it("find a task whose creation got no answer, and leave none behind that was refused", async () => {
      const { createSession } = server;
      const lost = new Error("The connection was lost.");
      server.createSession = async (session) => {
        await createSession.call(server, session);
        throw lost;
      };
      const { id } = await launch();
      assert.equal(task(id).status, "running");
      server.createSession = async () => Promise.reject(lost);
      await assert.rejects(launch(), lost);
      server.createSession = createSession;
      assert.deepEqual(
        window.engine.list(parent).map((each) => each.id),
        [id],
      );
    });

    it("remember which part of which conversation a task inherited, so that a retry inherits the same", async () => {
      await ask(parent, "msg_first");
      server.finish(parent, "I do.");
      const newest = (await server.messages(parent, 1))[0]?.info.id;
      const own = await launch({ fork: { sourceSessionID: parent, maxTokens: 500 } });
      assert.ok(own.isForked);
      assert.equal(own.forkedFrom, parent);
      assert.deepEqual(defined(own.forkOptions), { upToMessageID: newest, maxTokens: 500 });
      const part = await launch({ fork: { sourceSessionID: parent, upToMessageID: "msg_first" } });
      assert.deepEqual(defined(part.forkOptions), { upToMessageID: "msg_first" });
      const other = (await server.createSession({ title: "Other", agent: "build" })).id;
      await ask(other, "msg_other");
      server.finish(other, "Done.");
      const whole = await launch({ fork: { sourceSessionID: other } });
      assert.equal(whole.forkedFrom, other);
      assert.equal(whole.forkOptions, undefined);
      const plain = await launch();
      assert.ok(!plain.isForked && plain.forkedFrom === undefined && plain.forkOptions === undefined);
    });

    it("name no message as the one that asked which the user has undone", async () => {
      await ask(parent, "msg_first");
      server.finish(parent, "I do.");
      const newest = (await server.messages(parent, 1))[0]?.info.id;
      await clock.advance(5);
      await ask(parent, "msg_undone");
      server.finish(parent, "Undone.");
      const session = await server.session(parent);
      assert.ok(session);
      server.put({ ...session, undoneFrom: { messageID: "msg_undone" } }, undefined);
      assert.ok(newest !== undefined);
      assert.equal((await launch()).parentMessageID, newest);
    });

    it("fail if the server doesn't keep the record, or refuses the prompt, and leave no task", async () => {
      const { createSession, prompt } = server;
      server.createSession = async ({ task: _, ...session }) => createSession.call(server, session);
      await assert.rejects(launch(), { message: "The server didn't save the task's record." });
      server.createSession = createSession;
      const refused = new ServerFailure("POST", "refused", "No such model.", 400);
      server.prompt = async () => Promise.reject(refused);
      await assert.rejects(launch(), refused);
      server.prompt = prompt;
      await settled();
      assert.deepEqual(window.engine.list(parent), []);
    });

    it("log that the session of a failed launch couldn't be removed", async () => {
      const { prompt, deleteSession } = server;
      server.prompt = async () => Promise.reject(new ServerFailure("POST", "refused", "No.", 400));
      server.deleteSession = async () => Promise.reject(new Error("Busy."));
      await assert.rejects(launch());
      await settled();
      assert.match(window.log.join("\n"), /^Couldn't remove session ses_\S+: Busy\.$/m);
      Object.assign(server, { prompt, deleteSession });
    });

    it("queue a task if all slots are taken, and send its prompt when one is free", async () => {
      await reopen({ maxConcurrentTasks: 1 });
      const [one, other] = [await launch(), await launch()];
      assert.ok(!one.queued && other.queued);
      assert.ok(!server.running().has(other.id));
      server.finish(one.id, "Done.");
      await settled();
      assert.ok(!task(other.id).queued);
      assert.ok(server.running().has(other.id));
    });

    it("send the prompt of a repeated call whose task an earlier process only created", async () => {
      const call = { launchedBy: "agent", callingAgent: "build", callID: "call_1" } as const;
      const { prompt } = server;
      const gone = new ServerFailure("POST", "unreachable", "Gone.");
      server.prompt = async () => Promise.reject(gone);
      const { id } = await launch(call);
      server.prompt = prompt;
      await reopen({});
      assert.equal((await launch(call)).id, id);
      assert.ok(server.running().has(id));
      server.finish(id, "The answer.");
      await settled();
      const { length } = server.journal.filter((entry) => entry.call === "prompt");
      assert.equal((await launch(call)).id, id);
      assert.equal(server.journal.filter((entry) => entry.call === "prompt").length, length);
      assert.equal((await window.engine.output(id)).result, "The answer.");
    });
  });

  describe("that end them", () => {
    it("tell who stopped a task: its parent isn't notified of what it did itself", async () => {
      await reopen({ maxDepth: 3 });
      const one = await launch();
      const other = await launch({ launchedBy: "agent", callingAgent: "build" });
      await window.engine.cancel(one.id);
      await window.engine.cancel(other.id, "agent");
      assert.equal(task(one.id).status, "cancelled");
      assert.equal((await stored(one.id)).notice.state, "delivered");
      assert.deepEqual((await stored(other.id)).notice, {
        state: "skipped",
        reason: "The parent cancelled the task itself.",
      });
      await assert.rejects(window.engine.cancel(one.id), { code: "wrong-status" });
    });

    it("tell no parent of what a person launched if the settings say so", async () => {
      await reopen({ notifyParent: false, maxDepth: 3 });
      const reason = "Turned off in the settings.";
      assert.deepEqual((await stored((await completed()).id)).notice, { state: "skipped", reason });
      const byAgent = await completed({ launchedBy: "agent", callingAgent: "build" });
      assert.equal((await stored(byAgent.id)).notice.state, "delivered");
    });

    it("stop everything below a task, which isn't told to it", async () => {
      await reopen({ maxDepth: 3 });
      const above = await launch();
      const below = await launch({ parentSessionID: above.id });
      const done = await completed({ parentSessionID: above.id });
      await window.engine.cancel(above.id);
      assert.equal(task(below.id).status, "cancelled");
      assert.deepEqual((await stored(below.id)).notice, {
        state: "skipped",
        reason: "The parent was stopped too.",
      });
      assert.equal(task(done.id).status, "completed");
      assert.ok(!aborted().includes(done.id));
    });

    it("say that a task was stopped, but not all below it", async () => {
      await reopen({ maxDepth: 3 });
      const above = await launch();
      const below = await launch({ parentSessionID: above.id });
      const { abort } = server;
      server.abort = async (id) =>
        id === below.id ? Promise.reject(new Error("Not now.")) : abort.call(server, id);
      await assert.rejects(window.engine.cancel(above.id), {
        code: "partly-done",
        message: new RegExp(`^Stopped task ${shortID(above.id)}, but not all of its subtasks: `),
      });
      assert.equal(task(above.id).status, "cancelled");
    });

    it("cancel the active tasks of a batch, and say of how many that failed", async () => {
      const batchID = "names";
      const [one, other] = [await launch({ batchID }), await launch({ batchID })];
      const done = await completed({ batchID });
      const alone = await launch();
      const { abort } = server;
      server.abort = async (id) =>
        id === other.id ? Promise.reject(new Error("Not now.")) : abort.call(server, id);
      await assert.rejects(window.engine.cancelBatch(batchID), {
        code: "partly-done",
        message: /^Cancelled 1 of 2 tasks\. /,
      });
      await assert.rejects(window.engine.cancelBatch(batchID), /Not now/);
      server.abort = abort;
      const cancelled = await window.engine.cancelBatch(batchID);
      assert.deepEqual(
        cancelled.map(({ id }) => id),
        [other.id],
      );
      assert.deepEqual(
        [one, other, done, alone].map(({ id }) => task(id).status),
        ["cancelled", "cancelled", "completed", "running"],
      );
    });

    it("stop the turn of a cancelled task that began while there was no connection", async () => {
      const { id } = await launch();
      await window.engine.cancel(id);
      window.engine.disconnect();
      const before = aborted().length;
      // OpenCode takes a prompt that was still waiting.
      server.apply({ type: "session-status", sessionID: id, status: { type: "busy" } });
      await window.engine.connect();
      await settled();
      assert.deepEqual(aborted().slice(before), [id]);
    });

    it("leave alone what someone else asked in a cancelled task's session", async () => {
      const { id } = await launch();
      await window.engine.cancel(id);
      window.engine.disconnect();
      await clock.advance(10);
      await server.prompt(id, { messageID: "msg_other", agent: "general", parts: [{ text: "Go on." }] });
      const before = aborted().length;
      await window.engine.connect();
      await settled();
      assert.deepEqual(aborted().slice(before), []);
    });

    it("leave a task completed that completes at the same moment", async () => {
      const { id } = await launch();
      server.abort = async () => server.finish(id, "The answer.");
      assert.equal((await window.engine.cancel(id)).status, "completed");
      await settled();
      assert.equal((await window.engine.output(id)).result, "The answer.");
      assert.equal((await stored(id)).notice.state, "delivered");
    });

    it("end a task whose end can't be stored yet, which is logged", async () => {
      const { id } = await launch();
      const { saveRecord } = server;
      server.saveRecord = async () => Promise.reject(new Error("Disk full."));
      assert.equal((await window.engine.cancel(id)).status, "cancelled");
      await settled();
      assert.match(window.log.join("\n"), /^Couldn't store the end of task \S+: Disk full\.$/m);
      server.saveRecord = saveRecord;
      await clock.advance(60_000);
      assert.equal((await stored(id)).status, "cancelled");
      assert.equal((await stored(id)).notice.state, "delivered");
    });

    it("cancel what is queued below a task before it would get its slot", async () => {
      await reopen({ maxConcurrentTasks: 1, maxDepth: 3 });
      const above = await launch();
      const below = await launch({ parentSessionID: above.id });
      assert.ok(below.queued);
      await window.engine.cancel(above.id);
      await settled();
      assert.equal(task(below.id).status, "cancelled");
      assert.ok(!server.running().has(below.id));
      assert.equal((await stored(below.id)).notice.state, "skipped");
    });

    describe("stop a turn that begins later", () => {
      let id: string;
      let steeredBy: string;

      beforeEach(async () => {
        id = (await launch()).id;
        await window.engine.steer(id, "Also the docs.");
        steeredBy = (await server.messages(id)).findLast(({ info }) => info.role === "user")?.info.id ?? "";
        await window.engine.cancel(id);
        await settled();
      });

      /** How often the server is asked to stop when a model begins to answer this message, or ends to. */
      function stops(parentID: string, completed?: number): number {
        const before = aborted().length;
        const { info } = answer({ id: "msg_late", sessionID: id, parentID, completed });
        server.emit({ type: "message-changed", info });
        return aborted().length - before;
      }

      it("with its prompt, or with a message that was sent to it", async () => {
        const { promptMessageID } = await stored(id);
        assert.equal(stops(promptMessageID), 1);
        assert.equal(stops(steeredBy), 1);
      });

      it("but not one that someone else asks for, or that has ended", async () => {
        const { promptMessageID } = await stored(id);
        assert.equal(stops("msg_other"), 0);
        assert.equal(stops(promptMessageID, clock.now()), 0);
        const before = aborted().length;
        const info = {
          role: "user",
          id: promptMessageID,
          sessionID: id,
          created: 1,
          agent: "general",
        } as const;
        server.emit({ type: "message-changed", info });
        assert.equal(aborted().length, before);
      });

      it("and log that this failed", async () => {
        const { promptMessageID } = await stored(id);
        server.abort = async () => Promise.reject(new Error("Not now."));
        stops(promptMessageID);
        await settled();
        assert.match(window.log.join("\n"), /^Couldn't stop task \S+: Not now\.$/m);
      });
    });
  });

  describe("that tidy up", () => {
    it("clear a task once it has ended, and restore it", async () => {
      const { id } = await launch();
      const refusal = {
        code: "still-running",
        message: `Task ${shortID(id)} is still running. Cancel it first, or allow it to be cancelled.`,
      };
      await assert.rejects(window.engine.clear(id), refusal);
      const cleared = await window.engine.clear(id, { cancelRunning: true });
      assert.equal(cleared.status, "cancelled");
      assert.equal(cleared.clearedAt, clock.now());
      assert.deepEqual(window.engine.list(parent), []);
      assert.equal((await window.engine.restore(id)).clearedAt, undefined);
      assert.equal((await stored(id)).clearedAt, undefined);
      assert.equal(window.engine.list(parent).length, 1);
    });

    it("list the cleared tasks, those last that were cleared first", async () => {
      const ids: string[] = [];
      for (const at of [0, 1, 2]) {
        await clock.advance(at);
        ids.push((await completed()).id);
      }
      const [first = "", second = "", third = ""] = ids;
      for (const id of [second, third, first]) {
        await clock.advance(5);
        await window.engine.clear(id);
      }
      assert.deepEqual(
        window.engine.cleared(parent).map(({ id }) => id),
        [first, third, second],
      );
    });

    it("clear a batch, but nothing of it while a task runs", async () => {
      const batchID = "names";
      const [one, other] = [await launch({ batchID }), await launch({ batchID })];
      const done = await completed({ batchID });
      await assert.rejects(window.engine.clearBatch(batchID), {
        code: "still-running",
        message: `Tasks ${shortID(one.id)}, ${shortID(other.id)} are still running. Cancel them first, or allow them to be cancelled.`,
      });
      assert.equal(task(done.id).clearedAt, undefined);
      await window.engine.cancel(one.id);
      await assert.rejects(window.engine.clearBatch(batchID), { message: /^Task \S+ is still running/ });
      const cleared = await window.engine.clearBatch(batchID, parent, { cancelRunning: true });
      assert.equal(cleared.length, 3);
      assert.deepEqual(window.engine.list(parent), []);
    });

    it("say how many tasks of a batch were cleared if not all were", async () => {
      const batchID = "names";
      await completed({ batchID });
      const other = await completed({ batchID });
      const { saveRecord } = server;
      server.saveRecord = async (record) =>
        record.id === other.id ? Promise.reject(new Error("Not now.")) : saveRecord.call(server, record);
      await assert.rejects(window.engine.clearBatch(batchID), {
        code: "partly-done",
        message: /^Cleared 1 of 2 tasks\. /,
      });
    });

    it("delete a session with all below it, which nothing needs to report", async () => {
      await reopen({ maxDepth: 3 });
      const { id } = await launch();
      const below = await completed({ parentSessionID: id });
      server.finish(id, "Done.");
      await settled();
      const { deleteSession } = server;
      server.deleteSession = async (sessionID) => {
        window.link.drop();
        await deleteSession.call(server, sessionID);
      };
      await window.engine.clear(id, { deleteSession: true });
      assert.equal(window.engine.get(id), undefined);
      assert.equal(window.engine.get(below.id), undefined);
      assert.ok(!server.has(id));
    });

    it("say which subtasks they stopped if they fail halfway", async () => {
      await reopen({ maxDepth: 3 });
      const above = await completed();
      const belows = [
        await launch({ parentSessionID: above.id }),
        await launch({ parentSessionID: above.id }),
      ];
      const { abort, saveRecord } = server;
      const refuse = (): Promise<never> => Promise.reject(new Error("Not now."));
      server.abort = async (id) => (id === belows[1]?.id ? refuse() : abort.call(server, id));
      await assert.rejects(window.engine.clear(above.id, { cancelRunning: true }), {
        code: "partly-done",
        message: /^Only 1 of 2 subtasks were stopped\. /,
      });
      server.abort = abort;
      server.saveRecord = async (record) =>
        record.id === above.id ? refuse() : saveRecord.call(server, record);
      await assert.rejects(window.engine.clear(above.id, { cancelRunning: true }), {
        code: "partly-done",
        message: new RegExp(
          `^The subtasks of task ${shortID(above.id)} were stopped, but it wasn't cleared\\. `,
        ),
      });
      await assert.rejects(window.engine.clear(above.id, { cancelRunning: true }), /Not now/);
    });

    it("say what they did if they fail halfway", async () => {
      const { saveRecord } = server;
      const { id } = await launch();
      server.saveRecord = async (record) => {
        if (record.clearedAt !== undefined) throw new ServerFailure("PATCH", "refused", "Disk full.", 500);
        return saveRecord.call(server, record);
      };
      await assert.rejects(window.engine.clear(id, { cancelRunning: true }, "agent"), {
        code: "partly-done",
        message: `Task ${shortID(id)} was cancelled, but not cleared. Disk full.`,
      });
      assert.equal(task(id).status, "cancelled");
      await assert.rejects(window.engine.clear(id), { reason: "refused" });
      server.saveRecord = saveRecord;
      server.deleteSession = async () => {
        throw new ServerFailure("DELETE", "refused", "Disk full.", 500);
      };
      await assert.rejects(window.engine.clear(id, { deleteSession: true }), {
        code: "partly-done",
        message: `Task ${shortID(id)} was cleared, but not deleted. Disk full.`,
      });
      assert.notEqual(task(id).clearedAt, undefined);
    });
  });

  describe("that read them", () => {
    it("give the result, and note once when it was first read", async () => {
      const { id } = await completed();
      const { task: read, result } = await window.engine.output(id);
      assert.equal(result, "The answer.");
      assert.equal(read.retrievedAt, clock.now());
      await clock.advance(100);
      await window.engine.output(id);
      assert.equal((await stored(id)).retrievedAt, clock.now() - 100);
    });

    it("give what is known at once, or wait for the end", async () => {
      const { id } = await launch();
      assert.equal((await window.engine.output(id)).task.status, "running");
      const waiting = window.engine.output(id, { block: true });
      server.finish(id, "The answer.");
      assert.equal((await waiting).result, "The answer.");
      const again = await window.engine.output(id, { block: true });
      assert.equal(again.result, "The answer.");
    });

    it("give the result though it can't be noted that it was read", async () => {
      const { id } = await completed();
      const { saveRecord } = server;
      server.saveRecord = async () => Promise.reject(new Error("Disk full."));
      assert.equal((await window.engine.output(id)).result, "The answer.");
      server.saveRecord = saveRecord;
      assert.match(window.log.join("\n"), new RegExp(`the result of ${shortID(id)} was read: `));
    });

    it("wait for several at once", async () => {
      const [one, other] = [await launch(), await launch()];
      const waiting = window.engine.wait([one.id, other.id]);
      server.finish(one.id, "1");
      server.finish(other.id, "2");
      assert.deepEqual(
        (await waiting).map(({ id, status }) => [id, status]),
        [
          [one.id, "completed"],
          [other.id, "completed"],
        ],
      );
    });
  });
});
