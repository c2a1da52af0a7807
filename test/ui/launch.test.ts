import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Locator } from "playwright-core";
import { startHaltingProxy, type HaltingProxy } from "../support/halting-proxy.ts";
import type { OpenCodeServer } from "../support/opencode.ts";
import { lastUserText, type ModelRequest, type ScriptedModel } from "../support/scripted-model.ts";
import { tempDir } from "../support/temp.ts";
import { until } from "../support/wait.ts";
import { takePictures } from "./support/pictures.ts";
import { setUp } from "./support/set-up.ts";
import { picturesWanted, type Workbench } from "./support/workbench.ts";

const AGENT = "Select an agent";
const PROMPT = "Enter a prompt.";
const SLOW = "Fix the lexer";
const OPTIONS = "Change the options, then launch.";
const AGENTS = "Each prompt is sent to each selected agent";
// In a language for which no server is started.
const SOURCE = "def login():\n    return wait()\n";

describe("launching in a real editor", () => {
  let model: ScriptedModel;
  let server: OpenCodeServer;
  let proxy: HaltingProxy;
  let workbench: Workbench;

  setUp(async (start) => {
    model = await start.model({
      fallback: ({ messages }) => ({ text: `Done: ${lastUserText(messages).slice(0, 40)}` }),
    });
    const folder = tempDir("work");
    writeFileSync(join(folder, "login.py"), SOURCE);
    server = await start.server({ model, directory: folder });
    proxy = await startHaltingProxy(server.url);
    start.stop(() => proxy.close());
    workbench = await start.window({
      server,
      // Notifications would cover parts of the pictures.
      settings: {
        "asyncagents.server.url": proxy.url,
        "asyncagents.notifyParent": false,
        "asyncagents.notifyUser": "never",
      },
    });
  });

  const sessionCount = async (): Promise<number> => {
    const sessions = (await (await server.fetch("/session")).json()) as unknown[];
    return sessions.length;
  };

  /** A row of the open list, by its name for screen readers. */
  const option = (name: string): Locator => workbench.quickInput.widget.getByRole("option", { name });
  const button = (name: string): Locator => workbench.quickInput.widget.getByRole("button", { name });
  const typed = (): Promise<string> => workbench.quickInput.widget.locator("input").first().inputValue();
  const lens = (text: string): Locator => workbench.page.locator(".codelens-decoration", { hasText: text });

  const keys = (...pressed: readonly string[]): Promise<void> => workbench.press(...pressed);
  const inBox = (...pressed: readonly string[]): Promise<void> => workbench.quickInput.press(...pressed);

  /** Goes to the prompt step for this agent, by a click on its row. */
  async function askForPrompt(agent = "general"): Promise<void> {
    await workbench.pressAfterCtrlK("a", "l");
    await workbench.quickInput.shows(AGENT);
    await workbench.quickInput.choose(agent);
    await workbench.quickInput.shows(PROMPT);
  }

  /** The model's request for the task whose prompt begins like this. */
  function request(prompt: string): Promise<ModelRequest> {
    // The first request takes longer, because the server has just started.
    return model.waitForRequest(
      ({ title, messages }) => !title && lastUserText(messages).startsWith(prompt),
      60_000,
    );
  }

  /** For launch prompts only; it appears once the window knows that the editor is a prompt editor. */
  const optionsButton = (): Locator =>
    workbench.page.locator('.editor-actions a[aria-label^="Prompt Options"]');

  /** Waits for the document in which a prompt is written, until one can write. */
  async function promptEditor(): Promise<void> {
    await lens("(Ctrl+Enter)").waitFor();
    await workbench.page.locator(".editor-instance .monaco-editor.focused").waitFor();
  }

  async function noPromptEditor(): Promise<void> {
    await workbench.tab("Untitled-").waitFor({ state: "detached" });
    assert.equal(await workbench.page.locator(".monaco-dialog-box").count(), 0);
  }

  async function closeEditors(): Promise<void> {
    await workbench.runCommand("View: Close All Editors");
    await workbench.page.locator(".tabs-container .tab").first().waitFor({ state: "detached" });
  }

  describe("the simplest way", () => {
    it("[EXT-3] is agent, prompt and Enter, by keyboard alone", async () => {
      await workbench.pressAfterCtrlK("a", "l");
      await workbench.quickInput.shows(AGENT);
      await option("general").waitFor();
      await workbench.quickInput.shows("(1/2)");
      await takePictures(workbench, "launch-agent");
      await inBox("ArrowDown");
      await inBox("Enter");
      await workbench.quickInput.shows("Prompt for explore (2/2)");
      await workbench.screenshot("launch-prompt-dark");
      await workbench.quickInput.write("Look for dead code.");
      await inBox("Enter");
      await workbench.treeItem("Look for dead code").and(workbench.spoken(", explore")).waitFor();
      assert.equal((await request("Look for dead code.")).model, "m");
    });

    it("begins with the agent of the last launch, and launches no blank prompt", async () => {
      await workbench.pressAfterCtrlK("a", "l");
      await option("explore").and(workbench.page.locator(".focused")).waitFor();
      await inBox("Enter");
      await workbench.quickInput.shows(PROMPT);
      await inBox("Space", "Enter");
      await workbench.quickInput.shows("Enter a prompt first.");
      await workbench.screenshot("launch-blank-dark");
      await workbench.quickInput.cancel();
    });

    it("goes back from the prompt and from the options, and keeps the typed text", async () => {
      await askForPrompt();
      await workbench.quickInput.write("Tidy up");
      await inBox("Control+Alt+Minus");
      await workbench.quickInput.shows(AGENT);
      await option("general").and(workbench.page.locator(".focused")).waitFor();
      await inBox("Enter");
      await workbench.quickInput.shows(PROMPT);
      assert.equal(await typed(), "Tidy up");
      // The buttons are reached with Shift+Tab, and the arrow keys lead from one to the next.
      await inBox("Shift+Tab", "ArrowRight", "ArrowRight", "Enter");
      await workbench.quickInput.shows(OPTIONS);
      await option("Launch, Tidy up").waitFor();
      await takePictures(workbench, "launch-options");
      await button("Back").click();
      await workbench.quickInput.shows(PROMPT);
      assert.equal(await typed(), "Tidy up");
    });

    it("offers a draft that Escape kept next time, once", async () => {
      const before = await sessionCount();
      await askForPrompt();
      await workbench.quickInput.type("Tidy up");
      await workbench.quickInput.cancel();
      await askForPrompt();
      assert.equal(await typed(), "Tidy up");
      await workbench.quickInput.shows("Your last text was kept");
      await workbench.screenshot("launch-draft-dark");
      await workbench.quickInput.write(" the code.");
      assert.equal(await sessionCount(), before);
      await inBox("Enter");
      await request("Tidy up the code.");
      await workbench.treeItem("Tidy up the code").waitFor();
      await askForPrompt();
      assert.equal(await typed(), "");
      await workbench.quickInput.cancel();
    });
  });

  describe("options", () => {
    it("the task runs with the model that was searched for and selected", async () => {
      await askForPrompt();
      await workbench.quickInput.write("Use the other model.");
      await button("Options").click();
      await option("Model…, The agent's own model, or the default").click();
      await workbench.quickInput.shows("Select a model");
      await option("fake/m2, Fake M2 · 200K tokens").waitFor();
      await workbench.screenshot("launch-model-dark");
      await button("Back").click();
      await option("Model…").and(workbench.page.locator(".focused")).waitFor();
      await inBox("Enter");
      await option("fake/m2, Fake M2 · 200K tokens").waitFor();
      await workbench.quickInput.write("fake/m2");
      await option("fake/m2").and(workbench.page.locator(".focused")).waitFor();
      await inBox("Enter");
      await option("Model…, fake/m2").waitFor();
      await option("Launch, Use the other model.").click();
      const { model: used, sessionID = "" } = await request("Use the other model.");
      assert.equal(used, "m2");
      const session = await (await server.fetch(`/session/${sessionID}`)).json();
      assert.equal(session.model.id, "m2");
    });

    it("several agents get the same prompt", async () => {
      await askForPrompt();
      await workbench.quickInput.write("Compare yourselves.");
      await button("Options").click();
      await option("Agents…, general").click();
      await workbench.quickInput.shows(AGENTS);
      await workbench.quickInput.choose("explore");
      await workbench.screenshot("launch-agents-dark");
      await inBox("Enter");
      await option("Agents…, general, explore").waitFor();
      await option("Launch 2 Tasks, Compare yourselves.").click();
      const rows = workbench.treeItem("Compare yourselves");
      for (const agent of ["general", "explore"]) await rows.and(workbench.spoken(`, ${agent}`)).waitFor();
    });

    it("[FRK-1] a fork of the active session is reviewed before it is launched, with a way back to the prompt", async () => {
      await askForPrompt();
      await workbench.quickInput.write("Carry on from here.");
      await button("Options").click();
      await option("Fork of the Active Session, off").click();
      await option("Fork of the Active Session, on").waitFor();
      await workbench.screenshot("launch-fork-option-dark");
      await option("Review the Fork").click();
      await option("Launch, The conversation is empty").waitFor();
      await workbench.quickInput.shows("(3/3)");
      await button("Back").click();
      await workbench.quickInput.shows("(2/3)");
      assert.equal(await typed(), "Carry on from here.");
      await inBox("Enter");
      await option("Launch, The conversation is empty").click();
      await workbench.treeItem("Carry on from here").filter({ hasText: "(forked)" }).waitFor();
    });
  });

  describe("a prompt of several lines", () => {
    it("is written in an editor and launched with Ctrl+Enter, which closes the editor without asking", async () => {
      await askForPrompt("explore");
      await workbench.quickInput.write("Write two lines.");
      await button("Write in an Editor").click();
      await promptEditor();
      await workbench.write("\nThis is the second one.");
      await lens("Options: explore").waitFor();
      await takePictures(workbench, "prompt-editor");
      await keys("Control+Enter");
      const { messages } = await request("Write two lines.");
      assert.equal(lastUserText(messages), "Write two lines.\nThis is the second one.");
      await workbench.treeItem("Write two lines").and(workbench.spoken(", explore")).waitFor();
      await noPromptEditor();
      await askForPrompt();
      assert.equal(await typed(), "");
      await workbench.quickInput.cancel();
    });

    it("leaves Ctrl+Enter as it is in other editors", async () => {
      await workbench.openFile("login.py");
      const lines = workbench.page.locator(".editor-instance .view-line");
      await lines.filter({ hasText: "login()" }).click();
      const before = await lines.count();
      await keys("Control+Enter");
      await until("a new line", async () => (await lines.count()) === before + 1);
      await keys("Control+Z");
      await until("the line to be gone", async () => (await lines.count()) === before);
    });

    it("gets the location of the selection in the box, and the selection itself in the editor", async () => {
      await workbench.page.locator(".editor-instance .view-line", { hasText: "login()" }).click();
      await keys("Home", "Shift+ArrowDown", "Shift+ArrowDown");
      await askForPrompt();
      await workbench.quickInput.write("Explain");
      await button("Insert login.py:1-2").click();
      await until("the place", async () => (await typed()) === "Explain login.py:1-2 ");
      await workbench.quickInput.type("");
      await button("Write in an Editor").click();
      await promptEditor();
      await workbench.write("Make this faster:");
      await workbench.screenshot("prompt-editor-quote-dark");
      await keys("Control+Enter");
      const { messages } = await request("Make this faster:");
      assert.equal(
        lastUserText(messages),
        `Make this faster:\n\nlogin.py:1-2\n\n\`\`\`python\n${SOURCE}\`\`\`\n`,
      );
      await noPromptEditor();
      await closeEditors();
    });

    it("is refused with the value of a default model that is none, and stays in the box", async () => {
      await workbench.changeSettings({ "asyncagents.defaultModel": "nonsense" });
      await askForPrompt();
      await workbench.quickInput.write("Work with nonsense.");
      await inBox("Enter");
      await workbench.quickInput.shows(/Model "nonsense" doesn't exist. Available models: .*fake\/m2/);
      assert.equal(await typed(), "Work with nonsense.");
      await workbench.quickInput.type("");
      await workbench.quickInput.cancel();
    });

    it("is not launched if blank; its options open from the editor's title, and its model is sent", async () => {
      await askForPrompt();
      await button("Write in an Editor").click();
      await promptEditor();
      await keys("Control+Enter");
      const refusal = workbench.notification("Write a prompt");
      await refusal.locator(".codicon-warning").waitFor();
      await workbench.screenshot("prompt-editor-blank-dark");
      await workbench.runCommand("Notifications: Clear All Notifications");
      await workbench.page.locator(".editor-instance .view-line").first().click();
      await workbench.write("Use it from the editor.");
      await optionsButton().click();
      await option("Model…").click();
      await option("fake/m2").click();
      await option("Model…, fake/m2").waitFor();
      await workbench.quickInput.cancel();
      await lens("Options: general · fake/m2").waitFor();
      await workbench.page.locator('.editor-actions a[aria-label^="Launch Editor"]').click();
      assert.equal((await request("Use it from the editor.")).model, "m2");
      await noPromptEditor();
    });

    it("keeps its editor after a reload of the window", async () => {
      await askForPrompt("explore");
      await button("Write in an Editor").click();
      await promptEditor();
      await workbench.reload();
      await lens("Options: explore").waitFor();
      await optionsButton().waitFor();
      await workbench.page.locator(".editor-instance .view-line").first().click();
      await workbench.write("Outlive the window.");
      await keys("Control+Enter");
      await request("Outlive the window.");
      await noPromptEditor();
      await workbench.treeItem("Outlive the window").and(workbench.spoken(", explore")).waitFor();
    });

    it("is launched from any editor", async () => {
      await workbench.runCommand("File: New Untitled Text File");
      await workbench.page.locator(".editor-instance .monaco-editor.focused").waitFor();
      await workbench.write("Take what is written here.");
      await workbench.pressAfterCtrlK("a", "e");
      await workbench.quickInput.shows(AGENT);
      await workbench.quickInput.choose("general");
      await option("Launch, Take what is written here.").waitFor();
      await workbench.screenshot("launch-text-dark");
      await inBox("Control+Alt+Minus");
      await option("general").and(workbench.page.locator(".focused")).waitFor();
      await inBox("Enter");
      await option("Launch, Take what is written here.").waitFor();
      await inBox("Enter");
      await request("Take what is written here.");
      // It is the user's own document: it stays.
      await workbench.tab("Untitled-").waitFor();
    });
  });

  describe("batches", () => {
    it("[BAT-1] each section of a text is a task for each agent, and the number of tasks is shown before", async () => {
      await workbench.runCommand("Async Agents: Launch Batch");
      await workbench.quickInput.shows("One prompt per task");
      await workbench.quickInput.type("|");
      await inBox("Enter");
      await workbench.quickInput.shows("Enter a prompt first.");
      await workbench.quickInput.type("Batch the first | Batch the second");
      await workbench.quickInput.shows('2 tasks: "Batch the first", "Batch the second". One prompt per task');
      await workbench.screenshot("batch-prompts-dark");
      await button("Write in an Editor").click();
      await promptEditor();
      await lens("Launch 2 Tasks").waitFor();
      await workbench.write("\n\n---\n\nBatch the third");
      await lens("Launch 3 Tasks").waitFor();
      await workbench.screenshot("batch-editor-dark");
      await keys("Control+Enter");
      await workbench.quickInput.shows(AGENTS);
      await workbench.quickInput.shows("Launch Batch: 3 Tasks");
      await workbench.quickInput.choose("explore");
      await workbench.quickInput.shows("Launch Batch: 6 Tasks");
      await takePictures(workbench, "batch-agents");
      await inBox("Enter");
      for (const name of ["first", "second", "third"])
        for (const agent of ["general", "explore"])
          await workbench
            .treeItem(`Batch the ${name}`)
            .and(workbench.spoken(`, ${agent}`))
            .waitFor();
      await noPromptEditor();
    });

    it("going back from the agents leads to the prompts, which Escape keeps", async () => {
      await workbench.runCommand("Async Agents: Launch Batch");
      await workbench.quickInput.enter("Check this | Check that");
      await workbench.quickInput.shows(AGENTS);
      await inBox("Control+Alt+Minus");
      await workbench.quickInput.shows("One prompt per task");
      assert.equal(await typed(), "Check this | Check that");
      await inBox("Enter");
      await workbench.quickInput.shows(AGENTS);
      await workbench.quickInput.cancel();
      await workbench.runCommand("Async Agents: Launch Batch");
      await workbench.quickInput.shows("Your last text was kept");
      assert.equal(await typed(), "Check this | Check that");
      await workbench.quickInput.type("");
      await workbench.quickInput.cancel();
    });

    it("a line of --- does not split a prompt unless the user says so", async () => {
      await askForPrompt();
      await workbench.quickInput.write("Above");
      await button("Write in an Editor").click();
      await promptEditor();
      await workbench.write("\n---\nBelow");
      await lens("Launch Task (Ctrl+Enter)").waitFor();
      await lens("As 2 Prompts, Split at ---").locator("a", { hasText: "As 2 Prompts" }).click();
      await lens("Launch 2 Tasks").waitFor();
      await lens("As One Prompt").locator("a", { hasText: "As One Prompt" }).click();
      await lens("Launch Task (Ctrl+Enter)").waitFor();
      await workbench.page.locator(".view-line", { hasText: "Below" }).click();
      await keys("Control+Enter");
      assert.equal(lastUserText((await request("Above")).messages), "Above\n---\nBelow");
      await noPromptEditor();
    });
  });

  describe("on a slow server", () => {
    const launching = (): Locator => workbench.spoken(`${SLOW}, launching…`);

    it("shows a row at once, and gives the prompt back if the launch fails", async () => {
      const { quickInput } = workbench;
      const before = proxy.requests.length;
      const isSent = (): boolean =>
        proxy.requests.slice(before).some((request) => request.startsWith("POST /session"));
      proxy.decide((request) => (request.startsWith("POST /session") ? "mute" : "pass"));
      await workbench.runCommand("Async Agents: Launch Task");
      await quickInput.choose("general");
      await quickInput.shows("Prompt for general");
      await quickInput.enter(SLOW);
      await launching().waitFor();
      await quickInput.widget.waitFor({ state: "hidden" });
      await until("the request", isSent);
      await takePictures(workbench, "launching");
      proxy.decide(() => "pass");
      proxy.sever();
      await quickInput.shows("Prompt for general");
      await until("the prompt", async () => (await quickInput.input.inputValue()) === SLOW);
      await launching().waitFor({ state: "detached" });
    });

    it("the row becomes that of the task", async () => {
      const { quickInput } = workbench;
      await workbench.runCommand("Async Agents: Launch Task");
      await quickInput.choose("general");
      await quickInput.shows("Prompt for general");
      await quickInput.enter(SLOW);
      await workbench.row(`${SLOW}, completed`).waitFor();
      await launching().waitFor({ state: "detached" });
    });
  });

  describe("elsewhere", () => {
    it("a follow-up is written in an editor too", async () => {
      await workbench.contextMenu(workbench.treeItem("Write two lines"), "Resume Task…");
      await workbench.quickInput.shows("Enter a follow-up.");
      await workbench.quickInput.write("And a third one.");
      await workbench.quickInput.cancel();
      await workbench.contextMenu(workbench.treeItem("Write two lines"), "Resume Task…");
      await workbench.quickInput.shows("Your last text was kept");
      assert.equal(await typed(), "And a third one.");
      await workbench.screenshot("resume-prompt-dark");
      await button("Write in an Editor").click();
      await promptEditor();
      await lens('Resume "Write two lines." (Ctrl+Enter)').waitFor();
      await workbench.write("\nAnd a fourth.");
      await workbench.screenshot("resume-editor-dark");
      await keys("Control+Enter");
      assert.equal(
        lastUserText((await request("And a third one.")).messages),
        "And a third one.\nAnd a fourth.",
      );
      await noPromptEditor();
      await workbench.selectedRow("Write two lines").filter({ hasText: "(resumed)" }).waitFor();
    });

    it("keys lead to the view and to waiting requests", async () => {
      const explorer = workbench.page.locator(".part.sidebar .composite.title", { hasText: "Explorer" });
      // The row of the resumed task may just be selected, which opens its view again.
      await until("the Explorer", async () => {
        await keys("Control+Shift+E");
        return explorer.isVisible();
      });
      await workbench.pressAfterCtrlK("a", "v");
      await workbench.page.locator(".part.sidebar .composite.title", { hasText: "Async Agents" }).waitFor();
      await workbench.pressAfterCtrlK("a", "a");
      await workbench.page
        .locator(".notifications-toasts, .quick-input-widget")
        .filter({ hasText: /wait/ })
        .waitFor();
    });

    if (!picturesWanted) return;

    it("each step is shown in high contrast", async () => {
      await workbench.page.emulateMedia({ forcedColors: "active" });
      await workbench.page.locator(".monaco-workbench.hc-black").waitFor();
      await workbench.pressAfterCtrlK("a", "l");
      await option("general").waitFor();
      await workbench.screenshot("launch-agent-hc");
      await workbench.quickInput.choose("general");
      await workbench.quickInput.shows(PROMPT);
      await workbench.quickInput.write("Read me.");
      await workbench.screenshot("launch-prompt-hc");
      await button("Options").click();
      await option("Launch, Read me.").waitFor();
      await workbench.screenshot("launch-options-hc");
      await option("Model…").click();
      await option("fake/m2, Fake M2 · 200K tokens").waitFor();
      await workbench.screenshot("launch-model-hc");
      await button("Back").click();
      await option("Several Prompts in an Editor").click();
      await promptEditor();
      await workbench.write("\n---\nAnd me.");
      await lens("Launch 2 Tasks").waitFor();
      await workbench.screenshot("batch-editor-hc");
    });
  });
});
