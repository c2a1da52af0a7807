import assert from "node:assert/strict";
import { PromptSender } from "../../../src/engine/arrival.ts";
import { ServerFailure } from "../../../src/engine/ports.ts";
import { TaskRegistry, type Entry } from "../../../src/engine/registry.ts";
import type { SentPrompt, WorkingTurn } from "../../../src/engine/running-turn.ts";
import type { Message, Part, Prompt, ServerEvent, SessionStatus } from "../../../src/engine/server-model.ts";
import { NO_ISOLATION, type EngineSettings } from "../../../src/engine/settings.ts";
import { goneSession } from "../../../src/engine/task-memory.ts";
import type { TaskRecord } from "../../../src/engine/task.ts";
import type { TaskEvent } from "../../../src/engine/transitions.ts";
import {
  INTERRUPTED,
  NEVER_ANSWERED,
  NEVER_STARTED,
  NEVER_STORED,
  promptLost,
} from "../../../src/engine/turn-errors.ts";
import { STEERING_MARK, TURN_WINDOW } from "../../../src/engine/turn.ts";
import { currentTurn, TurnWatcher } from "../../../src/engine/turns.ts";
import { ManualClock, settled } from "../../support/manual-clock.ts";
import { MemoryServer } from "../../support/memory-server.ts";
import { remembered } from "../../support/remembered.ts";
import { answer, prompt, record, textPart, toolPart } from "./builders.ts";

const ID = "ses_task";
const POLL_MS = 5_000;
const IDLE = { type: "idle" } as const;
const BUSY = { type: "busy" } as const;
const RETRY = { type: "retry", attempt: 1, message: "Too many requests", next: 9e15 } as const;
const BAD = { name: "APIError", message: "Bad." };
const ENDED = { completed: 2_000, finish: "end" } as const;

describe("The watcher of turns", () => {
  let clock: ManualClock;
  let server: MemoryServer;
  let registry: TaskRegistry;
  let turns: TurnWatcher;
  let settings: EngineSettings;
  let entry: Entry;
  /** When each turn ended, as the watcher tells. */
  let ends: TaskEvent[];
  let log: string[];
  /** What the server received, which then happens to nothing. */
  let sent: Prompt[];
  /** When the test began. */
  let start: number;

  beforeEach(() => open());

  function open(facts: Partial<TaskRecord> = {}, likeVersion2 = false): void {
    clock = new ManualClock();
    start = clock.now();
    server = new MemoryServer({ now: () => clock.now(), likeVersion2 });
    sent = [];
    server.prompt = async (_, prompt) => void sent.push(prompt);
    ends = [];
    log = [];
    settings = {
      pollInterval: POLL_MS,
      stallWarning: 0,
      notifyParent: true,
      maxDepth: 1,
      fork: { maxToolResultChars: 1_500, maxTokens: 100_000, strategy: "auto" },
      maxConcurrentTasks: 0,
      collisions: "block",
      isolation: NO_ISOLATION,
      budget: {},
    };
    const note = (message: string): void => void log.push(message);
    const logger = { debug: note, info: note, warn: note, error: note };
    registry = new TaskRegistry(server, logger, () => clock.now(), remembered());
    turns = new TurnWatcher(
      { server, clock, logger, settings: () => settings },
      registry,
      new PromptSender(server, clock),
      { end: async (_, event) => void ends.push(event) },
    );
    entry = add(facts);
  }

  afterEach(() => turns.dispose());

  function add(facts: Partial<TaskRecord> = {}): Entry {
    const task = record({ createdAt: start, startedAt: start, ...facts });
    server.put(goneSession(task), undefined);
    const added = registry.applySession(goneSession(task));
    assert.ok(added);
    return added;
  }

  function store(...messages: readonly Message[]): void {
    for (const { info, parts } of messages) {
      server.apply({ type: "message-changed", info });
      for (const part of parts) server.apply({ type: "part-changed", part: { ...part, messageID: info.id } });
    }
  }

  const become = (status: SessionStatus): void =>
    server.apply({ type: "session-status", sessionID: ID, status });
  const asked = (call: string): number => server.journal.filter((entry) => entry.call === call).length;

  async function hear(event: ServerEvent): Promise<void> {
    turns.hear();
    turns.accept(entry, event);
    await settled();
  }

  const hearStatus = (status: SessionStatus): Promise<void> =>
    hear({ type: "session-status", sessionID: ID, status });
  const hearError = (error = BAD): Promise<void> => hear({ type: "session-error", sessionID: ID, error });
  /** A hint that says nothing about whether the session works. */
  const hearHint = (): Promise<void> => hear({ type: "message-changed", info: answer(ENDED).info });
  const hearPart = (part: Part): Promise<void> => hear({ type: "part-changed", part });

  /** Connects without anything to poll, so that the test says what is read. */
  async function connect(): Promise<void> {
    await turns.connect();
    await settled();
    for (const { turn } of registry.active()) if (turn) turn.suspicion = undefined;
    server.journal.length = 0;
    log.length = 0;
  }

  function working(): WorkingTurn {
    assert.equal(entry.turn?.kind, "working");
    return entry.turn;
  }

  const ownText = (facts: Parameters<typeof textPart>[1] = {}): Part => ({
    ...textPart("Do it.", facts),
    messageID: "msg_prompt",
  });

  /** A prompt that this process sent. */
  const sentNow = (facts: Partial<SentPrompt> = {}): SentPrompt => ({
    kind: "sent",
    prompt: { messageID: "msg_prompt", agent: "general", parts: [{ text: "Do it." }] },
    at: clock.now(),
    isDoubtful: false,
    ...facts,
  });

  const steering = (id = "msg_steering"): Message => ({
    info: { role: "user", id, sessionID: ID, created: 3_000, agent: "general" },
    parts: [
      {
        id: `prt_${id}`,
        sessionID: ID,
        messageID: id,
        type: "text",
        text: "Also the docs.",
        synthetic: false,
        metadata: { [STEERING_MARK]: true },
      },
    ],
  });

  describe("reads a turn when an event hints at its end", () => {
    const { info } = answer(ENDED);
    const cases: Readonly<Record<string, readonly [event: ServerEvent, isHint: boolean]>> = {
      idle: [{ type: "session-status", sessionID: ID, status: IDLE }, true],
      "an error": [{ type: "session-error", sessionID: ID, error: BAD }, true],
      "a complete answer": [{ type: "message-changed", info }, true],
      "not at work": [{ type: "session-status", sessionID: ID, status: BUSY }, false],
      "not at a retry": [{ type: "session-status", sessionID: ID, status: RETRY }, false],
      "not at a step that called tools": [
        { type: "message-changed", info: answer({ completed: 2_000, finish: "tools" }).info },
        false,
      ],
      "not at an answer that goes on": [{ type: "message-changed", info: answer().info }, false],
      "not at a message of a user": [{ type: "message-changed", info: prompt().info }, false],
      "not at a part": [{ type: "part-changed", part: textPart("Done.") }, false],
    };
    for (const [what, [event, isHint]] of Object.entries(cases))
      it(what, async () => {
        await connect();
        store(prompt(), answer());
        await hear(event);
        assert.equal(asked("messages"), isHint ? 1 : 0);
        assert.deepEqual(ends, []);
      });

    it("once for several hints", async () => {
      await connect();
      store(prompt(), answer());
      turns.accept(entry, { type: "session-status", sessionID: ID, status: IDLE });
      await hearError();
      assert.equal(asked("messages"), 1);
    });

    it("once more for a hint while it reads", async () => {
      await connect();
      store(prompt(), answer());
      turns.accept(entry, { type: "session-status", sessionID: ID, status: IDLE });
      await Promise.resolve();
      await hearStatus(IDLE);
      assert.equal(asked("messages"), 2);
    });

    it("not without a connection", async () => {
      store(prompt(), answer());
      await hearStatus(IDLE);
      await connect();
      turns.disconnect();
      await hearStatus(IDLE);
      assert.equal(asked("messages"), 0);
    });

    it("not of a task that has ended by then, or whose conversation is to be built again", async () => {
      await connect();
      store(prompt(), answer(ENDED, [textPart("Done.")]));
      turns.accept(entry, { type: "session-status", sessionID: ID, status: IDLE });
      entry.record = { ...entry.record, status: "cancelled" };
      await settled();
      entry.record = { ...entry.record, status: "running" };
      working().prompt = { kind: "interrupted", buildAgain: async () => undefined };
      await hearStatus(IDLE);
      assert.equal(asked("messages"), 0);
      assert.deepEqual(ends, []);
    });

    it("and drops what it read if the record has changed meanwhile", async () => {
      await connect();
      store(prompt(), answer(ENDED, [textPart("Done.")]));
      const statuses = server.statuses.bind(server);
      server.statuses = async () => {
        entry.record = { ...entry.record, description: "Another name" };
        return statuses();
      };
      await hearStatus(IDLE);
      assert.deepEqual(ends, []);
      server.statuses = statuses;
      await hearStatus(IDLE);
      assert.deepEqual(
        ends.map(({ type }) => type),
        ["turn-completed"],
      );
    });

    it("and forgets a task whose session is gone, but no other that can't be read", async () => {
      await connect();
      server.messages = () => Promise.reject(new ServerFailure("GET", "unreachable", "Gone away."));
      await hearStatus(IDLE);
      server.messages = () => Promise.reject(new Error("Broken."));
      await hearStatus(IDLE);
      assert.deepEqual(log, ["Couldn't read task s_task: Gone away.", "Couldn't read task s_task: Broken."]);
      assert.equal(registry.entry(ID), entry);
      server.messages = () => Promise.reject(new ServerFailure("GET", "not-found", "No such session.", 404));
      await hearStatus(IDLE);
      assert.equal(registry.entry(ID), undefined);
      assert.equal(log.filter((line) => line.startsWith("Couldn't read")).length, 2);
    });
  });

  describe("notes from events", () => {
    it("that the prompt is stored, with its own text", async () => {
      await connect();
      working().prompt = sentNow();
      await hearPart({ ...ownText(), messageID: "msg_other" });
      assert.equal(working().prompt.kind, "sent");
      await hearPart(ownText({ synthetic: true }));
      assert.equal(working().prompt.kind, "sent");
      await hearPart(ownText());
      assert.deepEqual(working().prompt, { kind: "stored" });
    });

    it("no prompt of a task whose conversation is to be built again", async () => {
      await connect();
      working().prompt = { kind: "interrupted", buildAgain: async () => undefined };
      await hearPart(ownText());
      assert.equal(working().prompt.kind, "interrupted");
    });

    it("that an error before the prompt was stored has ended nothing, but one after it may have", async () => {
      await connect();
      working().prompt = sentNow();
      working().lastError = BAD;
      await hearPart(ownText());
      assert.equal(working().lastError, undefined);
      working().lastError = BAD;
      await hearPart(ownText());
      assert.equal(working().lastError, BAD);
    });

    it("when it was last seen at work, and that it isn't suspicious", async () => {
      await connect();
      await clock.advance(10);
      working().suspicion = { mark: "open", since: start, restarted: false };
      await hearStatus(BUSY);
      assert.deepEqual([working().seenAtWork, working().suspicion], [start + 10, undefined]);
      await hearStatus(IDLE);
      assert.equal(working().seenAtWork, 0);
      turns.disconnect();
      working().seenAtWork = start;
      working().suspicion = { mark: "open", since: start, restarted: false };
      turns.disconnect();
      assert.deepEqual([working().seenAtWork, working().suspicion], [0, undefined]);
    });

    it("at a disconnect that a prompt may be lost, if it isn't stored", () => {
      working().prompt = sentNow();
      turns.disconnect();
      assert.deepEqual(working().prompt, sentNow({ isDoubtful: true }));
      for (const prompt of [{ kind: "stored" }, { kind: "unknown" }] as const) {
        working().prompt = prompt;
        turns.disconnect();
        assert.deepEqual(working().prompt, prompt);
      }
    });

    it("nothing of a task that has ended, or that waits for a slot", async () => {
      entry.turn = undefined;
      await hearStatus(IDLE);
      open({ queued: true });
      await hearStatus(BUSY);
      assert.equal(entry.turn?.kind, "queued");
      assert.ok(!("seenAtWork" in entry.turn));
      turns.disconnect();
      assert.ok(!("seenAtWork" in entry.turn));
    });
  });

  describe("at a connect", () => {
    it("asks nothing without active tasks", async () => {
      entry.record = { ...entry.record, status: "completed" };
      registry.forget(ID);
      await turns.connect();
      assert.deepEqual(server.journal, []);
      assert.equal(clock.pending, 0);
    });

    it("reads the progress of tasks that work, not of those that wait for a slot, and polls all", async () => {
      const other = add({ id: "ses_queued", queued: true, promptMessageID: "msg_queued" });
      become(BUSY);
      await turns.connect();
      assert.deepEqual(
        server.journal.map(({ call, sessionID }) => `${call} ${sessionID ?? ""}`.trim()),
        [`messages ${ID}`, "statuses", "messages ses_queued"],
      );
      assert.equal(other.turn?.kind, "queued");
    });

    it("counts what the turn has done, not what came before its prompt", async () => {
      const earlier = answer({ id: "msg_earlier", parentID: "msg_first" }, [
        toolPart("prt_earlier", "read", "completed"),
      ]);
      const own = answer({}, [toolPart("prt_1", "bash", "completed"), toolPart("prt_2", "grep", "running")]);
      store(prompt("msg_first"), earlier, prompt(), own);
      become(BUSY);
      let shown = 0;
      registry.onDidChange(() => shown++);
      await turns.connect();
      const { toolCalls, recentTools } = registry.get(ID)?.progress ?? assert.fail();
      assert.equal(toolCalls, 2);
      assert.deepEqual(
        recentTools.map(({ tool }) => tool),
        ["bash", "grep"],
      );
      assert.ok(shown > 0);
    });

    it("counts nothing if the prompt isn't there", async () => {
      store(prompt("msg_first"), answer({}, [toolPart("prt_earlier", "read", "completed")]));
      become(BUSY);
      await turns.connect();
      assert.equal(registry.get(ID)?.progress?.toolCalls, 0);
    });

    it("counts nothing for a turn that has ended while it was read", async () => {
      const messages = server.messages.bind(server);
      store(prompt(), answer({}, [toolPart("prt_own", "bash", "completed")]));
      const { progress } = working();
      server.messages = async (...args) => {
        entry.turn = undefined;
        return messages(...args);
      };
      await turns.connect();
      assert.equal(progress.snapshot().toolCalls, 0);
      assert.deepEqual(log, []);
    });

    it("logs that the progress can't be read", async () => {
      become(BUSY);
      server.messages = () => Promise.reject(new Error("Broken."));
      await turns.connect();
      assert.deepEqual(log, ["Couldn't read the progress of task s_task: Broken."]);
    });

    it("polls again after a second, then as the settings say", async () => {
      become(BUSY);
      await connect();
      for (const [ms, polls] of [
        [999, 0],
        [1, 1],
        [POLL_MS - 1, 1],
        [1, 2],
      ] as const) {
        await clock.advance(ms);
        assert.equal(asked("statuses"), polls);
      }
    });
  });

  describe("polls", () => {
    it("no longer once no task is active", async () => {
      become(BUSY);
      await connect();
      assert.equal(clock.pending, 1);
      registry.forget(ID);
      turns.watch();
      assert.equal(clock.pending, 0);
    });

    it("from the first task on", async () => {
      registry.forget(ID);
      await turns.connect();
      turns.watch();
      assert.equal(clock.pending, 0);
      entry = add();
      turns.watch();
      turns.watch();
      assert.equal(clock.pending, 1);
    });

    it("no task of which an event told within a minute, as long as the stream is alive", async () => {
      become(BUSY);
      await connect();
      await hearStatus(BUSY);
      for (let at = 1_000; at < 60_000; at += 1_000) {
        turns.hear();
        await clock.advance(1_000);
      }
      assert.equal(asked("statuses"), 0);
      turns.hear();
      await clock.advance(5_000);
      assert.equal(asked("statuses"), 1);
    });

    it("12 seconds after the last sign of life of the stream", async () => {
      settings = { ...settings, pollInterval: 1_000 };
      become(BUSY);
      await connect();
      await hearStatus(BUSY);
      await clock.advance(11_000);
      assert.equal(asked("statuses"), 0);
      await clock.advance(1_000);
      assert.equal(asked("statuses"), 1);
    });

    it("no task if the stream just gave a sign of life, but one whose last event is in the future", async () => {
      become(BUSY);
      clock.after(1_000, () => turns.hear());
      await connect();
      working().seenAtWork = start + 1_000;
      await clock.advance(1_000);
      assert.equal(asked("statuses"), 0);
      // The clock was set back.
      working().seenAtWork = clock.now() + 10 * POLL_MS;
      turns.hear();
      await clock.advance(POLL_MS);
      assert.equal(asked("statuses"), 1);
    });

    it("a task that waits for a slot until its prompt is stored", async () => {
      open({ queued: true });
      const { turn } = entry;
      assert.ok(turn);
      await connect();
      store(prompt());
      await clock.advance(1_000);
      assert.equal(turn.prompt.kind, "stored");
      server.journal.length = 0;
      await clock.advance(10 * POLL_MS);
      assert.deepEqual(server.journal, []);
      assert.deepEqual([sent, ends], [[], []]);
    });

    it("without harm if that fails", async () => {
      await connect();
      const { statuses } = server;
      server.statuses = () => Promise.reject(new Error("Broken."));
      await clock.advance(1_000);
      assert.deepEqual(log, ["Polling failed: Broken."]);
      assert.equal(asked("messages"), 0);
      server.statuses = statuses;
      await clock.advance(POLL_MS);
      assert.equal(asked("messages"), 1);
    });

    it("and builds a conversation again that could not be built", async () => {
      await connect();
      let built = 0;
      working().prompt = { kind: "interrupted", buildAgain: async () => void built++ };
      await clock.advance(1_000);
      assert.equal(built, 1);
      assert.equal(asked("messages"), 0);
    });

    it("and shows a retry that no newer event contradicts", async () => {
      const phase = (): string | undefined => registry.get(ID)?.progress?.phase;
      become(RETRY);
      await connect();
      assert.equal(phase(), "retrying");
      become(BUSY);
      await clock.advance(1_000);
      assert.equal(phase(), "starting");
      // An event while the status is being read.
      const statuses = server.statuses.bind(server);
      become(RETRY);
      server.statuses = async () => {
        const read = await statuses();
        working().seenAtWork = clock.now();
        return read;
      };
      await clock.advance(POLL_MS);
      assert.equal(phase(), "starting");
    });

    it("and shows that a task has stalled", async () => {
      settings = { ...settings, stallWarning: 3_000 };
      become(BUSY);
      await connect();
      await clock.advance(1_000);
      assert.notEqual(registry.get(ID)?.progress?.phase, "stalled");
      await clock.advance(POLL_MS);
      assert.equal(registry.get(ID)?.progress?.phase, "stalled");
    });

    it("and takes a task that works for no dead one", async () => {
      working().suspicion = { mark: "open", since: start, restarted: false };
      become(BUSY);
      await turns.connect();
      assert.equal(working().suspicion, undefined);
      become(IDLE);
      store(prompt(), answer());
      await clock.advance(1_000);
      assert.notEqual(working().suspicion, undefined);
      become(RETRY);
      await clock.advance(POLL_MS);
      assert.equal(working().suspicion, undefined);
    });
  });

  describe("follows a turn that was running before", () => {
    it("reads its progress, and whether it has ended", async () => {
      await connect();
      store(prompt(), answer(ENDED, [textPart("Done."), toolPart("prt_own", "bash", "completed")]));
      turns.follow(entry);
      await settled();
      assert.equal(registry.get(ID)?.progress?.toolCalls, 1);
      assert.deepEqual(
        ends.map(({ type }) => type),
        ["turn-completed"],
      );
      assert.equal(clock.pending, 1);
    });

    it("without starting a prompt that has no answer yet", async () => {
      await connect();
      store(prompt());
      for (let times = 0; times < 4; times++) {
        turns.follow(entry);
        await settled();
      }
      assert.deepEqual([sent, ends, working().suspicion], [[], [], undefined]);
    });

    it("only polls for a task that has ended", async () => {
      await connect();
      const { turn } = entry;
      entry.turn = undefined;
      turns.follow(entry);
      await settled();
      assert.deepEqual(server.journal, []);
      entry.turn = turn;
    });
  });

  describe("ends a turn", () => {
    const types = (): readonly string[] => ends.map(({ type }) => type);

    it("whose answer is complete, whatever is written meanwhile", async () => {
      await connect();
      store(prompt(), answer(ENDED, [textPart("Done.")]));
      whileAsked(1, () => store(answer({ id: "msg_more" })));
      await hearStatus(IDLE);
      assert.deepEqual(ends, [
        { type: "turn-completed", at: 2_000, finalMessageID: "msg_answer", answer: "Done." },
      ]);
    });

    it("not while its session works, or waits to ask the model again", async () => {
      await connect();
      store(prompt(), answer(ENDED, [textPart("Done.")]));
      for (const status of [BUSY, RETRY]) {
        become(status);
        await hearStatus(IDLE);
      }
      assert.deepEqual(ends, []);
      become(IDLE);
      await hearStatus(IDLE);
      assert.deepEqual(types(), ["turn-completed"]);
    });

    it("whose session is idle in so many words", async () => {
      await connect();
      store(prompt(), answer(ENDED, [textPart("Done.")]));
      server.statuses = async () => new Map([[ID, IDLE]]);
      await hearStatus(IDLE);
      await clock.advance(1_000);
      assert.deepEqual(types(), ["turn-completed", "turn-completed"]);
    });

    for (const [what, changes] of Object.entries({
      "that failed": { completed: 2_000, error: BAD },
      "that called tools": { completed: 2_000, finish: "tools" },
    } as const))
      it(`${what}, unless something is written meanwhile`, async () => {
        await connect();
        store(prompt(), answer(changes));
        whileAsked(1, () => store(answer({ ...changes, id: "msg_more" })));
        await hearStatus(IDLE);
        assert.deepEqual(ends, []);
        await hearStatus(IDLE);
        assert.deepEqual(types(), ["turn-failed"]);
      });

    it("that stands still in two polls", async () => {
      store(prompt(), answer());
      await turns.connect();
      await settled();
      await hearHint();
      await hearHint();
      assert.deepEqual(ends, []);
      await clock.advance(1_000);
      assert.deepEqual(ends, [
        { type: "turn-failed", at: clock.now(), error: INTERRUPTED, finalMessageID: undefined },
      ]);
    });

    it("not one that went on between two polls, or while it is read", async () => {
      store(prompt(), answer());
      await turns.connect();
      store(answer({}, [toolPart("prt_tool", "bash", "running")]));
      await clock.advance(1_000);
      whileAsked(2, () => store(answer({}, [toolPart("prt_tool", "bash", "completed")])));
      await clock.advance(POLL_MS);
      assert.deepEqual(ends, []);
      await clock.advance(2 * POLL_MS);
      assert.deepEqual(types(), ["turn-failed"]);
    });

    it("with an error of which only an event told", async () => {
      await connect();
      store(prompt());
      working().prompt = { kind: "stored" };
      await hearError();
      assert.deepEqual(ends, [{ type: "turn-failed", at: start, error: BAD, neverBegan: false }]);
    });

    it("with an error of which only an event told, unless something is written meanwhile", async () => {
      await connect();
      store(prompt());
      working().prompt = { kind: "stored" };
      whileAsked(1, () => store(answer()));
      await hearError();
      assert.deepEqual(ends, []);
    });

    it("as cancelled if that error says so", async () => {
      await connect();
      store(prompt());
      working().prompt = { kind: "stored" };
      await hearError({ name: "Aborted", message: "Aborted" });
      assert.deepEqual(ends, [{ type: "cancelled", at: start }]);
    });
  });

  describe("with a server that resumes turns by itself", () => {
    beforeEach(() => open({}, true));

    for (const [what, message] of Object.entries({
      "an answer that stands still": answer(),
      "a step that called tools": answer({ completed: 2_000, finish: "tools" }),
    }))
      it(`gives it ten seconds for ${what}`, async () => {
        store(prompt(), message);
        await turns.connect();
        for (let at = 0; at < 9_000; at += 1_000) {
          await clock.advance(1_000);
          await hearStatus(IDLE);
        }
        assert.deepEqual(ends, []);
        await clock.advance(1_000 + 2 * POLL_MS);
        assert.equal(ends[0]?.type, "turn-failed");
      });

    it("ends one exactly ten seconds after the connect", async () => {
      store(prompt(), answer({ completed: 2_000, finish: "tools" }));
      await turns.connect();
      await clock.advance(9_999);
      await hearStatus(IDLE);
      assert.deepEqual(ends, []);
      await clock.advance(1);
      await hearStatus(IDLE);
      assert.deepEqual(
        ends.map(({ type }) => type),
        ["turn-failed"],
      );
    });

    for (const [type, changes] of Object.entries({
      "turn-completed": ENDED,
      "turn-failed": { completed: 2_000, error: BAD },
      cancelled: { completed: 2_000, error: { name: "Aborted", message: "Aborted" } },
    } as const))
      it(`ends one at once that has ended (${type})`, async () => {
        store(prompt(), answer(changes, [textPart("Done.")]));
        await turns.connect();
        await settled();
        assert.deepEqual(
          ends.map((end) => end.type),
          [type],
        );
      });
  });

  describe("with a prompt that has no answer", () => {
    beforeEach(() => store(prompt()));

    it("starts it at the second poll, and gives up ten seconds later", async () => {
      working().prompt = { kind: "unknown" };
      await turns.connect();
      await settled();
      assert.deepEqual([working().prompt, sent], [{ kind: "stored" }, []]);
      await clock.advance(1_000);
      assert.deepEqual(sent, [{ messageID: "msg_prompt", agent: "general", model: undefined, parts: [] }]);
      assert.equal(working().waiting.total, 1_000);
      await clock.advance(POLL_MS);
      assert.deepEqual(ends, []);
      await clock.advance(POLL_MS);
      const at = start + 11_000;
      assert.deepEqual(ends, [{ type: "turn-failed", at, error: NEVER_STARTED, finalMessageID: undefined }]);
      assert.equal(sent.length, 1);
    });

    it("does not give up if it is answered meanwhile", async () => {
      await turns.connect();
      await clock.advance(1_000 + POLL_MS);
      whileAsked(2, () => store(answer()));
      await clock.advance(POLL_MS);
      assert.deepEqual(ends, []);
    });

    it("starts one that steers the task, which has worked until its last answer", async () => {
      store(answer({ completed: start + 400, finish: "end" }, [textPart("Done.")]), steering());
      await turns.connect();
      await clock.advance(1_000);
      assert.deepEqual(
        sent.map(({ messageID }) => messageID),
        ["msg_steering"],
      );
      assert.equal(working().waiting.total, 600);
      await clock.advance(2 * POLL_MS);
      assert.deepEqual(ends, [
        { type: "turn-failed", at: start + 11_000, error: NEVER_ANSWERED, finalMessageID: undefined },
      ]);
    });

    it("takes a wait that was longer for the longer one", async () => {
      working().waiting = { total: 5_000, since: undefined };
      await turns.connect();
      await clock.advance(1_000);
      assert.equal(working().waiting.total, 5_000);
    });

    it("starts nothing because of a hint", async () => {
      await turns.connect();
      await settled();
      for (let times = 0; times < 3; times++) await hearHint();
      assert.deepEqual(sent, []);
    });
  });

  describe("with a prompt that the server doesn't have", () => {
    it("gives the server 15 seconds to store it, then says that it never did", async () => {
      working().prompt = sentNow();
      settings = { ...settings, pollInterval: 1_000 };
      await turns.connect();
      await clock.advance(14_000);
      assert.equal(working().suspicion, undefined);
      await clock.advance(1_000);
      assert.deepEqual([working().suspicion?.mark, ends], ["unseen", []]);
      await clock.advance(1_000);
      const at = start + 16_000;
      assert.deepEqual(ends, [{ type: "turn-failed", at, error: NEVER_STORED, finalMessageID: undefined }]);
      assert.deepEqual(sent, []);
    });

    it("gives it a minute for one with files, even after an error about one of them", async () => {
      const file = { mime: "text/plain", url: "file:///gone" };
      const { prompt: plain } = sentNow();
      working().prompt = sentNow({ prompt: { ...plain, files: [file] } });
      settings = { ...settings, pollInterval: 1_000 };
      await connect();
      await hearError();
      await clock.advance(59_000);
      assert.deepEqual(ends, []);
      await clock.advance(1_000);
      assert.deepEqual(ends, [{ type: "turn-failed", at: start + 60_000, error: BAD, neverBegan: true }]);
    });

    it("believes an error at the next poll, a second after the hint", async () => {
      settings = { ...settings, pollInterval: 60_000 };
      await connect();
      await clock.advance(1_000);
      working().prompt = sentNow();
      server.journal.length = 0;
      await hearError();
      assert.deepEqual(ends, []);
      await clock.advance(999);
      assert.deepEqual(ends, []);
      await clock.advance(1);
      assert.deepEqual(ends, [{ type: "turn-failed", at: start + 2_000, error: BAD, neverBegan: true }]);
    });

    it("sends one again that may be lost, and counts no work until then", async () => {
      await clock.advance(2_000);
      working().prompt = sentNow({ isDoubtful: true });
      await turns.connect();
      await settled();
      assert.equal(sent.length, 1);
      assert.deepEqual(working().prompt, sentNow());
      assert.equal(working().waiting.total, 2_000);
      assert.equal(working().suspicion, undefined);
    });

    it("sends a follow-up again whose text is in the record", async () => {
      entry.record = {
        ...entry.record,
        status: "resumed",
        followUp: { text: "And?", messageID: "msg_prompt" },
      };
      await turns.connect();
      await settled();
      assert.deepEqual(
        sent.map(({ parts }) => parts.map(({ text }) => text)),
        [["And?"]],
      );
    });

    it("gives up on one that can't be sent again", async () => {
      working().prompt = sentNow({ isDoubtful: true });
      let tries = 0;
      server.prompt = () => {
        tries++;
        return Promise.reject(new ServerFailure("prompt", "unreachable", "Gone away."));
      };
      await turns.connect();
      await clock.advance(1_000 + POLL_MS);
      assert.deepEqual(ends, []);
      await clock.advance(POLL_MS);
      assert.deepEqual(ends, [
        { type: "turn-failed", at: start + 11_000, error: NEVER_STORED, finalMessageID: undefined },
      ]);
      assert.equal(tries, 4);
    });

    for (const [status, at] of [
      ["running", 11_000],
      ["resumed", 11_000],
    ] as const)
      it(`says of one that an earlier process sent, and that was ${status}, that it was lost`, async () => {
        entry.record = { ...entry.record, status };
        await turns.connect();
        await clock.advance(1_000 + POLL_MS);
        assert.deepEqual(ends, []);
        await clock.advance(POLL_MS);
        const error = promptLost(entry.record);
        assert.deepEqual(ends, [{ type: "turn-failed", at: start + at, error, neverBegan: true }]);
      });

    it("says of a follow-up that this process sent that it was lost", async () => {
      entry.record = { ...entry.record, status: "resumed" };
      working().prompt = sentNow();
      settings = { ...settings, pollInterval: 1_000 };
      await turns.connect();
      await clock.advance(16_000);
      const error = promptLost(entry.record);
      assert.deepEqual(ends, [{ type: "turn-failed", at: start + 16_000, error, neverBegan: true }]);
    });

    it("does not give up if it arrives meanwhile", async () => {
      await turns.connect();
      await clock.advance(1_000 + POLL_MS);
      whileAsked(2, () => store(prompt()));
      await clock.advance(POLL_MS);
      assert.deepEqual(ends, []);
    });
  });

  describe("dates an end that left no trace", () => {
    const at = (): number | undefined => ends[0]?.at;

    /** The server dies, which is noticed after this time, and is there again a minute and a half later. */
    async function lose(afterMs: number): Promise<void> {
      server.statuses = async () => new Map(clock.now() < start + 60_000 ? [[ID, BUSY]] : []);
      await turns.connect();
      await clock.advance(500);
      turns.hear();
      await clock.advance(afterMs);
      turns.disconnect();
      await clock.advance(90_000);
      turns.disconnect();
      await clock.advance(1_000);
      await turns.connect();
      await clock.advance(1_000);
    }

    for (const [what, created, noticedAfter, expected] of [
      ["the moment when the connection was lost", 0, 3_000, 3_500],
      ["twelve seconds after the last sign of life if it was lost later", 0, 30_000, 12_500],
      ["its last trace if that is later", 20_000, 3_000, 20_000],
    ] as const)
      it(`to ${what}`, async () => {
        store(prompt(), answer({ created: start + created }));
        await lose(noticedAfter);
        assert.equal(at(), start + expected);
      });

    it("to its start if nothing else is known, and never to the future", async () => {
      await clock.advance(50_000);
      store(prompt(), answer({ created: 5_000 }));
      await turns.connect();
      await clock.advance(1_000);
      assert.equal(at(), start);
      open();
      await clock.advance(50_000);
      store(prompt(), answer({ created: start + 900_000 }));
      await turns.connect();
      await clock.advance(1_000);
      assert.equal(at(), start + 51_000);
    });

    it("to now if the connection has been there since its start", async () => {
      store(prompt(), answer({ created: start }));
      await turns.connect();
      await clock.advance(1_000);
      assert.equal(at(), start + 1_000);
    });
  });

  describe("reads the current turn", () => {
    const current = () => currentTurn(server, entry.record);
    const long = (count: number): readonly Message[] =>
      Array.from({ length: count }, (_, at) => answer({ ...ENDED, id: `msg_${at}` }, [textPart(`${at}`)]));

    it("with one request if its prompt is in sight", async () => {
      store(prompt(), ...long(TURN_WINDOW - 1));
      assert.equal((await current()).kind, "completed");
      assert.deepEqual([asked("messages"), asked("message")], [1, 0]);
    });

    it("with one request if all messages are in sight", async () => {
      store(...long(TURN_WINDOW - 1));
      assert.equal((await current()).kind, "unseen");
      assert.deepEqual([asked("messages"), asked("message")], [1, 0]);
    });

    it("of a long turn, whose prompt is out of sight", async () => {
      store(prompt(), ...long(TURN_WINDOW));
      assert.equal((await current()).kind, "completed");
      assert.deepEqual([asked("messages"), asked("message")], [1, 1]);
    });

    it("of a long conversation without the prompt", async () => {
      store(...long(TURN_WINDOW));
      assert.deepEqual(await current(), { kind: "unseen" });
    });
  });

  /** Has something happen right after the server has answered with the statuses for the `nth` time from now. */
  function whileAsked(nth: number, happen: () => void): void {
    const statuses = server.statuses.bind(server);
    let times = 0;
    server.statuses = async () => {
      const read = await statuses();
      if (++times === nth) happen();
      return read;
    };
  }
});
