import assert from "node:assert/strict";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Locator } from "playwright-core";
import { DaemonState } from "../support/daemon-state.ts";
import { hermeticHome } from "../support/opencode.ts";
import {
  lastUserText,
  type ModelMessage,
  type ScriptedModel,
  type ScriptStep,
} from "../support/scripted-model.ts";
import { tempDir } from "../support/temp.ts";
import { until } from "../support/wait.ts";
import { takeHighContrastPicture, takePictures } from "./support/pictures.ts";
import { setUp } from "./support/set-up.ts";
import type { Workbench } from "./support/workbench.ts";

function answer({ messages }: { readonly messages: readonly ModelMessage[] }): ScriptStep {
  const prompt = lastUserText(messages);
  if (prompt.includes("Watch the")) return { text: "Watching…", gate: "watch" };
  return { text: "The file [notes](notes.md) and `notes.md:1` say it." };
}

describe("a workspace of several folders in a real editor", () => {
  const root = tempDir("work");
  const names = ["api", "web", "docs"] as const;
  const home = hermeticHome();
  let model: ScriptedModel;
  let workbench: Workbench;

  setUp(async (start) => {
    for (const name of names) {
      mkdirSync(join(root, name));
      writeFileSync(join(root, name, "notes.md"), `Notes of ${name}.\n`);
    }
    const workspace = join(root, "project.code-workspace");
    writeFileSync(workspace, JSON.stringify({ folders: [{ path: "api" }, { path: "web" }] }));
    model = await start.model({ fallback: answer });
    workbench = await start.window({
      model,
      home,
      folder: workspace,
      shows: null,
    });
  });

  const row = (name: string): Locator =>
    workbench.treeItems.and(workbench.page.locator(`[aria-label^="${name}, "]`));
  const label = async (name: string): Promise<string> => (await row(name).getAttribute("aria-label")) ?? "";
  const says = (name: string, words: RegExp): Promise<unknown> =>
    until(`${name} to say ${words}`, async () => words.test(await label(name)), 60_000);
  /** The number of servers that are described in the state folder. */
  const servers = (): number =>
    readdirSync(join(home, ".local", "state", "opencode-async-agents"), { recursive: true }).filter(
      (file) => String(file).endsWith(".json") && String(file).includes("server"),
    ).length;

  it("each folder has a row, and showing the view connects only the current one", async () => {
    await workbench.openView();
    await says("web", /not connected/);
    await says("api", /no tasks/);
    await says("web", /not connected/);
    assert.equal(servers(), 1);
    await takePictures(workbench, "folders-one-connected");
  });

  it("the launch shows its folder; another one can be selected, and connects to the same server", async () => {
    await workbench.runCommand("Async Agents: Launch Task");
    await workbench.quickInput.shows("Select an agent");
    await workbench.quickInput.shows("Launch Task: Agent — api");
    await takePictures(workbench, "folders-launch-agent");
    await workbench.quickInput.choose("Select Folder…");
    await workbench.quickInput.shows("Select the folder to work in");
    await takePictures(workbench, "folders-launch-folder");
    await workbench.quickInput.choose("web");
    await workbench.quickInput.widget.filter({ hasText: "Launch Task: Agent — web" }).waitFor();
    await workbench.quickInput.choose("general");
    await workbench.quickInput.shows("Launch Task: Prompt for general — web");
    await workbench.quickInput.enter("Watch the bundle.");
    await workbench.treeItem("Watch the bundle").filter({ hasText: "thinking" }).waitFor();
    const { body } = await model.waitForRequest(({ step }) => step.gate === "watch");
    assert.ok(JSON.stringify(body).includes(join(root, "web")));
    assert.equal(servers(), 1);
  });

  it("tasks are below their folder, whose row says how many are running", async () => {
    await says("web", /1 running/);
    assert.equal(await workbench.treeItem("Watch the bundle").getAttribute("aria-level"), "3");
    await workbench.contextMenu(row("api"), "Launch Task…");
    await workbench.quickInput.shows("Launch Task: Agent — api");
    await workbench.quickInput.choose("general");
    await workbench.quickInput.shows("Launch Task: Prompt for general — api");
    await workbench.quickInput.enter("Summarise the notes.");
    const task = workbench.treeItem("Summarise the notes");
    await until(
      "the task to end",
      async () => /completed/.test((await task.getAttribute("aria-label")) ?? ""),
      // The first request takes longer, because the server has just started.
      60_000,
    );
    await takePictures(workbench, "folders-both-at-work");
    await takeHighContrastPicture(workbench, "folders-both-at-work");
  });

  it("a file that an agent names is opened from its own folder", async () => {
    await workbench.contextMenu(row("web"), "Launch Task…");
    await workbench.quickInput.choose("general");
    await workbench.quickInput.shows("Launch Task: Prompt for general — web");
    await workbench.quickInput.enter("Read what stands there.");
    const read = workbench.treeItem("Read what stands there");
    // Rows move when a task ends.
    await until("its end", async () => /completed/.test((await read.getAttribute("aria-label")) ?? ""));
    await workbench.clickRow(read);
    const link = workbench.webviewFrame().getByRole("button", { name: "notes.md:1" });
    await link.click();
    await workbench.page.locator(".editor-instance", { hasText: "Notes of web." }).first().waitFor();
  });

  it("a file is sent with its absolute path to an agent in another folder", async () => {
    await workbench.runCommand("Async Agents: Launch Agent on This");
    await workbench.quickInput.choose("File in the Editor");
    await workbench.quickInput.shows(`Launch on ${join("web", "notes.md")}: Agent — web`);
    await workbench.quickInput.choose("Select Folder…");
    await workbench.quickInput.shows("Select the folder to work in");
    await workbench.quickInput.choose("api");
    await workbench.quickInput.shows(`Launch on ${join("web", "notes.md")}: Agent — api`);
    await workbench.quickInput.choose("general");
    await workbench.quickInput.shows("Prompt for general — api");
    await takePictures(workbench, "folders-launch-on-file");
    await workbench.quickInput.enter("Compare them.");
    const { body } = await model.waitForRequest(({ body }) => JSON.stringify(body).includes("Compare them."));
    assert.ok(JSON.stringify(body).includes(`Compare them.\\n\\n${join(root, "web", "notes.md")}`));
  });

  it("an added folder gets a row, and is not connected", async () => {
    await workbench.runCommand("Workspaces: Add Folder to Workspace");
    await workbench.quickInput.choose("docs");
    await until("the dialog to be there", async () =>
      (await workbench.quickInput.input.inputValue()).endsWith("/docs/"),
    );
    // Until the folder is listed, "Add" goes into it once more. The list of its parent has ".." too.
    await workbench.quickInput.widget
      .getByRole("option", { name: "api", exact: true })
      .waitFor({ state: "detached" });
    await workbench.page.locator(".quick-input-action").getByRole("button", { name: "Add" }).click();
    await row("docs").waitFor();
    await says("docs", /not connected/);
    await workbench.treeItem("Watch the bundle").waitFor();
    assert.equal(servers(), 1);
  });

  it("the menu of a folder's row offers what can be done with it", async () => {
    const menu = (name: string): Promise<readonly string[]> => workbench.menuEntries(row(name));
    assert.deepEqual(await menu("docs"), ["Launch Task…", "Launch Batch…", "Connect or Refresh"]);
    const connected = await menu("web");
    for (const entry of ["Select Session…", "Connect or Refresh", "Stop OpenCode"])
      assert.ok(connected.includes(entry), `${entry} is not among ${connected.join(", ")}`);
    await workbench.hoverRow(row("docs"));
    await row("docs").getByRole("button", { name: "Connect or Refresh" }).waitFor();
  });

  it("expanding a folder's row connects it to the server of the others", async () => {
    await row("docs").locator(".monaco-tl-twistie").click();
    await says("docs", /no tasks/);
    assert.equal(servers(), 1);
  });

  it("stopping a folder's server counts the running agents of the other folders, and can be cancelled", async () => {
    await workbench.contextMenu(row("docs"), "Stop OpenCode");
    const question = workbench.dialog("Stop OpenCode? 1 agent is still running and will be stopped.");
    await question.waitFor();
    await takePictures(workbench, "folders-stop-server");
    await takeHighContrastPicture(workbench, "folders-stop-server");
    await question.getByRole("button", { name: "Cancel" }).click();
    await question.waitFor({ state: "detached" });
    assert.equal(servers(), 1);
    await says("docs", /no tasks/);
    await says("web", /1 running/);
  });

  it("if a folder with a running task is removed, the user is notified and can add it again", async () => {
    await removeFolder("web");
    const notification = workbench.notification("A task is still running in web");
    await notification.waitFor();
    await row("web").waitFor({ state: "detached" });
    await workbench.treeItem("Watch the bundle").waitFor({ state: "detached" });
    await takePictures(workbench, "folders-removed");
    // By itself, a notification goes out of sight after 10 seconds.
    await workbench.showNotifications();
    await notification.getByRole("button", { name: "Add the Folder Again" }).click();
    // Its activity is shown with its next step.
    await workbench.treeItem("Watch the bundle").waitFor();
    await says("web", /1 running/);
  });

  it("the user can instead cancel its tasks", async () => {
    await removeFolder("web");
    await workbench
      .notification("A task is still running in web")
      .getByRole("button", { name: "Cancel Task" })
      .click();
    const request = model.requests.find(({ step }) => step.gate === "watch");
    await until("the task to stop", () => request?.aborted ?? false);
  });

  it("a crash of the server is one notification for the tasks of all folders, and the folders share the next server", async () => {
    for (const name of ["api", "docs"]) {
      await workbench.contextMenu(row(name), "Launch Task…");
      await workbench.quickInput.choose("general");
      await workbench.quickInput.shows(`Launch Task: Prompt for general — ${name}`);
      await workbench.quickInput.enter(`Watch the ${name}.`);
      await says(name, /1 running/);
      await model.waitForRequest(({ messages }) => lastUserText(messages).includes(`Watch the ${name}`));
    }
    const state = new DaemonState(join(home, ".local", "state", "opencode-async-agents"), join(root, "api"));
    const { pid = 0 } = state.server() ?? {};
    process.kill(pid, "SIGKILL");
    const stopped = workbench.notification("The OpenCode server stopped while 2 tasks were running.");
    await stopped.waitFor();
    for (const name of ["api", "docs"]) {
      const task = workbench.treeItem(`Watch the ${name}`);
      await until("the failure", async () => /failed/.test((await task.getAttribute("aria-label")) ?? ""));
    }
    await takePictures(workbench, "folders-server-crashed");
    assert.equal(await workbench.notification("").count(), 1);
    assert.equal(servers(), 1);
    assert.ok(![undefined, pid].includes(state.server()?.pid));
  });

  async function removeFolder(name: string): Promise<void> {
    await workbench.runCommand("Workspaces: Remove Folder from Workspace");
    await workbench.quickInput.choose(name);
  }
});
