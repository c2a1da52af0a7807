import assert from "node:assert/strict";
import type { AgentServer } from "../../src/engine/ports.ts";
import type { Task } from "../../src/engine/task.ts";
import { startOf } from "../../src/state/processes.ts";
import {
  createSession,
  ended,
  notices,
  openWindow,
  realClock,
  storedMessages,
  type EngineWindow,
} from "../support/engine.ts";
import { keepingAborts, replacing } from "../support/mortal-server.ts";
import { type OpenCodeServer } from "../support/opencode.ts";
import { processIn } from "../support/process.ts";
import { script, type ScriptedModel, type ScriptStep } from "../support/scripted-model.ts";
import { setUp } from "../support/set-up.ts";
import { until } from "../support/wait.ts";

interface StoredTask {
  readonly metadata: {
    readonly asyncagents: {
      readonly parentMessageID?: string;
      readonly error?: { readonly message: string };
    };
  };
}

describe("a task's life", () => {
  let model: ScriptedModel;
  let server: OpenCodeServer;
  let window: EngineWindow;
  let parent: string;

  setUp(async (start) => {
    model = await start.model();
    server = await start.server({ model });
    // Polling finds nothing here: events report how a turn ends.
    window = await start.engine(server, { pollInterval: 3_600_000 });
  });

  beforeEach(async () => {
    parent = await createSession(server);
  });

  const launch = (steps: readonly ScriptStep[], description = "A task"): Promise<Task> =>
    window.engine.launch({
      prompt: script(steps, "Do it. "),
      description,
      agent: "general",
      parentSessionID: parent,
      launchedBy: "person",
    });

  it("[CRE-1] a launch returns a running task with its own ID and its parent, before the model has answered", async () => {
    const first = await storedMessage();
    const task = await launch([{ gate: "cre-1", text: "done" }]);
    assert.equal(task.status, "running");
    assert.equal(task.parentSessionID, parent);
    assert.equal(task.parentMessageID, first);
    assert.equal(task.agent, "general");
    const other = await launch([{ text: "other" }]);
    assert.notEqual(other.id, task.id);
    await model.waitForRequest(({ sessionID }) => sessionID === task.id);
    assert.equal(window.engine.get(task.id)?.status, "running");
    model.release("cre-1");
    await ended(window, task.id);
  });

  it("[CRE-1] the server keeps the message that a launch names as its parent, not the newest one", async () => {
    const named = await storedMessage();
    assert.notEqual(await storedMessage(), named);
    const { id } = await window.engine.launch({
      prompt: script([{ text: "done" }]),
      agent: "general",
      parentSessionID: parent,
      parentMessageID: named,
      launchedBy: "person",
    });
    const { metadata } = (await (await server.fetch(`/session/${id}`)).json()) as StoredTask;
    assert.equal(metadata.asyncagents.parentMessageID, named);
    await ended(window, id);
  });

  /** A new message in the parent's conversation. */
  async function storedMessage(): Promise<string | undefined> {
    const before = (await storedMessages(server, parent)).length;
    await server.fetch(`/session/${parent}/prompt_async`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ agent: "build", noReply: true, parts: [{ type: "text", text: "Hello" }] }),
    });
    const messages = await until("the parent's message", async () => {
      const stored = await storedMessages(server, parent);
      return stored.length > before && stored;
    });
    return messages.at(-1)?.info.id;
  }

  it("[CNT-2] a new task has a resume count of 0", async () => {
    const task = await launch([{ text: "done" }]);
    assert.equal(task.resumeCount, 0);
    assert.equal((await ended(window, task.id)).resumeCount, 0);
  });

  it("[STA-1] a finished turn completes the task, and keeps time and result", async () => {
    const before = Date.now();
    const task = await ended(window, (await launch([{ text: "The answer is 42." }])).id);
    assert.equal(task.status, "completed");
    assert.ok(task.endedAt !== undefined && task.endedAt >= before && task.endedAt <= Date.now());
    assert.equal((await window.engine.output(task.id)).result, "The answer is 42.");
  });

  it("[OUT-1] the output of a completed task is its result, and fetching it is recorded", async () => {
    const { id, retrievedAt } = await ended(window, (await launch([{ text: "Result" }])).id);
    assert.equal(retrievedAt, undefined);
    const before = Date.now();
    const { task, result } = await window.engine.output(id);
    assert.equal(result, "Result");
    assert.ok(task.retrievedAt !== undefined && task.retrievedAt >= before);
  });

  it("[STA-2] a failed turn ends the task with an error, in the model's own words", async () => {
    const task = await ended(
      window,
      (await launch([{ status: 401, body: { error: { message: "key refused", type: "auth" } } }])).id,
    );
    assert.equal(task.status, "error");
    assert.deepEqual(task.error, { name: "APIError", message: "key refused" });
    await until("the stored error", async () => {
      const stored = (await (await server.fetch(`/session/${task.id}`)).json()) as StoredTask;
      return stored.metadata.asyncagents.error?.message === "key refused";
    });
  });

  it("concurrent retries launch one task; a later retry launches another", async () => {
    const { id } = await launch([{ status: 400, body: { error: { message: "No." } } }]);
    await ended(window, id);
    const [first, second] = await Promise.all([window.engine.retry(id), window.engine.retry(id)]);
    assert.equal(second.id, first.id);
    assert.equal(window.engine.list(parent).length, 2);
    const later = await window.engine.retry(id);
    assert.notEqual(later.id, first.id);
    await Promise.all([ended(window, first.id), ended(window, later.id)]);
  });

  it("an unknown agent or model is refused with the available names, and nothing is created", async () => {
    const count = async (): Promise<number> =>
      ((await (await server.fetch("/session")).json()) as unknown[]).length;
    const before = await count();
    const input = { prompt: "x", parentSessionID: parent, launchedBy: "person" } as const;
    await assert.rejects(
      window.engine.launch({ ...input, agent: "nobody" }),
      /Agent "nobody" doesn't exist.*general/,
    );
    await assert.rejects(
      window.engine.launch({ ...input, agent: "general", model: { providerID: "fake", modelID: "none" } }),
      /Model "fake\/none".*fake\/m2/,
    );
    await assert.rejects(window.engine.launch({ ...input, prompt: " \n" }), /prompt is empty/);
    assert.equal(await count(), before);
  });

  it("a prompt of 1 MB is accepted", async () => {
    const task = await window.engine.launch({
      prompt: script([{ text: "read it all" }], `${"lorem ipsum ".repeat(90_000)}\n`),
      agent: "general",
      parentSessionID: parent,
      launchedBy: "person",
    });
    assert.ok(task.description.length <= 200);
    assert.equal((await ended(window, task.id)).status, "completed");
  });

  it("[STA-3] a cancel stops the model's stream, and the task is cancelled", async () => {
    const task = await launch([{ text: "begins", gate: "never", gateAfterText: true }]);
    const request = await model.waitForRequest(({ sessionID }) => sessionID === task.id);
    const cancelled = await window.engine.cancel(task.id);
    assert.equal(cancelled.status, "cancelled");
    await until("the end of the model's stream", () => request.aborted);
    await until("an idle server", async () => Object.keys(await statuses()).length === 0);
    assert.equal(window.engine.get(task.id)?.status, "cancelled");
    await assert.rejects(window.engine.cancel(task.id), /isn't running.*cancelled.*Launch a new task/);
  });

  it("[STA-3] a cancel stops the running tool", async () => {
    const task = await launch([
      {
        tools: [{ name: "bash", args: { command: "sleep 300 & echo $! > pid; wait", description: "wait" } }],
      },
    ]);
    const pid = await processIn(`${server.directory}/pid`);
    assert.notEqual(await startOf(pid), undefined);
    await window.engine.cancel(task.id);
    // One that has ended but whose parent hasn't noticed yet has ended, too.
    await until("the end of the tool's process", async () => (await startOf(pid)) === undefined);
    assert.equal(window.engine.get(task.id)?.status, "cancelled");
  });

  it("a task cancelled before its turn begins stays cancelled, and no turn keeps running", async () => {
    const task = await launch([{ text: "late", gate: "never-2" }]);
    await window.engine.cancel(task.id);
    await until("an idle server", async () => Object.keys(await statuses()).length === 0);
    assert.equal(window.engine.get(task.id)?.status, "cancelled");
    await until("the end of the model's streams", () =>
      model.requests.filter(({ sessionID }) => sessionID === task.id).every(({ aborted }) => aborted),
    );
  });

  it("a task cancelled while the server still stores its prompt stays cancelled, however late its turn begins", async () => {
    let passed = 0;
    let store = (): Promise<void> => Promise.reject(new Error("Nothing was prompted."));
    const aborts: Promise<void>[] = [];
    // A turn may be stopped before it has a message, so its beginning shows in the events alone.
    const begun = new Set<string>();
    const between = (real: AgentServer): AgentServer => {
      real.onEvent((event) => {
        if (event.type === "session-status" && event.status.type === "busy") begun.add(event.sessionID);
      });
      const deaf = replacing(
        real,
        "prompt",
        async (...prompt) => void (store = () => real.prompt(...prompt)),
      );
      return keepingAborts(deaf, aborts);
    };
    const clock = { ...realClock, now: () => Date.now() + passed };
    const slow = await openWindow(server, {}, { between, clock });
    const { id } = await slow.engine.launch({
      prompt: script([{ text: "late", gate: "never-late" }]),
      parentSessionID: parent,
      launchedBy: "agent",
    });
    await slow.engine.cancel(id, "agent");
    passed = 600_000;
    // An abort that comes while the prompt is being stored keeps the turn from beginning.
    await Promise.all(aborts);
    await store();
    await until("the beginning of the turn", () => begun.has(id));
    await until("an idle session", async () => !(id in (await statuses())));
    assert.equal(slow.engine.get(id)?.status, "cancelled");
    slow.dispose();
  });

  async function statuses(): Promise<Record<string, unknown>> {
    return (await (await server.fetch("/session/status")).json()) as Record<string, unknown>;
  }

  it("a turn that is aborted elsewhere cancels the task", async () => {
    const task = await launch([{ text: "begins", gate: "never-3", gateAfterText: true }]);
    await model.waitForRequest(({ sessionID }) => sessionID === task.id);
    await server.fetch(`/session/${task.id}/abort`, { method: "POST" });
    assert.equal((await ended(window, task.id)).status, "cancelled");
  });

  it("an empty answer completes the task with an empty result", async () => {
    const task = await ended(window, (await launch([{ text: "" }])).id);
    assert.equal(task.status, "completed");
    assert.equal((await window.engine.output(task.id)).result, "");
  });

  it("an answer beside a last tool call is the result, and one that was cut off says so", async () => {
    const tools = [{ name: "bash", args: { command: "true", description: "first" } }];
    const beside = await launch([{ text: "The report.", tools }, { text: "" }]);
    const cut = await launch([{ text: "Half of it", finish: "length" }]);
    for (const [{ id }, result] of [
      [beside, /^The report\.$/],
      [cut, /^Half of it\n\n\[The answer ends here: /],
    ] as const) {
      assert.equal((await ended(window, id)).status, "completed");
      assert.match((await window.engine.output(id)).result ?? "", result);
    }
  });

  it("[PRG-1] the progress of a running task shows its tool calls, the recent tools and the last update", async () => {
    const before = Date.now();
    const task = await launch([
      { tools: [{ name: "bash", args: { command: "echo one > one.txt", description: "first" } }] },
      { tools: [{ name: "read", args: { filePath: `${server.directory}/one.txt` } }] },
      { text: "held", gate: "prg-1" },
    ]);
    await until("two tool calls", () => window.engine.get(task.id)?.progress?.toolCalls === 2);
    await model.waitForRequest(({ sessionID, step }) => sessionID === task.id && step.gate === "prg-1");
    const { progress } = await until("finished tools", () => {
      const now = window.engine.get(task.id);
      return now?.progress?.recentTools.every(({ status }) => status === "completed") && now;
    });
    assert.deepEqual(
      progress?.recentTools.map(({ tool }) => tool),
      ["bash", "read"],
    );
    assert.deepEqual(progress.toolCounts, { bash: 1, read: 1 });
    assert.equal(progress.recentTools[0]?.title, "echo one > one.txt");
    assert.ok(progress.lastUpdate >= before && progress.lastUpdate <= Date.now());
    assert.equal(progress.phase, "thinking");
    model.release("prg-1");
    assert.equal((await ended(window, task.id)).progress, undefined);
  });

  it("[EVT-1] an idle session completes the task, and the parent is notified with the full result", async () => {
    const result = `A long result. ${"word ".repeat(2_000)}`.trim();
    const task = await launch([{ text: result }], "Long work");
    const changes: string[] = [];
    const subscription = window.engine.onDidChange(({ id, after }) => {
      if (id === task.id && after) changes.push(after.status);
    });
    await ended(window, task.id);
    const [notice] = await until("the notice", async () => {
      const told = await notices(server, parent);
      return told.length > 0 && told;
    });
    subscription.dispose();
    assert.match(notice?.line ?? "", /"Long work" completed after .*\.$/);
    assert.ok(notice?.hidden.includes(result));
    assert.ok(notice?.hidden.includes("All 1 tasks finished."));
    assert.ok(!changes.slice(changes.indexOf("completed")).includes("running"));
    await until("the record of the delivery", () => window.engine.get(task.id)?.notice.state === "delivered");
    assert.equal((await notices(server, parent)).length, 1);
    // The parent was only informed: its model was not called.
    assert.ok(!model.requests.some(({ sessionID, title }) => sessionID === parent && !title));
  });

  it("[FLT-1] a session's list contains only its direct children", async () => {
    const mine = await launch([{ text: "mine" }]);
    const elsewhere = await createSession(server, "Elsewhere");
    const other = await window.engine.launch({
      prompt: script([{ text: "other" }]),
      agent: "general",
      parentSessionID: elsewhere,
      launchedBy: "person",
    });
    const grandchild = await window.engine.launch({
      prompt: script([{ text: "deep" }]),
      agent: "general",
      parentSessionID: mine.id,
      launchedBy: "person",
    });
    assert.deepEqual(
      window.engine.list(parent).map(({ id }) => id),
      [mine.id],
    );
    for (const { id } of [mine, other, grandchild]) await ended(window, id);
  });

  it("[OUT-7] a task stays on the list until it is cleared, and clearing can be undone", async () => {
    const { id } = await ended(window, (await launch([{ text: "kept" }])).id);
    await window.engine.clear(id);
    assert.deepEqual(window.engine.list(parent), []);
    assert.equal((await server.fetch(`/session/${id}`)).status, 200);
    await window.engine.restore(id);
    assert.equal(window.engine.list(parent).length, 1);
  });

  it("[OUT-7] a running task is cleared only if the caller agrees to cancel it", async () => {
    const task = await launch([{ text: "x", gate: "never-4", gateAfterText: true }]);
    await assert.rejects(window.engine.clear(task.id), /still running/);
    await model.waitForRequest(({ sessionID }) => sessionID === task.id);
    const cleared = await window.engine.clear(task.id, { cancelRunning: true });
    assert.equal(cleared.status, "cancelled");
    assert.deepEqual(window.engine.list(parent), []);
  });

  it("[OUT-7] the tasks of a deleted session are removed from the list", async () => {
    const { id } = await ended(window, (await launch([{ text: "x" }])).id);
    await server.fetch(`/session/${parent}`, { method: "DELETE" });
    await until("the empty list", () => window.engine.list(parent).length === 0);
    assert.equal(window.engine.get(id), undefined);
  });
});
