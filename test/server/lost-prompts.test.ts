import assert from "node:assert/strict";
import type { AgentServer } from "../../src/engine/ports.ts";
import type { Prompt } from "../../src/engine/server-model.ts";
import { createSession, ended, endsOf, notices, openWindow, type EngineWindow } from "../support/engine.ts";
import { impatient } from "../support/impatient.ts";
import { replacing } from "../support/mortal-server.ts";
import { type OpenCodeServer } from "../support/opencode.ts";
import { script, type ScriptedModel } from "../support/scripted-model.ts";
import { setUp } from "../support/set-up.ts";
import { until } from "../support/wait.ts";

/** The longest time in milliseconds that a cold server takes to store an accepted prompt. */
const STORING_MS = 1_500;

/** What a task is launched from: the session that it forks, and its parent. */
interface Origin {
  readonly fork?: string;
  readonly from?: string;
}

interface StoredPrompt {
  readonly info: { readonly id: string; readonly role: string };
  readonly parts: readonly { readonly type: string; readonly text?: string }[];
}

describe("prompts that the server accepts and loses", function () {
  this.timeout(120_000);

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

  /** A server that stores each of these prompts' messages, and dies before it stores their parts. */
  function losingAllParts(...lost: readonly ((prompt: Prompt) => boolean)[]) {
    return (real: AgentServer) => lost.reduce((inner, isLost) => losingParts(isLost)(inner), real);
  }

  function losingParts(isLost: (prompt: Prompt) => boolean): (real: AgentServer) => AgentServer {
    let isDone = false;
    return (real) =>
      replacing(real, "prompt", async (sessionID, prompt) => {
        if (isDone || !isLost(prompt)) return real.prompt(sessionID, prompt);
        isDone = true;
        await real.prompt(sessionID, { ...prompt, parts: [], files: [], noReply: true });
        await until("the message", () => real.message(sessionID, prompt.messageID));
      });
  }

  const says = (text: string) => (prompt: Prompt) => prompt.parts.some((part) => part.text.includes(text));

  /** The server dies and comes back. */
  async function crash(window: EngineWindow): Promise<void> {
    await server.kill();
    await until("the loss of the connection", () => window.connection.state.kind !== "connected");
    await server.restart();
    await window.connection.connect();
  }

  async function prompts(sessionID: string): Promise<readonly string[]> {
    const messages = (await (await server.fetch(`/session/${sessionID}/message`)).json()) as StoredPrompt[];
    return messages
      .filter(({ info }) => info.role === "user")
      .map(({ parts }) => parts.map(({ text }) => text).join());
  }

  const launch = (window: EngineWindow, prompt: string, { fork, from = parent }: Origin = {}) =>
    window.engine.launch({
      prompt,
      description: "Lost",
      agent: "general",
      parentSessionID: from,
      launchedBy: "person",
      ...(fork !== undefined && { fork: { sourceSessionID: fork } }),
    });

  it("a cold server killed at a random moment while it stores a prompt answers it or interrupts the task", async () => {
    const window = await openEngine(server);
    await server.restart();
    await window.connection.connect();
    const prompt = script([{ text: "The answer.", gate: "cold" }]);
    const { id } = await launch(window, prompt);
    // Any moment will do.
    await new Promise((resolve) => setTimeout(resolve, Math.random() * STORING_MS));
    await crash(window);
    model.release("cold");
    const task = await ended(window, id, 60_000);
    assert.deepEqual(await prompts(id), [prompt]);
    if (task.status === "completed") {
      assert.equal((await window.engine.output(id)).result, "The answer.");
    } else {
      assert.equal(task.error?.name, "Interrupted", JSON.stringify(task.error));
    }
  });

  it("a prompt that the server accepts and then cannot store ends its task, and no model is called", async () => {
    const window = await openEngine(
      server,
      {},
      {
        between: (real) =>
          replacing(real, "prompt", (sessionID, prompt) =>
            real.prompt(sessionID, sessionID === parent ? prompt : { ...prompt, agent: "nobody" }),
          ),
      },
    );
    const { id } = await launch(window, "Never stored.");
    const task = await ended(window, id, 30_000);
    assert.deepEqual([task.status, task.error?.name], ["error", "UnknownError"]);
    assert.deepEqual(await prompts(id), []);
    assert.ok(!model.requests.some(({ sessionID }) => sessionID === id));
  });

  describe("and whose sender is still there", () => {
    const launchPrompt = script([{ text: "The answer." }], "Launched. ");
    const queuedPrompt = script([{ text: "The later answer." }], "Queued. ");
    const followUp = script([{ text: "The second answer." }], "Followed up. ");
    const forkPrompt = script([{ text: "The fork's answer." }], "Forked. ");
    let window: EngineWindow;
    let launched: string;
    let occupant: string;
    let queued: string;
    let followedUp: string;
    let forked: string;

    before(async () => {
      parent = await createSession(server);
      const between = losingAllParts(
        says("Launched."),
        says("Queued."),
        says("Followed up."),
        says("Forked."),
      );
      window = await openWindow(server, { maxConcurrentTasks: 4 }, { between });
      const begun = await launch(window, script([{ text: "The first answer." }]));
      const source = await launch(window, script([{ text: "The source's answer." }]));
      await Promise.all([ended(window, begun.id, 60_000), ended(window, source.id, 60_000)]);
      followedUp = begun.id;
      // With these four at work, the fifth is queued.
      occupant = (await launch(window, script([{ text: "x", gate: "never", gateAfterText: true }]))).id;
      await model.waitForRequest(({ sessionID }) => sessionID === occupant);
      launched = (await launch(window, launchPrompt)).id;
      await window.engine.resume(followedUp, followUp);
      forked = (await launch(window, forkPrompt, { fork: source.id })).id;
      await until("the fork's prompt without its parts", async () => (await prompts(forked)).includes(""));
      queued = (await launch(window, queuedPrompt)).id;
      assert.equal(window.engine.get(queued)?.queued, true);
      await crash(window);
    });

    after(() => window.dispose());

    it("a launch's prompt is sent again once the server is back, and answered once", async () => {
      assert.equal((await ended(window, launched, 60_000)).status, "completed");
      assert.equal((await window.engine.output(launched)).result, "The answer.");
      assert.deepEqual(await prompts(launched), [launchPrompt]);
    });

    it("a queued task's prompt is sent again, and answered", async () => {
      assert.equal((await ended(window, occupant, 60_000)).error?.name, "Interrupted");
      assert.equal((await ended(window, queued, 60_000)).status, "completed");
      assert.equal((await window.engine.output(queued)).result, "The later answer.");
      assert.deepEqual(await prompts(queued), [queuedPrompt]);
    });

    it("a follow-up is sent again", async () => {
      const task = await ended(window, followedUp, 60_000);
      assert.deepEqual([task.status, task.resumeCount], ["completed", 1]);
      assert.equal((await window.engine.output(followedUp)).result, "The second answer.");
      assert.deepEqual((await prompts(followedUp)).slice(1), [followUp]);
    });

    it("a fork's prompt is sent again, after the conversation that it inherits", async () => {
      assert.equal((await ended(window, forked, 60_000)).status, "completed");
      assert.equal((await window.engine.output(forked)).result, "The fork's answer.");
      const [inherited, own, ...more] = await prompts(forked);
      assert.match(inherited ?? "", /The source's answer/);
      assert.ok(own?.endsWith(forkPrompt));
      assert.deepEqual(more, []);
    });
  });

  describe("and whose window closed before the server was killed", () => {
    let next: EngineWindow;
    let unstarted: string;
    let followedUp: string;
    let told: string;
    /** The parents of these tasks. */
    let unstartedParent: string;
    let followedUpParent: string;
    let toldParent: string;

    before(async () => {
      [unstartedParent, followedUpParent, toldParent] = [
        await createSession(server),
        await createSession(server),
        await createSession(server),
      ];
      const between = losingAllParts(
        says("Both."),
        says("Both again."),
        (prompt) => says("All 1 tasks finished.")(prompt) && says("The told answer.")(prompt),
      );
      const window = await openWindow(server, {}, { between });
      followedUp = (await launch(window, script([{ text: "The first answer." }]), { from: followedUpParent }))
        .id;
      told = (await launch(window, script([{ text: "The told answer." }]), { from: toldParent })).id;
      await Promise.all([ended(window, followedUp, 60_000), ended(window, told, 60_000)]);
      await until("the first notice", async () => (await notices(server, followedUpParent)).length === 1);
      await until("the notice without its parts", async () => (await prompts(toldParent)).includes(""));
      unstarted = (await launch(window, script([{ text: "x" }], "Both. "), { from: unstartedParent })).id;
      await window.engine.resume(followedUp, script([{ text: "x" }], "Both again. "));
      window.dispose();
      await server.kill();
      await server.restart();
      next = await openWindow(server, {}, impatient());
    });

    after(() => next.dispose());

    const requestsOf = (id: string) =>
      model.requests.filter(({ sessionID, title }) => sessionID === id && !title);

    it("a task ends in an error that says so, and never starts", async () => {
      const task = await ended(next, unstarted, 60_000);
      assert.deepEqual([task.status, task.error?.name], ["error", "PromptLost"]);
      assert.match(task.error?.message ?? "", /prompt was lost.*Launch a new task/);
      await until("the notice", async () => (await notices(server, unstartedParent)).length === 1);
      assert.deepEqual(requestsOf(unstarted), []);
      await assert.rejects(next.engine.retry(unstarted), /prompt of task .* no longer exists/);
    });

    it("a follow-up is not answered by the earlier answer", async () => {
      const task = await ended(next, followedUp, 60_000);
      assert.deepEqual([task.status, task.error?.name], ["error", "PromptLost"]);
      assert.match(task.error?.message ?? "", /follow-up was lost.*Continue/);
      assert.deepEqual([task.resumeCount, endsOf(task)], [0, 2]);
      await until(
        "the notice of each end",
        async () => (await notices(server, followedUpParent)).length === 2,
      );
      assert.equal(requestsOf(followedUp).length, 1);
    });

    it("a notice counts as delivered only once it is stored completely", async () => {
      await until("the notice", async () => (await notices(server, toldParent)).length === 1, 30_000);
      await until("the delivery", () => next.engine.get(told)?.notice.state === "delivered");
      const [notice] = await notices(server, toldParent);
      assert.ok(notice?.hidden.includes("The told answer."));
      assert.match(notice?.line ?? "", /completed/);
      assert.equal((await prompts(toldParent)).length, 1);
    });
  });
});
