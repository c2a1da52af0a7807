import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Task } from "../../src/engine/task.ts";
import { createSession, ended, type EngineWindow } from "../support/engine.ts";
import { modelConfig, type OpenCodeServer } from "../support/opencode.ts";
import { script, type ScriptedModel, type ScriptStep } from "../support/scripted-model.ts";
import { tempDir } from "../support/temp.ts";
import { until } from "../support/wait.ts";
import { takeHighContrastPicture, takePictures } from "./support/pictures.ts";
import { setUp } from "./support/set-up.ts";
import type { Workbench } from "./support/workbench.ts";

/** A step that costs 40 cents, at a dollar for a million tokens, and goes on. */
const STEP: ScriptStep = {
  text: "I look for the slow query.",
  usage: { prompt_tokens: 399_000, completion_tokens: 1_000, total_tokens: 400_000 },
  tools: [{ name: "glob", args: { pattern: "*.sql" } }],
};

const FIRST = "Shout the first line";
const SECOND = "Shout the last line";

describe("what the user is warned of, in a real editor", () => {
  let model: ScriptedModel;
  let server: OpenCodeServer;
  let launcher: EngineWindow;
  let parent: string;
  let workbench: Workbench;

  setUp(async (start) => {
    model = await start.model();
    const folder = tempDir("work");
    for (const name of ["list.txt", "index.txt"]) writeFileSync(join(folder, name), "one\ntwo\nthree\n");
    const { provider } = modelConfig(model) as { provider: { fake: { models: { m: object } } } };
    // Room for steps this large, or the server compacts the conversation.
    Object.assign(provider.fake.models.m, {
      cost: { input: 1, output: 1 },
      limit: { context: 10_000_000, output: 10_000 },
    });
    server = await start.server({ model, directory: folder, config: { provider } });
    parent = await createSession(server, "Make the login faster");
    launcher = await start.launcher(server);
    workbench = await start.window({
      server,
      settings: {
        "asyncagents.notifyParent": false,
        "asyncagents.budget.taskCost": 1,
      },
    });
  });

  const launch = (description: string, steps: readonly ScriptStep[]): Promise<Task> =>
    launcher.engine.launch({
      prompt: script(steps, "Find what slows the login. "),
      description,
      agent: "general",
      parentSessionID: parent,
      launchedBy: "person",
    });

  const failed = (id: string): Promise<unknown> =>
    until("the end of the task", () => launcher.engine.get(id)?.status === "error");

  it("warns of a task near its limit, and shows it in row and panel", async () => {
    const steps = [STEP, STEP, { ...STEP, gate: "third" }, { text: "Never.", gate: "never" }];
    const { id } = await launch("Find the slow query", steps);
    const warning = workbench.notification("has used 80% of its limit: $0.80 of $1.00");
    await warning.waitFor();
    const row = workbench.treeItem("Find the slow query").filter({ hasText: "80% of its limit" });
    await row.waitFor();
    assert.match((await row.getAttribute("aria-label")) ?? "", /80% of its limit/);
    await takePictures(workbench, "budget-warning");
    await takeHighContrastPicture(workbench, "budget-warning");

    await warning.getByRole("button", { name: "Show Output" }).click();
    await workbench.webviewFrame().getByText("80% of its limit").waitFor();
    await takePictures(workbench, "budget-panel");
    await takeHighContrastPicture(workbench, "budget-panel");

    await workbench.statusBarItem("Agents: 1 running").hover();
    const tooltip = workbench.page.locator(".workbench-hover", { hasText: "Today: 1 task" });
    await tooltip.waitFor();
    assert.match((await tooltip.textContent()) ?? "", /Today:\s1\stask,\s\$0\.80,\s800K\stokens/);
    await workbench.screenshot("budget-status-dark");
    await workbench.page.mouse.move(0, 0);

    model.release("third");
    await failed(id);
    const end = "Stopped at its limit of $1.00.";
    await workbench.webviewFrame().getByText(end).first().waitFor();
    await workbench.treeItem("Find the slow query").filter({ hasNotText: "of its limit" }).waitFor();
    await takePictures(workbench, "budget-stopped");
  });

  it("opens the setting from the warning; then notifies the user of the stop, and says what to do", async () => {
    await workbench.runCommand("Notifications: Clear All Notifications");
    const never: ScriptStep = { text: "Never.", gate: "never" };
    const { id } = await launch("Compare the indexes", [STEP, STEP, { ...STEP, gate: "setting" }, never]);
    const warning = workbench.notification('Task "Compare the indexes" has used 80%');
    await warning.getByRole("button", { name: "Change Limit" }).click();
    await workbench.page.locator(".settings-editor", { hasText: "Task Cost" }).waitFor();
    await takePictures(workbench, "budget-setting");
    await workbench.runCommand("View: Close All Editors");
    model.release("setting");
    await failed(id);
    const text = 'Task "Compare the indexes" failed: Stopped at its limit of $1.00.';
    const error = workbench.notification(text);
    await error.waitFor();
    await takePictures(workbench, "budget-failed");
    await error.getByRole("button", { name: "Change Limit" }).waitFor();
    await workbench.tooltipOf(workbench.treeItem("Compare the indexes"), "asyncagents.budget.taskCost");
    await workbench.screenshot("budget-stopped-tooltip-dark");
  });

  describe("two tasks that change the same file", () => {
    const edit = (name: string, oldString: string, newString: string, gate?: string): ScriptStep[] => {
      const filePath = join(server.directory, name);
      return [
        { ...(gate !== undefined && { gate }), tools: [{ name: "read", args: { filePath } }] },
        { tools: [{ name: "edit", args: { filePath, oldString, newString } }] },
      ];
    };

    it("[COL-3] marks the second one, and notifies the user once, with a button for the changes", async () => {
      const second = await launch(SECOND, [
        ...edit("list.txt", "three", "THREE", "list"),
        ...edit("index.txt", "three", "THREE", "index"),
        { text: "Done." },
      ]);
      await model.waitForRequest(({ step }) => step.gate === "list");
      const first = await launch(FIRST, [
        ...edit("list.txt", "one", "ONE"),
        ...edit("index.txt", "one", "ONE"),
        { text: "Done." },
      ]);
      await ended(launcher, first.id);
      model.release("list");

      const told = workbench.notification(`Tasks "${FIRST}" and "${SECOND}" both changed list.txt.`);
      await told.waitFor();
      const words = `list.txt also changed by "${FIRST}"`;
      const row = workbench.treeItem(SECOND).filter({ hasText: words });
      await row.waitFor();
      assert.ok((await row.getAttribute("aria-label"))?.includes(words));
      assert.equal(await workbench.treeItem("also changed by").count(), 1);
      await takePictures(workbench, "collision");
      await takeHighContrastPicture(workbench, "collision");

      model.release("index");
      await ended(launcher, second.id);
      await workbench
        .treeItem(SECOND)
        .filter({ hasText: `2 files also changed by "${FIRST}"` })
        .waitFor();
      const tooltip = await workbench.tooltipOf(workbench.treeItem(SECOND), `Also changed by "${FIRST}"`);
      await tooltip.filter({ hasText: "list.txt, index.txt" }).waitFor();
      await tooltip.filter({ hasText: "seen only afterwards" }).waitFor();
      await workbench.screenshot("collision-tooltip-dark");
      await workbench.page.mouse.move(0, 0);

      // Includes those that are hidden by now.
      await workbench.showNotifications();
      await told.waitFor();
      assert.equal(await workbench.notification("both changed").count(), 1);
      await told.getByRole("button", { name: "Show Changes" }).click();
      await workbench.tab(`Changes by edit tools: ${SECOND}`).waitFor();
      const changed = workbench
        .treeItem("list.txt")
        .filter({ hasText: `edited · also changed by "${FIRST}"` });
      await changed.waitFor();
      await takePictures(workbench, "collision-changes");
    });
  });
});
