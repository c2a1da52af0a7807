import assert from "node:assert/strict";
import type { ForkSettings } from "../../src/engine/settings.ts";
import { IN_PROGRESS } from "../../src/engine/fork/inherited-history.ts";
import type { AgentServer as EngineServer } from "../../src/engine/ports.ts";
import { shortID, type Task } from "../../src/engine/task.ts";
import {
  openAgentWindow,
  startAgentServer,
  startTurn,
  type AgentServer,
  type AgentWindow,
  type MadeCall,
} from "../support/agent-tools.ts";
import { createSession, ended } from "../support/engine.ts";
import { readReceived, type Heard, type Received } from "../support/received.ts";
import {
  lastUserText,
  script,
  startScriptedModel,
  type ModelRequest,
  type ScriptedModel,
} from "../support/scripted-model.ts";

/** A turn of a server that was just started can take long, in milliseconds. */
const PATIENCE = 50_000;
const LIMITS = { maxToolResultChars: 1_500, maxTokens: 100_000 };

/** The arguments with which an agent forks itself. */
const forkArgs = (prompt: string) => ({ prompt, description: "Child", agent: "general", fork: true });
/** Has the agent fork itself with a prompt that was never said before. */
const FORK_AT_LENGTH = "Fork yourself, and say at length what to do.";
const LONG_PROMPT = "word ".repeat(4_000);
const childPrompt = (text: string): string => script([{ text: "The child's answer." }], text);

describe("An agent that forks itself", () => {
  let model: ScriptedModel;
  let server: AgentServer;
  let window: AgentWindow;
  let parent: string;
  let fork: ForkSettings;
  /** Replaces calls of the engine to the server. */
  let instead: Partial<EngineServer> = {};
  let called: string[] = [];

  before(async () => {
    model = await startScriptedModel({
      fallback({ messages }) {
        if (lastUserText(messages) !== FORK_AT_LENGTH) return { text: "Noted." };
        const tools = [{ name: "asyncagents_task", args: forkArgs(LONG_PROMPT) }];
        return messages.at(-1)?.role === "user" ? { text: "I fork myself.", tools } : { text: "Launched." };
      },
    });
    server = await startAgentServer({ model });
    window = await openAgentWindow(server, {
      settings: {
        get fork() {
          return fork;
        },
      },
      between: (real) =>
        new Proxy(real, {
          get: (target, name, receiver): unknown => {
            called.push(String(name));
            return instead[name as keyof EngineServer] ?? Reflect.get(target, name, receiver);
          },
        }),
    });
  });

  beforeEach(async () => {
    fork = { ...LIMITS, strategy: "auto" };
    instead = {};
    called = [];
    parent = await createSession(server, "Source");
  });

  after(async () => {
    window?.dispose();
    await server?.stop();
    await model?.stop();
  });

  /** The agent forks itself with these prompts, in one message. */
  async function forkItself(...prompts: readonly string[]): Promise<readonly MadeCall[]> {
    const tools = prompts.map((prompt) => ({ name: "asyncagents_task", args: forkArgs(prompt) }));
    const turn = await startTurn(server, parent, [{ text: "I fork myself.", tools }, { text: "Launched." }]);
    return turn.ended(PATIENCE);
  }

  const taskWith = (call: MadeCall | undefined): Task => {
    assert.equal(call?.status, "completed", call?.text);
    return (
      window.engine.list(parent).find(({ id }) => call.text.includes(shortID(id))) ?? assert.fail(call.text)
    );
  };

  const requestOf = ({ id }: Task): Promise<ModelRequest> =>
    model.waitForRequest(({ sessionID, title }) => sessionID === id && !title);
  const received = async (task: Task): Promise<Received> => readReceived((await requestOf(task)).messages);

  const saidIn = (heard: readonly Heard[]): readonly string[] =>
    heard.flatMap((one) => ("speaker" in one ? [`${one.speaker}: ${one.text.split("@@")[0] ?? ""}`] : []));
  const callsIn = (heard: readonly Heard[]) => heard.flatMap((one) => ("callID" in one ? [one] : []));

  it("[FRK-1] the child's model gets the conversation up to that call, the call as in progress, then the prompt", async () => {
    const look = { name: "bash", args: { command: "echo found", description: "look" } };
    await (
      await startTurn(server, parent, [{ text: "Looking.", tools: [look] }, { text: "It is blue." }])
    ).ended(PATIENCE);
    const prompt = childPrompt("Carry on with blue. ");
    const [call] = await forkItself(prompt);
    const task = taskWith(call);
    assert.equal(task.isForked, true);
    assert.equal(task.forkedFrom, parent);
    assert.equal(task.parentSessionID, parent);
    const got = await received(task);
    assert.deepEqual(saidIn(got.heard), [
      "User: ",
      "Agent: Looking.",
      "Agent: It is blue.",
      "User: ",
      "Agent: I fork myself.",
    ]);
    const [looked, launched, ...others] = callsIn(got.heard);
    assert.deepEqual([looked?.tool, looked?.result], ["bash", "found"]);
    assert.deepEqual([launched?.tool, launched?.callID], ["asyncagents_task", call?.callID]);
    assert.equal(launched?.result, IN_PROGRESS);
    assert.deepEqual(others, []);
    assert.match(got.preamble, /inherited from the conversation "Source" are background/);
    assert.match(got.preamble, /in progress belongs to that conversation/);
    assert.equal(got.prompt, prompt);
    assert.equal((await ended(window, task.id)).status, "completed");
    assert.equal((await window.engine.output(task.id)).result, "The child's answer.");
  });

  it("[FRK-1] the child's model gets its prompt once, and the calls for other tasks with their prompts", async () => {
    const prompts = ["Do the first half. ", "Do the second half. "].map(childPrompt);
    const calls = await forkItself(...prompts);
    for (const [index, call] of calls.entries()) {
      const { messages } = await requestOf(taskWith(call));
      const { heard, prompt } = readReceived(messages);
      assert.equal(prompt, prompts[index]);
      const args = messages
        .flatMap(({ tool_calls = [] }) => tool_calls)
        .map((one) => JSON.parse(one.function.arguments) as unknown);
      const rest = { description: "Child", agent: "general", fork: true };
      assert.deepEqual(
        args,
        prompts.map((other) => (other === prompt ? rest : forkArgs(other))),
      );
      const results = callsIn(heard).map(({ result }) => result ?? "");
      assert.equal(results[index], IN_PROGRESS);
      // The other call may have returned by the time the conversation is read.
      assert.match(results[1 - index] ?? "", new RegExp(`^${IN_PROGRESS}$|^Launched task`));
    }
    for (const call of calls) await ended(window, taskWith(call).id);
  });

  it("[FRK-3] a prompt longer than the limit removes nothing from the conversation", async () => {
    fork = { ...fork, maxTokens: 3_000 };
    const notes = ["Note 1", "Note 2", "Note 3", "Note 4"];
    for (const note of notes)
      await (
        await startTurn(server, parent, [{ text: `${note} ${"lorem ipsum ".repeat(20)}` }])
      ).ended(PATIENCE);
    const response = await server.fetch(`/session/${parent}/message`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ agent: "build", parts: [{ type: "text", text: FORK_AT_LENGTH }] }),
    });
    await response.arrayBuffer();
    const [task] = window.engine.list(parent);
    assert.ok(task);
    const { heard, preamble, prompt } = await received(task);
    assert.equal(prompt, LONG_PROMPT);
    assert.deepEqual(
      saidIn(heard).flatMap((text) => /^Agent: (Note \d|I fork)/.exec(text)?.[1] ?? []),
      [...notes, "I fork"],
    );
    assert.doesNotMatch(preamble, /Not everything/);
    await ended(window, task.id);
  });

  it("[FRK-1] reasoning is not inherited, texts are", async () => {
    await (
      await startTurn(server, parent, [{ reasoning: "Let me think deeply.", text: "It is blue." }])
    ).ended(PATIENCE);
    const [call] = await forkItself(childPrompt("Carry on. "));
    const request = await requestOf(taskWith(call));
    assert.deepEqual(saidIn(readReceived(request.messages).heard), [
      "User: ",
      "Agent: It is blue.",
      "User: ",
      "Agent: I fork myself.",
    ]);
    const answers = request.messages.filter(({ role }) => role === "assistant");
    assert.doesNotMatch(JSON.stringify(answers), /think deeply/);
    await ended(window, taskWith(call).id);
  });

  it("[FRK-1] the call returns the ID before the conversation is read, with the strategies auto and replay", async () => {
    for (const strategy of ["auto", "replay"] as const) {
      fork = { ...fork, strategy };
      let release!: () => void;
      const released = new Promise<void>((resolve) => (release = resolve));
      const { server: real } = window.connection;
      instead.messages = async (id, limit) => {
        if (id === parent && limit !== 1) await released;
        return real.messages(id, limit);
      };
      const [call] = await forkItself(childPrompt("Carry on. "));
      const task = taskWith(call);
      assert.equal(window.engine.get(task.id)?.progress?.phase, "starting");
      assert.deepEqual(await real.messages(task.id), []);
      release();
      assert.match(saidIn((await received(task)).heard).join("\n"), /Agent: I fork myself\./);
      await ended(window, task.id);
    }
  });

  for (const [strategy, way] of [
    ["auto", "writeHistory"],
    ["replay", "writeHistory"],
    // As text, which is sent as a prompt.
    ["fork", undefined],
  ] as const)
    it(`strategy ${strategy} does not use OpenCode's own copy, because the call is still open`, async () => {
      fork = { ...fork, strategy };
      const [call] = await forkItself(childPrompt("Carry on. "));
      const task = taskWith(call);
      const { heard, text } = await received(task);
      assert.match(saidIn(heard).join("\n"), /Agent: I fork myself\./);
      assert.equal(text !== undefined, way === undefined);
      assert.ok(!called.includes("copySession"));
      assert.equal(called.includes("writeHistory"), way !== undefined);
      await ended(window, task.id);
    });

  it("[FRK-4] fork and resume in one call are refused, and nothing is created", async () => {
    const args = { ...forkArgs("Both."), resume: "abcdef" };
    const turn = await startTurn(server, parent, [
      { tools: [{ name: "asyncagents_task", args }] },
      { text: "Refused." },
    ]);
    const [call] = await turn.ended(PATIENCE);
    assert.equal(call?.status, "error");
    assert.match(call.text, /mutually exclusive/);
    assert.deepEqual(window.engine.list(parent), []);
  });
});
