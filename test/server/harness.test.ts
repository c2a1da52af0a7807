import assert from "node:assert/strict";
import { ModelClient } from "../support/model-client.ts";
import { type OpenCodeServer } from "../support/opencode.ts";
import { script, type ScriptedModel } from "../support/scripted-model.ts";
import { setUp } from "../support/set-up.ts";
import { until } from "../support/wait.ts";

interface Turn {
  readonly info: { readonly finish?: string; readonly modelID: string };
  readonly parts: readonly { readonly type: string; readonly text?: string; readonly tool?: string }[];
}

describe("The test harness: scripted model and real OpenCode", function () {
  this.timeout(60_000);
  let model: ScriptedModel;
  let server: OpenCodeServer;

  setUp(async (start) => {
    model = await start.model();
    server = await start.server({ model });
  });
  async function post(path: string, body: unknown): Promise<Response> {
    const headers = { "content-type": "application/json" };
    const response = await server.fetch(path, { method: "POST", headers, body: JSON.stringify(body) });
    assert.ok(response.ok, `${path}: ${response.status}`);
    return response;
  }
  async function newSession(): Promise<string> {
    return ((await (await post("/session", {})).json()) as { id: string }).id;
  }
  function prompt(text: string, modelID = "m"): unknown {
    return { agent: "build", model: { providerID: "fake", modelID }, parts: [{ type: "text", text }] };
  }
  const answers = (session: string) =>
    model.requests.filter((request) => request.sessionID === session && !request.title);

  it("plays a script with a tool call through the real server", async () => {
    const session = await newSession();
    const steps = [
      {
        text: "Looking. ",
        tools: [{ name: "bash", args: { command: "echo $((40 + 2))", description: "sum" } }],
      },
      { reasoning: "That was it. ", text: "The sum is there." },
    ];
    const answer = await post(`/session/${session}/message`, prompt(script(steps, "Add up. "), "m2"));
    const turn = (await answer.json()) as Turn;
    assert.equal(turn.info.finish, "stop");
    assert.equal(turn.info.modelID, "m2");
    assert.equal(turn.parts.find((part) => part.type === "text")?.text, "The sum is there.");
    assert.equal(turn.parts.find((part) => part.type === "reasoning")?.text?.trim(), "That was it.");
    const last = answers(session).at(-1);
    assert.equal(last?.model, "m2");
    assert.match(JSON.stringify(last?.messages.findLast((one) => one.role === "tool")?.content), /42/);
  });

  it("holds an answer at its gate until it is released, also from another client", async () => {
    const session = await newSession();
    const steps = [{ text: "before the gate", gate: "first", gateAfterText: true }];
    await post(`/session/${session}/prompt_async`, prompt(script(steps)));
    const request = await model.waitForRequest((one) => one.sessionID === session && !one.title);
    await until("text that was sent before the gate", async () => {
      const messages = (await (await server.fetch(`/session/${session}/message`)).json()) as Turn[];
      return messages.some(({ parts }) => parts.some((part) => part.type === "step-start"));
    });
    assert.equal(request.finished, false);
    await new ModelClient(model.url).release("first");
    await until("the end of the answer", () => request.finished);
    assert.equal(request.aborted, false);
  });

  it("sees that the client disconnected", async () => {
    const session = await newSession();
    await post(`/session/${session}/prompt_async`, prompt(script([{ gate: "never" }])));
    const request = await model.waitForRequest((one) => one.sessionID === session && !one.title);
    await post(`/session/${session}/abort`, {});
    await until("the abort to reach the model", () => request.aborted);
  });

  it("refuses as often as the script says, and then answers", async () => {
    const session = await newSession();
    const headers = { "retry-after-ms": "10" };
    const steps = [{ status: 429, times: 2, headers, text: "third time lucky" }];
    const turn = (await (await post(`/session/${session}/message`, prompt(script(steps)))).json()) as Turn;
    assert.equal(turn.parts.find((part) => part.type === "text")?.text, "third time lucky");
    assert.equal(answers(session).length, 3);
  });

  it("restarts a killed server with its sessions and its password", async () => {
    const session = await newSession();
    const before = server.pid;
    await server.kill();
    await assert.rejects(server.fetch("/global/health"));
    await server.restart();
    assert.notEqual(server.pid, before);
    assert.equal((await server.fetch(`/session/${session}`)).status, 200);
    assert.equal((await fetch(`${server.url}/session/${session}`)).status, 401);
  });
});
