import assert from "node:assert/strict";
import * as vscode from "vscode";
import type { Task } from "../../src/engine/task.ts";
import type { AsyncAgentsApi } from "../../src/ui/api.ts";
import { ModelClient } from "../support/model-client.ts";
import { script } from "../support/script.ts";
import { until } from "../support/wait.ts";

const EXTENSION = "async-agents.opencode-async-agents";

interface Manifest {
  readonly contributes: {
    readonly commands: readonly { readonly command: string }[];
  };
}

describe("commands and API in the extension host", () => {
  const model = ModelClient.fromEnv();
  let api: AsyncAgentsApi;

  before(async function () {
    this.timeout(120_000);
    const extension = vscode.extensions.getExtension<AsyncAgentsApi>(EXTENSION);
    assert.ok(extension);
    api = await extension.activate();
    await api.ready();
  });

  const launch = async (input: Record<string, unknown>): Promise<Task> =>
    (await vscode.commands.executeCommand<Task | undefined>("asyncagents.launch", input)) ??
    assert.fail("no task");

  const finished = async (task: Task): Promise<Task> =>
    (await api.tasks.wait(task.id, { timeoutMs: 30_000 })) ?? assert.fail("the task is gone");

  it("every command of the manifest is registered, and no other", async () => {
    const manifest = vscode.extensions.getExtension(EXTENSION)?.packageJSON as Manifest;
    const declared = manifest.contributes.commands.map(({ command }) => command).sort();
    const registered = (await vscode.commands.getCommands(true)).filter((id) =>
      /^asyncagents\.[a-z]+$/i.test(id),
    );
    // The editor adds commands of its own for the view.
    assert.deepEqual(registered.filter((id) => id !== "asyncagents.tasks").sort(), declared);
  });

  it("[EXT-1] [EXT-3] launching connects, starting a server if need be, and gives the task back", async () => {
    const task = await launch({
      description: "From code",
      prompt: script([{ text: "Done." }]),
      agent: "general",
    });
    assert.equal(task.status, "running");
    assert.equal(task.description, "From code");
    assert.equal(task.parentSessionID, api.session.active);
    assert.equal((await finished(task)).status, "completed");
    assert.equal((await api.tasks.output(task.id)).result, "Done.");
    assert.ok(api.tasks.list().some(({ id }) => id === task.id));
  });

  it("a prompt of a megabyte reaches the model whole", async () => {
    const text = "A line of words, of which there are many.\n".repeat(25_000);
    const prompt = `${script([{ text: "Read." }])}\n${text}`;
    const task = await launch({ prompt });
    const { messages } = await model.waitForRequest(({ sessionID }) => sessionID === task.id);
    assert.ok(JSON.stringify(messages).includes(JSON.stringify(text).slice(1, -1)));
    assert.equal((await finished(task)).status, "completed");
  });

  it("changes are told as they happen", async () => {
    const changed: Task[] = [];
    const subscription = api.tasks.onDidChange(({ after }) => after && changed.push(after));
    const { id } = await finished(await launch({ prompt: script([{ text: "x" }]) }));
    subscription.dispose();
    // Tasks of earlier tests may still change: their notices are on their way.
    const statuses = changed.filter((task) => task.id === id).map(({ status }) => status);
    assert.equal(statuses[0], "running");
    assert.ok(statuses.includes("completed"));
  });

  it("bad arguments are refused with a sentence, and nothing is launched", async () => {
    const count = api.tasks.list().length;
    const refusals: readonly (readonly [unknown, RegExp])[] = [
      [{ prompt: " " }, /prompt is empty/],
      [{}, /prompt is empty/],
      ["text", /must be an object/],
      [{ prompt: 7 }, /"prompt" must be a string/],
      [{ prompt: "x", agent: "nobody" }, /no agent "nobody"/],
      [{ prompt: "x", model: "fake" }, /write it as provider\/model/],
      [{ prompt: "x", model: "fake/none" }, /no model "fake\/none"/],
    ];
    for (const [argument, message] of refusals)
      await assert.rejects(
        async () => vscode.commands.executeCommand("asyncagents.launch", argument),
        message,
      );
    await assert.rejects(
      async () => vscode.commands.executeCommand("asyncagents.cancel", "zzzzzz"),
      /no task zzzzzz/,
    );
    await assert.rejects(
      async () => vscode.commands.executeCommand("asyncagents.cancel", {}),
      /task or its ID/,
    );
    await assert.rejects(
      async () => vscode.commands.executeCommand("asyncagents.selectSession", "ses_no"),
      /no session/,
    );
    assert.equal(api.tasks.list().length, count);
  });

  it("[STA-3] a running task is cancelled by the end of its ID", async () => {
    const task = await launch({ prompt: script([{ text: "x", gate: "host-cancel", gateAfterText: true }]) });
    await model.waitForRequest(({ sessionID }) => sessionID === task.id);
    const cancelled = await vscode.commands.executeCommand<Task>("asyncagents.cancel", task.id.slice(-6));
    assert.equal(cancelled.status, "cancelled");
    const again = await vscode.commands.executeCommand<Task>("asyncagents.retry", task);
    assert.notEqual(again.id, task.id);
    await model.release("host-cancel");
    assert.equal((await finished(again)).status, "completed");
  });

  it("a completed task is resumed from code", async () => {
    const task = await finished(await launch({ prompt: script([{ text: "One." }]) }));
    const resumed = await vscode.commands.executeCommand<Task>(
      "asyncagents.resume",
      task.id,
      script([{ text: "Two." }]),
    );
    assert.equal(resumed.resumeCount, 1);
    await finished(resumed);
    assert.equal((await api.tasks.output(task.id)).result, "Two.");
  });

  it("[OUT-7] a task is cleared; one that runs only where that is said", async () => {
    const done = await finished(await launch({ prompt: script([{ text: "x" }]) }));
    await vscode.commands.executeCommand("asyncagents.clear", done.id);
    assert.ok(!api.tasks.list().some(({ id }) => id === done.id));
    const task = await launch({ prompt: script([{ text: "x", gate: "host-clear", gateAfterText: true }]) });
    await model.waitForRequest(({ sessionID }) => sessionID === task.id);
    await assert.rejects(
      async () => vscode.commands.executeCommand("asyncagents.clear", task.id),
      /still at work/,
    );
    await vscode.commands.executeCommand("asyncagents.clear", task.id, { cancelRunning: true });
    assert.ok(!api.tasks.list().some(({ id }) => id === task.id));
  });

  it("[BAT-1] a batch is launched and cancelled from code", async () => {
    const prompt = script([{ text: "x", gate: "host-batch", gateAfterText: true }]);
    const tasks = await vscode.commands.executeCommand<readonly Task[]>("asyncagents.launchBatch", {
      tasks: [{ prompt }, { prompt, agent: "explore" }],
    });
    assert.equal(tasks.length, 2);
    assert.equal(tasks[0]?.batchID, tasks[1]?.batchID);
    for (const { id } of tasks) await model.waitForRequest(({ sessionID }) => sessionID === id);
    const argument = { batch_id: tasks[0]?.batchID };
    const cancelled = await vscode.commands.executeCommand<readonly Task[]>(
      "asyncagents.cancelBatch",
      argument,
    );
    assert.deepEqual(
      cancelled.map(({ status }) => status),
      ["cancelled", "cancelled"],
    );
  });

  it("the ID of a task is copied", async () => {
    const task = await finished(await launch({ prompt: script([{ text: "x" }]) }));
    await vscode.commands.executeCommand("asyncagents.copyTaskId", task.id);
    assert.equal(await vscode.env.clipboard.readText(), task.id);
  });

  it("[EXT-4] showing the output opens one panel per task", async () => {
    const task = await finished(await launch({ description: "Shown", prompt: script([{ text: "x" }]) }));
    await vscode.commands.executeCommand("asyncagents.showOutput", task.id);
    await vscode.commands.executeCommand("asyncagents.showOutput", task.id);
    const panels = (): readonly vscode.Tab[] =>
      vscode.window.tabGroups.all.flatMap(({ tabs }) => tabs).filter(({ label }) => label === "Shown");
    await until("the panel", () => panels().length > 0);
    assert.equal(panels().length, 1);
  });

  it("another session is selected, and followed again", async () => {
    const first = api.session.active;
    assert.ok(first);
    const selected = await vscode.commands.executeCommand("asyncagents.selectSession", first);
    assert.equal(selected, first);
    assert.equal(api.session.active, first);
  });

  it("[EXT-5] a task is forked from code, by the API and by the command, as the same agent", async () => {
    const source = await finished(
      await launch({ prompt: script([{ text: "The word is blue." }]), agent: "explore" }),
    );
    const prompt = script([{ text: "I know." }], "Which word? ");
    const forks = [
      await api.tasks.fork(source.id, prompt),
      await vscode.commands.executeCommand<Task>("asyncagents.fork", source.id, prompt, { agent: "build" }),
    ];
    assert.deepEqual(
      forks.map(({ isForked, forkedFrom, agent }) => [isForked, forkedFrom, agent]),
      [
        [true, source.id, "explore"],
        [true, source.id, "build"],
      ],
    );
    for (const { id } of forks) {
      const request = await model.waitForRequest(({ sessionID, title }) => sessionID === id && !title);
      assert.match(JSON.stringify(request.messages), /The word is blue\./);
      assert.equal((await finished(api.tasks.get(id) ?? assert.fail())).status, "completed");
    }
  });

  it("the active session is forked from code", async () => {
    const task = await vscode.commands.executeCommand<Task>("asyncagents.launchForked", {
      prompt: script([{ text: "Done." }]),
      description: "Forked",
    });
    assert.equal(task.isForked, true);
    assert.equal(task.forkedFrom, task.parentSessionID);
    assert.equal((await finished(task)).status, "completed");
    await assert.rejects(
      async () => vscode.commands.executeCommand("asyncagents.launchForked", { prompt: "x", fork: true }),
      /no argument fork/,
    );
  });
});
