import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as vscode from "vscode";
import { ActiveSession } from "../../src/engine/active-session.ts";
import type { TaskEngine } from "../../src/engine/engine.ts";
import { freshID } from "../../src/engine/ids.ts";
import type { Logger } from "../../src/engine/ports.ts";
import type { ToolName } from "../../src/tools/tool.ts";
import { toolInputSchema } from "../../src/tools/input-schema.ts";
import { DECLARATIONS } from "../../src/tools/declarations.ts";
import { EditorTool, type EditorToolContext } from "../../src/ui/editor-tool.ts";
import type { AsyncAgentsApi } from "../../src/ui/api.ts";
import { addRunningTasks, memoryEngine, strictLogger } from "../bench/support/memory-engine.ts";
import { MemoryWorkspace } from "../support/folders.ts";
import { MemoryServer } from "../support/memory-server.ts";
import { ModelClient } from "../support/model-client.ts";
import { messageText, script } from "../support/script.ts";

const EXTENSION = "async-agents.opencode-async-agents";

async function activated(): Promise<AsyncAgentsApi> {
  const extension = vscode.extensions.getExtension<AsyncAgentsApi>(EXTENSION);
  assert.ok(extension);
  const api = await extension.activate();
  await api.ready();
  return api;
}

function textOf({ content }: vscode.LanguageModelToolResult): string {
  return content.map((part) => (part as vscode.LanguageModelTextPart).value).join("");
}

describe("the agent tools of the editor's own agents", () => {
  const ours = (): readonly vscode.LanguageModelToolInformation[] =>
    vscode.lm.tools.filter(({ name }) => name.startsWith("asyncagents_"));
  const setEnabled = async (enabled: boolean | undefined): Promise<void> =>
    vscode.workspace
      .getConfiguration("asyncagents")
      .update("agentTools.enabled", enabled, vscode.ConfigurationTarget.Global);

  before(async function () {
    this.timeout(120_000);
    await activated();
    await vscode.commands.executeCommand("asyncagents.connect");
  });

  after(() => setEnabled(undefined));

  it("are offered with their declared names, descriptions and schemas", () => {
    const shown = new Map(ours().map((tool) => [tool.name, tool]));
    assert.deepEqual([...shown.keys()].sort(), DECLARATIONS.map(({ name }) => name).sort());
    for (const tool of DECLARATIONS) {
      assert.equal(shown.get(tool.name)?.description, tool.description);
      assert.deepEqual(shown.get(tool.name)?.inputSchema, toolInputSchema(tool));
    }
  });

  it("[FLT-2] run in the active session", async () => {
    const result = await vscode.lm.invokeTool("asyncagents_list", {
      input: {},
      toolInvocationToken: undefined,
    });
    assert.equal(textOf(result), "No background tasks found");
  });

  it("refuse with a sentence that reaches the caller", async () => {
    const call = (name: ToolName, input: object): Thenable<unknown> =>
      vscode.lm.invokeTool(name, { input, toolInvocationToken: undefined });
    await assert.rejects(
      async () => call("asyncagents_output", { task_id: "zzzzzz" }),
      /Task zzzzzz doesn't exist/,
    );
    await assert.rejects(async () => call("asyncagents_cancel", {}), /"task_id" or "batch_id"/);
  });

  it("cannot be called while the setting turns them off", async () => {
    // The list contains the tools of every manifest; `when` decides which of them agents see.
    const list = async (): Promise<string> =>
      textOf(await vscode.lm.invokeTool("asyncagents_list", { input: {}, toolInvocationToken: undefined }));
    await setEnabled(false);
    await assert.rejects(list(), /does not have an implementation/);
    await setEnabled(undefined);
    assert.equal(await list(), "No background tasks found");
  });
});

/** Makes a session the active one: the one in which a user wrote last. */
function writeIn(server: MemoryServer, sessionID: string): Promise<void> {
  const messageID = freshID("msg", Date.now(), Math.random);
  return server.prompt(sessionID, { messageID, agent: "build", noReply: true, parts: [{ text: "Hello." }] });
}

describe("an agent tool of the editor", () => {
  let server: MemoryServer;
  let engine: TaskEngine;
  let session: ActiveSession;
  let workspace: MemoryWorkspace;
  let context: EditorToolContext;
  let launches: number;
  let connects: number;
  /** Replaces the engine's own connecting, if set. */
  let connecting: Promise<void> | undefined;
  const logged: string[] = [];
  const logger: Logger = { ...strictLogger, error: (message) => void logged.push(message) };

  beforeEach(async () => {
    logged.splice(0);
    connecting = undefined;
    server = new MemoryServer();
    engine = memoryEngine(server);
    session = new ActiveSession(engine, server, strictLogger);
    launches = 0;
    connects = 0;
    workspace = new MemoryWorkspace(strictLogger);
    workspace.add("one", { engine, session, ensureConnected: () => connecting ?? connect() });
    await workspace.open();
    context = {
      folders: workspace.folders,
      logger,
      onDidLaunch: () => void launches++,
    };
  });

  afterEach(() => {
    session.dispose();
    engine.dispose();
  });

  const connect = async (): Promise<void> => {
    connects++;
    await engine.connect();
    await session.refresh();
  };
  const tool = (name: ToolName): EditorTool => new EditorTool(name, context);
  const confirmed = (
    prepared: EditorTool,
    input: object,
    token = new vscode.CancellationTokenSource().token,
  ): Promise<vscode.LanguageModelToolResult> =>
    // The editor passes a copy of the input to each of the two methods.
    prepared.invoke({ input: { ...input }, toolInvocationToken: undefined }, token);
  const invoke = async (
    name: ToolName,
    input: object,
    token?: vscode.CancellationToken,
  ): Promise<vscode.LanguageModelToolResult> => {
    const called = tool(name);
    await called.prepareInvocation({ input });
    return confirmed(called, input, token);
  };
  const confirmation = async (
    name: ToolName,
    input: object,
  ): Promise<{ title: string; message: vscode.MarkdownString }> => {
    const messages = (await tool(name).prepareInvocation({ input })).confirmationMessages;
    assert.ok(messages && typeof messages.message !== "string");
    return { title: messages.title, message: messages.message };
  };

  it("launches a task as the user, and creates a session if there is none", async () => {
    const result = await invoke("asyncagents_task", { prompt: "Look into it.", description: "Look" });
    assert.match(textOf(result), /Launched task \w{6,}: Look/);
    const [task] = engine.list(session.id ?? "");
    assert.equal(task?.launchedBy, "person");
    assert.equal(task.parentSessionID, session.id);
  });

  it("creates no session when it only lists", async () => {
    assert.equal(textOf(await invoke("asyncagents_list", {})), "No background tasks found");
    assert.deepEqual(await server.sessions(), []);
  });

  it("asks before it launches, and shows description, agent, model and prompt", async () => {
    const { title, message } = await confirmation("asyncagents_task", {
      description: "Find the **bug**",
      agent: "explore",
      model: "a/b",
      prompt: "Read.\n```\n[x](command:evil)\n```",
    });
    assert.equal(title, "Launch a background task?");
    assert.ok(!message.isTrusted && !message.supportHtml);
    const text = message.value.replaceAll("&nbsp;", " ");
    assert.match(text, /Find the \\\*\\\*bug\\\*\\\*/);
    assert.match(text, /Agent: explore/);
    assert.match(text, /Model: a\/b/);
    // The fence is longer than any in the prompt, so that the prompt cannot end it.
    assert.match(text, /\n````text\nRead\.\n```\n\[x\]\(command:evil\)\n```\n````\n/);
  });

  it("shows the beginning of a long prompt, and its length", async () => {
    const { message } = await confirmation("asyncagents_task", { prompt: "x".repeat(5_000) });
    assert.ok(message.value.length < 1_500);
    assert.match(message.value.replaceAll("&nbsp;", " "), /5,?000 characters/);
  });

  it("names the task to be resumed", async () => {
    const { tasks, parent } = await addRunningTasks(server, 1);
    await connect();
    await writeIn(server, parent);
    const { title, message } = await confirmation("asyncagents_task", { resume: tasks[0], prompt: "Go on." });
    assert.equal(title, "Resume a background task?");
    assert.match(message.value.replaceAll("&nbsp;", " "), /Task: Look into how module 0/);
    assert.match(
      (await confirmation("asyncagents_task", { resume: "zzzzzz", prompt: "x" })).message.value,
      /zzzzzz/,
    );
  });

  it("clears in the session that was active when the user was asked", async () => {
    const { parent } = await addRunningTasks(server, 1);
    const { parent: other } = await addRunningTasks(server, 1);
    await connect();
    await writeIn(server, parent);
    const clear = tool("asyncagents_clear");
    await clear.prepareInvocation({ input: {} });
    await writeIn(server, other);
    await confirmed(clear, {});
    assert.equal(engine.list(parent).length, 0);
    assert.equal(engine.list(other).length, 1);
  });

  it("clears nothing if there are more tasks than the user was asked about", async () => {
    const { parent } = await addRunningTasks(server, 1);
    await connect();
    await writeIn(server, parent);
    const clear = tool("asyncagents_clear");
    await clear.prepareInvocation({ input: {} });
    await engine.launch({ parentSessionID: parent, prompt: "More.", launchedBy: "person" });
    await assert.rejects(confirmed(clear, {}), /did not confirm exactly/);
    assert.equal(engine.list(parent).length, 2);
    await clear.prepareInvocation({ input: {} });
    await confirmed(clear, {});
    assert.deepEqual(engine.list(parent), []);
  });

  it("does nothing that the user did not confirm", async () => {
    await assert.rejects(confirmed(tool("asyncagents_task"), { prompt: "x" }), /did not confirm exactly/);
    const launch = tool("asyncagents_task");
    await launch.prepareInvocation({ input: { prompt: "x" } });
    await assert.rejects(confirmed(launch, { prompt: "y" }), /did not confirm exactly/);
    await confirmed(launch, { prompt: "x" });
    await assert.rejects(confirmed(launch, { prompt: "x" }), /did not confirm exactly/);
    assert.equal(engine.list(session.id ?? "").length, 1);
  });

  it("is prepared without connecting, and without a session", async () => {
    const input = { task_id: "aaaaaa", prompt: "x" };
    for (const { name } of DECLARATIONS) await tool(name).prepareInvocation({ input });
    assert.equal(connects, 0);
    assert.deepEqual(await server.sessions(), []);
  });

  describe("in a workspace of two folders", () => {
    let second: { engine: TaskEngine; session: ActiveSession };

    beforeEach(async () => {
      const other = new MemoryServer();
      const otherEngine = memoryEngine(other);
      second = { engine: otherEngine, session: new ActiveSession(otherEngine, other, strictLogger) };
      workspace.add("two", { ...second, ensureConnected: () => otherEngine.connect() });
      // Each server counts its sessions from one: the active ones need different IDs.
      await other.createSession({ title: "First" });
      const { id } = await other.createSession({ title: "Second" });
      await otherEngine.connect();
      await writeIn(other, id);
    });

    afterEach(() => {
      second.session.dispose();
      second.engine.dispose();
    });

    const launched = (of: { engine: TaskEngine; session: ActiveSession }): readonly string[] =>
      of.engine.list(of.session.id ?? "").map(({ description }) => description);

    it("runs two concurrent calls each in the folder that its confirmation names", async () => {
      const launch = tool("asyncagents_task");
      const [forOne, forTwo] = [
        { prompt: "x", description: "For one" },
        { prompt: "x", description: "For two" },
      ];
      const ask = async (input: object): Promise<string> => {
        const { confirmationMessages } = await launch.prepareInvocation({ input });
        return (confirmationMessages?.message as vscode.MarkdownString).value.replaceAll("&nbsp;", " ");
      };
      workspace.folders.use(workspace.get("one"));
      assert.match(await ask(forOne), /Folder: one/);
      workspace.folders.use(workspace.get("two"));
      assert.match(await ask(forTwo), /Folder: two/);
      await Promise.all([confirmed(launch, forOne), confirmed(launch, forTwo)]);
      assert.deepEqual(launched({ engine, session }), ["For one"]);
      assert.deepEqual(launched(second), ["For two"]);
    });

    it("runs two identical concurrent calls in neither folder if they were confirmed for different ones", async () => {
      const launch = tool("asyncagents_task");
      const input = { prompt: "x" };
      workspace.folders.use(workspace.get("one"));
      await launch.prepareInvocation({ input });
      workspace.folders.use(workspace.get("two"));
      await launch.prepareInvocation({ input });
      await assert.rejects(confirmed(launch, input), /did not confirm exactly/);
      await assert.rejects(confirmed(launch, input), /did not confirm exactly/);
      assert.deepEqual([...launched({ engine, session }), ...launched(second)], []);
    });
  });

  it("asks before it cancels tasks, and says which or how many", async () => {
    const { tasks, parent } = await addRunningTasks(server, 3);
    await connect();
    await writeIn(server, parent);
    const one = await confirmation("asyncagents_cancel", { task_id: tasks[1] });
    assert.equal(one.title, "Cancel this background task?");
    assert.match(one.message.value.replaceAll("&nbsp;", " "), /module 1/);
    const cancel = tool("asyncagents_cancel");
    const batch = { batch_id: "batch" };
    const { confirmationMessages } = await cancel.prepareInvocation({ input: batch });
    assert.equal(confirmationMessages?.title, "Cancel 3 background tasks?");
    await confirmed(cancel, batch);
    assert.ok(engine.list(parent).every(({ status }) => status === "cancelled"));
  });

  it("asks in general terms while the tasks are not known yet", async () => {
    const cancel = await confirmation("asyncagents_cancel", { task_id: "aaaaaa" });
    assert.equal(cancel.title, "Cancel background tasks?");
    assert.match(cancel.message.value.replaceAll("&nbsp;", " "), /Task: aaaaaa/);
    const clear = await confirmation("asyncagents_clear", {});
    assert.equal(clear.title, "Clear background tasks from the list?");
    assert.match(clear.message.value.replaceAll("&nbsp;", " "), /All background tasks of the active session/);
  });

  it("asks before it clears tasks, naming some and counting the running ones", async () => {
    const { tasks, parent } = await addRunningTasks(server, 12);
    await connect();
    await writeIn(server, parent);
    const all = await confirmation("asyncagents_clear", {});
    assert.equal(all.title, "Clear 12 background tasks from the list?");
    assert.match(all.message.value.replaceAll("&nbsp;", " "), /module 9[^]*and 2 more[^]*running[^]*12/);
    assert.equal(
      (await confirmation("asyncagents_clear", { task_id: tasks[3] })).title,
      "Clear this background task from the list?",
    );
    assert.equal((await confirmation("asyncagents_clear", { batch_id: "batch" })).title, all.title);
  });

  it("asks even if the input is invalid, and never when it only reads", async () => {
    assert.ok((await confirmation("asyncagents_task", { prompt: 7 })).title);
    assert.ok((await confirmation("asyncagents_clear", { task_id: "zzzzzz" })).title);
    assert.ok((await confirmation("asyncagents_cancel", {})).title);
    for (const name of ["asyncagents_output", "asyncagents_list"] as const) {
      const prepared = await tool(name).prepareInvocation({ input: {} });
      assert.equal(prepared.confirmationMessages, undefined);
      assert.ok(prepared.invocationMessage);
    }
  });

  it("stops waiting when the caller cancels", async () => {
    const { tasks, parent } = await addRunningTasks(server, 1);
    await connect();
    await writeIn(server, parent);
    const source = new vscode.CancellationTokenSource();
    const waiting = invoke(
      "asyncagents_output",
      { task_id: tasks[0], block: true, timeout: 600 },
      source.token,
    );
    source.cancel();
    await assert.rejects(waiting, vscode.CancellationError);
    assert.deepEqual(logged, []);
  });

  it("gives its error as one sentence, and logs it", async () => {
    await assert.rejects(invoke("asyncagents_task", { prompt: "x", model: "a" }), /provider\/model/);
    connecting = Promise.reject(new Error("inner detail"));
    await assert.rejects(invoke("asyncagents_list", {}), /^Error: Unexpected error/);
    assert.equal(logged.length, 2);
  });
});

describe("the agent tools inside OpenCode", () => {
  const model = ModelClient.fromEnv();
  const folder = (): string => vscode.workspace.workspaceFolders?.[0]?.uri.fsPath ?? assert.fail();
  const stateFolder = (): string => join(process.env["XDG_STATE_HOME"] ?? "", "opencode-async-agents");

  /** The server that the extension runs for the folder. */
  const request = async (path: string, init: RequestInit = {}): Promise<Response> => {
    const file = readdirSync(stateFolder()).find((name) => /^server-.*\.json$/.test(name)) ?? assert.fail();
    const { url, password } = JSON.parse(readFileSync(join(stateFolder(), file), "utf8"));
    const headers = {
      authorization: `Basic ${btoa(`opencode:${password}`)}`,
      "content-type": "application/json",
      "x-opencode-directory": encodeURIComponent(folder()),
    };
    return fetch(url + path, { ...init, headers });
  };
  const post = (path: string, body: unknown): Promise<Response> =>
    request(path, { method: "POST", body: JSON.stringify(body) });

  before(async function () {
    this.timeout(120_000);
    await activated();
    await vscode.commands.executeCommand("asyncagents.connect");
  });

  it("are available on a server that the extension started, and reach this window", async () => {
    const { id } = (await (await post("/session", { title: "With tools" })).json()) as { id: string };
    const text = script([{ tools: [{ name: "asyncagents_list", args: {} }] }, { text: "Seen." }]);
    await post(`/session/${id}/prompt_async`, { agent: "build", parts: [{ type: "text", text }] });
    const answered = await model.waitForRequest(
      ({ sessionID, messages }) => sessionID === id && messages.at(-1)?.role === "tool",
      30_000,
    );
    assert.equal(messageText(answered.messages.at(-1)), "No background tasks found");
  });

  for (const name of ["opencode.json", "opencode.jsonc"])
    it(`are added to ${name} of the folder, and removed again`, async () => {
      const path = join(folder(), name);
      const text = '{\n  // mine\n  "share": "disabled",\n}\n';
      writeFileSync(path, text);
      try {
        const { agentTools } = await activated();
        assert.equal(await agentTools.install("project"), path);
        assert.match(readFileSync(path, "utf8"), /\/\/ mine[^]*"plugin": \[\["file:.*opencode-plugin\.js"/);
        assert.ok(existsSync(join(stateFolder(), "opencode-plugin.js")));
        assert.equal(await agentTools.install("project"), path);
        assert.equal(await agentTools.remove("project"), path);
        assert.equal(readFileSync(path, "utf8"), text);
      } finally {
        rmSync(path, { force: true });
      }
    });

  it("are not added in a workspace that isn't trusted, where nothing may be started", async () => {
    const { agentTools } = await activated();
    const trust = Object.getOwnPropertyDescriptor(vscode.workspace, "isTrusted") ?? assert.fail();
    Object.defineProperty(vscode.workspace, "isTrusted", { ...trust, get: () => false });
    try {
      await assert.rejects(agentTools.install("project"), /isn't trusted/);
    } finally {
      Object.defineProperty(vscode.workspace, "isTrusted", trust);
    }
  });

  it("refuse an unusable configuration and invalid arguments", async () => {
    const path = join(folder(), "opencode.json");
    writeFileSync(path, '{ "plugin": 1 }');
    try {
      const { agentTools } = await activated();
      await assert.rejects(agentTools.install("project"), /"plugin" in .* isn't a list/);
      await assert.rejects(agentTools.install("everything" as never), /Invalid arguments for planAgentTools/);
      assert.equal(readFileSync(path, "utf8"), '{ "plugin": 1 }');
    } finally {
      rmSync(path, { force: true });
    }
  });
});
