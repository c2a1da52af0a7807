import assert from "node:assert/strict";
import type { LaunchInput } from "../../src/engine/launcher.ts";
import {
  createSession,
  ended,
  notices,
  storedMessages,
  type EngineWindow,
  type EngineWindowOptions,
} from "../support/engine.ts";
import type { TaskMemoryStore } from "../../src/engine/ports.ts";
import { mortal, replacing, withoutEndEvents, type Death } from "../support/mortal-server.ts";
import { remembered } from "../support/remembered.ts";
import { type OpenCodeServer } from "../support/opencode.ts";
import { messageText, script, type ScriptedModel, type ScriptStep } from "../support/scripted-model.ts";
import { setUp } from "../support/set-up.ts";
import { until } from "../support/wait.ts";

describe("notices to the parent", () => {
  let model: ScriptedModel;
  let server: OpenCodeServer;
  let parent: string;

  const openEngine = setUp(async (start) => {
    model = await start.model();
    server = await start.server({ model });
  });

  beforeEach(async () => {
    parent = await createSession(server);
  });

  const open = (between?: EngineWindowOptions["between"], memory?: TaskMemoryStore): Promise<EngineWindow> =>
    openEngine(server, {}, { between, tombstones: memory });

  async function launch(
    window: EngineWindow,
    step: ScriptStep,
    launchedBy: LaunchInput["launchedBy"] = "person",
    agent = "general",
  ): Promise<string> {
    const input = {
      prompt: script([step]),
      description: "Told",
      agent,
      parentSessionID: parent,
      launchedBy,
    };
    return (await window.engine.launch(input)).id;
  }

  async function say(text: string, agent: string, model: string): Promise<void> {
    await server.fetch(`/session/${parent}/prompt_async`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        agent,
        model: { providerID: "fake", modelID: model },
        parts: [{ type: "text", text }],
      }),
    });
  }

  async function statuses(): Promise<Record<string, unknown>> {
    return (await (await server.fetch("/session/status")).json()) as Record<string, unknown>;
  }

  const delivered = (window: EngineWindow, id: string): Promise<unknown> =>
    until("the delivery", () => window.engine.get(id)?.notice.state === "delivered");

  it("wait while the user has undone something, which they would remove for good", async () => {
    const window = await open();
    const messages = async (): Promise<number> => (await storedMessages(server, parent)).length;
    for (const [index, text] of ["Keep this.", "Undo this."].entries()) {
      await say(script([{ text }]), "build", "m");
      await until("the answer", async () => (await messages()) === 2 * (index + 1));
      await until("the end of the turn", async () => !(parent in (await statuses())));
    }
    const undone = (await storedMessages(server, parent))[2]?.info.id;
    const post = (path: string, body: object): Promise<Response> =>
      server.fetch(`/session/${parent}/${path}`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      });
    await post("revert", { messageID: undone });
    await until("the undo", () => window.engine.session(parent)?.undoneFrom !== undefined);
    const id = await launch(window, { text: "Done." });
    await ended(window, id);
    const state = (): string | undefined => window.engine.get(id)?.notice.state;
    assert.equal(state(), "pending");
    await post("unrevert", {});
    await until("the notice", () => state() === "delivered");
    assert.equal(await messages(), 5);
  });

  it("[HNT-1] [HNT-2] the hint says how to go on while others are running, and how many finished otherwise", async () => {
    const window = await open();
    const slow = await launch(window, { text: "slow", gate: "hints" });
    const quick = await launch(window, { text: "quick" });
    await ended(window, quick);
    await delivered(window, quick);
    model.release("hints");
    await ended(window, slow);
    await delivered(window, slow);
    const [first, second] = await notices(server, parent);
    const hint = [
      `If you need results immediately, use asyncagents_output(task_id="${quick.slice(-6)}").`,
      "You can continue working or just say 'waiting' and halt.",
      "WATCH OUT for leftovers, you will likely WANT to wait for all agents to complete.",
    ];
    for (const line of hint) assert.ok(first?.hidden.includes(line), line);
    assert.match(first?.line ?? "", /\(1 of 2 done\)/);
    assert.ok(second?.hidden.includes("All 2 tasks finished."));
    assert.ok(second?.hidden.includes("Use asyncagents_output tools to see agent responses."));
    assert.ok(!second?.hidden.includes("WATCH OUT"));
  });

  it("a task that the notice of its subtask wakes runs again, and its parent gets the new answer", async () => {
    const window = await openEngine(server, { maxDepth: 2 });
    const above = await launch(window, { text: "I'm waiting." }, "agent");
    const { id: below } = await window.engine.launch({
      prompt: script([{ text: "In the cart.", gate: "subtask" }]),
      agent: "general",
      parentSessionID: above,
      launchedBy: "agent",
    });
    await ended(window, above);
    await delivered(window, above);
    model.release("subtask");
    await ended(window, below);
    await until("the second end", () => {
      const task = window.engine.get(above);
      return task?.resumeCount === 1 && task.status === "completed" && task.notice.state === "delivered";
    });
    const { result } = await window.engine.output(above);
    assert.notEqual(result, "I'm waiting.");
    const [first, second, ...others] = await notices(server, parent);
    assert.match(first?.hidden ?? "", /I'm waiting\./);
    assert.ok(result && second?.hidden.includes(result));
    assert.equal(others.length, 0);
  });

  it("a task that an agent launched wakes its parent, which answers once and keeps its agent and model", async () => {
    const window = await open();
    await say("Hello", "plan", "m2");
    await until("the parent's answer", async () => (await storedMessages(server, parent)).length >= 2);
    await until("an idle parent", async () => !(parent in (await statuses())));
    const asked = (): number =>
      model.requests.filter(({ sessionID, title }) => sessionID === parent && !title).length;
    const before = asked();
    // The agent plan may launch this one.
    const id = await launch(window, { text: "The result." }, "agent", "explore");
    await ended(window, id);
    const answer = await model.waitForRequest(
      ({ sessionID, messages }) => sessionID === parent && /The result\./.test(messageText(messages.at(-1))),
    );
    assert.equal(answer.model, "m2");
    await until("an idle parent", async () => !(parent in (await statuses())));
    assert.equal(asked(), before + 1);
    const session = (await (await server.fetch(`/session/${parent}`)).json()) as {
      agent: string;
      model: { id: string };
    };
    assert.equal(session.agent, "plan");
    assert.equal(session.model.id, "m2");
  });

  it("a busy parent gets the notice of a user's task only once it is idle, and need not answer", async () => {
    const window = await open();
    await say(script([{ text: "busy", gate: "parent-busy" }]), "build", "m");
    await model.waitForRequest(({ step }) => step.gate === "parent-busy");
    const id = await launch(window, { text: "done meanwhile" });
    await ended(window, id);
    await until("the pending notice", () => window.engine.get(id)?.notice.state === "pending");
    assert.deepEqual(await notices(server, parent), []);
    model.release("parent-busy");
    await delivered(window, id);
    assert.equal((await notices(server, parent)).length, 1);
    await until("an idle parent", async () => !(parent in (await statuses())));
    assert.equal(model.requests.filter(({ sessionID, title }) => sessionID === parent && !title).length, 1);
  });

  it("an aborted parent is notified as well", async () => {
    const window = await open();
    await say(script([{ text: "busy", gate: "parent-aborted", gateAfterText: true }]), "build", "m");
    await model.waitForRequest(({ step }) => step.gate === "parent-aborted");
    const id = await launch(window, { text: "after the abort" });
    await ended(window, id);
    await server.fetch(`/session/${parent}/abort`, { method: "POST" });
    await delivered(window, id);
    assert.equal((await notices(server, parent)).length, 1);
  });

  it("a user's cancel is notified, an agent's own is not", async () => {
    const window = await open();
    const byPerson = await launch(window, { text: "x", gate: "never", gateAfterText: true });
    await window.engine.cancel(byPerson);
    await delivered(window, byPerson);
    const byAgent = await launch(window, { text: "x", gate: "never", gateAfterText: true }, "agent");
    const cancelled = await window.engine.cancel(byAgent, "agent");
    assert.equal(cancelled.notice.state, "skipped");
    const told = await notices(server, parent);
    assert.deepEqual(told.length, 1);
    assert.match(told[0]?.line ?? "", /was cancelled/);
  });

  it("twenty tasks that end at the same time send twenty notices, one each", async function () {
    this.timeout(240_000);
    const window = await open();
    const ids = await Promise.all(
      Array.from({ length: 20 }, (_, i) => launch(window, { text: `Result ${i}.`, gate: "twenty" }, "agent")),
    );
    const areAllAsked = (): boolean =>
      ids.every((id) => model.requests.some(({ sessionID }) => sessionID === id));
    await until("twenty requests", areAllAsked, 120_000);
    model.release("twenty");
    for (const id of ids) await ended(window, id, 60_000);
    for (const id of ids) await delivered(window, id);
    const told = await notices(server, parent);
    assert.equal(told.length, 20);
    for (let i = 0; i < 20; i++)
      assert.equal(told.filter(({ hidden }) => hidden.includes(`Result ${i}.`)).length, 1);
    assert.equal(told.filter(({ hidden }) => hidden.includes("All 20 tasks finished.")).length >= 1, true);
  });

  it("a task whose parent session is deleted stops", async () => {
    const window = await open();
    const id = await launch(window, { text: "x", gate: "gone", gateAfterText: true });
    const request = await model.waitForRequest(({ sessionID }) => sessionID === id);
    await server.fetch(`/session/${parent}`, { method: "DELETE" });
    await until("the end of the task", () => window.engine.get(id) === undefined);
    await until("the end of the model's stream", () => request.aborted);
    assert.ok(!window.log.some((line) => line.startsWith("error")), window.log.join("\n"));
  });

  it("a task whose session is deleted ends in an error that says so, and its parent is notified once", async () => {
    const memory = remembered();
    const window = await open(undefined, memory);
    const id = await launch(window, { text: "x", gate: "deleted", gateAfterText: true });
    const request = await model.waitForRequest(({ sessionID }) => sessionID === id);
    const errors: (string | undefined)[] = [];
    window.engine.onDidChange((change) => {
      if (change.id === id && change.after?.status === "error") errors.push(change.after.error?.message);
    });
    await server.fetch(`/session/${id}`, { method: "DELETE" });
    const [told] = await until("the notice", async () => {
      const all = await notices(server, parent);
      return all.length > 0 && all;
    });
    assert.match(told?.line ?? "", /"Told" failed/);
    assert.match(told?.hidden ?? "", /The session of the task was deleted\./);
    assert.match(errors[0] ?? "", /^The session of the task was deleted\./);
    assert.equal(window.engine.get(id), undefined);
    await until("the end of the model's stream", () => request.aborted);
    await until("the delivery", () => memory.loadUnsettled().length === 0);
    window.dispose();
    await open(undefined, memory);
    assert.equal((await notices(server, parent)).length, 1);
  });

  for (const moment of ["before", "after"] as const)
    it(`the parent of a task whose session was deleted while no window was open is notified once, even if the connection breaks ${moment} the notice is sent`, async () => {
      const memory = remembered();
      const first = await open(undefined, memory);
      const id = await launch(first, { text: "x", gate: "deleted-unwatched", gateAfterText: true }, "agent");
      await model.waitForRequest(({ sessionID }) => sessionID === id);
      first.dispose();
      await server.fetch(`/session/${id}`, { method: "DELETE" });
      await server.fetch(`/session/${id}/abort`, { method: "POST" });
      let isBroken = false;
      const dying = await open(
        (real) =>
          replacing(real, "prompt", async (...prompt) => {
            if (moment === "after") await real.prompt(...prompt);
            isBroken = true;
            throw new Error("The connection broke.");
          }),
        memory,
      );
      await until("the break", () => isBroken);
      dying.dispose();
      const last = await open(undefined, memory);
      await until("the delivery", () => memory.loadUnsettled().length === 0);
      const told = await notices(server, parent);
      assert.equal(told.length, 1);
      assert.match(told[0]?.hidden ?? "", /The session of the task was deleted\./);
      await assert.rejects(
        async () => last.engine.find(id),
        /no longer exists\. Start a new asyncagents_task/,
      );
    });

  it("[EVT-2] an end without an event is found by polling, and the parent is notified", async () => {
    const window = await open((real) => withoutEndEvents(real));
    const id = await launch(window, { text: "Found by polling." });
    await ended(window, id);
    await delivered(window, id);
    const told = await notices(server, parent);
    assert.equal(told.length, 1);
    assert.ok(told[0]?.hidden.includes("Found by polling."));
  });

  it("a notice that could not be sent says why, and is sent at the next connect", async () => {
    let isRefusing = true;
    const window = await open((real) =>
      replacing(real, "prompt", (sessionID, prompt) =>
        isRefusing && sessionID === parent
          ? Promise.reject(new Error("The disk is full."))
          : real.prompt(sessionID, prompt),
      ),
    );
    const id = await launch(window, { text: "Late." });
    await ended(window, id);
    const task = await until("a failed attempt", () => {
      const now = window.engine.get(id);
      return now?.notice.state === "pending" && now.notice.attempts > 0 ? now : undefined;
    });
    assert.ok(task.notice.state === "pending" && task.notice.lastError === "The disk is full.");
    assert.deepEqual(await notices(server, parent), []);
    isRefusing = false;
    await window.engine.connect();
    assert.equal(window.engine.get(id)?.notice.state, "delivered");
    assert.equal((await notices(server, parent)).length, 1);
  });

  it("a notice whose delivery was not recorded is not sent again after a later turn, which would cost a model call", async () => {
    const window = await open((real) =>
      replacing(real, "saveRecord", (record) =>
        record.notice.state === "delivered"
          ? Promise.reject(new Error("The disk is full."))
          : real.saveRecord(record),
      ),
    );
    const asked = (): number =>
      model.requests.filter(({ sessionID, title }) => sessionID === parent && !title).length;
    const id = await launch(window, { text: "Once." }, "agent");
    await ended(window, id);
    await until("the parent's answer", () => asked() === 1);
    await until("an idle parent", async () => !(parent in (await statuses())));
    await say("Something else", "build", "m");
    await until("the later answer", () => asked() === 2);
    await until("an idle parent", async () => !(parent in (await statuses())));
    window.dispose();
    const next = await open();
    await delivered(next, id);
    await until("an idle parent", async () => !(parent in (await statuses())));
    assert.equal(asked(), 2);
    assert.equal((await notices(server, parent)).length, 1);
  });

  for (const [moment, launchedBy] of [
    ["before", "agent"],
    ["after", "person"],
  ] as const)
    it(`if a window is killed ${moment} any call between idle and delivery, the next window notifies once (task launched by ${launchedBy})`, async function () {
      this.timeout(120_000);
      // One round per call of an undisturbed end, with a death before or after it, and one more without.
      for (let call = 0, last = false; !last; call++) {
        parent = await createSession(server);
        let death: (Death & object) | undefined;
        const first = await open((real) => (death = mortal(real)));
        const gate = `kill-${moment}-${launchedBy}-${call}`;
        const id = await launch(first, { text: `Result of ${gate}.`, gate }, launchedBy);
        await model.waitForRequest(({ sessionID }) => sessionID === id);
        death?.arm(call, moment);
        model.release(gate);
        await until("the death or the delivery", () => {
          last = first.engine.get(id)?.notice.state === "delivered";
          return last || (death?.calls.length ?? 0) > call;
        });
        first.dispose();
        const second = await open();
        await ended(second, id);
        await delivered(second, id);
        if (launchedBy === "agent")
          await model.waitForRequest(({ sessionID, title }) => sessionID === parent && !title);
        await until("an idle server", async () => Object.keys(await statuses()).length === 0);
        const told = await notices(server, parent);
        assert.equal(told.length, 1, `killed ${moment} call ${call}: ${death?.calls.join(", ")}`);
        assert.ok(told[0]?.hidden.includes(`Result of ${gate}.`));
        assert.equal(second.engine.get(id)?.status, "completed");
        const woken = model.requests.filter(({ sessionID, title }) => sessionID === parent && !title).length;
        assert.equal(woken, launchedBy === "agent" ? 1 : 0, `killed ${moment} call ${call}`);
        second.dispose();
      }
    });
});
