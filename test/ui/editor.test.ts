import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Locator } from "playwright-core";
import type { OpenCodeServer } from "../support/opencode.ts";
import { lastUserText, type ScriptedModel } from "../support/scripted-model.ts";
import { tempDir } from "../support/temp.ts";
import { until } from "../support/wait.ts";
import { takeHighContrastPicture, takePictures } from "./support/pictures.ts";
import { setUp } from "./support/set-up.ts";
import type { Workbench } from "./support/workbench.ts";

const AGENT = "Select an agent";
const OPTIONS = "Change the options, then launch.";
const TEMPLATES = "Use a template or a recent prompt";
// In a language for which no server is started.
const SOURCE = `def login(user):
    token = issue(user)
    return wait(token)


def logout(user):
    revoke(user)
`;
const TEMPLATE_SETTING = {
  Explain: { prompt: "Explain ${selection} to a newcomer.", agent: "explore", description: "for newcomers" },
  Checklist: "Review ${file}:\n- names\n- tests",
  Branch: "Compare with ${branch}.",
  Number: 7,
};

describe("launching from the editor, the explorer and source control", () => {
  let model: ScriptedModel;
  let server: OpenCodeServer;
  let workbench: Workbench;

  setUp(async (start) => {
    model = await start.model({ fallback: () => ({ text: "Done." }) });
    const folder = tempDir("work");
    const write = (name: string, content: string | Buffer): void =>
      writeFileSync(join(folder, name), content);
    const git = (...args: readonly string[]): void =>
      void execFileSync("git", ["-c", "user.name=A", "-c", "user.email=a@example.com", ...args], {
        cwd: folder,
      });
    mkdirSync(join(folder, "docs"));
    write("login.py", SOURCE);
    write("docs/guide.md", "# Guide\n");
    write("broken.json", '{ "name": }\n');
    write("data.bin", Buffer.from([0, 1, 2]));
    git("init", "--quiet");
    git("add", ".");
    git("commit", "--quiet", "-m", "Begin");
    write("docs/guide.md", "# Guide\n\nBegin here.\n");
    server = await start.server({ model, directory: folder });
    workbench = await start.window({
      server,
      settings: {
        "git.enabled": true,
        "files.autoSave": "off",
        // It selects the row of a file that opens a moment later, and no other.
        "explorer.autoReveal": false,
        "asyncagents.notifyParent": false,
        "asyncagents.notifyUser": "never",
        "asyncagents.templates": TEMPLATE_SETTING,
      },
    });
  });

  /** A row of the open list, by its name for screen readers. */
  const option = (name: string): Locator => workbench.quickInput.widget.getByRole("option", { name });
  const button = (name: string): Locator => workbench.quickInput.widget.getByRole("button", { name });
  const typed = (): Promise<string> => workbench.quickInput.widget.locator("input").first().inputValue();
  const line = (text: string): Locator =>
    workbench.page.locator(".editor-instance .view-line", { hasText: text });

  const keys = (...pressed: readonly string[]): Promise<void> => workbench.press(...pressed);

  /** What the model received with the prompt that begins like this, once the view shows the task. */
  async function told(prompt: string): Promise<string> {
    const { messages } = await model.waitForRequest(
      ({ title, messages }) => !title && lastUserText(messages).startsWith(prompt),
      // The first request takes longer, because the server has just started.
      60_000,
    );
    await workbench.treeItem(prompt.replace(/\W$/, "")).first().waitFor();
    // To select the row, its view is opened once more when it has been drawn.
    await workbench.rowsIdle();
    return lastUserText(messages);
  }

  /** The first function of the file, selected. */
  async function selectFunction(): Promise<void> {
    await line("def login").click();
    await keys("Home", "Shift+ArrowDown", "Shift+ArrowDown", "Shift+ArrowDown");
  }

  async function chooseAgent(agent = "general"): Promise<void> {
    await workbench.quickInput.shows(AGENT);
    await workbench.quickInput.choose(agent);
    await workbench.quickInput.shows("Enter a prompt.");
  }

  describe("the editor", () => {
    it("its menu launches on the selection, whose lines are sent with the prompt", async () => {
      await workbench.openFile("login.py");
      await selectFunction();
      const entries = await workbench.openContextMenu(line("token = issue"));
      await entries.filter({ hasText: "Launch Agent on This…" }).waitFor();
      // Of the command's keys, the menu shows the one that names no subject.
      await workbench.menu.getByText("Ctrl+K A O").waitFor();
      await takePictures(workbench, "editor-menu");
      await workbench.closeMenu();
      await workbench.contextMenu(line("token = issue"), "Launch Agent on This…");
      await workbench.quickInput.shows("Launch on login.py:1-3: Agent");
      await takePictures(workbench, "editor-agent");
      await chooseAgent();
      await workbench.quickInput.shows("Launch on login.py:1-3: Prompt for general");
      await workbench.quickInput.shows("It is sent with login.py:1-3.");
      await workbench.quickInput.write("Make it faster.");
      await takePictures(workbench, "editor-prompt");
      await workbench.quickInput.press("Enter");
      const text = await told("Make it faster.");
      assert.match(text, /^Make it faster\.\n\nlogin\.py:1-3/);
      assert.match(text, /2: {5}token = issue\(user\)/);
      assert.doesNotMatch(text, /def logout/);
      await workbench.treeItem("Make it faster").waitFor();
    });

    it("its menu launches on the whole file if nothing is selected", async () => {
      await line("def logout").click();
      await workbench.contextMenu(line("def logout"), "Launch Agent on This…");
      await workbench.quickInput.shows("Launch on login.py: Agent");
      await workbench.quickInput.cancel();
    });

    it("a key without a subject offers what there is to launch on", async () => {
      const { quickInput } = workbench;
      await line("def logout").click();
      await workbench.pressAfterCtrlK("a", "o");
      await quickInput.shows("Select what to send with the prompt");
      assert.deepEqual(await quickInput.items.allInnerTexts(), [
        "File in the Editor",
        "Changes Since the Last Commit",
      ]);
      await quickInput.cancel();
      await selectFunction();
      await workbench.pressAfterCtrlK("a", "o");
      await quickInput.shows("Select what to send with the prompt");
      await takePictures(workbench, "editor-launch-on");
      await quickInput.choose("Selection");
      await quickInput.shows("Launch on login.py:1-3: Agent");
      await quickInput.cancel();
    });

    it("the output panel names the lines that were sent", async () => {
      await workbench.treeItem("Make it faster").dblclick();
      await workbench.webviewFrame().getByText("login.py:1-3").first().waitFor();
      await takePictures(workbench, "editor-panel");
      await workbench.runCommand("View: Close Editor");
      await workbench.tab("Make it faster").waitFor({ state: "detached" });
    });

    it("the selection can be left out again, and the typed text stays", async () => {
      await workbench.openFile("login.py");
      await selectFunction();
      await workbench.pressAfterCtrlK("a", "s");
      await chooseAgent();
      await workbench.quickInput.write("Only this.");
      await button("Options").click();
      await workbench.quickInput.shows(OPTIONS);
      await option("With login.py:1-3, on").waitFor();
      await takePictures(workbench, "editor-options");
      await option("With login.py:1-3, on").click();
      await option("Without login.py:1-3, off").waitFor();
      await button("Back").click();
      await workbench.quickInput.shows("sees only this prompt");
      assert.equal(await typed(), "Only this.");
      await workbench.quickInput.press("Enter");
      assert.equal(await told("Only this."), "Only this.");
    });

    it("unsaved text is included in the prompt as it is in the editor, also from a prompt editor", async () => {
      await line("revoke(user)").click();
      await keys("End", "Enter");
      await workbench.write("unsaved()");
      await keys("Home", "Shift+End");
      await workbench.pressAfterCtrlK("a", "s");
      await chooseAgent();
      await workbench.quickInput.shows("Not saved; its text is included in the prompt.");
      await workbench.quickInput.write("Finish this.");
      await button("Write in an Editor").click();
      await workbench.page.locator(".codelens-decoration", { hasText: "with login.py:8" }).waitFor();
      await takePictures(workbench, "editor-prompt-editor");
      await workbench.page.locator(".editor-instance .monaco-editor.focused").waitFor();
      await keys("Control+Enter");
      const text = await told("Finish this.");
      assert.match(text, /login\.py:8 \(not saved/);
      assert.match(text, /unsaved\(\)/);
      await workbench.tab("Untitled-").waitFor({ state: "detached" });
    });
  });

  describe("the explorer", () => {
    const row = (name: string): Locator =>
      workbench.page.locator(".explorer-folders-view .monaco-list-row", { hasText: name });

    // A launch switches to the view of the tasks.
    beforeEach(() => workbench.runCommand("View: Show Explorer"));
    after(() => workbench.openView());

    it("its menu launches on a folder, whose file names are sent", async () => {
      await row("docs").waitFor();
      await workbench.openContextMenu(row("docs"));
      await workbench.screenshot("editor-explorer-dark");
      await workbench.closeMenu();
      await workbench.contextMenu(row("docs"), "Launch Agent on This…");
      await workbench.quickInput.shows("Launch on docs: Agent");
      await chooseAgent();
      await workbench.quickInput.enter("Describe it.");
      const text = await told("Describe it.");
      assert.match(text, /guide\.md/);
      assert.doesNotMatch(text, /Begin here/);
    });

    it("several files are sent with one prompt", async () => {
      await row("broken.json").click();
      // When it opens, the file closes an open menu.
      await workbench.tab("broken.json").waitFor();
      await row("login.py").click({ modifiers: ["Control"] });
      await workbench.contextMenu(row("login.py"), "Launch Agent on This…");
      await workbench.quickInput.shows("Launch on 2 files: Agent");
      await chooseAgent();
      await workbench.quickInput.enter("Compare them.");
      const text = await told("Compare them.");
      assert.match(text, /def login/);
      assert.match(text, /"name"/);
    });
  });

  describe("source control", () => {
    beforeEach(() =>
      workbench.page
        .locator(".activitybar .action-item", {
          has: workbench.page.locator('a[aria-label^="Source Control"]'),
        })
        .click(),
    );
    after(() => workbench.openView());

    it("the menu of a change launches on its diff, also if it is staged", async () => {
      execFileSync("git", ["add", "docs/guide.md"], { cwd: workbench.folder });
      await workbench.page.locator(".scm-view .monaco-list-row", { hasText: "Staged Changes" }).waitFor();
      const row = workbench.page.locator(".scm-view .monaco-list-row", { hasText: "guide.md" });
      await row.waitFor();
      await workbench.openContextMenu(row);
      await workbench.screenshot("editor-scm-dark");
      await workbench.closeMenu();
      await workbench.contextMenu(row, "Launch Agent on This…");
      await workbench.quickInput.shows("Launch on the change in docs/guide.md: Agent");
      await chooseAgent();
      await workbench.quickInput.enter("Review it.");
      const text = await told("Review it.");
      assert.match(text, /```diff\ndiff --git/);
      assert.match(text, /\+Begin here\./);
    });

    it("the keyboard launches on all changes, including new files", async () => {
      writeFileSync(join(workbench.folder ?? "", "new.py"), "fresh = True\n");
      await workbench.page.locator(".scm-view .monaco-list-row", { hasText: "new.py" }).waitFor();
      await workbench.pressAfterCtrlK("a", "c");
      await workbench.quickInput.shows("Launch on the changes in 2 files: Agent");
      await chooseAgent();
      await workbench.quickInput.enter("Review all.");
      const text = await told("Review all.");
      assert.match(text, /\+Begin here\./);
      assert.match(text, /1: fresh = True/);
    });
  });

  describe("templates and recent prompts", () => {
    async function openTemplates(): Promise<void> {
      await workbench.pressAfterCtrlK("a", "l");
      await chooseAgent();
      await button("Templates and Recent Prompts").click();
      await workbench.quickInput.shows(TEMPLATES);
    }

    /** Filters the list, which shows only a few rows at a time. */
    async function find(text: string): Promise<void> {
      await workbench.quickInput.type(text);
      await option(text).waitFor();
    }

    it("are behind a button of the prompt; an invalid template is named, and the typed text stays", async () => {
      await workbench.openFile("login.py");
      await selectFunction();
      await workbench.pressAfterCtrlK("a", "l");
      await chooseAgent();
      await workbench.quickInput.write("Please.");
      await button("Templates and Recent Prompts").click();
      await workbench.quickInput.shows(TEMPLATES);
      await option("Explain, for newcomers").waitFor();
      await option("Number, isn't a template").waitFor();
      await takePictures(workbench, "templates");
      await takeHighContrastPicture(workbench, "templates");
      await option("Branch").click();
      await workbench.quickInput.shows(
        'The template "Branch" has unknown variables: ${branch}. Available variables: ${selection}, ${file}, ${problem}.',
      );
      assert.equal(await typed(), "Please.");
      await takePictures(workbench, "templates-unknown");
      await workbench.quickInput.type("");
      await workbench.quickInput.cancel();
    });

    it("a template that needs a selection says so if there is none, else sets its agent and the text", async () => {
      await line("def logout").click();
      await openTemplates();
      await option("Explain").click();
      await workbench.quickInput.shows("needs a selection. Select some text in the editor");
      await workbench.quickInput.cancel();
      await line("def logout").click();
      await keys("Home", "Shift+End");
      await openTemplates();
      await option("Explain").click();
      await workbench.quickInput.shows("Prompt for explore");
      assert.equal(await typed(), "Explain def logout(user): to a newcomer.");
      await workbench.quickInput.press("Enter");
      await told("Explain def logout(user): to a newcomer.");
      await workbench.treeItem("Explain def logout").and(workbench.spoken(", explore")).waitFor();
    });

    it("a template of several lines is shown before it is launched", async () => {
      await workbench.pressAfterCtrlK("a", "t");
      await workbench.quickInput.shows(TEMPLATES);
      await option("Checklist").click();
      await workbench.quickInput.shows(AGENT);
      await workbench.quickInput.choose("general");
      await option("Launch, Review login.py: - names - tests").click();
      assert.equal(await told("Review login.py"), "Review login.py:\n- names\n- tests");
    });

    it("a launched prompt is offered again, can be saved as a template, and can be removed, alone or with all", async () => {
      await openTemplates();
      await find("Make it faster.");
      await option("Make it faster.").hover();
      await option("Make it faster.").getByRole("button", { name: "Save as Template" }).click();
      await workbench.quickInput.shows("Enter a name for the template.");
      await workbench.quickInput.enter("Speed");
      await workbench.quickInput.shows(TEMPLATES);
      await takePictures(workbench, "templates-recent");
      await find("Only this.");
      await option("Only this.").hover();
      await option("Only this.").getByRole("button", { name: "Remove" }).click();
      await option("Only this.").waitFor({ state: "detached" });
      await find("Compare them.");
      await option("Compare them.").click();
      await until("the recent prompt", async () => (await typed()) === "Compare them.");
      await button("Templates and Recent Prompts").click();
      await workbench.quickInput.shows(TEMPLATES);
      await find("Speed");
      await option("Speed").click();
      // A text that was only inserted is replaced with the next one.
      await until("the template", async () => (await typed()) === "Make it faster.");
      await button("Templates and Recent Prompts").click();
      await workbench.quickInput.shows(TEMPLATES);
      await find("Compare them.");
      await button("Clear Recent Prompts").click();
      await option("Compare them.").waitFor({ state: "detached" });
      await find("Speed");
      await button("Back").click();
      await workbench.quickInput.shows("Prompt for general");
      assert.equal(await typed(), "Make it faster.");
      await workbench.quickInput.type("");
      await workbench.quickInput.cancel();
    });
  });
});
