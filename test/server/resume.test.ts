import assert from "node:assert/strict";
import type { Task } from "../../src/engine/task.ts";
import {
  createSession,
  ended,
  notices,
  openWindow,
  storedMessages,
  type EngineWindow,
} from "../support/engine.ts";
import { impatient } from "../support/impatient.ts";
import { mortal, type Death } from "../support/mortal-server.ts";
import { type OpenCodeServer } from "../support/opencode.ts";
import { messageText, script, type ScriptedModel, type ScriptStep } from "../support/scripted-model.ts";
import { setUp } from "../support/set-up.ts";
import { until } from "../support/wait.ts";

describe("resuming and waiting", () => {
  let model: ScriptedModel;
  let server: OpenCodeServer;
  let window: EngineWindow;
  let parent: string;

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
      prompt: script(steps, "First question. "),
      description: "Resumable",
      agent: "general",
      parentSessionID: parent,
      launchedBy: "person",
    });

  const completed = async (): Promise<string> =>
    (await ended(window, (await launch({ text: "First answer." })).id)).id;

  it("[RES-1] a resume sends the prompt to the same session with its history, and returns at once", async () => {
    const id = await completed();
    const task = await window.engine.resume(
      id,
      script([{ text: "Second answer.", gate: "res-1" }], "Second question. "),
    );
    assert.equal(task.id, id);
    const request = await model.waitForRequest(
      ({ sessionID, step }) => sessionID === id && step.gate === "res-1",
    );
    const said = request.messages.map(messageText).join("\n");
    assert.match(said, /First question[\s\S]*First answer\.[\s\S]*Second question/);
    assert.equal(window.engine.get(id)?.status, "resumed");
    model.release("res-1");
    await ended(window, id);
  });

  it("[STA-4] [CNT-1] the status is resumed until the answer, then completed; the count increases by one", async () => {
    const id = await completed();
    const seen: string[] = [];
    const subscription = window.engine.onDidChange((change) => {
      if (change.id === id && change.after && seen.at(-1) !== change.after.status)
        seen.push(change.after.status);
    });
    const resumed = await window.engine.resume(id, script([{ text: "Again." }]));
    assert.equal(resumed.resumeCount, 1);
    await ended(window, id);
    // Changes of the previous end may still arrive while the resume begins.
    assert.deepEqual(seen.slice(seen.indexOf("resumed")), ["resumed", "completed"]);
    assert.equal((await window.engine.resume(id, script([{ text: "Once more." }]))).resumeCount, 2);
    await ended(window, id);
    subscription.dispose();
  });

  it("[CNT-1] the count increases by one with a resume", async () => {
    const id = await completed();
    assert.equal(window.engine.get(id)?.resumeCount, 0);
    assert.equal((await window.engine.resume(id, script([{ text: "Again." }]))).resumeCount, 1);
    await ended(window, id);
  });

  for (const moment of ["before", "after"] as const)
    it(`[CNT-1] [LST-1] if a window is killed ${moment} any call of a resume, the count increases by one only if the prompt arrived`, async function () {
      this.timeout(120_000);
      // One round per call of an undisturbed resume, with a death before or after it, and one more without.
      for (let call = 0, isOver = false; !isOver; call++) {
        let death: (Death & object) | undefined;
        const id = await completed();
        // Only one window may store the end.
        await until("the notice", () => window.engine.get(id)?.notice.state === "delivered");
        const first = await openWindow(server, {}, { between: (real) => (death = mortal(real)) });
        death?.arm(call, moment);
        let isResumed = false;
        first.engine.resume(id, script([{ text: "Again." }])).then(
          () => (isResumed = true),
          () => undefined,
        );
        await until("the death or the resume", () => isResumed || (death?.calls.length ?? 0) > call);
        isOver = isResumed;
        first.dispose();
        const calls = death?.calls ?? [];
        const isFatalLost = !isResumed && moment === "before";
        const isPrompted = (isFatalLost ? calls.slice(0, -1) : calls).includes("prompt");
        const second = await openWindow(server, {}, isPrompted ? {} : impatient());
        const task = await ended(second, id);
        second.dispose();
        const prompts = (await storedMessages(server, id)).filter(({ info }) => info.role === "user");
        const isLost = task.error?.name === "PromptLost";
        assert.deepEqual(
          [task.status, task.resumeCount],
          [isLost ? "error" : "completed", prompts.length - 1],
          `killed ${moment} call ${call}: ${calls.join(", ")}`,
        );
      }
    });

  it("[RES-2] the parent is notified with the full answer to a resume", async () => {
    const id = await completed();
    await until("the first notice", async () => (await notices(server, parent)).length === 1);
    await window.engine.resume(id, script([{ text: "The second answer, in full." }]));
    assert.equal((await ended(window, id)).status, "completed");
    const told = await until("the second notice", async () => {
      const all = await notices(server, parent);
      return all.length === 2 && all;
    });
    assert.ok(told[1]?.hidden.includes("The second answer, in full."));
    assert.ok(!told[1]?.hidden.includes("First answer."));
  });

  it("[RES-3] [OUT-3] a wait returns when a resume is answered", async () => {
    const id = await completed();
    await window.engine.resume(id, script([{ text: "Waited for.", gate: "res-3" }]));
    const waiting = window.engine.wait([id]);
    await model.waitForRequest(({ sessionID, step }) => sessionID === id && step.gate === "res-3");
    model.release("res-3");
    const [task] = await waiting;
    assert.equal(task?.status, "completed");
    assert.equal((await window.engine.output(id)).result, "Waited for.");
  });

  it("[OUT-4] a wait that times out returns the current state", async () => {
    const { id } = await launch({ text: "slow", gate: "out-4" });
    const [task] = await window.engine.wait([id], { timeoutMs: 50 });
    assert.equal(task?.status, "running");
    model.release("out-4");
    await ended(window, id);
  });

  it("[RES-4] a task that is not completed is not resumed: the error names its status and what to do", async () => {
    const { id } = await launch({ text: "busy", gate: "res-4" });
    await assert.rejects(
      window.engine.resume(id, "more"),
      /Only completed tasks can be resumed.*running.*wait/,
    );
    await window.engine.cancel(id);
    await assert.rejects(
      window.engine.resume(id, "more"),
      /Only completed tasks can be resumed.*cancelled.*retry/,
    );
  });

  it("[RES-5] of two concurrent resumes one succeeds, and the other says that the task is being resumed", async () => {
    const id = await completed();
    const outcomes = await Promise.allSettled([
      window.engine.resume(id, script([{ text: "One.", gate: "res-5" }])),
      window.engine.resume(id, script([{ text: "Two.", gate: "res-5" }])),
    ]);
    assert.deepEqual(outcomes.map(({ status }) => status).sort(), ["fulfilled", "rejected"]);
    const refused = outcomes.find((outcome) => outcome.status === "rejected");
    assert.match(String(refused?.reason), /currently being resumed/);
    model.release("res-5");
    assert.equal((await ended(window, id)).resumeCount, 1);
  });

  it("[RES-6] a task whose session is gone is not resumed: the error suggests a new task", async () => {
    const id = await completed();
    await server.fetch(`/session/${id}`, { method: "DELETE" });
    await assert.rejects(window.engine.resume(id, "more"), /no longer exists\. Start a new asyncagents_task/);
    await until("the end of the task", () => window.engine.get(id) === undefined);
    await assert.rejects(window.engine.resume(id, "more"), /no longer exists\. Start a new asyncagents_task/);
  });

  it("[RES-6] for a deleted task that no window remembers the error also suggests a new task", async () => {
    const id = await completed();
    const next = await openWindow(server);
    await server.fetch(`/session/${id}`, { method: "DELETE" });
    await until("the end of the task", () => next.engine.get(id) === undefined);
    next.dispose();
    const stranger = await openWindow(server);
    await assert.rejects(stranger.engine.resume(id, "more"), /[Ss]tart a new asyncagents_task/i);
    stranger.dispose();
  });

  it("an empty follow-up is refused and changes nothing", async () => {
    const id = await completed();
    await assert.rejects(window.engine.resume(id, "  "), /prompt is empty/);
    assert.equal(window.engine.get(id)?.status, "completed");
  });
});
