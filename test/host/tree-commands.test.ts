import assert from "node:assert/strict";
import * as vscode from "vscode";
import type { Task } from "../../src/engine/task.ts";
import type { AsyncAgentsApi } from "../../src/ui/api.ts";
import { script } from "../support/script.ts";

const EXTENSION = "async-agents.opencode-async-agents";

describe("the tree's commands from code", () => {
  let api: AsyncAgentsApi;

  const run = (command: string, ...args: readonly unknown[]): Promise<unknown> =>
    Promise.resolve(vscode.commands.executeCommand(`asyncagents.${command}`, ...args));

  const launch = async (input: Record<string, unknown>): Promise<Task> =>
    ((await run("launch", input)) as Task | undefined) ?? assert.fail("no task");

  before(async function () {
    this.timeout(120_000);
    const extension = vscode.extensions.getExtension<AsyncAgentsApi>(EXTENSION);
    assert.ok(extension);
    api = await extension.activate();
    await api.ready();
  });

  after(() => run("clearFilter"));

  it("a filter takes statuses, agents and a text, and refuses what there is not", async () => {
    assert.deepEqual(await run("filter", { status: ["error", "resumed"], agent: ["general"], text: "x" }), {
      states: ["error", "running"],
      agents: ["general"],
      text: "x",
    });
    assert.deepEqual(await run("filter", {}), { states: [], agents: [], text: "" });
    await assert.rejects(run("filter", { status: ["lost"] }), /no status lost; give waiting, running/);
    await assert.rejects(run("filter", { status: "error" }), /"status" must be a list/);
    await assert.rejects(run("filter", { text: 7 }), /"text" must be a string/);
    await assert.rejects(run("filter", "error"), /must be an object/);
  });

  it("an order is named, and one that there is not is refused", async () => {
    assert.equal(await run("sort", "name"), "name");
    await assert.rejects(run("sort", "size"), /one of active, newest/);
    assert.equal(await run("sort", "active"), "active");
  });

  it("[EXT-5] the answer of a task is copied", async () => {
    const task = await launch({ prompt: script([{ text: "The **answer**." }]) });
    await api.tasks.wait(task.id, { timeoutMs: 30_000 });
    assert.equal(await run("copyResult", task.id), "The **answer**.");
    assert.equal(await vscode.env.clipboard.readText(), "The **answer**.");
  });
});
