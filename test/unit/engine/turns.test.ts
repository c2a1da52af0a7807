import assert from "node:assert/strict";
import { ServerFailure } from "../../../src/engine/ports.ts";
import type { Message, Part, ServerEvent } from "../../../src/engine/server-model.ts";
import { TURN_WINDOW } from "../../../src/engine/turn.ts";
import { currentTurn } from "../../../src/engine/turns.ts";
import { settled } from "../../support/manual-clock.ts";
import { POLL_MS } from "../../support/memory-window.ts";
import { answer, prompt, textPart, toolPart } from "./builders.ts";
import { BAD, BUSY, ENDED, ID, IDLE, RETRY, WatchedTurn } from "./watched-turn.ts";

describe("The watcher of turns", () => {
  let watched: WatchedTurn;

  const open = (...args: ConstructorParameters<typeof WatchedTurn>): void => {
    watched = new WatchedTurn(...args);
  };

  beforeEach(() => open());
  afterEach(() => watched.turns.dispose());

  const ownText = (facts: Parameters<typeof textPart>[1] = {}): Part => ({
    ...textPart("Do it.", facts),
    messageID: "msg_prompt",
  });

  describe("reads a turn", () => {
    const { info } = answer(ENDED);
    const cases: Readonly<Record<string, readonly [event: ServerEvent, isHint: boolean]>> = {
      "when its session becomes idle": [{ type: "session-status", sessionID: ID, status: IDLE }, true],
      "when its session reports an error": [{ type: "session-error", sessionID: ID, error: BAD }, true],
      "when an answer is complete": [{ type: "message-changed", info }, true],
      "but not when its session is at work": [{ type: "session-status", sessionID: ID, status: BUSY }, false],
      "but not when the model is to be asked again": [
        { type: "session-status", sessionID: ID, status: RETRY },
        false,
      ],
      "but not after a step that called tools": [
        { type: "message-changed", info: answer({ completed: 2_000, finish: "tools" }).info },
        false,
      ],
      "but not while an answer is being written": [{ type: "message-changed", info: answer().info }, false],
      "but not at a message of a user": [{ type: "message-changed", info: prompt().info }, false],
      "but not at a part": [{ type: "part-changed", part: textPart("Done.") }, false],
    };
    for (const [what, [event, isHint]] of Object.entries(cases))
      it(what, async () => {
        await watched.connect();
        watched.store(prompt(), answer());
        await watched.hear(event);
        assert.equal(watched.asked("messages"), isHint ? 1 : 0);
        assert.deepEqual(watched.ends, []);
      });

    it("once for several such hints", async () => {
      await watched.connect();
      watched.store(prompt(), answer());
      watched.turns.accept(watched.entry, { type: "session-status", sessionID: ID, status: IDLE });
      await watched.hearError();
      assert.equal(watched.asked("messages"), 1);
    });

    it("once more for a hint that arrives while it is read", async () => {
      await watched.connect();
      watched.store(prompt(), answer());
      watched.turns.accept(watched.entry, { type: "session-status", sessionID: ID, status: IDLE });
      await Promise.resolve();
      await watched.hearStatus(IDLE);
      assert.equal(watched.asked("messages"), 2);
    });

    it("but not without a connection", async () => {
      watched.store(prompt(), answer());
      await watched.hearStatus(IDLE);
      assert.equal(watched.asked("messages"), 0);
      await watched.connect();
      watched.turns.disconnect();
      await watched.hearStatus(IDLE);
      assert.equal(watched.asked("messages"), 0);
    });

    it("but not of a task that has ended by then, or whose conversation is to be built again", async () => {
      await watched.connect();
      watched.store(prompt(), answer(ENDED, [textPart("Done.")]));
      watched.turns.accept(watched.entry, { type: "session-status", sessionID: ID, status: IDLE });
      watched.entry.record = { ...watched.entry.record, status: "cancelled" };
      await settled();
      watched.entry.record = { ...watched.entry.record, status: "running" };
      watched.working().prompt = { kind: "interrupted", buildAgain: async () => undefined };
      await watched.hearStatus(IDLE);
      assert.equal(watched.asked("messages"), 0);
      assert.deepEqual(watched.ends, []);
    });

    it("and drops what it read if the record has changed meanwhile", async () => {
      await watched.connect();
      watched.store(prompt(), answer(ENDED, [textPart("Done.")]));
      const messages = watched.server.messages.bind(watched.server);
      watched.server.messages = async (...asked) => {
        watched.entry.record = { ...watched.entry.record, description: "Another name" };
        return messages(...asked);
      };
      await watched.hearStatus(IDLE);
      assert.deepEqual(watched.ends, []);
      watched.server.messages = messages;
      await watched.hearStatus(IDLE);
      assert.deepEqual(
        watched.ends.map(({ type }) => type),
        ["turn-completed"],
      );
    });

    it("and forgets a task whose session is gone, but no other that can't be read", async () => {
      await watched.connect();
      watched.server.messages = () => Promise.reject(new ServerFailure("GET", "unreachable", "Gone away."));
      await watched.hearStatus(IDLE);
      watched.server.messages = () => Promise.reject(new Error("Broken."));
      await watched.hearStatus(IDLE);
      assert.deepEqual(watched.log, [
        "Couldn't read task s_task: Gone away.",
        "Couldn't read task s_task: Broken.",
      ]);
      assert.equal(watched.registry.entry(ID), watched.entry);
      watched.server.messages = () =>
        Promise.reject(new ServerFailure("GET", "not-found", "No such session.", 404));
      await watched.hearStatus(IDLE);
      assert.equal(watched.registry.entry(ID), undefined);
      assert.equal(watched.log.filter((line) => line.startsWith("Couldn't read")).length, 2);
    });
  });

  describe("notes from events", () => {
    it("that the prompt is stored, with its own text", async () => {
      await watched.connect();
      watched.working().prompt = watched.sentNow();
      await watched.hearPart({ ...ownText(), messageID: "msg_other" });
      assert.equal(watched.working().prompt.kind, "sent");
      await watched.hearPart(ownText({ synthetic: true }));
      assert.equal(watched.working().prompt.kind, "sent");
      await watched.hearPart(ownText());
      assert.deepEqual(watched.working().prompt, { kind: "stored" });
    });

    it("no prompt of a task whose conversation is to be built again", async () => {
      await watched.connect();
      watched.working().prompt = { kind: "interrupted", buildAgain: async () => undefined };
      await watched.hearPart(ownText());
      assert.equal(watched.working().prompt.kind, "interrupted");
    });

    it("that an error before the prompt was stored has ended nothing, but one after it may have", async () => {
      await watched.connect();
      watched.working().prompt = watched.sentNow();
      watched.working().lastError = BAD;
      await watched.hearPart(ownText());
      assert.equal(watched.working().lastError, undefined);
      watched.working().lastError = BAD;
      await watched.hearPart(ownText());
      assert.equal(watched.working().lastError, BAD);
    });

    it("when it was last seen at work, and that it isn't suspicious", async () => {
      await watched.connect();
      await watched.clock.advance(10);
      watched.working().suspicion = { mark: "open", since: watched.start, restarted: false };
      await watched.hearStatus(BUSY);
      assert.deepEqual(
        [watched.working().seenAtWork, watched.working().suspicion],
        [watched.start + 10, undefined],
      );
      await watched.hearStatus(IDLE);
      assert.equal(watched.working().seenAtWork, 0);
      watched.turns.disconnect();
      watched.working().seenAtWork = watched.start;
      watched.working().suspicion = { mark: "open", since: watched.start, restarted: false };
      watched.turns.disconnect();
      assert.deepEqual([watched.working().seenAtWork, watched.working().suspicion], [undefined, undefined]);
    });

    it("at a disconnect that a prompt may be lost, if it isn't stored", () => {
      watched.working().prompt = watched.sentNow();
      watched.turns.disconnect();
      assert.deepEqual(watched.working().prompt, watched.sentNow({ isDoubtful: true }));
      for (const prompt of [{ kind: "stored" }, { kind: "unknown" }] as const) {
        watched.working().prompt = prompt;
        watched.turns.disconnect();
        assert.deepEqual(watched.working().prompt, prompt);
      }
    });

    it("nothing of a task that has ended", async () => {
      watched.entry.turn = undefined;
      await watched.hearStatus(IDLE);
      assert.deepEqual(watched.server.journal, []);
    });

    it("nothing about the work of a task that waits for a slot", async () => {
      watched.turns.dispose();
      open({ queued: true });
      await watched.hearStatus(BUSY);
      assert.equal(watched.entry.turn?.kind, "queued");
      assert.ok(!("seenAtWork" in watched.entry.turn));
      watched.turns.disconnect();
      assert.ok(!("seenAtWork" in watched.entry.turn));
    });
  });

  describe("at a connect", () => {
    it("asks nothing without active tasks", async () => {
      watched.entry.record = { ...watched.entry.record, status: "completed" };
      watched.registry.forget(ID);
      await watched.turns.connect();
      assert.deepEqual(watched.server.journal, []);
      assert.equal(watched.clock.pending, 0);
    });

    it("reads the progress of tasks that work, not of those that wait for a slot, and polls all", async () => {
      const other = watched.add({ id: "ses_queued", queued: true, promptMessageID: "msg_queued" });
      watched.become(BUSY);
      await watched.turns.connect();
      assert.deepEqual(
        watched.server.journal.map(({ call, sessionID }) => `${call} ${sessionID ?? ""}`.trim()),
        [`messages ${ID}`, "statuses", "messages ses_queued"],
      );
      assert.equal(other.turn?.kind, "queued");
    });

    it("counts what the turn has done, not what came before its prompt", async () => {
      const earlier = answer({ id: "msg_earlier", parentID: "msg_first" }, [
        toolPart("prt_earlier", "read", "completed"),
      ]);
      const own = answer({}, [toolPart("prt_1", "bash", "completed"), toolPart("prt_2", "grep", "running")]);
      watched.store(prompt("msg_first"), earlier, prompt(), own);
      watched.become(BUSY);
      let shown = 0;
      watched.registry.onDidChange(() => shown++);
      await watched.turns.connect();
      const { toolCalls, recentTools } = watched.registry.get(ID)?.progress ?? assert.fail();
      assert.equal(toolCalls, 2);
      assert.deepEqual(
        recentTools.map(({ tool }) => tool),
        ["bash", "grep"],
      );
      assert.ok(shown > 0);
    });

    it("counts nothing if the prompt isn't there", async () => {
      watched.store(prompt("msg_first"), answer({}, [toolPart("prt_earlier", "read", "completed")]));
      watched.become(BUSY);
      await watched.turns.connect();
      assert.equal(watched.registry.get(ID)?.progress?.toolCalls, 0);
    });

    it("counts nothing for a turn that has ended while it was read", async () => {
      const messages = watched.server.messages.bind(watched.server);
      watched.store(prompt(), answer({}, [toolPart("prt_own", "bash", "completed")]));
      const { progress } = watched.working();
      watched.server.messages = async (...args) => {
        watched.entry.turn = undefined;
        return messages(...args);
      };
      await watched.turns.connect();
      assert.equal(progress.snapshot().toolCalls, 0);
      assert.deepEqual(watched.log, []);
    });

    it("logs that the progress can't be read", async () => {
      watched.become(BUSY);
      watched.server.messages = () => Promise.reject(new Error("Broken."));
      await watched.turns.connect();
      assert.deepEqual(watched.log, ["Couldn't read the progress of task s_task: Broken."]);
    });

    it("polls again after a second, then as the settings say", async () => {
      watched.become(BUSY);
      await watched.connect();
      for (const [ms, polls] of [
        [999, 0],
        [1, 1],
        [POLL_MS - 1, 1],
        [1, 2],
      ] as const) {
        await watched.clock.advance(ms);
        assert.equal(watched.asked("statuses"), polls);
      }
    });
  });

  describe("polls", () => {
    it("no longer once no task is active", async () => {
      watched.become(BUSY);
      await watched.connect();
      assert.equal(watched.clock.pending, 1);
      watched.registry.forget(ID);
      watched.turns.watch();
      assert.equal(watched.clock.pending, 0);
    });

    it("from the first task on", async () => {
      watched.registry.forget(ID);
      await watched.turns.connect();
      watched.turns.watch();
      assert.equal(watched.clock.pending, 0);
      watched.entry = watched.add();
      watched.turns.watch();
      watched.turns.watch();
      assert.equal(watched.clock.pending, 1);
    });

    it("no task of which an event told within a minute, as long as the stream is alive", async () => {
      watched.become(BUSY);
      await watched.connect();
      await watched.hearStatus(BUSY);
      for (let at = 1_000; at < 60_000; at += 1_000) {
        watched.turns.hear();
        await watched.clock.advance(1_000);
      }
      assert.equal(watched.asked("statuses"), 0);
      watched.turns.hear();
      await watched.clock.advance(5_000);
      assert.equal(watched.asked("statuses"), 1);
    });

    it("12 seconds after the last sign of life of the stream", async () => {
      watched.settings = { ...watched.settings, pollInterval: 1_000 };
      watched.become(BUSY);
      await watched.connect();
      await watched.hearStatus(BUSY);
      await watched.clock.advance(11_000);
      assert.equal(watched.asked("statuses"), 0);
      await watched.clock.advance(1_000);
      assert.equal(watched.asked("statuses"), 1);
    });

    it("no task if the stream just gave a sign of life, but one whose last event is in the future", async () => {
      watched.become(BUSY);
      watched.clock.after(1_000, () => watched.turns.hear());
      await watched.connect();
      watched.working().seenAtWork = watched.start + 1_000;
      await watched.clock.advance(1_000);
      assert.equal(watched.asked("statuses"), 0);
      // The clock was set back.
      watched.working().seenAtWork = watched.clock.now() + 10 * POLL_MS;
      watched.turns.hear();
      await watched.clock.advance(POLL_MS);
      assert.equal(watched.asked("statuses"), 1);
    });

    it("a task that waits for a slot until its prompt is stored", async () => {
      open({ queued: true });
      const { turn } = watched.entry;
      assert.ok(turn);
      await watched.connect();
      watched.store(prompt());
      await watched.clock.advance(1_000);
      assert.equal(turn.prompt.kind, "stored");
      watched.server.journal.length = 0;
      await watched.clock.advance(10 * POLL_MS);
      assert.deepEqual(watched.server.journal, []);
      assert.deepEqual([watched.sent, watched.ends], [[], []]);
    });

    it("without harm if that fails", async () => {
      await watched.connect();
      const { statuses } = watched.server;
      watched.server.statuses = () => Promise.reject(new Error("Broken."));
      await watched.clock.advance(1_000);
      assert.deepEqual(watched.log, ["Polling failed: Broken."]);
      assert.equal(watched.asked("messages"), 0);
      watched.server.statuses = statuses;
      await watched.clock.advance(POLL_MS);
      assert.equal(watched.asked("messages"), 1);
    });

    it("and builds a conversation again that could not be built", async () => {
      await watched.connect();
      let built = 0;
      watched.working().prompt = { kind: "interrupted", buildAgain: async () => void built++ };
      await watched.clock.advance(1_000);
      assert.equal(built, 1);
      assert.equal(watched.asked("messages"), 0);
    });

    it("and shows a retry that no newer event contradicts", async () => {
      const phase = (): string | undefined => watched.registry.get(ID)?.progress?.phase;
      watched.become(RETRY);
      await watched.connect();
      assert.equal(phase(), "retrying");
      watched.become(BUSY);
      await watched.clock.advance(1_000);
      assert.equal(phase(), "starting");
      // An event while the status is being read.
      const statuses = watched.server.statuses.bind(watched.server);
      watched.become(RETRY);
      watched.server.statuses = async () => {
        const read = await statuses();
        watched.working().seenAtWork = watched.clock.now();
        return read;
      };
      await watched.clock.advance(POLL_MS);
      assert.equal(phase(), "starting");
    });

    it("and shows that a task has stalled", async () => {
      watched.settings = { ...watched.settings, stallWarning: 3_000 };
      watched.become(BUSY);
      await watched.connect();
      await watched.clock.advance(1_000);
      assert.notEqual(watched.registry.get(ID)?.progress?.phase, "stalled");
      await watched.clock.advance(POLL_MS);
      assert.equal(watched.registry.get(ID)?.progress?.phase, "stalled");
    });

    it("and starts a prompt again that the server couldn't take, for a minute", async () => {
      watched.store(prompt());
      await watched.connect();
      const refused = (status: number) => async (): Promise<void> => {
        tries++;
        throw new ServerFailure("POST", "refused", "Busy.", status);
      };
      let tries = 0;
      watched.server.prompt = refused(503);
      await watched.clock.advance(2 * POLL_MS);
      assert.equal(tries, 1);
      await watched.clock.advance(20_000);
      assert.ok(tries > 2, `${tries}`);
      assert.equal(watched.ends.length, 0);
      await watched.clock.advance(80_000);
      assert.deepEqual(
        watched.ends.slice(0, 1).map((end) => end.type === "turn-failed" && end.error.name),
        ["NeverStarted"],
      );
    });

    it("and starts none again that the server refuses for good", async () => {
      watched.store(prompt());
      await watched.connect();
      let tries = 0;
      watched.server.prompt = async () => {
        tries++;
        throw new ServerFailure("POST", "refused", "No such model.", 400);
      };
      await watched.clock.advance(20_000);
      assert.equal(tries, 1);
      assert.notEqual(watched.ends.length, 0);
    });

    it("and doesn't take a working task for a dead one", async () => {
      watched.working().suspicion = { mark: "open", since: watched.start, restarted: false };
      watched.become(BUSY);
      await watched.turns.connect();
      assert.equal(watched.working().suspicion, undefined);
      watched.become(IDLE);
      watched.store(prompt(), answer());
      await watched.clock.advance(1_000);
      assert.notEqual(watched.working().suspicion, undefined);
      watched.become(RETRY);
      await watched.clock.advance(POLL_MS);
      assert.equal(watched.working().suspicion, undefined);
    });
  });

  describe("follows a turn that was running before, and", () => {
    /** No task is active at the connect, so that nothing is polled yet. */
    beforeEach(async () => {
      watched.registry.forget(ID);
      await watched.connect();
      watched.entry = watched.add();
      assert.equal(watched.clock.pending, 0);
    });

    it("reads its progress, and whether it has ended", async () => {
      watched.store(prompt(), answer(ENDED, [textPart("Done."), toolPart("prt_own", "bash", "completed")]));
      watched.turns.follow(watched.entry);
      await settled();
      assert.equal(watched.registry.get(ID)?.progress?.toolCalls, 1);
      assert.deepEqual(
        watched.ends.map(({ type }) => type),
        ["turn-completed"],
      );
    });

    it("polls from then on", () => {
      watched.turns.follow(watched.entry);
      assert.equal(watched.clock.pending, 1);
    });

    it("doesn't start a prompt that has no answer yet", async () => {
      watched.store(prompt());
      for (let times = 0; times < 4; times++) {
        watched.turns.follow(watched.entry);
        await settled();
      }
      assert.deepEqual([watched.sent, watched.ends, watched.working().suspicion], [[], [], undefined]);
    });

    it("reads nothing of a task that has ended", async () => {
      watched.entry.turn = undefined;
      watched.turns.follow(watched.entry);
      await settled();
      assert.deepEqual(watched.server.journal, []);
    });
  });

  describe("reads the current turn", () => {
    const current = () => currentTurn(watched.server, watched.entry.record);
    const long = (count: number): readonly Message[] =>
      Array.from({ length: count }, (_, at) => answer({ ...ENDED, id: `msg_${at}` }, [textPart(`${at}`)]));

    it("with one request if its prompt is in sight", async () => {
      watched.store(prompt(), ...long(TURN_WINDOW - 1));
      assert.equal((await current()).kind, "completed");
      assert.deepEqual([watched.asked("messages"), watched.asked("message")], [1, 0]);
    });

    it("with one request if all messages are in sight", async () => {
      watched.store(...long(TURN_WINDOW - 1));
      assert.equal((await current()).kind, "unseen");
      assert.deepEqual([watched.asked("messages"), watched.asked("message")], [1, 0]);
    });

    it("also if the turn is so long that its prompt is out of sight", async () => {
      watched.store(prompt(), ...long(TURN_WINDOW));
      assert.equal((await current()).kind, "completed");
      assert.deepEqual([watched.asked("messages"), watched.asked("message")], [1, 1]);
    });

    it("also if the conversation is long, and the prompt isn't there", async () => {
      watched.store(...long(TURN_WINDOW));
      assert.deepEqual(await current(), { kind: "unseen" });
    });
  });
});
