import assert from "node:assert/strict";
import { createSession, ended, type EngineWindow } from "../support/engine.ts";
import type { OpenCodeServer } from "../support/opencode.ts";
import { script, type ScriptedModel } from "../support/scripted-model.ts";
import { takePictures } from "./support/pictures.ts";
import { setUp } from "./support/set-up.ts";
import type { Workbench } from "./support/workbench.ts";

describe("tasks that use OpenCode's own subagents, in a real editor", () => {
  let model: ScriptedModel;
  let server: OpenCodeServer;
  let launcher: EngineWindow;
  let parent: string;
  let workbench: Workbench;

  setUp(async (start) => {
    model = await start.model();
    server = await start.server({ model });
    parent = await createSession(server, "Find dead code");
    launcher = await start.launcher(server);
    workbench = await start.window({ server, settings: { "asyncagents.notifyParent": false } });
  });

  /** A task whose agent calls OpenCode's tool for subagents. */
  async function delegate(description: string): Promise<void> {
    const args = { description: "Look", prompt: "Look.", subagent_type: "general" };
    const { id } = await launcher.engine.launch({
      prompt: script([{ tools: [{ name: "task", args }] }, { text: "Done." }], "Look around. "),
      description,
      agent: "general",
      parentSessionID: parent,
      launchedBy: "person",
    });
    await ended(launcher, id);
    await workbench.row(`${description}, completed, general`).waitFor();
  }

  it("reports once that the user's own server refuses them, and says what to set", async () => {
    await delegate("List the exports");
    const warning = workbench.notification(
      'OpenCode didn\'t allow task "List the exports" to use a subagent because of its depth limit. Set "subagent_depth": 2',
    );
    await workbench.showNotifications();
    await warning.waitFor();
    await takePictures(workbench, "subagent-refused");
    await warning.getByRole("button", { name: "Show Output" }).click();
    await workbench.webviewFrame().getByText("Done.", { exact: true }).waitFor();

    await delegate("List the imports");
    assert.equal(await workbench.notification("to use a subagent because of its depth limit").count(), 0);
  });
});
