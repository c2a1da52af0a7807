import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Task } from "../../src/engine/task.ts";
import {
  createSession,
  ended,
  notices,
  openWindow,
  storedMessages,
  type EngineWindow,
} from "../support/engine.ts";
import { keepingAborts, replacing } from "../support/mortal-server.ts";
import { type OpenCodeServer } from "../support/opencode.ts";
import { makeRepository } from "../support/repository.ts";
import { script, type ScriptedModel, type ScriptStep } from "../support/scripted-model.ts";
import { setUp } from "../support/set-up.ts";
import { until } from "../support/wait.ts";

describe("tasks outlive windows, connections and servers", () => {
  let model: ScriptedModel;
  let server: OpenCodeServer;
  let parent: string;

  const openEngine = setUp(async (start) => {
    model = await start.model();
    server = await start.server({ model, directory: makeRepository({ "a.txt": "a\n" }).directory });
  });

  beforeEach(async () => {
    parent = await createSession(server);
  });

  const open = (): Promise<EngineWindow> => openEngine(server);

  async function launch(window: EngineWindow, steps: readonly ScriptStep[]): Promise<string> {
    const { id } = await window.engine.launch({
      prompt: script(steps),
      description: "Lasting",
      agent: "general",
      parentSessionID: parent,
      launchedBy: "person",
    });
    await model.waitForRequest(({ sessionID }) => sessionID === id);
    return id;
  }

  it("[OUT-7] after a reload the same tasks are there, and a running one is followed to its end", async () => {
    const before = await open();
    const finished = await launch(before, [{ text: "first" }]);
    // The end is stored together with the delivery of its notice.
    await until("the notice", () => before.engine.get(finished)?.notice.state === "delivered");
    const running = await launch(before, [
      { tools: [{ name: "bash", args: { command: "true", description: "nothing" } }] },
      { text: "second", gate: "reload" },
    ]);
    await until("the tool call", () => before.engine.get(running)?.progress?.toolCalls === 1);
    before.dispose();

    const after = await open();
    assert.deepEqual(
      after.engine.list(parent).map(({ id, status }) => [id, status]),
      [
        [finished, "completed"],
        [running, "running"],
      ],
    );
    assert.equal(after.engine.get(running)?.progress?.toolCalls, 1);
    assert.equal((await after.engine.output(finished)).result, "first");
    model.release("reload");
    await ended(after, running);
    assert.equal((await after.engine.output(running)).result, "second");
    await until("both notices", async () => (await notices(server, parent)).length === 2);
  });

  it("[EVT-2] a task that ended while no window was open is completed at the next connect, and its parent is notified once", async () => {
    const before = await open();
    const id = await launch(before, [{ text: "unseen", gate: "unwatched" }]);
    before.dispose();
    model.release("unwatched");
    await until("the end of the turn", async () => {
      const statuses = (await (await server.fetch("/session/status")).json()) as object;
      return Object.keys(statuses).length === 0;
    });
    const after = await open();
    await ended(after, id);
    assert.equal((await after.engine.output(id)).result, "unseen");
    await until("the delivery", () => after.engine.get(id)?.notice.state === "delivered");
    const third = await open();
    assert.equal(third.engine.get(id)?.status, "completed");
    assert.equal((await notices(server, parent)).length, 1);
  });

  it("[OUT-7] after the server was killed and restarted its tasks are there; the one it interrupted has an error that says so", async () => {
    const window = await open();
    const finished = await launch(window, [{ text: "safe" }]);
    await ended(window, finished);
    const lost = await launch(window, [{ text: "begins", gate: "killed", gateAfterText: true }]);
    await until("a begun answer", () => window.engine.get(lost)?.progress?.phase === "streaming");
    await server.kill();
    await until("the loss of the connection", () => window.connection.state.kind !== "connected");
    assert.equal(window.engine.get(lost)?.status, "running");
    await server.restart();
    const task = await ended(window, lost);
    assert.equal(task.status, "error");
    assert.equal(task.error?.name, "Interrupted");
    assert.match(task.error?.message ?? "", /server stopped.*Retry/);
    assert.equal((await window.engine.output(finished)).result, "safe");
    assert.equal(window.engine.list(parent).length, 2);
    await until("both notices", async () => (await notices(server, parent)).length === 2);

    const again = await window.engine.retry(lost);
    assert.notEqual(again.id, lost);
    model.release("killed");
    assert.equal((await ended(window, again.id)).status, "completed");
  });

  it("a worktree whose configuration the restarted server refuses keeps no other task from being followed", async () => {
    const window = await open();
    const isolated = await window.engine.launch({
      prompt: script([{ text: "begins", gate: "refused", gateAfterText: true }]),
      agent: "general",
      parentSessionID: parent,
      launchedBy: "person",
      isolation: "worktree",
    });
    await until("a begun answer", () => window.engine.get(isolated.id)?.progress?.phase === "streaming");
    const configuration = join(isolated.worktree?.directory ?? assert.fail(), "opencode.json");
    writeFileSync(configuration, "{ half written");
    await server.kill();
    await until("the loss of the connection", () => window.connection.state.kind !== "connected");
    window.dispose();
    await server.restart();
    const after = await open();
    const other = await launch(after, [{ text: "safe" }]);
    await ended(after, other);
    assert.equal((await after.engine.output(other)).result, "safe");
    assert.equal(after.engine.get(isolated.id)?.status, "running");
    rmSync(configuration);
    await server.kill();
    await server.restart();
    assert.equal((await ended(after, isolated.id)).error?.name, "Interrupted");
    model.release("refused");
  });

  it("a cancelled task whose turn began while no window was open is stopped by the next window", async () => {
    const task = await cancelledEarly();
    const { id, promptMessageID: messageID } = task;
    const unwatched = script([{ text: "unwatched", gate: "never-unwatched" }]);
    await say(id, unwatched, messageID);
    await beginning(id);
    const next = await open();
    await idle(id);
    assert.equal(next.engine.get(id)?.status, "cancelled");
  });

  it("a user's prompt in the session of a cancelled task is answered, also across a reload", async () => {
    const { id } = await cancelledEarly();
    await say(id, script([{ text: "Answered.", gate: "asked-later" }]));
    await model.waitForRequest(({ sessionID, step }) => sessionID === id && step.gate === "asked-later");
    const next = await open();
    model.release("asked-later");
    await idle(id);
    assert.equal(await next.engine.lastAnswer(id), "Answered.");
  });

  /** A cancelled task whose prompt never reached the server. */
  async function cancelledEarly(): Promise<Task> {
    const aborts: Promise<void>[] = [];
    const deaf = await openWindow(
      server,
      {},
      { between: (real) => replacing(keepingAborts(real, aborts), "prompt", async () => undefined) },
    );
    const { id } = await deaf.engine.launch({ prompt: "x", parentSessionID: parent, launchedBy: "agent" });
    const task = await deaf.engine.cancel(id, "agent");
    await Promise.all(aborts);
    deaf.dispose();
    return task;
  }

  const say = (sessionID: string, text: string, messageID?: string): Promise<unknown> =>
    server.fetch(`/session/${sessionID}/prompt_async`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ agent: "general", messageID, parts: [{ type: "text", text }] }),
    });

  const beginning = (id: string): Promise<unknown> =>
    until("the beginning of the turn", async () =>
      (await storedMessages(server, id)).some(({ info }) => info.role === "assistant"),
    );

  const idle = (id: string): Promise<unknown> =>
    until("an idle session", async () => {
      const statuses = (await (await server.fetch("/session/status")).json()) as object;
      return !(id in statuses);
    });

  it("a record of a future version is reported as unreadable and not overwritten", async () => {
    const metadata = { asyncagents: { v: 99, from: "the future" }, theirs: { kept: true } };
    const created = await server.fetch("/session", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ title: "From later", parentID: parent, metadata }),
    });
    const { id } = (await created.json()) as { id: string };
    const window = await open();
    assert.deepEqual(window.engine.list(parent), []);
    assert.equal(window.engine.unreadable(parent)[0]?.sessionID, id);
    const stored = (await (await server.fetch(`/session/${id}`)).json()) as { metadata: unknown };
    assert.deepEqual(stored.metadata, metadata);
  });
});
