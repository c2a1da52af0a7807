import assert from "node:assert/strict";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Locator } from "playwright-core";
import { hermeticEnv, hermeticHome, modelConfig, openCodeBinary } from "../support/opencode.ts";
import {
  lastUserText,
  type ModelMessage,
  type ScriptedModel,
  type ScriptStep,
} from "../support/scripted-model.ts";
import { until } from "../support/wait.ts";
import { takeAllPictures, takePictures } from "./support/pictures.ts";
import { setUp } from "./support/set-up.ts";
import type { Workbench } from "./support/workbench.ts";

const ANSWER = `The parser reads each file **twice**: once for its names, once for its types.

1. Keep the tokens of the first pass in \`src/parser.ts\`.
2. Let the second pass take them from there.

That halves the time of the slowest suite.
`;
const PROMPT = "Find out why parsing is slow.";
const FOLLOW_UP = "Now do what you propose.";
const WINDOW = { width: 1440, height: 800 };
/** Parts of it are shown by the walkthrough, in `media/walkthrough`. */
const QUICK_INPUT = { x: 412, y: 0, width: 618, height: 284 };
const HANDED_OUT = ["Speed up the parser", "Cover it with tests", "Bring the README up to date"];

const CONFIG = `{
  // Ours: nothing leaves this machine.
  "share": "disabled",
  "plugin": [
    "./house-rules.js", // see the wiki
  ],
}
`;

/** The model's answers: an agent that should share its work launches tasks with the tools. */
function answer({ messages }: { readonly messages: readonly ModelMessage[] }): ScriptStep {
  const prompt = lastUserText(messages);
  if (prompt.includes(PROMPT)) return { text: ANSWER };
  if (prompt.includes(FOLLOW_UP)) return { text: "Done: each file is read once." };
  if (!prompt.includes("Share the work")) return { text: "Looking…", gate: "handed out" };
  if (messages.at(-1)?.role === "tool") return { text: "Three agents are at it." };
  const launch = (description: string) => ({
    name: "asyncagents_task",
    args: { description, prompt: `${description}.`, agent: "general" },
  });
  return { tools: HANDED_OUT.map(launch) };
}

/** From the empty view on a machine without OpenCode to agents that launch agents, using only what is offered there. */
describe("the first steps in a real editor", () => {
  let model: ScriptedModel;
  let workbench: Workbench;

  setUp(async (start) => {
    model = await start.model({ fallback: answer });
    workbench = await start.window({
      env: { ...hermeticEnv(hermeticHome(), modelConfig(model)), PATH: pathWithoutOpenCode() },
      // The walkthrough shows its pictures only if there is room.
      viewport: WINDOW,
      settings: {
        // Terminals are then rendered as text in the page.
        "terminal.integrated.gpuAcceleration": "off",
        // Notifications would cover parts of the pictures.
        "asyncagents.notifyUser": "never",
        // Gives the agents of tasks the tools.
        "asyncagents.maxDepth": 2,
      },
      shows: ({ page }) => page.locator(".welcome-view", { hasText: "OpenCode wasn't found" }).waitFor(),
    });
  });

  const welcome = (text: string): Locator => workbench.page.locator(".welcome-view", { hasText: text });
  const step = (title: string): Locator =>
    workbench.page.locator(".getting-started-step", { hasText: title });
  const isTicked = (title: string): Promise<void> => step(title).locator(".codicon.complete").waitFor();

  async function setUpOpenCode(): Promise<void> {
    await welcome("wasn't found").getByRole("button", { name: "Set Up OpenCode" }).click();
    await workbench.quickInput.shows("OpenCode wasn't found");
  }

  async function showWalkthrough(): Promise<void> {
    await workbench.runCommand("Async Agents: First Steps");
    await step("Connect to OpenCode").waitFor();
  }

  it("[EXT-1] without OpenCode the empty view leads to setup, and each way is offered", async () => {
    await takePictures(workbench, "first-steps-not-found");
    await setUpOpenCode();
    for (const way of [
      "Install in a Terminal",
      "Copy Install Command",
      "Open the Installation Guide",
      "Select Executable",
      "Search Again",
    ])
      await workbench.quickInput.items.filter({ hasText: way }).waitFor();
    await takeAllPictures(workbench, "walkthrough-connect", QUICK_INPUT);
  });

  it("[EXT-1] searching again without success leads to the same setup", async () => {
    await welcome("wasn't found").locator("a", { hasText: "try again" }).click();
    await workbench.quickInput.shows("OpenCode wasn't found on PATH");
    await workbench.quickInput.press("Escape");
  });

  it("launching without OpenCode says so, and leads to the same setup", async () => {
    await workbench.runCommand("Async Agents: Launch Task");
    const told = workbench.notification("OpenCode wasn't found on PATH");
    await told.getByRole("button", { name: "Set Up OpenCode" }).click();
    await workbench.quickInput.shows("OpenCode wasn't found");
  });

  it("the install command is written into a terminal and left to the user to run", async () => {
    await setUpOpenCode();
    await workbench.quickInput.choose("Install in a Terminal");
    const rows = workbench.page.locator(".terminal-wrapper .xterm-rows");
    await rows.filter({ hasText: "opencode.ai/install | bash" }).waitFor();
    const told = workbench.notification("Press Enter in the terminal");
    await told.waitFor();
    await takePictures(workbench, "first-steps-install");
    assert.doesNotMatch(await rows.innerText(), /bash\s*\n.*\S/);
    await workbench.showNotifications();
    await told.getByRole("button", { name: "Search Again" }).click();
    await workbench.quickInput.shows("OpenCode wasn't found");
  });

  it("[EXT-1] a selected executable is connected to, and the message names it", async () => {
    await setUpOpenCode();
    await workbench.quickInput.choose("Select Executable");
    await workbench.quickInput.shows("OpenCode Executable");
    // The editor's dialog replaces what is in its box when it has listed its first folder.
    await workbench.quickInput.items.first().waitFor();
    await until("the executable to be selected", async () => {
      const { widget } = workbench.quickInput;
      if (!(await widget.isVisible())) return true;
      await workbench.quickInput.type(openCodeBinary());
      await widget.getByRole("option", { name: "opencode", exact: true }).waitFor({ timeout: 5_000 });
      await widget.getByRole("button", { name: "Select" }).click({ timeout: 5_000 });
      await widget.waitFor({ state: "hidden", timeout: 5_000 });
      return true;
    });
    const told = workbench.notification("is connected:");
    await told.waitFor();
    await told.filter({ hasText: openCodeBinary() }).waitFor();
    await takePictures(workbench, "first-steps-connected");
    await workbench.runCommand("Terminal: Kill All Terminals");
  });

  it("what OpenCode refuses in its configuration is said, and connects once it was corrected", async () => {
    const config = join(workbench.folder ?? assert.fail(), "opencode.json");
    writeFileSync(config, '{ "model": 5 }');
    await workbench.runCommand("Async Agents: Stop OpenCode");
    await welcome("Not connected").getByRole("button", { name: "Connect" }).click();
    const refused = welcome("refuses to work in this folder");
    await refused.waitFor();
    await workbench.notification("model: Expected string").getByText(config).waitFor();
    await takeAllPictures(workbench, "first-steps-refused");
    rmSync(config);
    await refused.getByRole("button", { name: "Try Again" }).click();
    await welcome("No background tasks").waitFor();
  });

  it("the empty view leads to the walkthrough, where the first step is ticked", async () => {
    await welcome("No background tasks").locator("a", { hasText: "first steps" }).click();
    await isTicked("Connect to OpenCode");
    assert.equal(await workbench.page.locator(".getting-started-step .codicon.complete").count(), 1);
    await step("Launch your first task").click();
    await takeAllPictures(workbench, "first-steps-walkthrough");
  });

  it("[EXT-3] the first task is launched from the empty view, and its row has the focus", async () => {
    await welcome("No background tasks").getByRole("button", { name: "Launch Task" }).click();
    await workbench.quickInput.choose("general");
    await workbench.quickInput.shows("Enter a prompt.");
    await workbench.quickInput.type(PROMPT);
    await takeAllPictures(workbench, "walkthrough-launch", { ...QUICK_INPUT, height: 128 });
    await workbench.quickInput.accept();
    await workbench.treeItem(PROMPT).and(workbench.page.locator(".focused")).waitFor();
    assert.equal(
      await workbench.page.evaluate("document.activeElement.closest('.part.sidebar') !== null"),
      true,
    );
    await isTicked("Launch your first task");
  });

  it("[EXT-4] the next step is ticked once the output was shown and the task was resumed", async () => {
    await workbench.clickRow(workbench.treeItem(PROMPT));
    const frame = workbench.webviewFrame();
    const box = frame.getByRole("textbox", { name: "Follow-up prompt" });
    await box.fill(FOLLOW_UP);
    await workbench.page.setViewportSize({ width: 1080, height: 520 });
    await takeAllPictures(workbench, "walkthrough-resume", { x: 353, y: 69, width: 722, height: 418 });
    await workbench.page.setViewportSize(WINDOW);
    await box.press("Enter");
    await frame.getByText("each file is read once").waitFor();
    await workbench.treeItem("(resumed)").and(workbench.spoken("completed")).waitFor();
    await showWalkthrough();
    await isTicked("Read the output, then resume");
  });

  it("[FLT-2] the last step is ticked once an agent launched tasks, whose rows are visible", async () => {
    await workbench.pressAfterCtrlK("a", "l");
    await workbench.quickInput.choose("general");
    await workbench.quickInput.shows("Enter a prompt.");
    await workbench.quickInput.enter("Share the work among agents.");
    for (const description of HANDED_OUT) await workbench.treeItem(description).waitFor();
    await isTicked("Let agents launch agents");
    await workbench.page.mouse.move(350, 400);
    await workbench.page.mouse.down();
    await workbench.page.mouse.move(650, 400);
    await workbench.page.mouse.up();
    await takeAllPictures(workbench, "walkthrough-agentTools", { x: 48, y: 37, width: 600, height: 190 });
  });

  it("ticked steps stay ticked after a reload", async () => {
    await workbench.reload();
    await workbench.openView();
    await showWalkthrough();
    for (const title of ["Connect to OpenCode", "Let agents launch agents"]) await isTicked(title);
  });

  describe("the agent tools in a configuration of OpenCode", () => {
    const file = (): string => join(workbench.folder ?? assert.fail(), "opencode.jsonc");
    const config = (): string => readFileSync(file(), "utf8");

    /** Runs the command, chooses the configuration, and returns the question that follows. */
    async function ask(edit: string): Promise<Locator> {
      await workbench.runCommand("Async Agents: Configure Agent Tools in OpenCode");
      await workbench.quickInput.shows("Select a configuration");
      await takePictures(workbench, "agent-tools-scope");
      await workbench.quickInput.choose(edit);
      return workbench.dialog("agent tools");
    }

    async function answer(question: Locator, button: string): Promise<void> {
      await question.getByRole("button", { name: button }).click();
      await question.waitFor({ state: "detached" });
    }

    it("adding them adds the entry that was shown, keeps the rest, and says what to do next", async () => {
      writeFileSync(file(), CONFIG);
      const question = await ask("Add to This Folder");
      await question.getByText(`Add the agent tools to ${file()}?`).waitFor();
      await takePictures(workbench, "agent-tools-install");
      const entry = /\["file:.*\]/.exec((await question.textContent()) ?? "")?.[0];
      assert.ok(entry);
      await answer(question, "Add");
      const message = workbench.notification(`Added the agent tools to ${file()}.`);
      await message.getByText("have them after a restart").waitFor();
      await takePictures(workbench, "agent-tools-installed");
      await message.getByRole("button", { name: "Open File" }).click();
      await workbench.tab("opencode.jsonc").waitFor();
      const [plugin = ""] = JSON.parse(entry) as [string];
      assert.ok(existsSync(new URL(plugin)));
      assert.ok(config().includes(entry));
      const isKept = (line: string): boolean => config().includes(line.trim());
      assert.ok(CONFIG.split("\n").every(isKept), config());
    });

    it("removing them asks first as well, and restores the original file", async () => {
      let question = await ask("Remove from This Folder");
      await question.getByText(`Remove the agent tools from ${file()}?`).waitFor();
      await takePictures(workbench, "agent-tools-remove");
      await answer(question, "Cancel");
      question = await ask("Remove from This Folder");
      await answer(question, "Remove");
      await workbench.notification(`Removed the agent tools from ${file()}.`).waitFor();
      assert.equal(config(), CONFIG);
    });
  });
});

/** Prevents the machine's own OpenCode from being found. */
function pathWithoutOpenCode(): string {
  return (process.env["PATH"] ?? "")
    .split(":")
    .filter((folder) => !folder.includes("node_modules"))
    .join(":");
}
