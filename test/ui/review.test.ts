import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Locator } from "playwright-core";
import {
  lastUserText,
  type ModelMessage,
  type ScriptedModel,
  type ScriptStep,
} from "../support/scripted-model.ts";
import { tempDir } from "../support/temp.ts";
import { until } from "../support/wait.ts";
import { faintTexts, outlineWidth } from "./support/contrast.ts";
import { takeHighContrastPicture, takePictures } from "./support/pictures.ts";
import { setUp } from "./support/set-up.ts";
import type { Workbench } from "./support/workbench.ts";

const lines = (...changed: readonly string[]): string =>
  ["one", "two", "three", "four", "five", "six", "seven"]
    .map((line) => `${changed.find((one) => one.toLowerCase() === line) ?? line}\n`)
    .join("");
const FILES = {
  "src/parser.js": lines(),
  "src/shared.js": lines(),
  "src/printer.js": lines(),
  "src/lexer.js": lines(),
  "src/old.js": "export const old = true;\n",
  "src/pair.js": lines(),
  "src/couple.js": lines(),
};
const TASK = "Tidy the parser";
const LEADER = "Begin the couple";
const SIBLING = "Speed up the lexer";
const FOLLOWER = "Finish the couple";
const GATE = "sibling";

describe("reviewing what a task changed, in a real editor", () => {
  const folder = tempDir("work");
  const at = (name: string): string => join(folder, name);
  const content = (name: string): string => readFileSync(at(name), "utf8");
  let model: ScriptedModel;
  let workbench: Workbench;

  const edit = (name: string, oldString: string, newString: string): NonNullable<ScriptStep["tools"]> => [
    { name: "read", args: { filePath: at(name) } },
    { name: "edit", args: { filePath: at(name), oldString, newString } },
  ];

  /** The model's steps for the prompts above. */
  function answer({ messages }: { readonly messages: readonly ModelMessage[] }): ScriptStep {
    const taken = messages.filter(({ role }) => role === "assistant").length;
    const prompt = lastUserText(messages);
    const steps: readonly ScriptStep[] = prompt.includes("parser")
      ? [
          { tools: edit("src/parser.js", "two", "TWO") },
          { tools: edit("src/shared.js", "two", "TWO") },
          { tools: edit("src/printer.js", "two", "TWO") },
          { tools: edit("src/lexer.js", "two", "TWO") },
          {
            tools: [
              { name: "write", args: { filePath: at("src/new.js"), content: "export {};\n" } },
              { name: "bash", args: { command: "rm src/old.js", description: "Remove what is old" } },
            ],
          },
          { text: "Tidied." },
        ]
      : prompt.includes("couple")
        ? ["src/pair.js", "src/couple.js"]
            .map((name): ScriptStep => ({
              tools: prompt === LEADER ? edit(name, "two", "TWO") : edit(name, "six", "SIX"),
            }))
            .concat({ text: "Changed." })
        : [
            { tools: edit("src/shared.js", "six", "SIX") },
            { text: "On it.", gate: GATE, tools: [{ name: "glob", args: { pattern: "*" } }] },
            { text: "Faster." },
          ];
    return steps[taken] ?? { text: "Done." };
  }

  setUp(async (start) => {
    mkdirSync(at("src"));
    for (const [name, text] of Object.entries(FILES)) writeFileSync(at(name), text);
    execFileSync("git", ["init", "--quiet"], { cwd: folder });
    model = await start.model({ fallback: answer });
    workbench = await start.window({
      folder,
      model,
      settings: {
        "asyncagents.notifyParent": false,
        "asyncagents.notifyUser": "never",
        "git.enabled": false,
        "window.dialogStyle": "custom",
      },
    });
    // With concurrent tasks it would be uncertain who changed a file.
    for (const prompt of [TASK, LEADER]) {
      await launch(prompt);
      await ended(prompt);
    }
    await launch(SIBLING);
    await model.waitForRequest(({ step }) => step.gate === GATE);
  });

  async function launch(prompt: string): Promise<void> {
    await workbench.runCommand("Async Agents: Launch Task");
    await workbench.quickInput.choose("general");
    await workbench.quickInput.shows("Enter a prompt.");
    await workbench.quickInput.enter(prompt);
    await workbench.treeItem(prompt).waitFor();
  }

  async function ended(prompt: string): Promise<void> {
    await until(
      "its end",
      async () => /completed/.test((await workbench.treeItem(prompt).getAttribute("aria-label")) ?? ""),
      60_000,
    );
  }

  const row = (name: string): Locator => workbench.treeItem(name);
  const rowAction = async (name: string, title: string): Promise<void> => {
    await workbench.hoverRow(row(name));
    await row(name).getByRole("button", { name: title }).click();
  };
  const titleAction = (title: string): Locator =>
    workbench.page.locator(".editor-actions").getByRole("button", { name: title });
  const button = (parent: Locator, name: string): Locator =>
    parent.getByRole("button", { name, exact: true });
  const clearNotifications = (): Promise<void> =>
    workbench.runCommand("Notifications: Clear All Notifications");

  it("lists the changed files", async () => {
    await workbench.contextMenu(workbench.treeItem(TASK), "Show Changes");
    await workbench.tab(`Changes: ${TASK}`).waitFor();
    for (const name of ["lexer.js", "new.js", "old.js", "parser.js", "printer.js", "shared.js"])
      await row(name).waitFor();
    assert.equal(await row("new.js").getAttribute("aria-label"), "new.js src · created");
    assert.equal(await row("old.js").getAttribute("aria-label"), "old.js src · deleted");
    await takePictures(workbench, "review-list");
  });

  it("opens the diff of one file, and accepts the change there", async () => {
    await workbench.clickRow(row("parser.js"));
    await workbench.tab(`parser.js (Changes: ${TASK})`).waitFor();
    await titleAction("Revert Changes").waitFor();
    await takePictures(workbench, "review-file");
    await titleAction("Accept Changes").click();
    await row("parser.js").waitFor({ state: "detached" });
    assert.equal(content("src/parser.js"), lines("TWO"));
  });

  /** Opens the diff of a file that a task changed, and pins its tab. */
  async function pin(name: string, task: string): Promise<Locator> {
    // The editor loses a row that is redrawn while its menu is used, as after the end of a task.
    await workbench.runCommand("Async Agents: Show Changes");
    await workbench.quickInput.choose(task);
    const tab = workbench.tab(`${name} (Changes: ${task})`);
    // The row that is clicked first may belong to the previous list.
    await until(`the diff of ${name}`, async () => {
      await workbench.clickRow(row(name));
      return tab.waitFor({ timeout: 2_000 }).then(
        () => true,
        () => false,
      );
    });
    await workbench.runCommand("View: Keep Editor");
    return tab;
  }

  it("reverts in a task's diff what this task changed, even if another task's diff of the file is open", async () => {
    const tab = await pin("couple.js", LEADER);
    await launch(FOLLOWER);
    await ended(FOLLOWER);
    await pin("couple.js", FOLLOWER);
    await tab.click();
    await titleAction("Revert Changes").click();
    const asked = workbench.dialog("couple.js has changed since. Revert only the task's changes?");
    await button(asked, "Revert").click();
    await workbench.notification("Reverted couple.js.").waitFor();
    assert.equal(content("src/couple.js"), lines("SIX"));
    await clearNotifications();
  });

  it("does so if both diffs show the files as the tasks left them, because the file was changed since", async () => {
    writeFileSync(at("src/pair.js"), lines("TWO", "FOUR", "SIX"));
    const tab = await pin("pair.js", LEADER);
    await pin("pair.js", FOLLOWER);
    await tab.click();
    await titleAction("Revert Changes").click();
    await button(workbench.dialog("pair.js has changed since."), "Revert").click();
    await workbench.notification("Reverted pair.js.").waitFor();
    assert.equal(content("src/pair.js"), lines("FOUR", "SIX"));
    await clearNotifications();
  });

  it("reverts one file from its row, and undoes that", async () => {
    await workbench.runCommand("View: Close All Editors");
    await workbench.contextMenu(workbench.treeItem(TASK), "Show Changes");
    await rowAction("printer.js", "Revert Changes");
    await row("printer.js").waitFor({ state: "detached" });
    assert.equal(content("src/printer.js"), lines());
    const told = workbench.notification("Reverted printer.js.");
    await told.waitFor();
    await workbench.screenshot("review-reverted-dark");
    await button(told, "Undo").click();
    await row("printer.js").waitFor();
    assert.equal(content("src/printer.js"), lines("TWO"));
  });

  it("asks before it deletes a file that the task created", async () => {
    await rowAction("new.js", "Revert Changes");
    const asked = workbench.dialog(`Delete new.js, created by "${TASK}"?`);
    await asked.waitFor();
    await button(asked, "Cancel").click();
    await asked.waitFor({ state: "detached" });
    assert.ok(existsSync(at("src/new.js")));
    await rowAction("new.js", "Revert Changes");
    await button(asked, "Revert").click();
    await row("new.js").waitFor({ state: "detached" });
    assert.ok(!existsSync(at("src/new.js")));
    await clearNotifications();
  });

  it("keeps the user's later changes in other lines", async () => {
    writeFileSync(at("src/printer.js"), lines("TWO", "SEVEN"));
    await rowAction("printer.js", "Revert Changes");
    const asked = workbench.dialog("printer.js has changed since.");
    await button(asked, "Revert").click();
    await row("printer.js").waitFor({ state: "detached" });
    assert.equal(content("src/printer.js"), lines("SEVEN"));
    await clearNotifications();
  });

  it("compares a file changed since in the same lines with its original", async () => {
    writeFileSync(at("src/lexer.js"), lines().replace("two", "2"));
    await rowAction("lexer.js", "Revert Changes");
    const told = workbench.notification("src/lexer.js: has since changed in the same places.");
    await button(told, "Compare").click();
    await workbench.tab("lexer.js (Before the Task ↔ Now)").waitFor();
    assert.equal(content("src/lexer.js"), lines().replace("two", "2"));
    await clearNotifications();
  });

  it("says which of all changes it reverts and which not, and undoes the revert", async () => {
    await rowAction("All Changes", "Revert Changes");
    const asked = workbench.dialog(`Revert one file that "${TASK}" changed?`);
    await asked.getByText("Not changed:").waitFor();
    await asked.getByText("src/lexer.js").first().waitFor();
    await takePictures(workbench, "review-revert-all");
    await button(asked, "Revert All").click();
    await row("old.js").waitFor({ state: "detached" });
    assert.equal(content("src/old.js"), FILES["src/old.js"]);
    const told = workbench.notification("Reverted old.js.");
    await button(told, "Undo").click();
    await row("old.js").waitFor();
    assert.ok(!existsSync(at("src/old.js")));
    await clearNotifications();
  });

  it("reverts by keyboard what is selected in the list, not the file whose diff is open beside it", async () => {
    await workbench.clickRow(row("old.js"));
    await workbench.tab(`old.js (Changes: ${TASK})`).waitFor();
    await workbench.clickRow(row("All Changes"));
    await workbench.pressAfterCtrlK("a", "u");
    const asked = workbench.dialog(`Revert one file that "${TASK}" changed?`);
    await button(asked, "Cancel").click();
    await asked.waitFor({ state: "detached" });
    assert.ok(!existsSync(at("src/old.js")));
    // The click that selected the row has collapsed it.
    await workbench.clickRow(row("All Changes"));
    await row("old.js").waitFor();
  });

  it("reverts a file by keyboard", async () => {
    await workbench.clickRow(row("old.js"));
    await workbench.tab(`old.js (Changes: ${TASK})`).waitFor();
    // The keys work only for a diff under review, like this button.
    await titleAction("Revert Changes").waitFor();
    await workbench.pressAfterCtrlK("a", "u");
    await row("old.js").waitFor({ state: "detached" });
    assert.equal(content("src/old.js"), FILES["src/old.js"]);
    await titleAction("Revert Changes").waitFor({ state: "detached" });
    await clearNotifications();
  });

  it("is readable in high contrast, where the selected row has an outline", async () => {
    await workbench.clickRow(row("lexer.js"));
    await titleAction("Revert Changes").waitFor();
    await takeHighContrastPicture(workbench, "review", async () => {
      const list = workbench.page.locator(".part.sidebar .pane", {
        has: workbench.page.locator(".pane-header", { hasText: "Changes" }),
      });
      assert.deepEqual(await faintTexts(list, 7), []);
      assert.ok((await outlineWidth(row("lexer.js"))) >= 1);
      assert.equal(await outlineWidth(row("shared.js")), 0);
    });
  });

  it("closes the list once everything is accepted, and undoes that", async () => {
    await rowAction("All Changes", "Accept Changes");
    await row("lexer.js").waitFor({ state: "detached" });
    await button(workbench.notification("Accepted 2 changes."), "Undo").click();
    await row("lexer.js").waitFor();
  });

  it("reverts a file that another task has also changed once that task has ended", async () => {
    model.release(GATE);
    await ended(SIBLING);
    await rowAction("shared.js", "Revert Changes");
    await button(workbench.dialog("shared.js has changed since."), "Revert").click();
    await row("shared.js").waitFor({ state: "detached" });
    assert.equal(content("src/shared.js"), lines("SIX"));
  });
});
