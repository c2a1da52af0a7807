import assert from "node:assert/strict";
import type { ToolCall } from "../../../src/bridge/tool-call.ts";
import { ToolEndpoint } from "../../../src/bridge/tool-endpoint.ts";
import { Refusal } from "../../../src/engine/errors.ts";
import plugin from "../../../src/plugin/main.ts";
import type { SetupContext, SetupTool } from "../../../src/plugin/setup.ts";
import { toolInputSchema } from "../../../src/tools/input-schema.ts";
import type { ToolResult } from "../../../src/tools/tool.ts";
import { DECLARATIONS } from "../../../src/tools/declarations.ts";
import { realClock } from "../../support/engine.ts";
import { tempDir } from "../../support/temp.ts";
import { until } from "../../support/wait.ts";

const server = "http://127.0.0.1:49374";

/** A host written from the source of OpenCode 2. It never met a real one. */
class FakeHost {
  readonly tools: SetupTool[] = [];
  readonly directory = tempDir("folder");
  readonly stateFolder = tempDir("state");

  load(options: object, app: SetupContext["app"] = { server: { url: server } }): Promise<void> {
    const { tools } = this;
    return plugin.setup({
      location: { directory: this.directory },
      app,
      options: { stateFolder: this.stateFolder, patienceMs: 0, ...options },
      tool: {
        transform(change) {
          change({ add: (tool) => void tools.push(tool) });
          return Promise.resolve();
        },
      },
    });
  }
}

describe("The plugin in a fake OpenCode 2", () => {
  let host: FakeHost;
  let endpoint: ToolEndpoint | undefined;

  beforeEach(() => {
    host = new FakeHost();
  });
  afterEach(() => {
    endpoint?.dispose();
    endpoint = undefined;
  });

  async function serve(handle: (call: ToolCall, signal: AbortSignal) => Promise<ToolResult>): Promise<void> {
    endpoint = new ToolEndpoint({
      stateFolder: host.stateFolder,
      directories: [host.directory],
      server,
      handle,
      beginWrite: async () => true,
      clock: realClock,
      logger: { debug() {}, info() {}, warn() {}, error() {} },
    });
    await endpoint.open();
  }

  const run = (name: string, input: unknown, signal = new AbortController().signal) => {
    const tool = host.tools.find((one) => one.name === name) ?? assert.fail(name);
    return tool.execute(input, { sessionID: "ses_1", messageID: "msg_1", id: "call_1", signal });
  };

  it("is one object with an entry for each version of OpenCode", () => {
    assert.deepEqual(Object.keys(plugin).sort(), ["id", "server", "setup"]);
  });

  it("declares all tools for direct calls, with JSON schemas", async () => {
    await host.load({ tools: true });
    assert.deepEqual(
      host.tools.map(({ name, input, options }) => ({ name, input, options })),
      DECLARATIONS.map((tool) => ({
        name: tool.name,
        input: toolInputSchema(tool),
        options: { codemode: false },
      })),
    );
  });

  for (const [what, options, app] of [
    ["its entry does not ask for tools, as one for OpenCode 1", {}, { server: { url: server } }],
    ["tools are switched off", { tools: false }, { server: { url: server } }],
    ["the host does not say where its server is", { tools: true }, {}],
  ] as const)
    it(`declares nothing if ${what}`, async () => {
      await host.load(options, app);
      assert.deepEqual(host.tools, []);
    });

  it("forwards a call with its session, message and ID, and returns text and metadata", async () => {
    const calls: ToolCall[] = [];
    await serve((call) => {
      calls.push(call);
      return Promise.resolve({ title: "Listed", text: "No tasks.", metadata: { count: 0 } });
    });
    await host.load({ tools: true });
    assert.deepEqual(await run("asyncagents_list", { status: "running" }), {
      content: "No tasks.",
      metadata: { title: "Listed", count: 0 },
    });
    assert.deepEqual(
      calls.map(({ waitedMs: _, ...call }) => call),
      [
        {
          tool: "asyncagents_list",
          onlyIfOurs: true,
          input: { status: "running" },
          sessionID: "ses_1",
          messageID: "msg_1",
          callID: "call_1",
        },
      ],
    );
  });

  it("answers with the reason if a call is refused, or no one serves the folder", async () => {
    await host.load({ tools: true });
    assert.match((await run("asyncagents_list", {})).content, /open .* in VS Code and try again/);
    await serve(() => Promise.reject(new Refusal("invalid-argument", "The prompt is empty.")));
    assert.equal((await run("asyncagents_task", {})).content, "The prompt is empty.");
  });

  it("if a turn is aborted, its call is aborted, too, and answered", async () => {
    const turn = new AbortController();
    let held: AbortSignal | undefined;
    await serve((_, signal) => {
      held = signal;
      turn.abort();
      return new Promise(() => undefined);
    });
    await host.load({ tools: true });
    assert.match((await run("asyncagents_output", {}, turn.signal)).content, /abort/i);
    await until("the end of the call", () => held?.aborted);
  });
});
