import assert from "node:assert/strict";
import { shortID, type Task } from "../../../src/engine/task.ts";
import { RECORD_KEY } from "../../../src/opencode/record-codec.ts";
import { hold } from "../../support/hold.ts";
import { ManualClock, settled } from "../../support/manual-clock.ts";
import { MemoryServer, type Ending } from "../../support/memory-server.ts";
import { promptText } from "../../support/engine.ts";
import { until } from "../../support/wait.ts";
import { type MemoryWindow, openWindow, POLL_MS } from "../../support/memory-window.ts";
import { answer } from "./builders.ts";

describe("Adoption", () => {
  let clock: ManualClock;
  let server: MemoryServer;
  let window: MemoryWindow;
  let parent: string;
  let made = 0;

  beforeEach(async () => {
    clock = new ManualClock();
    server = new MemoryServer({ now: () => clock.now() });
    parent = await session("Parent");
    window = await openWindow(server, clock);
  });

  afterEach(() => window.kill());

  const session = async (title: string, parentID?: string): Promise<string> =>
    (await server.createSession({ title, parentID, agent: "general" })).id;

  const ask = (id: string, text = "Look."): Promise<void> =>
    server.prompt(id, { messageID: `msg_adopted${++made}`, agent: "general", parts: [{ text }] });

  /** A running subagent that the window knows. */
  async function working(): Promise<string> {
    const id = await session("Look", parent);
    await ask(id);
    return id;
  }

  const writes = (): number => server.journal.filter(({ call }) => call === "saveRecord").length;
  const adopt = (id: string): Promise<Task> => window.engine.adopt(id);

  it("takes over what is known of the running turn: its calls, its phase, and when it began", async () => {
    const id = await working();
    server.useTool(id, "read");
    server.finish(id, "First.");
    await clock.advance(1_000);
    await ask(id, "Once more.");
    const began = clock.now();
    server.useTool(id, "grep");
    server.write(id, "So far");
    await clock.advance(1_000);
    const task = await adopt(id);
    assert.deepEqual(
      [task.status, task.startedAt, task.adoptedAt, task.toolCalls, task.description],
      ["running", began, clock.now(), 1, "Look"],
    );
    assert.deepEqual(task.progress?.toolCounts, { grep: 1 });
    assert.equal(task.progress?.phase, "streaming");
    server.finish(id, "Found.");
    await settled();
    assert.deepEqual([window.engine.get(id)?.status, window.engine.get(id)?.toolCalls], ["completed", 2]);
    assert.equal(await promptText(server, window.engine.get(id)), "Once more.");
  });

  for (const [how, ending, status, error] of [
    ["an answer", { type: "completed", text: "Found." }, "completed", undefined],
    ["an error", { type: "failed", error: { name: "APIError", message: "No key." } }, "error", "APIError"],
    ["an abort", { type: "aborted" }, "cancelled", undefined],
    ["a permission turned down", { type: "refused" }, "error", "PermissionRejected"],
  ] as const satisfies readonly (readonly [string, Ending, Task["status"], string | undefined])[])
    it(`of a subagent that is idle after ${how} gives a task that is ${status}, without a notice`, async () => {
      const id = await working();
      if (ending.type === "refused") server.ask(id);
      const ended = clock.now();
      server.end(id, ending);
      await clock.advance(60_000);
      const task = await adopt(id);
      assert.deepEqual([task.status, task.error?.name, task.endedAt], [status, error, ended]);
      assert.equal(task.notice.state, "skipped");
      await settled();
      assert.equal(server.stored(parent).length, 0);
    });

  it("of a subagent that was interrupted with its server gives a failed task with the reason", async () => {
    const id = await working();
    server.write(id, "So far");
    server.crash();
    await window.engine.connect();
    const task = await adopt(id);
    assert.deepEqual([task.status, task.error?.name], ["error", "Interrupted"]);
  });

  it("of a subagent whose conversation was compacted keeps the user's request as its prompt", async () => {
    const id = await working();
    server.overflow(id);
    server.finish(id, "Summary.");
    server.finish(id, "Found.");
    const task = await adopt(id);
    assert.equal(task.status, "completed");
    assert.equal(await promptText(server, window.engine.get(id)), "Look.");
  });

  it("notifies a parent whose server died, even if the call that waited there stays open", async () => {
    await ask(parent);
    server.begin(parent);
    const messageID = server.stored(parent).at(-1)?.info.id ?? "";
    const id = await working();
    server.begin(id);
    const state = { status: "running", input: {}, start: clock.now(), metadata: {} } as const;
    server.apply({
      type: "part-changed",
      part: {
        type: "tool",
        id: "prt_call",
        sessionID: parent,
        messageID,
        callID: "call",
        tool: "task",
        subagent: { sessionID: id },
        state,
      },
    });
    await adopt(id);
    window.engine.disconnect();
    server.crash();
    await window.engine.connect();
    await clock.advance(2 * POLL_MS);
    assert.equal(window.engine.get(id)?.error?.name, "Interrupted");
    assert.equal(window.engine.get(id)?.notice.state, "delivered");
  });

  it("tells nothing to a parent whose call returned the result, however much it has done since", async () => {
    await ask(parent);
    server.begin(parent);
    const messageID = server.stored(parent).at(-1)?.info.id ?? "";
    const start = clock.now();
    const id = await working();
    const call = {
      type: "tool",
      id: "prt_call",
      sessionID: parent,
      messageID,
      callID: "call",
      tool: "task",
      subagent: { sessionID: id },
    } as const;
    const running = { status: "running", input: {}, start, metadata: {} } as const;
    server.apply({ type: "part-changed", part: { ...call, state: running } });
    await adopt(id);
    window.engine.disconnect();
    window.link.drop();
    await clock.advance(1_000);
    server.finish(id, "Found.");
    await clock.advance(1_000);
    const completed = {
      ...running,
      status: "completed",
      end: clock.now(),
      output: "Found.",
      title: "",
    } as const;
    server.apply({ type: "part-changed", part: { ...call, state: completed } });
    server.finish(parent, "It was found.");
    for (let turn = 0; turn < 12; turn++) {
      await clock.advance(1_000);
      await ask(parent, "Go on.");
      server.finish(parent, "Done.");
    }
    const count = server.stored(parent).length;
    await window.engine.connect();
    await clock.advance(2 * POLL_MS);
    assert.equal(window.engine.get(id)?.status, "completed");
    assert.equal(window.engine.get(id)?.notice.state, "skipped");
    assert.equal(server.stored(parent).length, count);
  });

  it("finds the end of a turn that ended while the record was written", async () => {
    const id = await working();
    // The calls before this one: statuses, messages.
    window.link.fail("late", 2);
    const adopting = adopt(id);
    await until("the reading before it", () => server.journal.at(-1)?.call === "messages");
    await settled();
    server.finish(id, "Found.");
    window.link.release();
    assert.equal((await adopting).status, "running");
    await settled();
    assert.equal(window.engine.get(id)?.status, "completed");
  });

  it("writes once if requested twice at once, and again later", async () => {
    const id = await working();
    const [one, other] = await Promise.all([adopt(id), adopt(id)]);
    assert.equal(one.batchID, other.batchID);
    assert.equal((await adopt(id)).revision, 1);
    assert.equal(writes(), 1);
  });

  it("by another process is followed here, with the running turn and its open request", async () => {
    const reader = await openWindow(server, clock, {}, 2);
    const id = await working();
    server.useTool(id, "grep");
    const request = server.ask(id);
    await adopt(id);
    const seen = reader.engine.get(id);
    assert.deepEqual(seen?.progress?.toolCounts, { grep: 1, bash: 1 });
    assert.equal(seen.progress?.phase, "needs-permission");
    assert.deepEqual(
      reader.engine.openRequests().map((open) => open.request.id),
      [request.id],
    );
    reader.kill();
  });

  it("that the server refused leaves the subagent unchanged", async () => {
    const id = await working();
    window.link.fail("refused", 2);
    await assert.rejects(adopt(id));
    assert.equal(window.engine.child(id)?.launchedBy, "other");
    assert.equal(server.metadata(id), undefined);
    assert.equal((await adopt(id)).status, "running");
  });

  it("is refused for a session without a prompt, a root and an unknown session; nothing is written", async () => {
    const empty = await session("Empty", parent);
    await assert.rejects(adopt(empty), {
      code: "wrong-status",
      message: `Subagent ${shortID(empty)} has no prompt yet. Adopt it when it is running.`,
    });
    await assert.rejects(adopt(parent), {
      code: "unknown-session",
      message: `Can't adopt session ${shortID(parent)} because it has no parent session. Only subagents can be adopted.`,
    });
    const unknown = (id: string) => ({
      code: "unknown-session",
      message: new RegExp(`^(?!Can't adopt).*${shortID(id)}`),
    });
    await assert.rejects(adopt("ses_none"), unknown("ses_none"));
    assert.equal(writes(), 0);
    const gone = await working();
    server.saveRecord = async () => undefined;
    await assert.rejects(adopt(gone), unknown(gone));
  });

  it("is refused for a session whose record can't be read, with the reason", async () => {
    const id = await working();
    const known = server.known().find((one) => one.id === id) ?? assert.fail();
    server.put(known, { [RECORD_KEY]: { version: 99 } });
    await settled();
    await assert.rejects(adopt(id), {
      code: "unavailable",
      message: new RegExp(`^Can't adopt session ${shortID(id)} because it already has a task record\\. .+`),
    });
    assert.equal(writes(), 0);
  });

  it("takes agent and model from the session, or else from its prompt", async () => {
    const [ofSession, ofPrompt] = [
      { providerID: "acme", modelID: "small" },
      { providerID: "acme", modelID: "large" },
    ];
    for (const [given, expected] of [
      [{ agent: "helper", model: ofSession }, ["helper", ofSession]],
      [{}, ["general", ofPrompt]],
    ] as const) {
      const { id } = await server.createSession({ title: "Look", parentID: parent, ...given });
      const parts = [{ text: "Look." }];
      await server.prompt(id, { messageID: `msg_of${id}`, agent: "general", model: ofPrompt, parts });
      const { agent, model, batchID, isForked } = await adopt(id);
      assert.deepEqual([agent, model, isForked], [...expected, false]);
      assert.match(batchID, /^bat_/);
    }
  });

  it("of an idle subagent counts the time of its last turn, and says why nobody is told", async () => {
    const id = await working();
    await clock.advance(5_000);
    server.finish(id, "Found.");
    await clock.advance(60_000);
    const { worked, notice } = await adopt(id);
    assert.deepEqual(
      [worked, notice],
      [5_000, { state: "skipped", reason: "It had ended before it was adopted." }],
    );
  });

  it("of an idle subagent that is asked again while its conversation is read follows that turn", async () => {
    const id = await working();
    server.finish(id, "Found.");
    const release = hold(server, "messages", id);
    const adopting = adopt(id);
    await settled();
    await ask(id, "Once more.");
    server.begin(id);
    release();
    assert.equal((await adopting).status, "running");
    await settled();
    assert.ok(server.journal.every(({ call }) => call !== "abort"));
    server.finish(id, "Found more.");
    await clock.advance(POLL_MS);
    assert.equal(window.engine.get(id)?.status, "completed");
  });

  it("shows no request of a turn before that was aborted, also after the next connect", async () => {
    const id = await working();
    server.begin(id);
    const asked = server.ask(id);
    const pending = server.pendingRequests.bind(server);
    server.pendingRequests = async () => {
      const listed = await pending();
      return listed.some((one) => one.id === asked.id) ? listed : [asked, ...listed];
    };
    await server.abort(id);
    await clock.advance(1_000);
    await ask(id, "Once more.");
    server.begin(id);
    await settled();
    await adopt(id);
    await window.engine.connect();
    await settled();
    assert.deepEqual(window.engine.openRequests(), []);
    assert.notEqual(window.engine.get(id)?.progress?.phase, "needs-permission");
  });

  it("of a subagent that left no end gives a failed task, which ended when it was last updated", async () => {
    const start = clock.now();
    const ask = async (id: string, synthetic = false): Promise<void> =>
      server.prompt(id, {
        ...{ messageID: `msg_of${id}`, agent: "general", noReply: true },
        parts: [{ text: "Look.", synthetic }],
      });
    const [unanswered, unseen, open] = [
      await session("Look", parent),
      await session("Look", parent),
      await session("Look", parent),
    ];
    await clock.advance(1_000);
    await ask(unanswered);
    await ask(unseen, true);
    await ask(open);
    const { info } = answer({ id: "msg_open", sessionID: open, parentID: `msg_of${open}` });
    server.apply({ type: "message-changed", info });
    await clock.advance(1_000);
    const known = server.known().find((one) => one.id === open) ?? assert.fail();
    server.put({ ...known, updated: clock.now() }, undefined);
    await clock.advance(3 * 24 * 3_600_000);
    for (const [id, worked] of [
      [unanswered, 0],
      [unseen, 0],
      [open, 1_000],
    ] as const) {
      const task = await adopt(id);
      assert.deepEqual([task.status, task.error?.name, task.worked], ["error", "Interrupted", worked]);
      assert.equal(task.endedAt, start + 1_000 + worked);
    }
  });

  it("comes before a resume; a running subagent is not resumed, and stays a subagent", async () => {
    const id = await working();
    await assert.rejects(window.engine.resume(id, "More."), { code: "wrong-status" });
    assert.equal(window.engine.child(id)?.launchedBy, "other");
    server.finish(id, "Found.");
    const resumed = await window.engine.resume(id, "More.");
    assert.deepEqual([resumed.status, resumed.resumeCount], ["resumed", 1]);
    server.finish(id, "Done.");
    await clock.advance(POLL_MS);
    assert.equal(window.engine.get(id)?.status, "completed");
    assert.equal(await window.engine.lastAnswer(id), "Done.");
  });
});
