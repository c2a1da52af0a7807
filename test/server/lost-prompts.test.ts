import assert from "node:assert/strict";
import type { AgentServer } from "../../src/engine/ports.ts";
import type { Prompt } from "../../src/engine/server-model.ts";
import type { openWindow } from "../support/engine.ts";
import { createSession, ended, endsOf, notices, type EngineWindow } from "../support/engine.ts";
import { replacing } from "../support/mortal-server.ts";
import { type OpenCodeServer } from "../support/opencode.ts";
import { script, type ScriptedModel } from "../support/scripted-model.ts";
import { setUp } from "../support/set-up.ts";
import { until } from "../support/wait.ts";

const ROUNDS = 3;
/** The longest time in milliseconds that a cold server takes to store an accepted prompt. */
const STORING_MS = 1_500;

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

  async function open(
    between?: (real: AgentServer) => AgentServer,
    settings: Parameters<typeof openWindow>[1] = {},
  ): Promise<EngineWindow> {
    const window = await openEngine(server, settings, { between });
    return window;
  }

  /** A server that has stored the message of one prompt, and dies before it stores the parts. */
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
  }

  async function prompts(sessionID: string): Promise<readonly string[]> {
    const messages = (await (await server.fetch(`/session/${sessionID}/message`)).json()) as StoredPrompt[];
    return messages
      .filter(({ info }) => info.role === "user")
      .map(({ parts }) => parts.map(({ text }) => text).join());
  }

  const launch = (window: EngineWindow, prompt: string, fork?: string) =>
    window.engine.launch({
      prompt,
      description: "Lost",
      agent: "general",
      parentSessionID: parent,
      launchedBy: "person",
      ...(fork !== undefined && { fork: { sourceSessionID: fork } }),
    });

  it("a launch's prompt is sent again once the server is back, and answered once", async () => {
    const prompt = script([{ text: "The answer." }], "Launched. ");
    const window = await open(losingParts(says("Launched.")));
    const { id } = await launch(window, prompt);
    await crash(window);
    assert.equal((await ended(window, id, 60_000)).status, "completed");
    assert.equal((await window.engine.output(id)).result, "The answer.");
    assert.deepEqual(await prompts(id), [prompt]);
  });

  it("a queued task's prompt is sent again, and answered", async () => {
    const prompt = script([{ text: "The later answer." }], "Queued. ");
    const window = await open(losingParts(says("Queued.")), { maxConcurrentTasks: 1 });
    const first = await launch(window, script([{ text: "x", gate: "never", gateAfterText: true }]));
    await model.waitForRequest(({ sessionID }) => sessionID === first.id);
    const { id } = await launch(window, prompt);
    await crash(window);
    assert.equal((await ended(window, first.id, 60_000)).error?.name, "Interrupted");
    assert.equal((await ended(window, id, 60_000)).status, "completed");
    assert.equal((await window.engine.output(id)).result, "The later answer.");
    assert.deepEqual(await prompts(id), [prompt]);
  });

  it("a follow-up is sent again", async () => {
    const prompt = script([{ text: "The second answer." }], "Followed up. ");
    const window = await open(losingParts(says("Followed up.")));
    const { id } = await launch(window, script([{ text: "The first answer." }]));
    await ended(window, id, 60_000);
    await window.engine.resume(id, prompt);
    await crash(window);
    const task = await ended(window, id, 60_000);
    assert.deepEqual([task.status, task.resumeCount], ["completed", 1]);
    assert.equal((await window.engine.output(id)).result, "The second answer.");
    assert.deepEqual((await prompts(id)).slice(1), [prompt]);
  });

  it("a fork's prompt is sent again, after the conversation that it inherits", async () => {
    const prompt = script([{ text: "The fork's answer." }], "Forked. ");
    const window = await open(losingParts(says("Forked.")));
    const source = await launch(window, script([{ text: "The source's answer." }]));
    await ended(window, source.id, 60_000);
    const { id } = await launch(window, prompt, source.id);
    await until("the prompt without its parts", async () => (await prompts(id)).includes(""));
    await crash(window);
    assert.equal((await ended(window, id, 60_000)).status, "completed");
    assert.equal((await window.engine.output(id)).result, "The fork's answer.");
    const [inherited, own, ...more] = await prompts(id);
    assert.match(inherited ?? "", /The source's answer/);
    assert.ok(own?.endsWith(prompt));
    assert.deepEqual(more, []);
  });

  it("a task whose window closed before the server was killed ends in an error that says so, and never starts", async () => {
    const window = await open(losingParts(says("Both.")));
    const { id } = await launch(window, script([{ text: "x" }], "Both. "));
    window.dispose();
    await server.kill();
    await server.restart();
    const next = await open();
    const task = await ended(next, id, 60_000);
    assert.deepEqual([task.status, task.error?.name], ["error", "PromptLost"]);
    assert.match(task.error?.message ?? "", /prompt was lost.*Launch a new task/);
    await until("the notice", async () => (await notices(server, parent)).length === 1);
    assert.ok(!model.requests.some(({ sessionID }) => sessionID === id));
    await assert.rejects(next.engine.retry(id), /prompt of task .* no longer exists/);
  });

  it("a follow-up whose window closed before the server was killed is not answered by the earlier answer", async () => {
    const window = await open(losingParts(says("Both again.")));
    const { id } = await launch(window, script([{ text: "The first answer." }]));
    await ended(window, id, 60_000);
    await window.engine.resume(id, script([{ text: "x" }], "Both again. "));
    const asked = model.requests.length;
    window.dispose();
    await server.kill();
    await server.restart();
    const next = await open();
    const task = await ended(next, id, 60_000);
    assert.deepEqual([task.status, task.error?.name], ["error", "PromptLost"]);
    assert.match(task.error?.message ?? "", /follow-up was lost.*Continue/);
    assert.deepEqual([task.resumeCount, endsOf(task)], [0, 2]);
    await until("the notice of each end", async () => (await notices(server, parent)).length === 2);
    assert.equal(model.requests.length, asked);
  });

  it("a notice counts as delivered only once it is stored completely, even if window and server stop before", async () => {
    const window = await open(losingParts(says("All 1 tasks finished.")));
    const { id } = await launch(window, script([{ text: "The told answer." }]));
    await ended(window, id, 60_000);
    await until("the notice without its parts", async () => (await prompts(parent)).includes(""));
    window.dispose();
    await server.kill();
    await server.restart();
    const next = await open();
    await until("the notice", async () => (await notices(server, parent)).length === 1, 30_000);
    await until("the delivery", () => next.engine.get(id)?.notice.state === "delivered");
    const told = await notices(server, parent);
    assert.ok(told[0]?.hidden.includes("The told answer."));
    assert.match(told[0]?.line ?? "", /completed/);
    assert.equal((await prompts(parent)).length, 1);
  });

  it("a cold server killed at a random moment while it stores a prompt answers it or interrupts the task", async function () {
    this.timeout(ROUNDS * 60_000);
    const window = await open();
    for (let round = 0; round < ROUNDS; round++) {
      await server.restart();
      await until("the connection", () => window.connection.state.kind === "connected");
      const prompt = script([{ text: `Answer ${round}.`, gate: `cold-${round}` }]);
      const { id } = await launch(window, prompt);
      // Any moment will do; those of the rounds are spread over the time that storing takes.
      await new Promise((resolve) => setTimeout(resolve, ((round + Math.random()) / ROUNDS) * STORING_MS));
      await crash(window);
      model.release(`cold-${round}`);
      const task = await ended(window, id, 60_000);
      assert.deepEqual(await prompts(id), [prompt]);
      if (task.status === "completed") {
        assert.equal((await window.engine.output(id)).result, `Answer ${round}.`);
      } else {
        assert.equal(task.error?.name, "Interrupted", JSON.stringify(task.error));
      }
    }
  });

  it("a prompt that the server accepts and then cannot store ends its task, and no model is called", async () => {
    const window = await open((real) =>
      replacing(real, "prompt", (sessionID, prompt) =>
        real.prompt(sessionID, sessionID === parent ? prompt : { ...prompt, agent: "nobody" }),
      ),
    );
    const { id } = await launch(window, "Never stored.");
    const task = await ended(window, id, 30_000);
    assert.deepEqual([task.status, task.error?.name], ["error", "UnknownError"]);
    assert.deepEqual(await prompts(id), []);
    assert.ok(!model.requests.some(({ sessionID }) => sessionID === id));
  });
});
