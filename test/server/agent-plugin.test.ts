import assert from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { once } from "node:events";
import { createServer as createSocketServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { publishEntry } from "../../src/bridge/endpoint-entries.ts";
import { Refusal } from "../../src/engine/errors.ts";
import { RESULT_MARK } from "../../src/engine/received-result.ts";
import type { ToolResult } from "../../src/tools/tool.ts";
import { toolInputSchema } from "../../src/tools/input-schema.ts";
import { DECLARATIONS } from "../../src/tools/declarations.ts";
import {
  callTool,
  callTools,
  inFolder,
  openAgentWindow,
  startAgentServer,
  startTurn,
  type AgentServer,
  type AgentWindow,
  type AgentWindowOptions,
  type CallHandler,
} from "../support/agent-tools.ts";
import { createSession, ended } from "../support/engine.ts";
import { messageText, script, startScriptedModel, type ScriptedModel } from "../support/scripted-model.ts";
import { startStranger } from "../support/stranger.ts";
import { tempDir } from "../support/temp.ts";
import { until } from "../support/wait.ts";

describe("The plugin inside OpenCode", () => {
  let model: ScriptedModel;
  let server: AgentServer;
  let proxy: Server;
  let proxied = 0;
  let parent: string;
  const windows: AgentWindow[] = [];

  before(async () => {
    model = await startScriptedModel();
    proxy = createServer((_, response) => void (proxied++, response.writeHead(502).end()));
    proxy.listen(0, "127.0.0.1");
    await once(proxy, "listening");
    server = await startAgentServer({
      // By a host name that bypasses the proxy.
      model: { url: model.url.replace("127.0.0.1", "localhost") },
      env: { HTTP_PROXY: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`, NO_PROXY: "localhost" },
      plugin: { patienceMs: 300 },
    });
  });

  beforeEach(async () => {
    parent = await createSession(server);
  });

  afterEach(() => {
    for (const window of windows.splice(0)) window.dispose();
  });

  after(async () => {
    await server?.stop();
    await model?.stop();
    proxy?.close();
  });

  async function open(options: AgentWindowOptions = {}, folder = server): Promise<AgentWindow> {
    const window = await openAgentWindow(folder, options);
    windows.push(window);
    return window;
  }

  const answering =
    (text: string): CallHandler =>
    async () => ({ title: "Done", text });

  /** Never answers by itself. */
  const pending: CallHandler = () => new Promise<ToolResult>(() => undefined);

  /** The results that the model saw in its last request for the session. */
  function seenByModel(sessionID = parent): string[] {
    const request = model.requests.findLast((one) => one.sessionID === sessionID && !one.title);
    return (request?.messages ?? []).filter(({ role }) => role === "tool").map(messageText);
  }

  it("gives models the tools as they are defined: description, parameters, required ones", async () => {
    await (await startTurn(server, parent, [{ text: "No tools needed." }])).ended();
    const request = model.requests.find(({ sessionID, title }) => sessionID === parent && !title);
    const told = request?.body["tools"] as readonly {
      function: { name: string; description: string; parameters: Record<string, unknown> };
    }[];
    for (const tool of DECLARATIONS) {
      const { description, parameters } =
        told.find((one) => one.function.name === tool.name)?.function ?? assert.fail(tool.name);
      const { properties, required } = toolInputSchema(tool);
      assert.equal(description, tool.description);
      assert.deepEqual(parameters["properties"], properties);
      assert.deepEqual(parameters["required"] ?? [], required ?? []);
    }
  });

  it("passes a call to the window with the model's input and its origin", async () => {
    const { calls } = await open({ handle: answering("Launched.") });
    const input = { prompt: "Look", odd: [1, null], batch_id: "7" };
    const call = await callTool(server, parent, "asyncagents_task", input);
    const [received, ...others] = calls;
    assert.deepEqual(others, []);
    assert.deepEqual(
      { ...received, waitedMs: undefined, signal: undefined },
      {
        tool: "asyncagents_task",
        input,
        sessionID: parent,
        messageID: call.messageID,
        agent: "build",
        callID: call.callID,
        permitted: [],
        onlyIfOurs: true,
        waitedMs: undefined,
        signal: undefined,
      },
    );
  });

  it("returns the result: its text to the model, title and metadata into the conversation", async () => {
    const metadata = { [RESULT_MARK]: { taskID: "ses_1", endedAt: 5 } };
    await open({ handle: async () => ({ title: "Task read", text: "The result: 日本語 🙂", metadata }) });
    const call = await callTool(server, parent, "asyncagents_output", { task_id: "x" });
    assert.equal(call.status, "completed");
    assert.equal(call.title, "Task read");
    assert.deepEqual(call.metadata[RESULT_MARK], metadata[RESULT_MARK]);
    assert.deepEqual(seenByModel(), ["The result: 日本語 🙂"]);
  });

  it("returns a refusal to the model as a sentence", async () => {
    await open({
      handle: async () => {
        throw new Refusal("unknown-task", "There is no task x1; see asyncagents_list.");
      },
    });
    const call = await callTool(server, parent, "asyncagents_output", { task_id: "x1" });
    assert.equal(call.status, "error");
    assert.deepEqual(seenByModel(), ["There is no task x1; see asyncagents_list."]);
  });

  it("lets an agent launch a task, wait for it and read its result", async () => {
    const { calls, engine } = await open();
    const prompt = script([{ text: "The child's answer.", gate: "child" }]);
    const launched = await callTool(server, parent, "asyncagents_task", { prompt, description: "Child" });
    const [task] = engine.list(parent);
    assert.ok(task, launched.text);
    const args = { task_id: task.id, block: true };
    const waiting = callTool(server, parent, "asyncagents_output", args);
    await until("the call", () => calls.length === 2);
    model.release("child");
    const call = await waiting;
    assert.match(call.text, /The child's answer\./);
    assert.deepEqual(call.metadata[RESULT_MARK], { taskID: task.id, endedAt: engine.get(task.id)?.endedAt });
  });

  it("runs several calls of one message at the same time", async () => {
    let arrived = 0;
    await open({
      handle: async ({ input }) => {
        arrived++;
        await until("both calls", () => arrived === 2);
        return { title: "", text: `for ${(input as { task_id: string }).task_id}` };
      },
    });
    const calls = await callTools(server, parent, [
      { name: "asyncagents_output", args: { task_id: "a" } },
      { name: "asyncagents_output", args: { task_id: "b" } },
    ]);
    assert.deepEqual(
      calls.map(({ text }) => text),
      ["for a", "for b"],
    );
  });

  it("aborts a call in the window as soon as the agent's turn is aborted", async () => {
    const { calls } = await open({ handle: pending });
    const turn = await startTurn(server, parent, [{ tools: [{ name: "asyncagents_list" }] }]);
    const received = await until("the call", () => calls[0]);
    assert.equal(received.signal.aborted, false);
    await turn.abort();
    await until("its end in the window", () => received.signal.aborted);
    assert.deepEqual(
      (await turn.ended()).map(({ status }) => status),
      ["error"],
    );
    assert.equal(calls.length, 1);
  });

  it("says what to do if no window is open on the folder", async () => {
    const call = await callTool(server, parent, "asyncagents_list");
    assert.equal(call.status, "error");
    assert.match(call.text, /Background agents need Async Agents to be connected in this folder/);
    assert.ok(call.text.includes(server.directory));
  });

  it("sends nothing to a process that has the ID and the port of a closed window", async function () {
    if (process.platform !== "linux") return this.skip();
    const { directory, url, stateFolder } = server;
    const stranger = await startStranger();
    const port = Number(new URL(stranger.url).port);
    const entry = { directories: [directory], server: url, port, token: "secret", openedAt: Date.now() };
    const published = await publishEntry(stateFolder, { ...entry, pid: process.pid });
    const [name] = readdirSync(stateFolder).filter((file) => file.startsWith("window-"));
    const file = join(stateFolder, name ?? assert.fail());
    writeFileSync(
      file,
      JSON.stringify({ ...JSON.parse(readFileSync(file, "utf8")), processStart: "another" }),
    );
    const turn = await startTurn(server, parent, [
      { tools: [{ name: "asyncagents_task", args: { prompt: "A secret" } }] },
    ]);
    try {
      let isOver = false;
      const received = until("a request", () => isOver || stranger.received.length > 0).catch(
        () => undefined,
      );
      const calls = await Promise.race([turn.ended(), received.then(() => [])]);
      isOver = true;
      assert.deepEqual(stranger.received, []);
      assert.match(
        calls[0]?.text ?? "",
        /Background agents need Async Agents to be connected in this folder/,
      );
    } finally {
      published.withdraw();
      stranger.close();
    }
  });

  it("goes on to the next window if one accepts the call and never answers", async () => {
    await open({ handle: answering("From the next.") });
    let asked = 0;
    const hung = createSocketServer((socket) => void (asked++, socket.on("error", () => undefined).resume()));
    await once(hung.listen(0, "127.0.0.1"), "listening");
    const { port } = hung.address() as AddressInfo;
    const { directory, url, stateFolder } = server;
    const entry = { directories: [directory], server: url, port, token: "secret" };
    const published = await publishEntry(stateFolder, {
      ...entry,
      pid: process.pid,
      openedAt: Date.now() + 60_000,
    });
    try {
      const askedAt = performance.now();
      assert.equal((await callTool(server, parent, "asyncagents_list")).text, "From the next.");
      assert.equal(asked, 1);
      assert.ok(performance.now() - askedAt < 20_000);
    } finally {
      published.withdraw();
      hung.close();
    }
  });

  it("repeats a call with the same ID if the window was replaced before it replied", async () => {
    const answers = [pending, answering("From the new one.")];
    const window = await open({ handle: (...call) => answers.shift()?.(...call) ?? assert.fail() });
    const turn = await startTurn(server, parent, [{ tools: [{ name: "asyncagents_list" }] }]);
    await until("the call", () => window.calls[0]);
    window.close();
    await until("the end of the first", () => window.calls[0]?.signal.aborted);
    // Long past the patience with windows that never took the call.
    const closedAt = Date.now();
    await until("a second without a window", () => Date.now() - closedAt > 1_000);
    await window.reopen();
    const [call] = await turn.ended();
    assert.equal(call?.text, "From the new one.");
    const [first, second, ...others] = window.calls.map(({ callID }) => callID);
    assert.equal(second, first);
    assert.deepEqual(others, []);
  });

  it("launches one task even if the answer to the launch was lost", async () => {
    let launches = 0;
    const window = await open({
      handle: async (call, signal, carryOut) => {
        const result = await carryOut();
        return ++launches === 1 ? pending(call, signal, carryOut) : result;
      },
    });
    const prompt = script([{ text: "Once." }]);
    const turn = await startTurn(server, parent, [
      { tools: [{ name: "asyncagents_task", args: { prompt } }] },
    ]);
    await until("the launch", () => launches === 1);
    await window.reopen();
    const [call] = await turn.ended();
    assert.equal(call?.status, "completed", call?.text);
    assert.equal(launches, 2);
    const [task, ...others] = window.engine.list(parent);
    assert.ok(task);
    assert.deepEqual(others, []);
    await ended(window, task.id);
    assert.equal(model.requests.filter(({ sessionID, title }) => sessionID === task.id && !title).length, 1);
  });

  it("never calls windows of other folders or other servers", async () => {
    const other = tempDir("other");
    const strangers = [
      await open({ entry: { directories: [other, `${server.directory}x`] }, handle: answering("Wrong") }),
      await open({ entry: { server: "http://127.0.0.1:1" }, handle: answering("Wrong") }),
    ];
    const call = await callTool(server, parent, "asyncagents_list");
    assert.equal(call.status, "error");
    assert.match(call.text, /connected to another OpenCode server/);
    assert.ok(call.text.includes(server.url));
    await open({ handle: answering("Right") });
    assert.equal((await callTool(server, parent, "asyncagents_list")).text, "Right");
    assert.deepEqual(
      strangers.flatMap(({ calls }) => calls),
      [],
    );
  });

  it("passes calls from two folders each to the window of its folder", async () => {
    const other = inFolder(server, tempDir("other"));
    const otherParent = await createSession(other);
    await open({ handle: answering("First folder") });
    await open({ handle: answering("Second folder") }, other);
    const [first, second] = await Promise.all([
      callTool(server, parent, "asyncagents_list"),
      callTool(other, otherParent, "asyncagents_list"),
    ]);
    assert.deepEqual([first.text, second.text], ["First folder", "Second folder"]);
  });

  it("does not use the proxy that the environment names", async () => {
    await open({ handle: answering("Straight") });
    assert.equal((await callTool(server, parent, "asyncagents_list")).text, "Straight");
    assert.equal(proxied, 0);
  });
});
