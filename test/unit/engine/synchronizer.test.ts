import assert from "node:assert/strict";
import type { EngineSettings } from "../../../src/engine/engine.ts";
import type { LaunchInput } from "../../../src/engine/launcher.ts";
import type { ToolState } from "../../../src/engine/server-model.ts";
import { shortID, type Task } from "../../../src/engine/task.ts";
import { settled, type ManualClock } from "../../support/manual-clock.ts";
import type { MemoryServer } from "../../support/memory-server.ts";
import { type MemoryWindow, memoryWindow, newServer, openWindow } from "../../support/memory-window.ts";
import { remembered } from "../../support/remembered.ts";
import { toolPart } from "./builders.ts";

describe("A window that keeps up with its server", () => {
  let clock: ManualClock;
  let server: MemoryServer;
  let window: MemoryWindow;
  let parent: string;
  /** Whether events reach the window. */
  let isHeard: boolean;

  beforeEach(async () => {
    ({ clock, server, parent } = await newServer());
    isHeard = true;
    open();
  });

  afterEach(() => window.kill());

  function open(settings: Partial<EngineSettings> = {}, memory = remembered()): void {
    window = memoryWindow(server, clock, settings, 1, memory);
    server.onEvent(() => (isHeard ? window.link.deliver() : window.link.drop()));
  }

  const connect = async (): Promise<void> => {
    await window.engine.connect();
    await settled();
  };

  const launch = (input: Partial<LaunchInput> = {}): Promise<Task> =>
    window.engine.launch({ prompt: "Work.", parentSessionID: parent, launchedBy: "person", ...input });

  function task(id: string): Task {
    const found = window.engine.get(id);
    assert.ok(found);
    return found;
  }

  const calls = (call: string): number => server.journal.filter((entry) => entry.call === call).length;
  const child = (title: string) => server.createSession({ title, parentID: parent, agent: "general" });

  /** What happens while no event reaches the window. */
  async function unheard(happens: () => void | Promise<void>): Promise<void> {
    isHeard = false;
    await happens();
    isHeard = true;
  }

  /** Holds what the server answers to the next such call, and returns a function that lets it go on. */
  function hold(call: "sessions" | "pendingRequests" | "statuses"): () => Promise<void> {
    const answer = server[call] as () => Promise<unknown>;
    let goOn = (): void => undefined;
    const held = new Promise<void>((resolve) => (goOn = resolve));
    const holding = async (): Promise<unknown> => {
      Object.assign(server, { [call]: answer });
      const read = await answer.call(server);
      await held;
      return read;
    };
    Object.assign(server, { [call]: holding });
    return async () => {
      goOn();
      await settled();
    };
  }

  describe("while it connects", () => {
    it("takes in what happens meanwhile after the lists, which are older", async () => {
      const goOn = hold("sessions");
      const connecting = window.engine.connect();
      await settled();
      const { id } = await child("New");
      const gone = await child("Gone");
      await server.deleteSession(gone.id);
      assert.equal(window.engine.child(id), undefined);
      await goOn();
      await connecting;
      assert.ok(window.engine.child(id));
      assert.equal(window.engine.child(gone.id), undefined);
      const { id: later } = await child("Later");
      assert.ok(window.engine.child(later));
    });

    it("drops what the lists don't hold any more, and nothing that came after them", async () => {
      const one = await child("One");
      await connect();
      window.engine.disconnect();
      await unheard(() => server.deleteSession(one.id));
      assert.ok(window.engine.child(one.id));
      const goOn = hold("sessions");
      const connecting = window.engine.connect();
      await settled();
      const other = await child("Other");
      await goOn();
      await connecting;
      assert.equal(window.engine.child(one.id), undefined);
      assert.ok(window.engine.child(other.id));
    });

    for (const call of ["sessions", "pendingRequests", "statuses"] as const)
      it(`stops where a later connect has overtaken it: ${call}`, async () => {
        const one = await child("One");
        const asking = await launchOnce();
        server.begin(asking.id);
        server.ask(asking.id);
        const goOn = hold(call);
        const first = window.engine.connect();
        await settled();
        await server.deleteSession(one.id);
        server.reply(asking.id, "once");
        await connect();
        await goOn();
        await first;
        assert.equal(window.engine.child(one.id), undefined);
        assert.deepEqual(window.engine.requests, []);
      });

    it("is not connected if the connection is lost meanwhile, and shows what came in before", async () => {
      const goOn = hold("sessions");
      const connecting = window.engine.connect();
      await settled();
      const { id } = await child("New");
      window.engine.disconnect();
      assert.ok(window.engine.child(id));
      await goOn();
      await connecting;
      assert.equal(window.engine.requests.length, 0);
      // The lists that came too late don't hold it.
      assert.ok(window.engine.child(id));
    });

    it("shows what came in before a list failed", async () => {
      const goOn = hold("sessions");
      const { pendingRequests } = server;
      server.pendingRequests = async () => Promise.reject(new Error("Busy."));
      const connecting = window.engine.connect();
      await settled();
      const { id } = await child("New");
      const failed = assert.rejects(connecting, { message: "Busy." });
      await goOn();
      await failed;
      assert.ok(window.engine.child(id));
      server.pendingRequests = pendingRequests;
    });

    it("reads what its subagents do only if there are any", async () => {
      await connect();
      assert.equal(calls("statuses"), 0);
      await child("One");
      const before = calls("statuses");
      await connect();
      assert.ok(calls("statuses") > before);
    });

    it("forgets requests that were answered without it, and shows those that are open", async () => {
      const [one, other] = [await launchOnce(), await launch()];
      server.begin(one.id);
      server.ask(one.id);
      await settled();
      assert.equal(task(one.id).progress?.phase, "needs-permission");
      window.engine.disconnect();
      await unheard(() => {
        server.reply(one.id, "once");
        server.begin(other.id);
        server.ask(other.id);
      });
      assert.equal(task(one.id).progress?.phase, "needs-permission");
      await connect();
      assert.notEqual(task(one.id).progress?.phase, "needs-permission");
      assert.equal(task(other.id).progress?.phase, "needs-permission");
      assert.deepEqual(
        window.engine.requests.map(({ sessionID }) => sessionID),
        [other.id],
      );
    });

    const launchOnce = async (): Promise<Task> => {
      await connect();
      return launch();
    };
  });

  describe("that was closed while a task ran", () => {
    it("tells the parent of a task whose session is gone, and follows one that isn't listed any more", async () => {
      const memory = remembered();
      window.kill();
      open({}, memory);
      await connect();
      const [gone, there] = [await launch(), await launch()];
      window.kill();
      await server.deleteSession(gone.id);
      // Still there, but of a project that the repository has left.
      const { sessions } = server;
      server.sessions = async () => (await sessions.call(server)).filter(({ id }) => id !== there.id);
      open({}, memory);
      await connect();
      assert.equal(task(there.id).status, "running");
      const told = async (text: string): Promise<number> =>
        (await server.messages(parent)).filter(({ parts }) => JSON.stringify(parts).includes(text)).length;
      assert.deepEqual([await told(shortID(gone.id)), await told("Found.")], [1, 0]);
      server.finish(there.id, "Found.");
      await settled();
      assert.equal(task(there.id).status, "completed");
      assert.equal(await told("Found."), 1);
      assert.equal((await server.messages(parent)).length, 2);
    });

    it("goes on if that can't be read, and says so in the log", async () => {
      const memory = remembered();
      window.kill();
      open({ maxConcurrentTasks: 1 }, memory);
      await connect();
      const [gone, waiting] = [await launch(), await launch()];
      assert.ok(waiting.queued);
      window.kill();
      await server.deleteSession(gone.id);
      const { session } = server;
      server.session = async (id) =>
        id === gone.id ? Promise.reject(new Error("Busy.")) : session.call(server, id);
      open({ maxConcurrentTasks: 1 }, memory);
      await connect();
      assert.match(window.log.join("\n"), /^Couldn't read which tasks are gone: Busy\.$/m);
      assert.ok(!task(waiting.id).queued);
    });
  });

  describe("follows its tasks", () => {
    beforeEach(connect);

    it("even if the server has a session but doesn't list it any more", async () => {
      const { id } = await launch();
      const { sessions } = server;
      server.sessions = async () => (await sessions.call(server)).filter((session) => session.id !== id);
      await connect();
      assert.equal(task(id).status, "running");
      assert.equal((await server.messages(parent)).length, 0);
      await unheard(() => server.deleteSession(id));
      await connect();
      assert.equal(window.engine.get(id), undefined);
    });

    it("through streamed text, which shows that they are alive", async () => {
      const { id } = await launch();
      server.begin(id);
      await clock.advance(50);
      const place = { sessionID: id, messageID: "msg_answer", partID: "prt_text" };
      server.emit({ type: "part-delta", ...place, field: "text", delta: "Hi" });
      assert.deepEqual([task(id).progress?.phase, task(id).progress?.lastUpdate], ["streaming", clock.now()]);
    });

    it("through a heartbeat, which tells of none", async () => {
      const { id } = await launch();
      const before = task(id);
      await clock.advance(50);
      server.emit({ type: "heartbeat" });
      assert.equal(task(id), before);
    });

    it("stops what runs in a session that is deleted, unless it had ended", async () => {
      const { id } = await launch();
      await server.deleteSession(id);
      assert.equal(calls("abort"), 1);
      const { id: other } = await launch();
      server.finish(other, "Done.");
      await settled();
      await server.deleteSession(other);
      assert.equal(calls("abort"), 1);
      assert.deepEqual(window.engine.list(parent), []);
    });

    it("that another process launched, once they appear", async () => {
      const other = await openWindow(server, clock, {}, 2);
      const { id } = await other.engine.launch({
        prompt: "Work.",
        parentSessionID: parent,
        launchedBy: "person",
      });
      await settled();
      assert.equal(task(id).status, "running");
      other.kill();
      await unheard(() => server.finish(id, "Done."));
      await settled();
      assert.equal(task(id).status, "running");
      await clock.advance(20_000);
      assert.equal(task(id).status, "completed");
    });

    it("and tells which of them was refused a subagent, at which depth", async () => {
      const { id } = await launch();
      const refused: [string, number][] = [];
      window.engine.onDidRefuse((one) => {
        assert.ok(one.kind === "subagent");
        refused.push([one.task.id, one.depth]);
      });
      const call = (state: Partial<ToolState>): void => {
        const part = toolPart("prt_task", "task", "error");
        assert.ok(part.type === "tool");
        const tool = { ...part, sessionID: id, state: { ...part.state, ...state } as ToolState };
        server.emit({ type: "part-changed", part: tool });
      };
      call({});
      call({ refused: "by-user" });
      call({ status: "running", refused: "too-deep" } as Partial<ToolState>);
      server.emit({
        type: "part-changed",
        part: { ...toolPart("prt_other", "task", "error"), sessionID: parent },
      });
      assert.deepEqual(refused, []);
      call({ refused: "too-deep" });
      assert.deepEqual(refused, [[id, 2]]);
      window.engine.dispose();
      call({ refused: "too-deep" });
      assert.equal(refused.length, 1);
    });

    it("reads the conversation of a fork when its prompt arrives: what precedes it isn't told", async () => {
      await server.prompt(parent, { messageID: "msg_first", agent: "build", parts: [{ text: "Begin." }] });
      server.finish(parent, "I do.");
      const { prompt } = server;
      let goOn = (): void => undefined;
      server.prompt = async (...call) => {
        await new Promise<void>((resolve) => (goOn = resolve));
        await prompt.apply(server, call);
      };
      const { id } = await launch({ fork: { sourceSessionID: parent } });
      await settled();
      const opened = await window.engine.transcript(id);
      const texts = (): string => JSON.stringify(opened.messages);
      assert.ok(!texts().includes("Work."));
      const before = calls("messages");
      goOn();
      server.prompt = prompt;
      await settled();
      assert.ok(texts().includes("Work.") && texts().includes("I do."));
      const read = calls("messages");
      assert.ok(read > before);
      // Once it is there, it is told again whenever files change.
      const message = await server.message(id, task(id).promptMessageID);
      assert.ok(message);
      server.emit({ type: "message-changed", info: message.info });
      await settled();
      assert.equal(calls("messages"), read);
    });
  });
});
