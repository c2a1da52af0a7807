import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { EngineSettings } from "../../src/engine/engine.ts";
import type { PendingRequest } from "../../src/engine/server-model.ts";
import {
  openAgentWindow,
  startAgentServer,
  startTurn,
  type AgentServer,
  type AgentWindow,
} from "../support/agent-tools.ts";
import { createSession, ended } from "../support/engine.ts";
import {
  messageText,
  script,
  startScriptedModel,
  type ScriptedModel,
  type ScriptStep,
} from "../support/scripted-model.ts";
import { until } from "../support/wait.ts";

describe("two agents in one folder", () => {
  let model: ScriptedModel;
  let server: AgentServer;
  let window: AgentWindow | undefined;
  let parent: string;
  let file: string;

  before(async () => {
    model = await startScriptedModel();
    const agent = { asker: { mode: "subagent", description: "Asks.", permission: { edit: "ask" } } };
    server = await startAgentServer({ model, config: { agent }, plugin: { writePatienceMs: 10_000 } });
  });
  beforeEach(async () => {
    parent = await createSession(server);
    file = join(server.directory, "list.txt");
    writeFileSync(file, "one\ntwo\nthree\n");
  });
  afterEach(() => window?.dispose());
  after(async () => {
    await server?.stop();
    await model?.stop();
  });

  const read = (): ScriptStep => ({ tools: [{ name: "read", args: { filePath: file } }] });
  const write = (content: string, gate?: string): ScriptStep => ({
    ...(gate !== undefined && { gate }),
    tools: [{ name: "write", args: { filePath: file, content } }],
  });
  const edit = (oldString: string, newString: string): ScriptStep => ({
    tools: [{ name: "edit", args: { filePath: file, oldString, newString } }],
  });

  async function open(collisions: EngineSettings["collisions"]): Promise<AgentWindow> {
    window = await openAgentWindow(server, { settings: { collisions } });
    return window;
  }

  async function launch(
    { engine }: AgentWindow,
    description: string,
    steps: readonly ScriptStep[],
    agent = "general",
  ) {
    return engine.launch({
      prompt: script(steps),
      description,
      agent,
      parentSessionID: parent,
      launchedBy: "person",
    });
  }

  /** The tool results that a session's model received. */
  const results = (id: string): readonly string[] =>
    (model.requests.findLast(({ sessionID, title }) => sessionID === id && !title)?.messages ?? [])
      .filter(({ role }) => role === "tool")
      .map(messageText);

  it("[COL-2] a write to a file that changed since it was read is refused; after the model reads it again, both edits are there", async () => {
    const own = await open("block");
    const late = await launch(own, "Shout the last", [
      read(),
      write("one\ntwo\nTHREE\n", "late"),
      read(),
      edit("three", "THREE"),
      { text: "Done." },
    ]);
    await model.waitForRequest(({ step }) => step.gate === "late");
    const first = await launch(own, "Shout the first", [read(), edit("one", "ONE"), { text: "Done." }]);
    await ended(own, first.id);
    model.release("late");
    await ended(own, late.id);
    assert.equal(readFileSync(file, "utf8"), "ONE\ntwo\nTHREE\n");
    const [, refusal, again, edited] = results(late.id);
    assert.match(refusal ?? "", /The task "Shout the first" changed \S*list\.txt after you last read it/);
    assert.match(again ?? "", /ONE/);
    assert.doesNotMatch(edited ?? "", /after you last read it/);
  });

  it("[COL-2] a change that waits for the user is not allowed once another task has changed its file", async () => {
    const own = await open("block");
    // OpenCode lets no other edit of a file begin while an edit of it waits, but another edit while a write does.
    const steps = [read(), write("one\ntwo\nTHREE\n"), read(), edit("three", "THREE"), { text: "Done." }];
    const late = await launch(own, "Shout the last", steps, "asker");
    const asked = (): Promise<PendingRequest> =>
      until("the request", () => own.engine.pendingRequests(late.id)[0]);
    const request = await asked();
    // Its first write is refused, as the waiting one is announced.
    const writes = [read(), edit("one", "ONE"), read(), edit("one", "ONE"), { text: "Done." }];
    await ended(own, (await launch(own, "Shout the first", writes)).id);
    const allow = { type: "permission", reply: "once" } as const;
    await assert.rejects(own.engine.answer(request, allow), { code: "stale-file" });
    await own.engine.answer(request, { type: "permission", reply: "reject", message: "Read it again." });
    await until("the next request", async () => (await asked()).id !== request.id);
    await own.engine.answer(await asked(), allow);
    await ended(own, late.id);
    assert.equal(readFileSync(file, "utf8"), "ONE\ntwo\nTHREE\n");
  });

  it("[COL-3] the task that changes a file second is marked with the one that changed it first, unless the setting is off", async () => {
    for (const setting of ["block", "off"] as const) {
      const own = await open(setting);
      const gate = `second ${setting}`;
      const steps = [{ ...read(), gate }, edit("three", "THREE"), { text: "Done." }];
      const second = await launch(own, "Shout the last", steps);
      await model.waitForRequest(({ step }) => step.gate === gate);
      const first = await launch(own, "Shout the first", [read(), edit("one", "ONE"), { text: "Done." }]);
      await ended(own, first.id);
      model.release(gate);
      await ended(own, second.id);
      const mark = { taskID: first.id, description: first.description, paths: [file], isFirst: true };
      assert.deepEqual(
        own.engine.get(second.id)?.collisions,
        setting === "off" ? undefined : [mark],
        setting,
      );
      assert.equal(own.engine.get(first.id)?.collisions, undefined);
      own.dispose();
      writeFileSync(file, "one\ntwo\nthree\n");
    }
  });

  it("the user's own conversation may always write, and so may a task if the setting is warn", async () => {
    for (const [setting, gate] of [
      ["block", "user"],
      ["warn", "warned"],
    ] as const) {
      const own = await open(setting);
      const steps = [read(), write("late\n", gate), { text: "Done." }];
      const isUser = setting === "block";
      const turn = isUser ? await startTurn(server, await createSession(server), steps) : undefined;
      const task = isUser ? undefined : await launch(own, "Late", steps);
      await model.waitForRequest(({ step }) => step.gate === gate);
      const first = await launch(own, "First", [read(), write("first\n"), { text: "Done." }]);
      await ended(own, first.id);
      model.release(gate);
      await turn?.ended();
      if (task) await ended(own, task.id);
      assert.equal(readFileSync(file, "utf8"), "late\n", setting);
      own.dispose();
    }
  });
});
