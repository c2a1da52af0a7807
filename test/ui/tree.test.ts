import assert from "node:assert/strict";
import type { Locator } from "playwright-core";
import { createSession } from "../support/engine.ts";
import type { OpenCodeServer } from "../support/opencode.ts";
import {
  lastUserText,
  type ModelRequest,
  type ScriptedModel,
  type ScriptStep,
} from "../support/scripted-model.ts";
import { seedTask, seedTasks, type SeededTask } from "../support/seeded-tasks.ts";
import { tempDir } from "../support/temp.ts";
import { until } from "../support/wait.ts";
import { takeHighContrastPicture, takePictures } from "./support/pictures.ts";
import { setUp } from "./support/set-up.ts";
import type { Workbench } from "./support/workbench.ts";

const FEW = "Improve the parser";
const THIRTY = "Thirty tasks";
const THOUSAND = "A thousand tasks";
const EMPTY = "Nothing yet";
const HOSTILE = "**bold** $(alert) [run](command:workbench.action.closeWindow) <b>html</b>";
const LONG =
  "Find out why the tests of the parser are so slow on the machines of the continuous integration, and write down " +
  "what could be done about each of the causes";
const RIGHT_TO_LEFT = "תקן את parse() ואת הקוראים";

/** The model's steps for the prompts below. */
function answer({ messages, title }: Pick<ModelRequest, "messages" | "title">): ScriptStep {
  const prompt = lastUserText(messages);
  if (title) return { text: "A title" };
  if (messages.at(-1)?.role === "tool") return { text: "Done." };
  if (prompt.includes("Measure")) {
    const command = { command: "npm test", description: "Measure the suites" };
    return { tools: [{ name: "bash", args: command }] };
  }
  if (prompt.includes("Delegate")) {
    const inner = { description: "Search the callers", prompt: "Search.", subagent_type: "explore" };
    return { tools: [{ name: "task", args: inner }] };
  }
  return { text: "Looking…", gate: prompt };
}

describe("the tree in a real editor", () => {
  let model: ScriptedModel;
  let server: OpenCodeServer;
  let workbench: Workbench;
  let thousandSeeded: Promise<void>;

  setUp(async (start) => {
    model = await start.model({ fallback: answer });
    const folder = tempDir("work");
    server = await start.server({
      model,
      directory: folder,
      config: { permission: { bash: "ask" }, subagent_depth: 2 },
    });
    // The session created last is the active one.
    await createSession(server, EMPTY);
    const [thousand, thirty, few] = [
      await createSession(server, THOUSAND),
      await createSession(server, THIRTY),
      await createSession(server, FEW),
    ];
    await Promise.all([seedFew(server, few), seedThirty(server, thirty)]);
    // Seeding takes long, so the window opens in the meantime.
    thousandSeeded = seedThousand(server, thousand);
    workbench = await start.window({
      server,
      settings: {
        "asyncagents.notifyParent": false,
        "asyncagents.notifyUser": "never",
      },
      shows: (opened) => opened.row("Measure the suites, running, general, needs permission").waitFor(),
    });
  });

  /** The row with this name for screen readers. */
  const row = (name: string): Locator => workbench.row(name);
  const spoken = async (locator: Locator): Promise<string> =>
    (await locator.getAttribute("aria-label")) ?? "";
  const depth = (locator: Locator): Promise<string | null> => locator.getAttribute("aria-level");
  /** The names of the visible rows for screen readers, from the top. */
  const all = (): Promise<readonly string[]> =>
    workbench.treeItems.evaluateAll((rows) => rows.map((each) => each.getAttribute("aria-label") ?? ""));
  const message = (text: string | RegExp): Locator =>
    workbench.page.locator(".part.sidebar .tree-explorer-viewlet-tree-view .message", { hasText: text });
  const entries = (target: Locator): Promise<readonly string[]> => workbench.menuEntries(target);

  async function askOrder(): Promise<void> {
    await workbench.runCommand("Async Agents: Filter and Sort Tasks");
    await workbench.quickInput.shows("Select statuses and agents");
    // Where the mouse happens to be over the box, the box's tooltip covers the button.
    await workbench.page.mouse.move(0, 0);
    await workbench.quickInput.widget.getByRole("button", { name: "Sort Tasks" }).click();
    await workbench.quickInput.shows("Sort tasks by");
  }

  async function selectSession(title: string): Promise<void> {
    await workbench.runCommand("Async Agents: Select Session");
    await workbench.quickInput.shows("Select the session whose tasks to show");
    await workbench.quickInput.enter(title);
  }

  async function pictures(name: string): Promise<void> {
    await workbench.leaveHover();
    await takePictures(workbench, name);
    await takeHighContrastPicture(workbench, name);
  }

  it("[EXT-2] shows batches, and the descendants of a task, including subagents of OpenCode's own tool", async () => {
    await row("Search the callers, running, explore, OpenCode").waitFor();
    assert.equal(await depth(row("Find who calls")), "2");
    assert.equal(await depth(row("Search the callers")), "3");
    assert.equal(await spoken(row("Batch, Review the …")), "Batch, Review the …, 2 of 3 done, 1 failed");
    assert.equal(await depth(row("Review the lexer")), "3");
    await until("its badge", async () => (await workbench.badges(row("Find dead code"))).join() === "RF");
    await row("From the future, unreadable").waitFor();
    await pictures("tree-few");
  });

  it("shows what needs the user: in its row, in those above it, and on the badge", async () => {
    await row("Find who calls").filter({ hasText: "1 subagent needs you" }).waitFor();
    assert.match(await spoken(row("Measure below")), /needs permission/);
    const badge = workbench.page.locator('.activitybar a[aria-label^="Async Agents"]');
    await until("the badge", async () =>
      /2 requests wait/.test((await badge.getAttribute("aria-label")) ?? ""),
    );
    const [, group, first] = await all();
    assert.equal(group, "Needs You, 2");
    assert.match(first ?? "", /^(Measure the suites|Find who calls)/);
  });

  it("the facts after a title that is written from right to left are shown in their order", async () => {
    const facts = row(RIGHT_TO_LEFT).locator(".label-description");
    await facts.waitFor();
    assert.match(await facts.innerText(), /^\u200E?\d+ /);
    // A number that was taken into the title would be left of its last words.
    const [title, number] = await facts.evaluate((element) => {
      const text = element.firstChild as Text;
      const range = document.createRange();
      const at = text.data.search(/\d/);
      range.setStart(text, at);
      range.setEnd(text, at + 1);
      const name = element.closest(".monaco-icon-label")?.querySelector(".label-name");
      return [name?.getBoundingClientRect().right ?? NaN, range.getBoundingClientRect().left];
    });
    assert.ok(number >= title - 1, `${number}, ${title}`);
  });

  it("hostile descriptions are shown as text", async () => {
    assert.match(await row("**bold**").innerText(), /\*\*bold\*\* \$\(alert\)…/);
    assert.equal(await row("**bold**").locator("a[href], .codicon-alert, b").count(), 0);
    const hover = await workbench.tooltipOf(row("**bold**"), "Launched by");
    assert.match(await hover.innerText(), /\*\*bold\*\* \$\(alert\) \[run\]\(command:\S+\) <b>html<\/b>/);
    assert.equal(await hover.locator("a, .codicon-alert, b").count(), 0);
    await workbench.screenshot("tree-tooltip-hostile-dark");
    await workbench.tooltipOf(row("Count the files"), "Retry launches a new task");
    await workbench.screenshot("tree-tooltip-error-dark");
    await workbench.page.mouse.move(0, 0);
    await hover.waitFor({ state: "hidden" });
  });

  it("[EXT-5] the menu offers exactly what can be done with a row", async () => {
    assert.deepEqual(await entries(row("Find dead code")), [
      "Show Output",
      "Show Changes",
      "Open in Terminal",
      "Resume Task…",
      "Fork Conversation…",
      "Copy Result",
      "Copy Task ID",
      "Rename Task…",
      "Clear from Task List",
    ]);
    assert.deepEqual(await entries(row("Search the callers")), [
      "Show Output",
      "Show Changes",
      "Open in Terminal",
      "Fork Conversation…",
      "Cancel Task or Batch",
      "Adopt Subagent",
      "Copy Task ID",
    ]);
    assert.deepEqual(await entries(row("Batch, Review the …")), [
      "Compare Changes…",
      "Cancel Task or Batch",
      "Copy Result",
      "Copy Task ID",
      "Clear from Task List",
    ]);
    assert.deepEqual(await entries(row("Count the files")), [
      "Show Output",
      "Show Changes",
      "Open in Terminal",
      "Fork Conversation…",
      "Retry Task",
      "Continue Task…",
      "Copy Result",
      "Copy Task ID",
      "Rename Task…",
      "Clear from Task List",
    ]);
  });

  it("a subagent that OpenCode's own tool launched is cancelled from its menu", async () => {
    await workbench.contextMenu(row("Search the callers"), "Cancel Task or Batch");
    await until("the end", async () =>
      /Search the callers, cancelled/.test(await spoken(row("Search the callers"))),
    );
  });

  it("by keyboard alone: rows are walked, opened, closed and searched, and have their menu", async () => {
    const { page } = workbench;
    const focusTree = async (): Promise<void> => {
      await workbench.runCommand("Async Agents: Focus on Tasks View");
      await page.locator(".part.sidebar .monaco-list:focus").waitFor();
    };
    await focusTree();
    const focused = page.locator('.part.sidebar [role="treeitem"].focused');
    await page.keyboard.press("Home");
    await page.keyboard.press("ArrowDown");
    await focused.filter({ hasText: "Needs You" }).waitFor();
    await page.keyboard.press("ArrowDown");
    await focused.filter({ hasText: "Find who calls" }).waitFor();
    await page.keyboard.press("ArrowLeft");
    await row("Measure below").waitFor({ state: "hidden" });
    await page.keyboard.press("ArrowRight");
    await row("Measure below").waitFor();
    await page.keyboard.press("Enter");
    await workbench.tab("Find who calls").waitFor();
    await focusTree();
    await page.keyboard.press("Shift+F10");
    await page.locator(".monaco-menu .action-label", { hasText: "Copy Task ID" }).waitFor();
    await page.keyboard.press("Escape");
    await page.keyboard.type("count");
    await focused.filter({ hasText: "Count the files" }).waitFor();
    await page.keyboard.press("F3");
    await page.locator(".monaco-tree-type-filter input").fill("lexer");
    await row("Review the lexer").locator(".highlight", { hasText: "lexer" }).waitFor();
    await workbench.screenshot("tree-find-dark");
    await page.keyboard.press("Escape");
    await page.keyboard.press("Escape");
  });

  it("a task is renamed with F2", async () => {
    const { page, quickInput } = workbench;
    await workbench.clickRow(row("Count the files"));
    await workbench.tab("Count the files").waitFor();
    await workbench.runCommand("Async Agents: Focus on Tasks View");
    await page.locator(".part.sidebar .monaco-list:focus").waitFor();
    await page.keyboard.press("F2");
    await quickInput.shows("Rename: Count the files");
    await workbench.screenshot("tree-rename-dark");
    await quickInput.enter("Count the lines");
    await row("Count the lines").filter({ hasText: "Count the lines" }).waitFor();
    await page.keyboard.press("F2");
    await quickInput.shows("Rename: Count the lines");
    await quickInput.enter("Count the files");
    await row("Count the files").waitFor();
  });

  it("a row that the user closed stays closed while its tasks change", async () => {
    const batch = row("Batch, Review the …");
    await workbench.hoverRow(batch);
    await batch.locator(".monaco-tl-twistie").click();
    await row("Review the lexer").waitFor({ state: "hidden" });
    model.release("Review it.");
    await batch.filter({ hasText: "3 of 3 done" }).waitFor();
    assert.equal(await row("Review the lexer").count(), 0);
    await workbench.hoverRow(batch);
    await batch.locator(".monaco-tl-twistie").click();
    await until("the end", async () => /parser, completed/.test(await spoken(row("Review the parser"))));
  });

  it("several rows at once: the menu has what works for all of them, and a clear can be undone", async () => {
    const [first, last] = [row("Review the parser"), row("Write the changelog")];
    await workbench.clickRow(first);
    // When it opens, the panel closes an open menu.
    await workbench.tab("Review the parser").waitFor();
    // Rows are redrawn once a result is read.
    await until("it to be read", async () => !(await workbench.badges(first)).includes("●"));
    await workbench.hoverRow(last);
    await last.click({ modifiers: ["Control"] });
    assert.deepEqual(await entries(first), [
      "Compare Changes…",
      "Copy Result",
      "Copy Task ID",
      "Clear from Task List",
    ]);
    await workbench.contextMenu(first, "Clear from Task List");
    await until("the rows to go", async () => (await first.count()) + (await last.count()) === 0);
    // By itself, a notification goes out of sight after 10 seconds.
    await workbench.showNotifications();
    await workbench.notification("Cleared 2 tasks").getByRole("button", { name: "Undo" }).click();
    await Promise.all([first.waitFor(), last.waitFor()]);
  });

  it("a filter is typed and selected, says what it hides, and can be cleared", async () => {
    const { quickInput } = workbench;
    await workbench.runCommand("Async Agents: Filter and Sort Tasks");
    await quickInput.shows("Select statuses and agents");
    await takePictures(workbench, "tree-filter");
    await quickInput.type("the");
    await message('"the"').waitFor();
    await quickInput.choose("failed");
    await message(/2 of \d+ shown: failed · "the"\. 2 hidden tasks need you\./).waitFor();
    await quickInput.cancel();
    await message("shown").waitFor({ state: "hidden" });
    await workbench.runCommand("Async Agents: Filter and Sort Tasks");
    await quickInput.shows("Select statuses and agents");
    await quickInput.choose("failed");
    await quickInput.accept();
    // The group, its task, and a batch with its failed task.
    await until("the failed ones", async () => (await all()).length === 3);
    await row("Review the printer").waitFor();
    await pictures("tree-filtered");
    await workbench.page.locator('.part.sidebar .title-actions a[aria-label^="Clear Filter"]').click();
    await row("Measure the suites").waitFor();
  });

  it("a filter that hides every row says so and offers to clear it", async () => {
    await workbench.runCommand("Async Agents: Filter and Sort Tasks");
    await workbench.quickInput.enter("nothing is called so");
    const welcome = workbench.page.locator(".welcome-view", { hasText: "hides all tasks" });
    await welcome.waitFor();
    await workbench.screenshot("tree-all-hidden-dark");
    await welcome.getByText("Clear Filter").click();
    await row("Measure the suites").waitFor();
  });

  it("[EXT-2] shows thirty tasks in batches, and nested tasks", async () => {
    // A panel that is still opening would take the focus from the list of sessions.
    await workbench.runCommand("View: Close All Editors");
    await selectSession(THIRTY);
    await row("Batch, Update the docs of …, 8 of 8 done").waitFor();
    await row("Port module 1 to the new interface").waitFor();
    await pictures("tree-thirty");
  });

  it("another order is selected from a list", async () => {
    await askOrder();
    await workbench.screenshot("tree-sort-dark");
    await workbench.quickInput.choose("Name");
    await until("the order", async () => /Check/.test((await all())[0] ?? ""));
    await askOrder();
    await workbench.quickInput.choose("Groups");
    await until("the order", async () => /^Working/.test((await all())[0] ?? ""));
  });

  it("shows a thousand tasks", async () => {
    await thousandSeeded;
    await selectSession(THOUSAND);
    await askOrder();
    await workbench.quickInput.choose("Newest First");
    await row("Check file 999").waitFor();
    await workbench.screenshot("tree-thousand-dark");
    await workbench.runCommand("Async Agents: Focus on Tasks View");
    await workbench.page.locator(".part.sidebar .monaco-list:focus").waitFor();
    await workbench.press("End");
    await row("Check file 0").waitFor();
  });

  it("keys work for the task whose output is in front, also in a session without tasks", async () => {
    await workbench.clickRow(row("Check file 0"));
    await workbench.tab("Check file 0").waitFor();
    await selectSession(EMPTY);
    await row("Check file 0").waitFor({ state: "detached" });
    await workbench.pressAfterCtrlK("a", "d");
    await workbench.quickInput.shows("Clear Task");
    await workbench.quickInput.items.filter({ hasText: "Check file 0" }).waitFor();
    await workbench.quickInput.cancel();
  });
});

/** Seconds rather than minutes, so that only a test right after midnight would find these in another group. */
function endedAgo(
  seconds: number,
): Pick<SeededTask, "createdAt" | "startedAt" | "endedAt" | "finalMessageID"> {
  const endedAt = Date.now() - seconds * 1_000;
  const startedAt = endedAt - 75_000;
  return { createdAt: startedAt, startedAt, endedAt, finalMessageID: "msg_final" };
}

async function seedFew(server: OpenCodeServer, parentSessionID: string): Promise<void> {
  const ended = (seconds: number, description: string, facts: Partial<SeededTask> = {}): Promise<string> =>
    seedTask(server, { parentSessionID, description, toolCalls: 7, ...endedAgo(seconds), ...facts });
  const error = { name: "APIError", message: "The key was refused by the provider." };
  await ended(30, "Find dead code", { resumeCount: 1, isForked: true });
  await ended(29, HOSTILE);
  await ended(28, RIGHT_TO_LEFT);
  await ended(27, LONG);
  await ended(26, "Count the files", { status: "error", error });
  await ended(25, "Write the changelog", { status: "cancelled", finalMessageID: undefined });
  const batchID = "review";
  await ended(20, "Review the lexer", { batchID });
  await ended(20, "Review the printer", { batchID, status: "error", error });
  await seedTask(server, {
    parentSessionID,
    batchID,
    description: "Review the parser",
    prompt: "Review it.",
  });
  const outer = await seedTask(server, {
    parentSessionID,
    description: "Find who calls the tokenizer",
    agent: "build",
    prompt: "Delegate.",
  });
  await seedTask(server, { parentSessionID: outer, description: "Measure below", prompt: "Measure." });
  await seedTask(server, { parentSessionID, description: "Measure the suites", prompt: "Measure." });
  await server.fetch("/session", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      title: "From the future",
      parentID: parentSessionID,
      metadata: { asyncagents: { v: 99 } },
    }),
  });
}

async function seedThirty(server: OpenCodeServer, parentSessionID: string): Promise<void> {
  const batch = (name: string, count: number, seconds: number): readonly SeededTask[] =>
    Array.from({ length: count }, (_, at) => ({
      parentSessionID,
      description: `${name} ${at + 1} to the new interface`,
      batchID: name,
      ...endedAgo(seconds),
    }));
  await seedTasks(server, [...batch("Update the docs of module", 8, 40), ...batch("Check module", 10, 20)]);
  const [outer = ""] = await seedTasks(server, batch("Port module", 6, 10));
  const inner = await seedTask(server, {
    parentSessionID: outer,
    description: "Read the old interface",
    prompt: "Read.",
  });
  await seedTasks(
    server,
    Array.from({ length: 5 }, (_, at) => ({
      parentSessionID: inner,
      description: `Read file ${at + 1}`,
      batchID: "files",
      ...endedAgo(5),
    })),
  );
}

async function seedThousand(server: OpenCodeServer, parentSessionID: string): Promise<void> {
  const tasks = Array.from({ length: 1_000 }, (_, at) => ({
    parentSessionID,
    description: `Check file ${at}`,
    ...endedAgo(2_000 - at),
  }));
  await seedTasks(server, tasks);
}
