import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createSession, ended, type EngineWindow } from "../support/engine.ts";
import type { OpenCodeServer } from "../support/opencode.ts";
import { script, type ScriptedModel, type ScriptStep } from "../support/scripted-model.ts";
import { takeHighContrastPicture, takePictures } from "./support/pictures.ts";
import { setUp } from "./support/set-up.ts";
import type { Workbench } from "./support/workbench.ts";

const FIRST = "Shout the first line";
const SECOND = "Shout the last line";

describe("two tasks that change the same file, in a real editor", () => {
  let model: ScriptedModel;
  let server: OpenCodeServer;
  let launcher: EngineWindow;
  let parent: string;
  let workbench: Workbench;

  setUp(async (start) => {
    model = await start.model();
    server = await start.server({ model });
    for (const name of ["list.txt", "index.txt"])
      writeFileSync(join(server.directory, name), "one\ntwo\nthree\n");
    parent = await createSession(server, "Make it louder");
    launcher = await start.launcher(server);
    workbench = await start.window({
      server,
      settings: { "asyncagents.notifyParent": false, "asyncagents.notifyUser": "failures" },
    });
  });

  const edit = (name: string, oldString: string, newString: string, gate?: string): ScriptStep[] => {
    const filePath = join(server.directory, name);
    return [
      { ...(gate !== undefined && { gate }), tools: [{ name: "read", args: { filePath } }] },
      { tools: [{ name: "edit", args: { filePath, oldString, newString } }] },
    ];
  };

  const launch = (description: string, steps: readonly ScriptStep[]) =>
    launcher.engine.launch({
      prompt: script(steps, "Make it louder. "),
      description,
      agent: "general",
      parentSessionID: parent,
      launchedBy: "person",
    });

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
    const changed = workbench.treeItem("list.txt").filter({ hasText: `edited · also changed by "${FIRST}"` });
    await changed.waitFor();
    await takePictures(workbench, "collision-changes");
  });
});
