import assert from "node:assert/strict";
import type { LaunchInput } from "../../../src/engine/launcher.ts";
import { noticeID } from "../../../src/engine/notices.ts";
import type { Task } from "../../../src/engine/task.ts";
import type { EngineSettings } from "../../../src/engine/engine.ts";
import { hold } from "../../support/hold.ts";
import { ManualClock, settled } from "../../support/manual-clock.ts";
import { MemoryServer, type MemoryServerOptions } from "../../support/memory-server.ts";
import { type MemoryWindow, openWindow } from "../../support/memory-window.ts";
import { answer } from "./builders.ts";

describe("The end of a task", () => {
  let clock: ManualClock;
  let server: MemoryServer;
  let window: MemoryWindow;
  let parent: string;
  let settings: Partial<EngineSettings>;

  beforeEach(() => open());
  afterEach(() => window.kill());

  async function open(options: MemoryServerOptions = {}): Promise<void> {
    clock = new ManualClock();
    settings = { maxDepth: 3 };
    server = new MemoryServer({ now: () => clock.now(), ...options });
    parent = (await server.createSession({ title: "Parent", agent: "build" })).id;
    window = await openWindow(server, clock, settings);
  }

  async function launch(input: Partial<LaunchInput> = {}): Promise<string> {
    const { id } = await window.engine.launch({
      ...{ prompt: "Work.", parentSessionID: parent, launchedBy: "person" },
      ...input,
    });
    return id;
  }

  const task = (id: string): Task => window.engine.get(id) ?? assert.fail();

  /** The calls about these sessions since the test last looked, with the sessions' names. */
  function calls(names: Readonly<Record<string, string>>): readonly string[] {
    return server.journal
      .splice(0)
      .flatMap(({ call, sessionID }) =>
        sessionID === undefined ? [call] : names[sessionID] ? [`${call} ${names[sessionID]}`] : [],
      );
  }

  const aborts = (id: string): number =>
    server.journal.filter(({ call, sessionID }) => call === "abort" && sessionID === id).length;

  describe("is stored", () => {
    it("after the parent was told if the server can tell it again, with what was just read", async () => {
      const id = await launch();
      calls({});
      server.finish(id, "Done.");
      await settled();
      assert.deepEqual(calls({ [id]: "task", [parent]: "parent" }), [
        "messages task",
        "messages parent",
        "statuses",
        "prompt parent",
        "saveRecord task",
      ]);
    });

    for (const [how, end] of Object.entries({
      "if the task was cancelled": (id: string) => window.engine.cancel(id, "person"),
      "if its turn was aborted elsewhere": (id: string) => server.end(id, { type: "aborted" }),
    }))
      it(`before the parent is told, ${how}`, async () => {
        const id = await launch();
        calls({});
        await end(id);
        await settled();
        const made = calls({ [id]: "task", [parent]: "parent" });
        assert.ok(made.indexOf("saveRecord task") < made.indexOf("prompt parent"), made.join());
        assert.ok(made.includes("saveRecord task"));
      });

    it("before the parent is told, if the turn left no message", async () => {
      const id = await launch();
      const { messages } = server;
      server.messages = async (sessionID, limit) =>
        (await messages.call(server, sessionID, limit)).filter(
          ({ info }) => sessionID !== id || info.role === "user",
        );
      calls({});
      server.end(id, { type: "failed", error: { name: "APIError", message: "Bad." } });
      await settled();
      const made = calls({ [id]: "task", [parent]: "parent" });
      assert.ok(made.includes("saveRecord task"));
      assert.ok(made.indexOf("saveRecord task") < made.indexOf("prompt parent"), made.join());
      assert.equal(task(id).error?.name, "APIError");
    });
  });

  describe("has a notice", () => {
    const messageID = (id: string): string | undefined => {
      const { notice } = task(id);
      return "messageID" in notice ? notice.messageID : undefined;
    };

    it("whose ID is of the time of the answer, however late that is read", async () => {
      const id = await launch();
      const record = task(id);
      window.engine.disconnect();
      await clock.advance(1_000);
      const endedAt = clock.now();
      server.finish(id, "Done.");
      await clock.advance(60_000);
      await window.engine.connect();
      await settled();
      const { finalMessageID } = task(id);
      assert.ok(finalMessageID !== undefined);
      assert.equal(messageID(id), noticeID(record, endedAt, finalMessageID));
    });

    it("whose ID is of now if there is no answer, so that it comes after what the parent has", async () => {
      window.kill();
      await open({ stepwise: true });
      const id = await launch();
      const record = task(id);
      window.engine.disconnect();
      server.crash();
      await clock.advance(60_000);
      await window.engine.connect();
      const { prompt } = server;
      server.prompt = async (sessionID, sent) =>
        sessionID === id ? undefined : prompt.call(server, sessionID, sent);
      await clock.advance(20_000);
      assert.equal(task(id).status, "error");
      const told = messageID(id);
      const times = Array.from({ length: 21 }, (_, at) => clock.now() - 20_000 + at * 1_000);
      assert.ok(times.some((time) => noticeID(record, time, undefined) === told));
      assert.ok((task(id).endedAt ?? 0) < clock.now() - 20_000);
    });

    const skipped = (id: string): string | undefined => {
      const { notice } = task(id);
      return notice.state === "skipped" ? notice.reason : undefined;
    };

    it("also if an agent stopped it, and it was complete by then", async () => {
      const { abort } = server;
      server.abort = async (sessionID) => {
        if (server.running().has(sessionID)) server.finish(sessionID, "Done.");
        return abort.call(server, sessionID);
      };
      const own = await launch();
      await window.engine.cancel(own, "agent");
      const above = await launch();
      const below = await launch({ parentSessionID: above, launchedBy: "agent" });
      await window.engine.cancel(above, "agent");
      await settled();
      for (const id of [own, below])
        assert.deepEqual([task(id).status, skipped(id)], ["completed", undefined]);
    });
  });

  describe("by a command", () => {
    it("takes one request to stop it and one to read what it wrote", async () => {
      const id = await launch();
      server.write(id, "So far.");
      calls({});
      const { finalMessageID } = await window.engine.cancel(id, "agent");
      assert.deepEqual(calls({ [id]: "task" }), ["abort task", "messages task", "saveRecord task"]);
      assert.equal(finalMessageID, (await server.messages(id)).at(-1)?.info.id);
    });

    it("is the same for all who give it at once", async () => {
      const id = await launch();
      const [one, other] = await Promise.all([
        window.engine.cancel(id, "person"),
        window.engine.cancel(id, "person"),
      ]);
      assert.deepEqual([one.status, other.status, aborts(id)], ["cancelled", "cancelled", 1]);
    });

    it("asks the server twice to stop if the prompt has no answer yet, or isn't stored", async () => {
      window.kill();
      await open({ stepwise: true });
      const unanswered = await launch();
      await window.engine.cancel(unanswered, "agent");
      assert.equal(aborts(unanswered), 2);
      server.prompt = async () => undefined;
      const unseen = await launch();
      await window.engine.cancel(unseen, "agent");
      assert.equal(aborts(unseen), 2);
    });

    it("gives up a fork whose conversation is being built before it asks the server to stop anything", async () => {
      const source = await launch();
      server.finish(source, "Found it.");
      await settled();
      const release = hold(server, "messages", source);
      const launching = launch({ fork: { sourceSessionID: source } });
      await settled();
      const fork = window.engine.list(parent).find(({ isForked }) => isForked)?.id ?? assert.fail();
      const cancelling = window.engine.cancel(fork, "agent");
      await settled();
      assert.equal(aborts(fork), 0);
      release();
      await Promise.all([cancelling, launching]);
      assert.equal(task(fork).status, "cancelled");
      assert.equal(aborts(fork), 1);
      assert.ok(!server.running().has(fork));
      // A retry needs the prompt.
      assert.deepEqual(
        server.stored(fork).map(({ info }) => info.id),
        [task(fork).promptMessageID],
      );
    });
  });

  it("leaves alone what is written after it if the task completed", async () => {
    const id = await launch();
    server.finish(id, "Done.");
    await settled();
    const { promptMessageID: parentID } = task(id);
    server.emit({ type: "message-changed", info: answer({ sessionID: id, parentID }).info });
    await settled();
    assert.equal(aborts(id), 0);
  });

  describe("by a command, after which the connection was lost", () => {
    let id: string;

    beforeEach(async () => {
      id = await launch();
      await window.engine.cancel(id, "agent");
      await settled();
      window.engine.disconnect();
      server.journal.length = 0;
    });

    async function reconnect(): Promise<void> {
      await window.engine.connect();
      await settled();
    }

    it("reads no conversation in which nothing runs", async () => {
      await reconnect();
      assert.ok(!server.journal.some(({ call, sessionID }) => call === "messages" && sessionID === id));
    });

    it("stops nothing in an empty conversation", async () => {
      await server.writeHistory(id, []);
      server.apply({ type: "session-status", sessionID: id, status: { type: "busy" } });
      await reconnect();
      assert.equal(aborts(id), 0);
      assert.deepEqual(window.log, []);
    });

    it("logs that the conversation can't be read", async () => {
      const { messages } = server;
      server.messages = (sessionID, limit) =>
        sessionID === id ? Promise.reject(new Error("Broken.")) : messages.call(server, sessionID, limit);
      server.apply({ type: "session-status", sessionID: id, status: { type: "busy" } });
      await reconnect();
      assert.deepEqual(window.log, ["Couldn't read whether a stopped task began late: Broken."]);
    });
  });
});
