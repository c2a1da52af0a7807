import assert from "node:assert/strict";
import type { Task } from "../../src/engine/task.ts";
import { createSession, ended, type EngineWindow } from "../support/engine.ts";
import { makeRepository, type TestRepository } from "../support/repository.ts";
import { script, type ScriptedModel, type ScriptStep } from "../support/scripted-model.ts";
import { takeHighContrastPicture, takePictures } from "./support/pictures.ts";
import { setUp } from "./support/set-up.ts";
import type { Workbench } from "./support/workbench.ts";

const FIRST = "Shout the first line";
const SECOND = "Shout the last line";

describe("conflicts of isolated tasks, in a real editor", () => {
  let model: ScriptedModel;
  let repository: TestRepository;
  let launcher: EngineWindow;
  let parent: string;
  let tasks: readonly Task[];
  let workbench: Workbench;

  setUp(async (start) => {
    model = await start.model();
    repository = makeRepository({ "list.txt": "one\ntwo\nthree\n", "index.txt": "one\n" });
    const server = await start.server({ model, directory: repository.directory });
    parent = await createSession(server, "Make it louder");
    launcher = await start.launcher(server);
    // A window follows a worktree that it did not make itself if it finds the task when it opens.
    tasks = [
      await launch(FIRST, [
        { gate: "begin", ...write("list.txt", "ONE\ntwo\nthree\n") },
        { gate: "end", text: "Done." },
      ]),
      await launch(SECOND, [
        { gate: "begin too", ...write("list.txt", "one!\ntwo\nTHREE\n") },
        write("index.txt", "ONE\n"),
        { gate: "end", text: "Done." },
      ]),
    ];
    workbench = await start.window({
      server,
      settings: { "asyncagents.notifyParent": false, "asyncagents.notifyUser": "failures" },
      shows: (opened) => opened.treeItem(FIRST).waitFor(),
    });
  });

  const write = (filePath: string, content: string): ScriptStep => ({
    tools: [{ name: "write", args: { filePath, content } }],
  });

  const launch = (description: string, steps: readonly ScriptStep[]): Promise<Task> =>
    launcher.engine.launch({
      prompt: script(steps, "Make it louder. "),
      description,
      agent: "general",
      parentSessionID: parent,
      batchID: "loud",
      launchedBy: "person",
      isolation: "worktree",
    });

  it("[COL-1] rows, tooltip and status bar name the files while the tasks work, and after a file was saved", async () => {
    model.release("begin");
    const first = workbench.treeItem(FIRST).filter({ hasText: "1 file +1 −1" });
    await first.waitFor();
    assert.doesNotMatch((await first.textContent()) ?? "", /worktree/);
    assert.match((await first.getAttribute("aria-label")) ?? "", /\(worktree\)/);
    model.release("begin too");
    const words = `conflicts in list.txt with "${FIRST}"`;
    const row = workbench.treeItem(SECOND).filter({ hasText: words });
    await row.waitFor();
    assert.ok((await row.getAttribute("aria-label"))?.includes(words));
    await row.filter({ hasText: "2 files +3 −3" }).waitFor();
    await workbench
      .treeItem(FIRST)
      .filter({ hasText: `with "${SECOND}"` })
      .waitFor();
    await workbench.treeItem("2 in conflict").waitFor();
    await workbench.statusBarItem("2 in conflict").waitFor();
    await takePictures(workbench, "predicted-conflict");
    await takeHighContrastPicture(workbench, "predicted-conflict");

    model.release("end");
    await Promise.all(tasks.map(({ id }) => ended(launcher, id)));
    await workbench.spoken("2 of 2 done").waitFor();
    await workbench.contextMenu(workbench.treeItem("Batch").first(), "Compare Changes…");
    await workbench.tab("list.txt (2 files)").waitFor();
    for (const task of [FIRST, SECOND])
      await workbench.page.locator(".multiDiffEntry").filter({ hasText: task }).waitFor();
    await takePictures(workbench, "compared-changes");
    await workbench.runCommand("View: Close All Editors");
    await workbench.openFile("index.txt");
    await workbench.page.keyboard.type("two");
    await workbench.runCommand("File: Save");
    const tooltip = await workbench.tooltipOf(
      // The other row names this task, too.
      workbench.treeItem(SECOND).filter({ hasText: "conflicts with 2 others" }),
      "Conflicts with the folder: index.txt",
    );
    await tooltip.filter({ hasText: `Conflicts with "${FIRST}"` }).waitFor();
    await tooltip.filter({ hasText: "2 files +3 −3" }).waitFor();
    await workbench.screenshot("predicted-conflict-tooltip-dark");
  });
});
