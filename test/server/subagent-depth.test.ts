import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Refused } from "../../src/engine/folder-changes.ts";
import { PluginConfig } from "../../src/opencode/plugin-config.ts";
import { pluginUrl, startAgentServer } from "../support/agent-tools.ts";
import { createSession, ended, openWindow, type EngineWindow } from "../support/engine.ts";
import {
  basicAuthorization,
  hermeticEnv,
  hermeticHome,
  modelConfig,
  type OpenCodeServer,
} from "../support/opencode.ts";
import { messageText, script, startScriptedModel, type ScriptedModel } from "../support/scripted-model.ts";
import { Desk, silentLogger } from "./desk.ts";

/** What a window and a test need from a server. */
type Joinable = Pick<OpenCodeServer, "url" | "password" | "directory" | "env" | "fetch">;

describe("Subagents of tasks", function () {
  this.timeout(90_000);
  let model: ScriptedModel;
  let desk: Desk | undefined;
  let server: OpenCodeServer | undefined;
  const windows: EngineWindow[] = [];

  before(async () => {
    model = await startScriptedModel();
  });

  afterEach(async () => {
    for (const window of windows.splice(0)) window.dispose();
    await desk?.close();
    desk = undefined;
    await server?.stop();
    server = undefined;
  });

  after(async () => {
    await model?.stop();
  });

  /** The result of OpenCode's own `task` tool that a task's model receives. */
  async function delegate(on: Joinable, onRefused?: (refused: Refused) => void): Promise<string> {
    const window = await openWindow(on);
    windows.push(window);
    if (onRefused) window.engine.onDidRefuse(onRefused);
    const args = {
      description: "Look",
      prompt: script([{ text: "The subagent's answer." }]),
      subagent_type: "general",
    };
    const { id } = await window.engine.launch({
      prompt: script([{ tools: [{ name: "task", args }] }, { text: "Done." }]),
      description: "Delegates",
      agent: "general",
      parentSessionID: await createSession(on),
      launchedBy: "person",
    });
    await ended(window, id);
    const request = model.requests.findLast(({ sessionID, title }) => sessionID === id && !title);
    return messageText(request?.messages.findLast(({ role }) => role === "tool"));
  }

  /** A server that is started as the extension starts it, for a user with this configuration. */
  async function startOwn(
    configured: (plugin: PluginConfig) => object = () => ({}),
    { tools } = { tools: true },
  ): Promise<Joinable> {
    const home = hermeticHome();
    desk = Desk.open({ env: hermeticEnv(home, modelConfig(model)) });
    const { directory, env, stateFolder } = desk;
    const plugin = new PluginConfig({
      bundle: fileURLToPath(await pluginUrl()),
      stateFolder,
      places: { directory, env, home },
      logger: silentLogger,
    });
    writeFileSync(join(home, ".config", "opencode", "opencode.json"), JSON.stringify(configured(plugin)));
    const serverEnv = async (): Promise<typeof env> =>
      plugin.serverEnv(env, { tools, subagentDepth: 2, graceMs: 600_000 });
    await desk.connection({}, { serverEnv }).connect();
    const { url, password } = desk.state() ?? assert.fail("no server");
    return {
      url,
      password,
      directory,
      env,
      fetch: (path, init = {}) => {
        const headers = new Headers(init.headers);
        headers.set("authorization", basicAuthorization(password));
        headers.set("x-opencode-directory", directory);
        return fetch(url + path, { ...init, headers });
      },
    };
  }

  it("answer on a server that the extension starts, without any setting", async () => {
    assert.match(await delegate(await startOwn()), /The subagent's answer\./);
  });

  it("answer there with the agent tools turned off", async () => {
    const server = await startOwn(undefined, { tools: false });
    assert.match(await delegate(server), /The subagent's answer\./);
  });

  it("answer there with the agent tools in the user's own configuration as well", async () => {
    const own = await startOwn((plugin) => ({ plugin: [JSON.parse(plugin.entry)] }));
    assert.match(await delegate(own), /The subagent's answer\./);
  });

  it("are refused there if the user's configuration says so", async () => {
    const own = await startOwn(() => ({ subagent_depth: 1 }));
    assert.match(await delegate(own), /Subagent depth limit reached \(1\)/);
  });

  it("are refused on the user's own server, and the window learns which depth to set", async () => {
    server = await startAgentServer({ model });
    const refused: Refused[] = [];
    assert.match(await delegate(server, (one) => refused.push(one)), /Subagent depth limit reached \(1\)/);
    assert.deepEqual(
      refused.map((one) => one.kind === "subagent" && [one.task.description, one.depth]),
      [["Delegates", 2]],
    );
  });
});
