import assert from "node:assert/strict";
import { shortID, type Task } from "../../src/engine/task.ts";
import { createSession, ended, type EngineWindow } from "../support/engine.ts";
import { script, type ScriptedModel, type ScriptStep } from "../support/scripted-model.ts";
import { takePictures } from "./support/pictures.ts";
import { setUp } from "./support/set-up.ts";
import type { Workbench } from "./support/workbench.ts";

const REFUSED: ScriptStep = { status: 401, body: { error: { message: "The key was refused." } } };

describe("notifications of ends, in a real editor", function () {
  let model: ScriptedModel;
  let launcher: EngineWindow;
  let parent: string;
  let workbench: Workbench;

  setUp(async (start) => {
    let asked = 0;
    // Refuses a prompt without a script at first, then works on it.
    const fallback = (): ScriptStep => (asked++ === 0 ? REFUSED : { text: "Done.", gate: "again" });
    model = await start.model({ fallback });
    const server = await start.server({ model });
    parent = await createSession(server, "Ship the release");
    launcher = await start.launcher(server);
    workbench = await start.window({
      server,
      settings: { "asyncagents.notifyParent": false, "asyncagents.maxConcurrentTasks": 0 },
    });
  });

  const launch = (description: string, ...steps: readonly ScriptStep[]): Promise<Task> =>
    launcher.engine.launch({
      prompt: steps.length > 0 ? script(steps) : "Go.",
      description,
      agent: "general",
      parentSessionID: parent,
      launchedBy: "person",
    });
  const notifications = (): Promise<readonly string[]> =>
    workbench.notification("").locator(".notification-list-item-message").allInnerTexts();

  it("eight tasks that end together are reported in one, which leads to them", async () => {
    const names = [1, 2, 3, 4, 5, 6, 7].map((at) => `Task ${at}`);
    const tasks = [];
    for (const name of names) tasks.push(await launch(name, { text: "Done.", gate: "go" }));
    tasks.push(await launch("Task 8", { ...REFUSED, gate: "go" }));
    await workbench.row("Task 8").waitFor();
    await workbench.runCommand("View: Show Explorer");
    await workbench.page.locator(".part.sidebar .composite.title", { hasText: "Explorer" }).waitFor();
    for (const { id } of tasks) await model.waitForRequest(({ sessionID }) => sessionID === id);
    model.release("go");
    const told = workbench.notification("8 tasks have ended: 7 completed, 1 failed");
    await told.waitFor();
    await takePictures(workbench, "notification-eight");
    assert.equal((await notifications()).length, 1);
    await told.getByRole("button", { name: "Show Tasks" }).click();
    await workbench.row("Task 8, failed").waitFor();
  });

  it("what completes in front of the user isn't reported, and Retry reveals the new task", async () => {
    const seen = await launch("In sight", { text: "Done." });
    await ended(launcher, seen.id);
    await workbench.row("In sight, completed").waitFor();
    const failed = await launch("Refused");
    await ended(launcher, failed.id);
    const told = workbench.notification('Task "Refused" failed');
    await told.waitFor();
    assert.equal((await notifications()).length, 1);
    await workbench.runCommand("View: Show Explorer");
    await told.getByRole("button", { name: "Retry" }).click();
    const selected = workbench.page.locator('.part.sidebar [role="treeitem"][aria-selected="true"]');
    const next = workbench.row("Refused, running");
    await selected.and(next).waitFor();

    const frame = workbench.webviewFrame();
    const shows = (status: string): Promise<void> => frame.locator(".status", { hasText: status }).waitFor();
    await workbench.clickRow(next);
    await frame.getByRole("button", { name: `Retries task ${shortID(failed.id)}` }).click();
    await shows("Failed");
    model.release("again");
    await frame.getByRole("button", { name: "Retried as task" }).click();
    await shows("Completed");
  });

  it("what ends in an open output isn't reported, even if the list is hidden", async () => {
    await launch("In a panel", { text: "Done.", gate: "shown" });
    await workbench.clickRow(workbench.row("In a panel"));
    const status = workbench.webviewFrame().locator(".status");
    await status.filter({ hasText: "Running" }).waitFor();
    await workbench.runCommand("View: Show Explorer");
    model.release("shown");
    await status.filter({ hasText: "Completed" }).waitFor();
    // The next end shows that the first one stays unreported.
    await launch("Elsewhere", REFUSED);
    await workbench.notification('Task "Elsewhere" failed').waitFor();
    assert.equal((await notifications()).length, 1);
  });
});
