import assert from "node:assert/strict";
import type { AgentServer } from "../../src/engine/ports.ts";
import { isSteering } from "../../src/engine/turn.ts";
import type { Message } from "../../src/engine/server-model.ts";
import { waitingMessage, type Task } from "../../src/engine/task.ts";
import { remembered } from "../support/remembered.ts";
import {
  createSession,
  ended,
  notices,
  openWindow,
  storedMessages,
  type EngineWindow,
} from "../support/engine.ts";
import { replacing } from "../support/mortal-server.ts";
import type { OpenCodeServer } from "../support/opencode.ts";
import {
  lastUserText,
  messageText,
  script,
  type ScriptedModel,
  type ScriptStep,
} from "../support/scripted-model.ts";
import { setUp } from "../support/set-up.ts";
import { until } from "../support/wait.ts";

describe("steering and continuing", () => {
  let model: ScriptedModel;
  let server: OpenCodeServer;
  let window: EngineWindow;
  let parent: string;
  let gates = 0;

  setUp(async (start) => {
    model = await start.model();
    server = await start.server({ model });
    window = await start.engine(server);
  });

  beforeEach(async () => {
    parent = await createSession(server);
  });

  const launch = (...steps: readonly ScriptStep[]): Promise<Task> =>
    window.engine.launch({
      prompt: script(steps, "The task. "),
      description: "Steered",
      agent: "general",
      parentSessionID: parent,
      launchedBy: "agent",
    });

  /** Launches a task that is in the middle of its first step. */
  const atWork = async (step: ScriptStep, ...more: readonly ScriptStep[]) => {
    const gate = `steer-${++gates}`;
    const { id } = await launch({ ...step, gate }, ...more);
    await model.waitForRequest(({ sessionID, step }) => sessionID === id && step.gate === gate);
    return { id, release: () => model.release(gate) };
  };

  const requestsOf = (id: string) =>
    model.requests.filter(({ sessionID, title }) => sessionID === id && !title);
  const resultOf = async (id: string) => (await window.engine.output(id)).result;
  const isIdle = async (id: string) => !(await window.connection.server.statuses()).has(id);
  const noticesOf = async () => (await notices(server, parent)).length;
  const told = (count: number) =>
    until(`notice ${count}`, async () => (await noticesOf()) >= count || undefined);

  it("[STE-1] a message to a task at work is read at its next step; status and resume count do not change", async () => {
    const { id, release } = await atWork({ tools: [{ name: "glob", args: { pattern: "*.md" } }] });
    const before = window.engine.get(id);
    const task = await window.engine.steer(id, script([{ text: "As you wish." }], "Look at b.ts, too. "));
    assert.deepEqual([task.status, task.resumeCount, task.startedAt], ["running", 0, before?.startedAt]);
    release();
    const end = await ended(window, id);
    assert.deepEqual([end.status, end.resumeCount], ["completed", 0]);
    assert.equal(await resultOf(id), "As you wish.");
    const [first, second, third] = requestsOf(id);
    assert.doesNotMatch(first?.messages.map(messageText).join("\n") ?? "", /b\.ts/);
    assert.match(second?.messages.map(messageText).join("\n") ?? "", /The task[\s\S]*Look at b\.ts, too/);
    assert.equal(third, undefined);
    await told(1);
    assert.equal(await noticesOf(), 1);
  });

  it("[STE-1] a message during the last step is answered in the same turn, and the task ends after that", async () => {
    const { id, release } = await atWork({ text: "First answer." });
    await window.engine.steer(id, script([{ text: "Second answer." }], "One more thing. "));
    release();
    assert.equal((await ended(window, id)).status, "completed");
    assert.equal(await resultOf(id), "Second answer.");
    assert.equal(requestsOf(id).length, 2);
    await told(1);
    assert.equal(await noticesOf(), 1);
  });

  describe("at the moment when the turn ends", () => {
    let late: EngineWindow;
    let resume: () => void = () => undefined;
    let held: Promise<void> | undefined;

    const hold = (): void => void (held = new Promise((resolve) => (resume = resolve)));

    /** Only the late window ends tasks, and only through events: a poll would find the end that is held back. */
    const open = async (between: (real: AgentServer) => AgentServer) => {
      held = undefined;
      late = await openWindow(server, { pollInterval: 3_600_000 }, { between });
      const task = await atWork({ text: "First answer." });
      await until("the task", () => late.engine.get(task.id) !== undefined);
      window.engine.disconnect();
      return task;
    };

    const check = async (id: string, answers: readonly string[]): Promise<void> => {
      assert.equal((await ended(late, id)).status, "completed");
      assert.equal((await late.engine.output(id)).result, answers.at(-1));
      await until("rest", () => isIdle(id));
      assert.equal(requestsOf(id).length, answers.length);
      await told(1);
      assert.equal(await noticesOf(), 1);
    };

    afterEach(async () => {
      resume();
      late.dispose();
      await window.engine.connect();
    });

    it("[STE-1] a message that arrives before the end is noticed begins another step of the turn", async () => {
      const { id, release } = await open((real) =>
        replacing(real, "onEvent", (listener) =>
          real.onEvent((event) => {
            if (event.type === "session-status" || event.type === "message-changed")
              void Promise.resolve(held).then(() => listener(event));
            else listener(event);
          }),
        ),
      );
      hold();
      release();
      await until("the end of the turn", () => isIdle(id));
      await late.engine.steer(id, script([{ text: "Second answer." }], "Wait. "));
      resume();
      await check(id, ["First answer.", "Second answer."]);
    });

    it("[STE-1] a message that arrives after the end was noticed is refused", async () => {
      let isReading: () => void = () => undefined;
      const reading = new Promise<void>((resolve) => (isReading = resolve));
      const { id, release } = await open((real) =>
        replacing(real, "messages", async (...args) => {
          if (held) isReading();
          await held;
          return real.messages(...args);
        }),
      );
      hold();
      release();
      await Promise.all([reading, until("the end of the turn", () => isIdle(id))]);
      const steered = late.engine.steer(id, script([{ text: "Second answer." }], "Wait. "));
      resume();
      await assert.rejects(steered, /has completed\. Resume it/);
      await check(id, ["First answer."]);
    });
  });

  it("[STE-1] messages to a task that has ended, or not begun, are refused and change nothing", async () => {
    const { id } = await launch({ text: "Done." });
    await ended(window, id);
    await assert.rejects(window.engine.steer(id, "More."), /has completed\. Resume it/);
    const { id: cancelled } = await atWork({ text: "Never." });
    await window.engine.cancel(cancelled);
    await assert.rejects(window.engine.steer(cancelled, "More."), /status cancelled; continue it/);
    await assert.rejects(window.engine.steer(cancelled, "More.", { after: true }), /status cancelled/);
    await assert.rejects(window.engine.steer(id, " "), /prompt is empty/);
    assert.equal((await storedMessages(server, id)).filter(({ info }) => info.role === "user").length, 1);
  });

  it("[STE-1] a call of an agent that is repeated sends its message once", async () => {
    const { id, release } = await atWork({ text: "First answer." });
    const call = { sessionID: parent, callID: "msg_1/call_1" };
    const text = script([{ text: "Second answer." }], "Only once. ");
    await window.engine.steer(id, text, { call });
    await window.engine.steer(id, text, { call });
    release();
    await ended(window, id);
    await window.engine.steer(id, text, { call });
    const messages = (await storedMessages(server, id)) as unknown as readonly Message[];
    assert.equal(messages.filter(isSteering).length, 1);
  });

  it("[STE-1] cancelling a task leaves no turn for a message that was just sent", async () => {
    const { id } = await atWork({ text: "First answer." });
    await Promise.all([window.engine.steer(id, "More."), window.engine.cancel(id)]);
    assert.equal(window.engine.get(id)?.status, "cancelled");
    await until("rest", () => isIdle(id));
    assert.equal(requestsOf(id).filter(({ finished }) => finished).length, 0);
  });

  it("[STE-1] a message that waits for the end is sent as a follow-up, and both ends are told", async () => {
    const { id, release } = await atWork({ text: "First answer." });
    const waiting = await window.engine.steer(id, script([{ text: "Second answer." }], "Then this. "), {
      after: true,
    });
    assert.match(waitingMessage(waiting) ?? "", /^Then this/);
    release();
    await until("the second answer", async () => (await resultOf(id)) === "Second answer." || undefined);
    const task = await ended(window, id);
    assert.deepEqual([task.status, task.resumeCount, task.followUp], ["completed", 1, undefined]);
    assert.equal(requestsOf(id).length, 2);
    await told(2);
    assert.equal(await noticesOf(), 2);
    const [first, second] = await notices(server, parent);
    assert.doesNotMatch(first?.hidden ?? "", /tasks finished/, "It goes on with the message.");
    assert.match(second?.hidden ?? "", /tasks finished/);
  });

  it("[STE-1] a message that waits can be withdrawn, and then is not sent", async () => {
    const { id, release } = await atWork({ text: "Only answer." });
    await window.engine.steer(id, "One.", { after: true });
    await window.engine.steer(id, "Two.", { after: true });
    assert.equal(await window.engine.withdraw(id), "One.\n\nTwo.");
    await assert.rejects(window.engine.withdraw(id), /No message is waiting/);
    release();
    await ended(window, id);
    await told(1);
    assert.equal(requestsOf(id).length, 1);
    assert.equal(window.engine.get(id)?.resumeCount, 0);
  });

  it("[STE-1] withdrawing a message fails if another process has changed the task, and the message stays", async () => {
    let isDeaf = false;
    const other = await openWindow(
      server,
      {},
      {
        between: (real) =>
          replacing(real, "onEvent", (listener) => real.onEvent((event) => void (isDeaf || listener(event)))),
      },
    );
    try {
      const { id, release } = await atWork({ text: "The answer." });
      await window.engine.steer(id, "Later.", { after: true });
      await until("the message", () => waitingMessage(other.engine.get(id) ?? {}) === "Later.");
      isDeaf = true;
      await window.engine.rename(id, "Another name");
      await assert.rejects(other.engine.withdraw(id), /Another window changed this task/);
      assert.equal(waitingMessage(window.engine.get(id) ?? {}), "Later.");
      await window.engine.withdraw(id);
      release();
      await ended(window, id);
    } finally {
      other.dispose();
    }
  });

  it("[STE-1] a message that waits is sent by the engine that ends the turn, not by one that only watches", async () => {
    const asked: string[] = [];
    const watching = await openWindow(
      server,
      {},
      {
        followsOnly: true,
        between: (real) =>
          // Sending a follow-up begins with reading its session.
          replacing(real, "session", (sessionID) => {
            asked.push(sessionID);
            return real.session(sessionID);
          }),
      },
    );
    try {
      const { id, release } = await atWork({ text: "First answer." });
      await window.engine.steer(id, script([{ text: "Second answer." }], "Then this. "), { after: true });
      release();
      await until("both ends", () => {
        const task = watching.engine.get(id);
        return (task?.status === "completed" && task.resumeCount === 1) || undefined;
      });
      assert.equal(await resultOf(id), "Second answer.");
      assert.ok(!asked.includes(id));
      assert.equal(requestsOf(id).length, 2);
    } finally {
      watching.dispose();
    }
  });

  it("[STE-1] a message that waits survives the end of the process that took it", async () => {
    const store = remembered();
    const first = await openWindow(server, {}, { tombstones: store });
    const { id, release } = await atWork({ text: "First answer." });
    await until("the task", () => first.engine.get(id) !== undefined);
    window.engine.disconnect();
    try {
      await first.engine.steer(id, script([{ text: "Second answer." }], "Then this. "), { after: true });
      first.dispose();
      release();
      await until("the end of the turn", () => isIdle(id));
      const second = await openWindow(server, {}, { tombstones: store });
      try {
        await until("the follow-up", () => second.engine.get(id)?.resumeCount === 1 || undefined);
        assert.equal((await ended(second, id)).status, "completed");
        assert.equal((await second.engine.output(id)).result, "Second answer.");
        assert.equal(requestsOf(id).length, 2);
      } finally {
        second.dispose();
      }
    } finally {
      await window.engine.connect();
    }
  });

  for (const end of ["failed", "cancelled"] as const)
    it(`[STE-2] a ${end} task is continued from its whole conversation in one step, and both are linked`, async () => {
      const steps: readonly ScriptStep[] = [
        { tools: [{ name: "glob", args: { pattern: "*.md" } }] },
        end === "failed"
          ? { status: 400, body: { error: { message: "No." } } }
          : { text: "Half a sentence", gate: "never", gateAfterText: true },
      ];
      const { id } = await launch(...steps);
      if (end === "cancelled") {
        await model.waitForRequest(({ sessionID, step }) => sessionID === id && step.gate === "never");
        await window.engine.cancel(id);
      }
      const old = await ended(window, id);
      assert.equal(old.status, end === "failed" ? "error" : "cancelled");
      const next = await window.engine.continue(id, script([{ text: "The rest." }], "Carry on. "));
      assert.notEqual(next.id, id);
      assert.deepEqual(
        [next.insteadOf, next.description, next.batchID, next.parentSessionID, next.isForked],
        [id, old.description, old.batchID, parent, true],
      );
      const done = await ended(window, next.id);
      assert.equal(done.status, "completed", JSON.stringify(done.error));
      assert.equal(await resultOf(next.id), "The rest.");
      const said = requestsOf(next.id)[0]?.messages.map(messageText).join("\n") ?? "";
      assert.match(said, /The task[\s\S]*your own work, which stopped[\s\S]*Carry on/);
      assert.ok(requestsOf(next.id)[0]?.messages.some(({ role }) => role === "tool"));
    });

  it("[STE-2] a task is continued with its waiting message and the prompt, or a plain request", async () => {
    const cancelled = async (after?: string): Promise<string> => {
      const { id } = await atWork({ text: "Never." });
      if (after !== undefined) await window.engine.steer(id, after, { after: true });
      await window.engine.cancel(id);
      return id;
    };
    const asked = async (id: string, prompt?: string): Promise<string> => {
      // The script of the old prompt is inherited, with its gate.
      model.release(`steer-${gates}`);
      const [next, same] = await Promise.all([
        window.engine.continue(id, prompt),
        window.engine.continue(id, prompt),
      ]);
      assert.equal(same.id, next.id);
      const request = await model.waitForRequest(({ sessionID }) => sessionID === next.id);
      await ended(window, next.id);
      return lastUserText(request.messages);
    };
    assert.match(await asked(await cancelled()), /Continue where you left off\./);
    const waited = await cancelled("And then this.");
    assert.match(await asked(waited), /And then this\./);
    assert.equal(window.engine.get(waited)?.followUp, undefined, "It is sent once.");
    assert.match(
      await asked(await cancelled("And then this."), "And that."),
      /And then this\.\n\nAnd that\./,
    );
    const { id } = await launch({ text: "Done." });
    await ended(window, id);
    await assert.rejects(window.engine.continue(id), /Only failed or cancelled tasks/);
  });

  it("[STE-2] a retry is linked to the task that it retries", async () => {
    const { id } = await atWork({ text: "Never." });
    await window.engine.cancel(id);
    const next = await window.engine.retry(id);
    assert.deepEqual([next.insteadOf, next.isForked], [id, false]);
    await window.engine.cancel(next.id);
  });
});
