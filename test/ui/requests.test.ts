import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Locator } from "playwright-core";
import { shortID, type Task } from "../../src/engine/task.ts";
import { createSession, ended, type EngineWindow } from "../support/engine.ts";
import type { OpenCodeServer } from "../support/opencode.ts";
import {
  messageText,
  script,
  type ModelRequest,
  type ScriptedModel,
  type ScriptStep,
} from "../support/scripted-model.ts";
import { tempDir } from "../support/temp.ts";
import { until } from "../support/wait.ts";
import { takeHighContrastPicture, takePictures } from "./support/pictures.ts";
import { setUp } from "./support/set-up.ts";
import type { Workbench } from "./support/workbench.ts";

const bash = (command: string, description = "Try it"): ScriptStep => ({
  tools: [{ name: "bash", args: { command, description } }],
});
const DONE: ScriptStep = { text: "Done." };
const REFUSED: ScriptStep = { status: 401, body: { error: { message: "The key was refused." } } };

describe("agents' requests in a real editor", () => {
  let model: ScriptedModel;
  let server: OpenCodeServer;
  let launcher: EngineWindow;
  let parent: string;
  let workbench: Workbench;

  setUp(async (start) => {
    let asked = 0;
    // Refuses a prompt without a script at first, then works on it.
    const fallback = (): ScriptStep => (asked++ === 0 ? REFUSED : { text: "Done.", gate: "again" });
    model = await start.model({ fallback });
    const folder = tempDir("work");
    writeFileSync(join(folder, "greet.js"), 'console.log("Hello");\n');
    const permission = { bash: "ask", edit: "ask", question: "allow" };
    server = await start.server({ model, directory: folder, config: { permission } });
    parent = await createSession(server, "Ship the release");
    launcher = await start.launcher(server);
    workbench = await start.window({
      server,
      settings: {
        "asyncagents.notifyParent": false,
        "asyncagents.notifyUser": "failures",
      },
    });
  });

  afterEach(async function () {
    // A task that ends by itself at that moment refuses the cancel.
    await Promise.allSettled(launcher.engine.active().map(({ id }) => launcher.engine.cancel(id)));
  });

  const launch = (
    description: string,
    steps: readonly ScriptStep[],
    agent = "general",
    prompt = script([...steps, DONE]),
  ): Promise<Task> =>
    launcher.engine.launch({
      prompt,
      description,
      agent,
      parentSessionID: parent,
      launchedBy: "person",
    });

  /** A row of the open list, by its name for screen readers. */
  const option = (name: string | RegExp): Locator =>
    workbench.quickInput.widget.getByRole("option", { name });
  const button = (notification: string | RegExp, name: string): Locator =>
    workbench.notification(notification).getByRole("button", { name, exact: true });
  const statusBar = (): Locator => workbench.page.locator('.statusbar-item[id$="asyncagents.status"]');

  /** The tool results in the next request to this task's model. */
  async function toolResults(task: Task): Promise<readonly string[]> {
    const isNext = ({ sessionID, messages }: ModelRequest): boolean =>
      sessionID === task.id && messages.at(-1)?.role === "tool";
    const { messages } = await model.waitForRequest(isNext);
    return messages.filter(({ role }) => role === "tool").map(messageText);
  }

  it("a notification shows agent, command and reason, and Allow Once lets the agent continue", async () => {
    const task = await launch("Push the branch", [bash("date +%Y", "Find the year")]);
    const text = '"Push the branch" (general) asks to run: date +%Y (reason: Find the year)';
    await workbench.notification(text).waitFor();
    await takePictures(workbench, "request-notification");
    await takeHighContrastPicture(workbench, "request-notification");
    await button(text, "Allow Once").click();
    assert.match((await toolResults(task))[0] ?? "", /^\d{4}/);
    assert.equal((await ended(launcher, task.id)).status, "completed");
    await statusBar().waitFor({ state: "hidden" });
  });

  it("Reject in the notification ends the task; the agent's text makes no link there", async () => {
    const task = await launch("Remove the files", [bash('rm "[x](command:workbench.action.closeWindow)"')]);
    const told = workbench.notification('asks to run: rm "[x] (command:workbench.action.closeWindow)"');
    await told.waitFor();
    assert.equal(await told.locator("a[href], a[data-href]").count(), 0);
    await told.getByRole("button", { name: "Reject" }).click();
    assert.equal((await ended(launcher, task.id)).status, "error");
    await workbench.notification('Task "Remove the files" failed').waitFor();
  });

  it("the status bar counts running agents and waiting requests; a click asks, and Enter alone allows nothing", async () => {
    await launch("Read the logs", [{ text: "Reading", gate: "logs", gateAfterText: true }]);
    await statusBar().filter({ hasText: "1" }).waitFor();
    assert.equal(await statusBar().locator("a").getAttribute("aria-label"), "Async Agents: 1 agent running");
    await workbench.screenshot("status-bar-working-dark");
    const task = await launch("Clean up", [bash("rm -r out", "Make room")]);
    const label = "Async Agents: 1 agent running, 1 request waiting for you";
    await until(
      "the count",
      async () => (await statusBar().locator("a").getAttribute("aria-label")) === label,
    );
    await workbench.runCommand("Notifications: Clear All Notifications");
    await statusBar().hover();
    await workbench.page
      .locator(".monaco-hover", { hasText: "Clean up · general · needs permission" })
      .waitFor();
    await workbench.screenshot("status-bar-hover-dark");
    await statusBar().click();
    await option("rm -r out, Show in Full…, Reason: Make room").waitFor();
    await takePictures(workbench, "request-permission");
    await workbench.quickInput.accept();
    await workbench.tab("command.sh").waitFor();
    await option("Allow Once").waitFor();
    assert.equal(launcher.engine.openRequests()[0]?.child.id, task.id);
    await workbench.quickInput.cancel();
    await workbench.runCommand("View: Close Editor");
    model.release("logs");
  });

  it("by keyboard alone from the palette: one of two requests is rejected with a message that the agent gets", async () => {
    const { quickInput } = workbench;
    await launch("First", [bash("uname -a")]);
    await workbench.notification("uname -a").waitFor();
    const second = await launch("Second", [bash("hostname", "See where it runs")]);
    await workbench.notification("2 requests from agents are waiting for you").waitFor();
    await workbench.press("F1");
    await quickInput.write("Async Agents: Answer Request");
    await quickInput.items.filter({ hasText: "Answer Request" }).first().waitFor();
    await quickInput.press("Enter");
    await option('uname -a, "First" (general), Run a Command').waitFor();
    await takePictures(workbench, "requests-list");
    await quickInput.press("ArrowDown");
    await quickInput.press("Enter");
    await option("Reject with Message…").waitFor();
    await quickInput.write("with Message");
    await quickInput.press("Enter");
    await quickInput.shows("Enter what the agent should do instead");
    await quickInput.press("Enter");
    await quickInput.shows("Enter a message for the agent.");
    await quickInput.write("Only look");
    await workbench.screenshot("request-reason-dark");
    await quickInput.press("Control+Alt+Minus");
    await option("Reject with Message…").waitFor();
    await quickInput.press("Enter");
    await quickInput.shows("Enter what the agent should do instead");
    await quickInput.write(" at the folder.");
    await quickInput.press("Enter");
    assert.match((await toolResults(second))[0] ?? "", /feedback: Only look at the folder\./);
    assert.equal((await ended(launcher, second.id)).status, "completed");
  });

  it("from the tree: Always Allow says what it covers, and covers it", async () => {
    const task = await launch("Print twice", [bash("printf one"), bash("printf two")]);
    const row = workbench.treeItem("Print twice").filter({ hasText: "needs permission" });
    await workbench.hoverRow(row);
    await row.getByRole("button", { name: "Answer Request" }).click();
    await option(
      "Always Allow, printf *, for all agents in this folder, even where denied, until the server restarts",
    ).click();
    assert.equal((await ended(launcher, task.id)).status, "completed");
    const sibling = await launch("Print again", [bash("printf three")]);
    assert.equal((await ended(launcher, sibling.id)).status, "completed");
  });

  it("a change is shown as a diff before it is allowed", async () => {
    const file = join(server.directory, "greet.js");
    const args = { filePath: file, oldString: '"Hello"', newString: '"Good evening"' };
    const task = await launch("Greet politely", [
      { tools: [{ name: "read", args: { filePath: file } }] },
      { tools: [{ name: "edit", args }] },
    ]);
    const text = '"Greet politely" (general) asks to change greet.js';
    await button(text, "More…").click();
    await option("greet.js, Show Change…").click();
    await workbench.tab("greet.js.diff").waitFor();
    await workbench.page.locator(".view-line", { hasText: 'console.log("Good evening")' }).waitFor();
    await option("Allow Once").waitFor();
    await takePictures(workbench, "request-change");
    assert.match(readFileSync(file, "utf8"), /Hello/);
    await option("Allow Once").click();
    await ended(launcher, task.id);
    assert.match(readFileSync(file, "utf8"), /Good evening/);
    await workbench.runCommand("View: Close Editor");
  });

  it("questions are asked one after the other: one choice, several and an own answer, with a way back", async () => {
    const questions = [
      {
        header: "Database",
        question: "Which database is the release for?",
        options: [
          { label: "PostgreSQL", description: "What production runs on" },
          { label: "SQLite", description: "Only for a $(bug) demo" },
        ],
      },
      {
        header: "Checks",
        question: "Which checks are to run before it?",
        multiple: true,
        options: [
          { label: "Lint", description: "" },
          { label: "Tests", description: "Takes ten minutes" },
        ],
      },
    ];
    const task = await launch(
      "Prepare it",
      [{ tools: [{ name: "question", args: { questions } }] }],
      "build",
    );
    const text = '"Prepare it" (build) asks: Which database is the release for? (and 1 more question)';
    await button(text, "Answer…").click();
    const { quickInput } = workbench;
    await quickInput.shows(/Database: .*\(1\/2\)/);
    await option("SQLite").filter({ hasText: "Only for a $(bug) demo" }).waitFor();
    await takePictures(workbench, "request-question");
    await option("PostgreSQL").click();
    await quickInput.shows(/Checks: .*\(2\/2\)/);
    await quickInput.widget.getByRole("button", { name: "Back" }).click();
    await option("SQLite").click();
    await quickInput.shows(/Checks: .*\(2\/2\)/);
    await quickInput.accept();
    await quickInput.shows("Select at least one: Which checks");
    await quickInput.choose("Tests");
    await quickInput.choose("Other Answer…");
    await workbench.screenshot("request-question-several-dark");
    await quickInput.accept();
    // As a placeholder, the list has this text too.
    await quickInput.widget.filter({ hasText: "Which checks are to run before it?" }).waitFor();
    await quickInput.write("And a dry run");
    await workbench.screenshot("request-question-own-dark");
    await quickInput.accept();
    const [result] = await toolResults(task);
    assert.match(result ?? "", /database is the release for\?"="SQLite"/);
    assert.match(result ?? "", /run before it\?"="Tests, And a dry run"/);
  });

  it("a short question is answered by a button of its notification", async () => {
    const options = ["Yes", "No"].map((label) => ({ label, description: "" }));
    const questions = [{ header: "Sure?", question: "Is main the right branch?", options }];
    const task = await launch("Merge", [{ tools: [{ name: "question", args: { questions } }] }], "build");
    await workbench.notification("asks: Is main the right branch?").waitFor();
    await workbench.screenshot("request-question-notification-dark");
    await button("asks: Is main the right branch?", "No").click();
    assert.match((await toolResults(task))[0] ?? "", /right branch\?"="No"/);
  });

  it("a subagent's request is shown as its own, and answered from the palette", async () => {
    const prompt = script([bash("pwd", "See the folder"), DONE]);
    const args = { description: "Look around", prompt, subagent_type: "general" };
    const lead = script([{ tools: [{ name: "task", args }] }, DONE]);
    await server.fetch(`/session/${parent}/prompt_async`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ agent: "build", parts: [{ type: "text", text: lead }] }),
    });
    await workbench.notification(/"Look around.*" \(general\) asks to run: pwd/).waitFor();
    assert.equal(
      await statusBar().locator("a").getAttribute("aria-label"),
      "Async Agents: 1 request waiting for you",
    );
    await workbench.runCommand("Async Agents: Answer Request");
    await option("Allow Once").click();
    await model.waitForRequest(
      ({ sessionID, messages }) =>
        sessionID !== parent && messageText(messages.at(-1)).includes(server.directory),
    );
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

  it("the window reports once that the user's own server refuses subagents, and says what to set", async () => {
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

  it("Escape keeps the text; after a cancel, the dialog closes, the notification does nothing, and the palette has no request", async () => {
    const task = await launch("Be stopped", [bash("touch stopped.txt")]);
    await workbench.notification("touch stopped.txt").waitFor();
    await workbench.runCommand("Async Agents: Answer Request");
    await option("Reject with Message…").click();
    await workbench.quickInput.shows("Enter what the agent should do instead");
    await workbench.quickInput.write("Use another name");
    await workbench.quickInput.cancel();
    await workbench.runCommand("Async Agents: Answer Request");
    await option("Reject with Message…").click();
    const box = workbench.quickInput.widget.locator("input").first();
    await until("what was written", async () => (await box.inputValue()) === "Use another name");
    await launcher.engine.cancel(task.id);
    await workbench.quickInput.widget.waitFor({ state: "hidden" });
    const over = workbench.notification("Already answered, or the agent stopped");
    await over.getByRole("button", { name: "Copy What You Wrote" }).waitFor();
    await workbench.screenshot("request-over-dark");
    // By itself, a notification goes out of sight after 10 seconds.
    await workbench.showNotifications();
    await button("touch stopped.txt", "Allow Once").click();
    await until("the second message", async () => (await over.count()) === 2);
    assert.equal(existsSync(join(server.directory, "stopped.txt")), false);
    await workbench.runCommand("Async Agents: Answer Request");
    await workbench.notification("No agent is waiting for you.").waitFor();
  });

  it("after a reload of the window, a waiting request is shown again", async () => {
    const task = await launch("Survive", [bash("id -u")]);
    await workbench.notification("id -u").waitFor();
    await workbench.reload();
    await button("asks to run: id -u", "Allow Once").click();
    assert.equal((await ended(launcher, task.id)).status, "completed");
  });

  it("Retry in the notification of a failure reveals the new task, whose output leads to the other one", async () => {
    const failed = await launch("Be refused", [], "general", "Go.");
    await ended(launcher, failed.id);
    const told = workbench.notification('Task "Be refused" failed');
    await told.waitFor();
    await workbench.runCommand("View: Show Explorer");
    await told.getByRole("button", { name: "Retry" }).click();
    const next = workbench.row("Be refused, running");
    await workbench.selectedRow("Be refused").and(next).waitFor();

    const frame = workbench.webviewFrame();
    const shows = (status: string): Promise<void> => frame.locator(".status", { hasText: status }).waitFor();
    await workbench.clickRow(next);
    await frame.getByRole("button", { name: `Retries task ${shortID(failed.id)}` }).click();
    await shows("Failed");
    model.release("again");
    await frame.getByRole("button", { name: "Retried as task" }).click();
    await shows("Completed");
    await workbench.runCommand("View: Close All Editors");
  });

  it("a slow command shows its progress", async () => {
    await ended(launcher, (await launch("Be quick", [])).id);
    await workbench.treeItem("Be quick").waitFor();
    process.kill(server.pid, "SIGSTOP");
    try {
      await workbench.runCommand("Async Agents: Clear Finished Tasks");
      await workbench.notification("Clearing").waitFor();
      await workbench.screenshot("clearing-many-dark");
    } finally {
      process.kill(server.pid, "SIGCONT");
    }
    await workbench.notification("Cleared").waitFor();
    await workbench.notification("Clearing").waitFor({ state: "hidden" });
  });

  it("a long command cannot be allowed from its notification, and is shown completely", async () => {
    const command = Array.from({ length: 12 }, (_, at) => `true STEP_${at}_${"x".repeat(30)}`).join("\n");
    const task = await launch("Set up", [bash(command)]);
    const told = workbench.notification('"Set up" (general) asks to run: true STEP_0');
    await told.getByRole("button", { name: "More…" }).waitFor();
    await workbench.screenshot("request-long-dark");
    assert.equal(await told.getByRole("button", { name: "Allow Once" }).count(), 0);
    await told.getByRole("button", { name: "More…" }).click();
    await option(/true STEP_0.*Show in Full/).click();
    await workbench.page.locator(".view-line", { hasText: "true STEP_11_" }).waitFor();
    await workbench.screenshot("request-long-shown-dark");
    await option("Allow Once").click();
    assert.equal((await ended(launcher, task.id)).status, "completed");
    await workbench.runCommand("View: Close Editor");
  });

  it("the status bar says that the connection is lost while an agent is running", async () => {
    await launch("Go on", [{ text: "x", gate: "lost" }]);
    await statusBar().filter({ hasText: "1" }).waitFor();
    // A turn that had not begun would begin on the restarted server.
    await model.waitForRequest(({ step }) => step.gate === "lost");
    await server.kill();
    const label = "Async Agents: the connection to OpenCode was lost, 1 agent running";
    await until(
      "the loss",
      async () => (await statusBar().locator("a").getAttribute("aria-label")) === label,
    );
    await workbench.screenshot("status-bar-lost-hc");
    await server.restart();
    await statusBar().waitFor({ state: "hidden" });
  });
});
