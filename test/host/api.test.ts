import assert from "node:assert/strict";
import { realpathSync } from "node:fs";
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

  const launch = (input: unknown): Promise<Task> => api.tasks.launch(input as never);

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

  it("a key binding can pass a prompt: the command launches it", async () => {
    const task = await vscode.commands.executeCommand<Task | undefined>("asyncagents.launch", {
      prompt: script([{ text: "Bound." }]),
      agent: "general",
    });
    assert.equal((await finished(task ?? assert.fail("no task"))).status, "completed");
  });

  it("[EXT-1] [EXT-3] launching connects first, and returns the task", async () => {
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

  it("a prompt of a megabyte reaches the model completely", async () => {
    const text = "A line of words, of which there are many.\n".repeat(25_000);
    const prompt = `${script([{ text: "Read." }])}\n${text}`;
    const task = await launch({ prompt });
    const { messages } = await model.waitForRequest(({ sessionID }) => sessionID === task.id);
    assert.ok(JSON.stringify(messages).includes(JSON.stringify(text).slice(1, -1)));
    assert.equal((await finished(task)).status, "completed");
  });

  it("changes are reported as they happen", async () => {
    const changed: Task[] = [];
    const subscription = api.tasks.onDidChange(({ after }) => after && changed.push(after));
    const { id } = await finished(await launch({ prompt: script([{ text: "x" }]) }));
    subscription.dispose();
    // Tasks of earlier tests may still change, because their notices are still being sent.
    const statuses = changed.filter((task) => task.id === id).map(({ status }) => status);
    assert.equal(statuses[0], "running");
    assert.ok(statuses.includes("completed"));
  });

  it("invalid arguments are refused with a sentence, and nothing is launched", async () => {
    const count = api.tasks.list().length;
    const refusals: readonly (readonly [unknown, RegExp])[] = [
      [{}, /prompt is empty/],
      [{ prompt: " " }, /prompt is empty/],
      ["text", /an object with a prompt/],
      [{ prompt: 7 }, /"prompt" must be a string/],
      [{ prompt: "x", agent: 7 }, /"agent" must be a string/],
      [
        { prompt: "x", agnet: "plan" },
        /Argument "agnet" doesn't exist\. Available arguments: prompt, description, agent,/,
      ],
      [{ prompt: "x", agent: "nobody" }, /Agent "nobody" doesn't exist/],
      [{ prompt: "x", model: "fake" }, /Enter it as provider\/model/],
      [{ prompt: "x", model: "fake/none" }, /Model "fake\/none" doesn't exist/],
    ];
    for (const [argument, message] of refusals) await assert.rejects(launch(argument), message);
    const fork = { fork: true } as object;
    await assert.rejects(
      api.tasks.fork(api.session.active ?? "", "x", fork),
      /Argument "fork" doesn't exist/,
    );
    await assert.rejects(api.tasks.cancel("zzzzzz"), /Task zzzzzz doesn't exist/);
    // A key binding gets a message, and no question.
    assert.equal(await vscode.commands.executeCommand("asyncagents.launch", { prmpt: "x" }), undefined);
    assert.equal(api.tasks.list().length, count);
  });

  it("[STA-3] a running task is cancelled by the end of its ID, and can be retried", async () => {
    const task = await launch({ prompt: script([{ text: "x", gate: "host-cancel", gateAfterText: true }]) });
    await model.waitForRequest(({ sessionID }) => sessionID === task.id);
    const cancelled = await api.tasks.cancel(task.id.slice(-6));
    assert.equal(cancelled.status, "cancelled");
    const again = await api.tasks.retry(task.id);
    assert.notEqual(again.id, task.id);
    await model.release("host-cancel");
    assert.equal((await finished(again)).status, "completed");
  });

  it("a completed task is resumed from code", async () => {
    const task = await finished(await launch({ prompt: script([{ text: "One." }]) }));
    const resumed = await api.tasks.resume(task.id, script([{ text: "Two." }]));
    assert.equal(resumed.resumeCount, 1);
    await finished(resumed);
    assert.equal((await api.tasks.output(task.id)).result, "Two.");
  });

  it("[OUT-7] a task is cleared, a running one only if the caller agrees to cancel it", async () => {
    const done = await finished(await launch({ prompt: script([{ text: "x" }]) }));
    await api.tasks.clear(done.id);
    assert.ok(!api.tasks.list().some(({ id }) => id === done.id));
    const task = await launch({ prompt: script([{ text: "x", gate: "host-clear", gateAfterText: true }]) });
    await model.waitForRequest(({ sessionID }) => sessionID === task.id);
    await assert.rejects(api.tasks.clear(task.id), /still running/);
    await api.tasks.clear(task.id, { cancelRunning: true });
    assert.ok(!api.tasks.list().some(({ id }) => id === task.id));
  });

  it("the work in a folder is stopped by its path; other folders and idle ones are left alone", async () => {
    const folder = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath ?? assert.fail("no folder");
    const task = await launch({ prompt: script([{ text: "x", gate: "host-stop", gateAfterText: true }]) });
    await model.waitForRequest(({ sessionID }) => sessionID === task.id);
    assert.deepEqual(await api.server.stopBackgroundWork(["/no/such/folder"]), []);
    assert.equal(api.tasks.get(task.id)?.status, "running");
    const stopped = await api.server.stopBackgroundWork([folder]);
    assert.deepEqual(stopped, [realpathSync(folder)]);
    assert.equal((await finished(task)).status, "cancelled");
    assert.deepEqual(await api.server.stopBackgroundWork([folder]), []);
  });

  it("[BAT-1] a batch is launched and cancelled from code", async () => {
    const prompt = script([{ text: "x", gate: "host-batch", gateAfterText: true }]);
    const first = await launch({ prompt });
    const second = await launch({ prompt, agent: "explore", batch_id: first.batchID });
    assert.equal(first.batchID, second.batchID);
    for (const { id } of [first, second]) await model.waitForRequest(({ sessionID }) => sessionID === id);
    const cancelled = await api.tasks.cancelBatch(first.batchID);
    assert.deepEqual(
      cancelled.map(({ status }) => status),
      ["cancelled", "cancelled"],
    );
  });

  it("the ID of a task is copied to the clipboard", async () => {
    const task = await finished(await launch({ prompt: script([{ text: "x" }]) }));
    await vscode.commands.executeCommand("asyncagents.copyTaskId", task.id);
    assert.equal(await vscode.env.clipboard.readText(), task.id);
  });

  it("[EXT-5] the answer of a task is copied to the clipboard", async () => {
    const task = await finished(await launch({ prompt: script([{ text: "The **answer**." }]) }));
    await vscode.commands.executeCommand("asyncagents.copyResult", task.id);
    assert.equal(await vscode.env.clipboard.readText(), "The **answer**.");
  });

  it("[EXT-5] the last text of a task that isn't completed is not copied as its result", async () => {
    const step = { text: "I look into it.", gate: "host-text", gateAfterText: true };
    const task = await launch({ prompt: script([step]) });
    await until("the text", () => api.tasks.get(task.id)?.progress?.phase === "streaming");
    await api.tasks.cancel(task.id);
    await model.release("host-text");
    await vscode.commands.executeCommand("asyncagents.copyResult", task.id);
    assert.match(
      await vscode.env.clipboard.readText(),
      /^Not completed\. The last text:\n\nI look into it\.$/,
    );
  });

  it("[EXT-4] showing the output twice opens one panel", async () => {
    const task = await finished(await launch({ description: "Shown", prompt: script([{ text: "x" }]) }));
    await vscode.commands.executeCommand("asyncagents.showOutput", task.id);
    await vscode.commands.executeCommand("asyncagents.showOutput", task.id);
    const panels = (): readonly vscode.Tab[] =>
      vscode.window.tabGroups.all.flatMap(({ tabs }) => tabs).filter(({ label }) => label === "Shown");
    await until("the panel", () => panels().length > 0);
    assert.equal(panels().length, 1);
  });

  it("the active session can be selected again", async () => {
    const first = api.session.active;
    assert.ok(first);
    api.session.select(first);
    assert.equal(api.session.active, first);
  });

  it("[EXT-5] a task is forked from code, with the same agent or another one", async () => {
    const source = await finished(
      await launch({ prompt: script([{ text: "The word is blue." }]), agent: "explore" }),
    );
    const prompt = script([{ text: "I know." }], "Which word? ");
    const forks = [
      await api.tasks.fork(source.id, prompt),
      await api.tasks.fork(source.id, prompt, { agent: "build" }),
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
    const active = api.session.active ?? assert.fail("no session");
    const task = await api.tasks.fork(active, script([{ text: "Done." }]), { description: "Forked" });
    assert.equal(task.isForked, true);
    assert.equal(task.forkedFrom, task.parentSessionID);
    assert.equal((await finished(task)).status, "completed");
  });
});
