import assert from "node:assert/strict";
import type { Locator } from "playwright-core";
import { lastUserText, type ModelRequest, type ScriptStep } from "../support/scripted-model.ts";
import { takePictures } from "./support/pictures.ts";
import { setUp } from "./support/set-up.ts";
import type { Workbench } from "./support/workbench.ts";

const [LEXER, PARSER] = ["Fix the lexer", "Test the parser"];

function answer({ messages, title }: Pick<ModelRequest, "messages" | "title">): ScriptStep {
  return { text: title ? "A title" : `Done: ${lastUserText(messages)}` };
}

describe("cleared tasks, in a real editor", function () {
  let workbench: Workbench;

  setUp(async (start) => {
    workbench = await start.window({
      model: await start.model({ fallback: answer }),
      settings: { "asyncagents.notifyUser": "never" },
    });
  });

  const row = (name: string): Locator => workbench.row(name);

  async function launch(prompt: string): Promise<void> {
    await workbench.runCommand("Async Agents: Launch Task");
    await workbench.quickInput.choose("general");
    await workbench.quickInput.shows("Prompt for general");
    await workbench.quickInput.enter(prompt);
    await row(`${prompt}, completed`).waitFor();
  }

  const clear = (prompt: string): Promise<void> => workbench.contextMenu(row(prompt), "Clear from Task List");

  const inDialog = (text: string, button: string): Promise<void> =>
    workbench.dialog(text).locator(".monaco-button", { hasText: button }).click();

  it("are out of sight until the filter shows them, in a collapsed group that stays after a reload", async () => {
    for (const prompt of [LEXER, PARSER]) await launch(prompt);
    for (const prompt of [LEXER, PARSER]) {
      await clear(prompt);
      await row(prompt).waitFor({ state: "detached" });
    }
    await workbench.page.locator('.part.sidebar .title-actions a[aria-label^="Filter and Sort"]').click();
    const option = workbench.quickInput.items.filter({ hasText: "Cleared Tasks" });
    await option.click();
    await row("Cleared, 2").waitFor();
    await takePictures(workbench, "filter-cleared");
    await workbench.quickInput.press("Escape");
    await row("Cleared, 2").waitFor({ state: "detached" });
    await workbench.runCommand("Async Agents: Filter and Sort Tasks");
    await option.click();
    await workbench.quickInput.accept();
    await row("Cleared, 2").waitFor();
    assert.equal(await row(LEXER).count(), 0);
    await workbench.reload();
    await row("Cleared, 2").waitFor();
    await workbench.clickRow(row("Cleared, 2"));
    await row(LEXER).waitFor();
    await takePictures(workbench, "cleared");
  });

  it("a cleared task can be opened and restored, and has no entries for tasks in the list", async () => {
    const entries = await workbench.menuEntries(row(LEXER));
    assert.deepEqual(entries, ["Show Output", "Copy Result", "Restore Task", "Delete Task Permanently"]);
    await workbench.clickRow(row(LEXER));
    await workbench.tab(LEXER).waitFor();
    await workbench.contextMenu(row(LEXER), "Restore Task");
    await row("Cleared, 1").waitFor();
    await row("Finished Today, 1").waitFor();
    await row(LEXER).waitFor();
  });

  it("a deleted task is gone, also for a window that reads everything again", async () => {
    await workbench.contextMenu(row(PARSER), "Delete Task Permanently");
    await inDialog("Delete", "Cancel");
    await row(PARSER).waitFor();
    await workbench.contextMenu(row(PARSER), "Delete Task Permanently");
    await inDialog(`Permanently delete "${PARSER}"?`, "Delete");
    await row("Cleared").waitFor({ state: "detached" });
    await workbench.runCommand("Async Agents: Connect or Refresh");
    await row(LEXER).waitFor();
    assert.equal(await row(PARSER).count(), 0);
  });
});
