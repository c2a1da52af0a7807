import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Locator } from "playwright-core";
import { hermeticHome } from "../support/opencode.ts";
import { tempDir } from "../support/temp.ts";
import { takePictures } from "./support/pictures.ts";
import { setUp } from "./support/set-up.ts";
import type { Workbench } from "./support/workbench.ts";

const COMMAND = "Async Agents: Configure Agent Tools in OpenCode";
const CONFIG = `{
  // Ours: nothing leaves this machine.
  "share": "disabled",
  "plugin": [
    "./house-rules.js", // see the wiki
  ],
}
`;

describe("the agent tools and OpenCode's configuration, in a real editor", () => {
  const folder = tempDir("work");
  const home = hermeticHome();
  const file = join(folder, "opencode.jsonc");
  const userFile = join(home, ".config", "opencode", "opencode.jsonc");
  let workbench: Workbench;

  setUp(async (start) => {
    writeFileSync(file, CONFIG);
    workbench = await start.window({ folder, home, shows: null });
  });

  const config = (): string => readFileSync(file, "utf8");

  /** Runs the command, chooses the configuration, and returns the question that follows. */
  async function ask(edit: string): Promise<Locator> {
    await workbench.runCommand(COMMAND);
    await workbench.quickInput.shows("Select a configuration");
    await workbench.quickInput.choose(edit);
    return workbench.dialog("agent tools");
  }

  async function answer(question: Locator, button: string): Promise<void> {
    await question.getByRole("button", { name: button }).click();
    await question.waitFor({ state: "detached" });
  }

  /** Waits for this message and clears it, so that the next one is not mistaken for it. */
  async function isTold(text: string): Promise<void> {
    const message = workbench.notification(text);
    await message.waitFor();
    await workbench.runCommand("Notifications: Clear All Notifications");
    await message.waitFor({ state: "detached" });
  }

  async function hasNothingToRemove(scope: string): Promise<void> {
    await workbench.runCommand(COMMAND);
    await workbench.quickInput.choose(`Remove from ${scope}`);
    await isTold("The agent tools aren't in this configuration.");
  }

  it("cancelling the selection or the confirmation changes nothing", async () => {
    await workbench.runCommand(COMMAND);
    await workbench.quickInput.shows("Select a configuration");
    await takePictures(workbench, "agent-tools-scope");
    await workbench.quickInput.cancel();
    const question = await ask("Add to This Folder");
    await question.getByText(`Add the agent tools to ${file}?`).waitFor();
    await question.getByText("opencode-plugin.js").waitFor();
    await takePictures(workbench, "agent-tools-install");
    await answer(question, "Cancel");
    await hasNothingToRemove("This Folder");
    assert.equal(config(), CONFIG);
  });

  it("installing adds the entry that was shown, keeps the rest, and says what to do next", async () => {
    const question = await ask("Add to This Folder");
    const entry = /\["file:.*\]/.exec((await question.textContent()) ?? "")?.[0];
    assert.ok(entry);
    await answer(question, "Add");
    const message = workbench.notification(`Added the agent tools to ${file}.`);
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

  it("tools that are already installed stay as they are", async () => {
    const installed = config();
    await workbench.runCommand(COMMAND);
    await workbench.quickInput.choose("Add to This Folder");
    await isTold(`The agent tools are already in ${file}.`);
    assert.equal(config(), installed);
  });

  it("removing asks first as well, and restores the original file", async () => {
    let question = await ask("Remove from This Folder");
    await question.getByText(`Remove the agent tools from ${file}?`).waitFor();
    await takePictures(workbench, "agent-tools-remove");
    await answer(question, "Cancel");
    question = await ask("Remove from This Folder");
    await answer(question, "Remove");
    await isTold(`Removed the agent tools from ${file}.`);
    assert.equal(config(), CONFIG);
  });

  it("a missing configuration is created; one without the tools has nothing to remove", async () => {
    await hasNothingToRemove("All Folders");
    assert.ok(!existsSync(userFile));
    const question = await ask("Add to All Folders");
    await question.getByText(`Create ${userFile} with the agent tools?`).waitFor();
    await takePictures(workbench, "agent-tools-create");
    await answer(question, "Add");
    await isTold(`Added the agent tools to ${userFile}.`);
    assert.match(readFileSync(userFile, "utf8"), /"plugin": \[\["file:.*opencode-plugin\.js"/);
  });
});
