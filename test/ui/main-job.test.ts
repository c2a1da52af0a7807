import assert from "node:assert/strict";
import {
  lastUserText,
  type ModelMessage,
  type ScriptedModel,
  type ScriptStep,
} from "../support/scripted-model.ts";
import { until } from "../support/wait.ts";
import { takeHighContrastPicture, takePictures } from "./support/pictures.ts";
import { setUp } from "./support/set-up.ts";
import type { Workbench } from "./support/workbench.ts";

const ANSWER = `# Why the tests are slow

Most of the time is spent in **one place**: every test starts its own server.

| Suite | Seconds | Share |
| --- | ---: | ---: |
| unit | 2.1 | 4 % |
| server | 51.8 | 96 % |

\`\`\`ts
before(async () => {
  server = await startServer({ port: 0 }); // once per suite
});
\`\`\`

1. Start the server once per suite.
2. Give each test its own folder.

> Measured on two cores; see [the guide](https://example.org/guide).
`;

/** The model's answers to the prompts below. */
function answer({ messages }: { readonly messages: readonly ModelMessage[] }): ScriptStep {
  const prompt = lastUserText(messages);
  if (prompt.includes("Count the files"))
    return { status: 401, body: { error: { message: "The key was refused." } } };
  if (prompt.includes("And why is that?")) return { text: "Each server waits for the network once." };
  if (prompt.includes("Review the")) return { text: "Looking…", gate: "review" };
  if (messages.at(-1)?.role === "tool") return { text: ANSWER, gate: "finish" };
  const command = { command: "echo measuring", description: "Measure the suites" };
  return {
    reasoning: "First I measure, then I look for a pattern. ",
    tools: [{ name: "bash", args: command }],
  };
}

describe("the main job in a real editor", () => {
  let model: ScriptedModel;
  let workbench: Workbench;

  setUp(async (start) => {
    model = await start.model({ fallback: answer });
    workbench = await start.window({ model, shows: null });
  });

  it("[EXT-1] opening the view starts a server for the folder and offers the first task", async () => {
    await workbench.openView();
    await workbench.page.locator(".welcome-view", { hasText: "No background tasks" }).waitFor();
    await workbench.screenshot("welcome-no-tasks-dark");
  });

  it("[EXT-3] a task is launched from the palette: agent, then prompt", async () => {
    await workbench.runCommand("Async Agents: Launch Task");
    await workbench.quickInput.shows("Select an agent");
    await workbench.screenshot("launch-agent-dark");
    await workbench.quickInput.choose("general");
    await workbench.quickInput.shows("Enter a prompt.");
    await workbench.quickInput.accept();
    await workbench.quickInput.shows("Enter a prompt first.");
    await workbench.screenshot("launch-prompt-validation-dark");
    await workbench.quickInput.enter("Find out why the tests are slow, and report.");
  });

  it("[EXT-2] the tree shows the task while it is running", async () => {
    const item = workbench.treeItem("Find out why the tests are slow");
    await item.waitFor();
    await item.and(workbench.spoken(", general")).waitFor();
    // The request arrives once the command has run.
    await model.waitForRequest(({ step }) => step.gate === "finish");
    await item.filter({ hasText: "thinking" }).waitFor();
    assert.match((await item.getAttribute("aria-label")) ?? "", /running, general, thinking/);
    await workbench.screenshot("tree-running-dark");
  });

  it("[EXT-4] a click on the task shows its output, which grows while it is running", async () => {
    await workbench.clickRow(workbench.treeItem("Find out why the tests are slow"));
    const frame = workbench.webviewFrame();
    await frame.getByText("Find out why the tests are slow").first().waitFor();
    await frame.getByText("bash").first().waitFor();
    await workbench.screenshot("output-running-dark");
    model.release("finish");
    await frame.getByRole("heading", { name: "Why the tests are slow", exact: true }).waitFor();
    await frame.locator(".status-completed").waitFor();
    await frame.locator("table").waitFor();
  });

  it("[EXT-2] a finished task is shown as completed, and stays after a reload of the window", async () => {
    const item = workbench.treeItem("Find out why the tests are slow");
    await until("the finished item", async () =>
      /completed, general/.test((await item.getAttribute("aria-label")) ?? ""),
    );
    await workbench.reload();
    await workbench.openView();
    await item.waitFor();
    await workbench
      .webviewFrame()
      .getByRole("heading", { name: "Why the tests are slow", exact: true })
      .waitFor();
    await takePictures(workbench, "output-completed");
    await takeHighContrastPicture(workbench, "output-completed");
  });

  it("the context menu offers what can be done, and resumes the task", async () => {
    const item = workbench.treeItem("Find out why the tests are slow");
    const entries = await (await workbench.openContextMenu(item)).allInnerTexts();
    await workbench.screenshot("context-menu-dark");
    await workbench.closeMenu();
    assert.ok(
      entries.includes("Resume Task…") &&
        entries.includes("Copy Task ID") &&
        !entries.includes("Cancel Task or Batch"),
    );
    await workbench.contextMenu(item, "Resume Task…");
    await workbench.quickInput.shows("Enter a follow-up.");
    await workbench.quickInput.enter("And why is that?");
    await item.filter({ hasText: "(resumed)" }).waitFor();
    await until("the badge", async () => (await workbench.badges(item)).includes("R"));
    await workbench.webviewFrame().getByText("Each server waits for the network once.").waitFor();
    await workbench.screenshot("tree-resumed-dark");
  });

  it("a failed task says why", async () => {
    await workbench.runCommand("Async Agents: Launch Task");
    await workbench.quickInput.choose("general");
    await workbench.quickInput.shows("Enter a prompt.");
    await workbench.quickInput.enter("Count the files.");
    const item = workbench.treeItem("Count the files");
    await item.and(workbench.page.locator('[aria-selected="true"]')).waitFor();
    await workbench.notification("failed: The key was refused.").waitFor();
    await until("the failed item", async () =>
      /failed, general/.test((await item.getAttribute("aria-label")) ?? ""),
    );
    await workbench.clickRow(item);
    await workbench.webviewFrame().getByText("The key was refused.").first().waitFor();
    await workbench.screenshot("output-error-dark");
  });

  it("the buttons of the view's title work while a row has the focus", async () => {
    await workbench.clickRow(workbench.treeItem("Count the files"));
    await workbench.page.locator('.part.sidebar .title-actions a[aria-label^="Launch Task"]').click();
    await workbench.quickInput.shows("Select an agent");
    await workbench.quickInput.cancel();
  });

  it("[BAT-1] a batch is launched from the palette, one task per prompt, and cancelled as one", async () => {
    await workbench.runCommand("Async Agents: Launch Batch");
    await workbench.quickInput.shows("One prompt per task");
    await workbench.quickInput.enter("Review the parser | Review the printer");
    await workbench.quickInput.shows("Each prompt is sent to each selected agent");
    await workbench.screenshot("launch-batch-dark");
    await workbench.quickInput.shows("1 Selected");
    await workbench.quickInput.accept();
    for (const name of ["Review the parser", "Review the printer"])
      await workbench.treeItem(name).filter({ hasText: "thinking" }).waitFor();
    await workbench.screenshot("tree-batch-dark");
    await workbench.runCommand("Async Agents: Cancel Task or Batch");
    await workbench.quickInput.choose("batch of 2 tasks");
    for (const name of ["Review the parser", "Review the printer"])
      await until(`${name} to be cancelled`, async () =>
        /cancelled/.test((await workbench.treeItem(name).getAttribute("aria-label")) ?? ""),
      );
    await takePictures(workbench, "tree-mixed");
    await takeHighContrastPicture(workbench, "tree-mixed");
  });

  it("clearing finished tasks can be undone", async () => {
    await workbench.runCommand("Async Agents: Clear Finished Tasks");
    await workbench.page.locator(".welcome-view", { hasText: "No background tasks" }).waitFor();
    // By itself, a notification goes out of sight after 10 seconds.
    await workbench.showNotifications();
    await workbench.notification("Cleared").getByRole("button", { name: "Undo" }).click();
    await workbench.treeItem("Count the files").first().waitFor();
  });
});
