import assert from "node:assert/strict";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { makeRepository, type TestRepository } from "../support/repository.ts";
import { lastUserText, type ModelMessage, type ScriptStep } from "../support/scripted-model.ts";
import { takePictures } from "./support/pictures.ts";
import { setUp } from "./support/set-up.ts";
import type { Workbench } from "./support/workbench.ts";

const HANDED_OUT = "Speed up the parser";

/** An agent that should share its work launches a task in a worktree. */
function answer({ messages }: { readonly messages: readonly ModelMessage[] }): ScriptStep {
  const isSharing = /Share|Try again/.test(lastUserText(messages));
  if (!isSharing || messages.at(-1)?.role === "tool") return { text: "Done." };
  const args = { description: HANDED_OUT, prompt: "Do it.", agent: "general", isolation: "worktree" };
  return { tools: [{ name: "asyncagents_task", args }] };
}

describe("an agent that launches in worktrees, in a real editor", () => {
  let repository: TestRepository;
  let workbench: Workbench;

  setUp(async (start) => {
    repository = makeRepository();
    workbench = await start.window({
      model: await start.model({ fallback: answer }),
      folder: repository.directory,
      settings: {
        // Gives the agents of tasks the tools.
        "asyncagents.maxDepth": 2,
        "asyncagents.notifyUser": "failures",
        "asyncagents.isolation.setup": "touch ready.txt",
        "git.enabled": false,
        "window.dialogStyle": "custom",
      },
    });
  });

  async function launch(prompt: string): Promise<void> {
    await workbench.runCommand("Async Agents: Launch Task");
    await workbench.quickInput.choose("general");
    await workbench.quickInput.shows("Enter a prompt.");
    await workbench.quickInput.type(prompt);
    await workbench.quickInput.accept();
    await workbench.treeItem(prompt).and(workbench.spoken("completed")).waitFor();
  }

  it("[ISO-2] is refused until the user allows the setup command, which a notification offers", async () => {
    const worktrees = `${repository.directory}.worktrees`;
    await launch("Share the work");
    assert.ok(!existsSync(worktrees));
    const refused = workbench.notification("because the setup command isn't allowed");
    await workbench.showNotifications();
    await refused.waitFor();
    await takePictures(workbench, "worktree-setup-refused");
    await refused.getByRole("button", { name: "Allow Setup Command" }).click();
    const asked = workbench.dialog("Allow this command to run in each new worktree of");
    await asked.getByText("touch ready.txt").waitFor();
    await asked.getByRole("button", { name: "Allow", exact: true }).click();
    await asked.waitFor({ state: "detached" });

    await launch("Try again");
    await workbench.treeItem(HANDED_OUT).and(workbench.spoken("completed")).waitFor();
    const [name, ...others] = readdirSync(worktrees);
    assert.ok(name !== undefined && others.length === 0);
    assert.ok(existsSync(join(worktrees, name, "ready.txt")));
  });
});
