import assert from "node:assert/strict";
import type { Locator } from "playwright-core";
import {
  lastUserText,
  type ModelRequest,
  type ScriptedModel,
  type ScriptStep,
} from "../support/scripted-model.ts";
import { until } from "../support/wait.ts";
import { takeHighContrastPicture, takePictures } from "./support/pictures.ts";
import { setUp } from "./support/set-up.ts";
import type { Workbench } from "./support/workbench.ts";

const PREVIEWED = ["Cart", "Menu", "Prices"] as const;
const [CART, MENU, PRICES] = PREVIEWED;
const LOOP = "Loop";

/** The model answers each prompt but the short ones once it is released. */
function answer({ messages, title }: Pick<ModelRequest, "messages" | "title">): ScriptStep {
  const prompt = lastUserText(messages);
  if (title) return { text: "A title" };
  const isShort = PREVIEWED.some((name) => name === prompt);
  return { text: `Done: ${prompt}`, ...(!isShort && { gate: prompt }) };
}

const [LEXER, PARSER, PRINTER, DOCS] = ["Fix the lexer", "Test the parser", "Port the printer", "Write docs"];
const ALL = [LEXER, PARSER, PRINTER, DOCS] as const;

describe("the list of a user's own tasks and its outputs, in a real editor", function () {
  let model: ScriptedModel;
  let workbench: Workbench;

  setUp(async (start) => {
    model = await start.model({ fallback: answer });
    workbench = await start.window({
      model,
      settings: { "asyncagents.maxConcurrentTasks": 2, "asyncagents.notifyUser": "never" },
    });
  });

  const row = (name: string): Locator => workbench.row(name);
  const status = (): Locator => workbench.page.locator('.statusbar-item[id$="asyncagents.status"] a');
  const badge = async (): Promise<string> =>
    (await workbench.activityBarItem.getAttribute("aria-label")) ?? "";
  const titleButton = (name: string): Locator =>
    workbench.page.locator(`.part.sidebar .title-actions a[aria-label^="${name}"]`);
  /** The rows of groups and tasks, from the top. */
  const rows = (): Promise<readonly string[]> =>
    workbench.treeItems.evaluateAll((all) =>
      all.map((each) => (each.getAttribute("aria-label") ?? "").split(", ").slice(0, 2).join(", ")),
    );
  const showsRows = (...expected: readonly string[]): Promise<unknown> =>
    until(`the rows ${expected.join(" | ")}`, async () => (await rows()).join() === expected.join());
  const isUnread = async (name: string): Promise<boolean> =>
    (await workbench.badges(row(name))).includes("●");

  async function launch(prompt: string): Promise<void> {
    await workbench.runCommand("Async Agents: Launch Task");
    await workbench.quickInput.choose("general");
    await workbench.quickInput.shows("Prompt for general");
    await workbench.quickInput.enter(prompt);
    await row(prompt).waitFor();
  }

  it("groups tasks by what they need; queued ones follow in the order in which they start, with their place", async () => {
    for (const prompt of ALL) await launch(prompt);
    await row(DOCS).filter({ hasText: "queued, #2" }).waitFor();
    await showsRows(
      "Working, 4",
      `${LEXER}, running`,
      `${PARSER}, running`,
      `${PRINTER}, queued`,
      `${DOCS}, queued`,
    );
    await takePictures(workbench, "groups-queue");
  });

  it("the status bar tells running agents from queued ones, and a click lists them", async () => {
    const { quickInput } = workbench;
    await workbench.statusBarItem("Agents: 2 running, 2 queued").waitFor();
    assert.equal(
      await status().getAttribute("aria-label"),
      "Async Agents: 2 agents running, 2 agents queued",
    );
    await status().click();
    await quickInput.items.filter({ hasText: DOCS }).waitFor();
    await workbench.screenshot("status-bar-list-dark");
    await quickInput.choose(PARSER);
    await workbench.tab(PARSER).waitFor();
  });

  it("a result is unread until it is opened, unless it came in front of the user", async () => {
    for (const prompt of ALL) {
      await model.waitForRequest((request) => !request.title && lastUserText(request.messages) === prompt);
      model.release(prompt);
      // The list is in the order of the ends, and two tasks run at once.
      await row(`${prompt}, completed`).waitFor();
    }
    await showsRows(
      "Finished Today, 4",
      ...[DOCS, PRINTER, PARSER, LEXER].map((prompt) => `${prompt}, completed`),
    );
    await until("the dots", async () => (await isUnread(LEXER)) && !(await isUnread(PARSER)));
    assert.match((await row(LEXER).getAttribute("aria-label")) ?? "", /, unread$/);
    await row("Finished Today, 4, 3 unread").waitFor();
    // The editor takes a badge away before it shows the next one.
    await until("the badge to count them", async () => /3 unread results/.test(await badge()));
    await takePictures(workbench, "unread");
    await takeHighContrastPicture(workbench, "unread");
    await workbench.clickRow(row(LEXER));
    await workbench.tab(LEXER).waitFor();
    await until("the dot to go", async () => !(await isUnread(LEXER)));
    await until("the badge to count the rest", async () => /2 unread results/.test(await badge()));
  });

  it("what is unread stays so after a reload; a key and a button show the next one", async () => {
    await workbench.reload();
    await row("Finished Today, 4, 2 unread").waitFor();
    await workbench.pressAfterCtrlK("a", "n");
    await workbench.tab(DOCS).waitFor();
    await row("Finished Today, 4, 1 unread").waitFor();
    await titleButton("Show Next Unread").click();
    await workbench.tab(PRINTER).waitFor();
    await until("nothing to be unread", async () => !/unread/.test(await badge()));
    await row("Finished Today, 4, ").waitFor({ state: "detached" });
  });

  it("all are marked as read at once, and the buttons of the view's title keep their places", async () => {
    const places = (): Promise<readonly string[]> =>
      workbench.page
        .locator(".part.sidebar .title-actions a[aria-label]")
        .evaluateAll((links) =>
          links.map((link) => `${link.getAttribute("aria-label")} at ${link.getBoundingClientRect().x}`),
        );
    // While the editor lays them out, all are at 0.
    const before = await until("the six buttons", async () => {
      const all = await places();
      return all.length === 6 && !all.some((place) => place.endsWith(" at 0")) && all;
    });
    const areKept = (): Promise<true> =>
      until(`the places ${before.join()}`, async () => (await places()).join() === before.join());
    await launch("Check the links");
    await areKept();
    await model.waitForRequest((request) => lastUserText(request.messages) === "Check the links");
    await workbench.runCommand("View: Close All Editors");
    model.release("Check the links");
    await row("Finished Today, 5, 1 unread").waitFor();
    await areKept();
    await workbench.runCommand("Async Agents: Mark All as Read");
    await until("the dot to go", async () => !(await isUnread("Check the links")));
    await until("the badge to go", async () => !/unread/.test(await badge()));
  });

  it("a batch is cancelled as one, and clearing finished tasks can be undone", async () => {
    const { quickInput } = workbench;
    const reviews = ["Review the lexer", "Review the printer"];
    await workbench.runCommand("Async Agents: Launch Batch");
    await quickInput.shows("One prompt per task");
    await quickInput.enter(reviews.join(" | "));
    await quickInput.shows("1 Selected");
    await quickInput.accept();
    for (const name of reviews) await row(`${name}, running`).waitFor();
    await workbench.runCommand("Async Agents: Cancel Task or Batch");
    await quickInput.choose("batch of 2 tasks");
    for (const name of reviews) await row(`${name}, cancelled`).waitFor();
    await takePictures(workbench, "tree-mixed");
    await workbench.runCommand("Async Agents: Clear Finished Tasks");
    await workbench.page.locator(".welcome-view", { hasText: "No background tasks" }).waitFor();
    // By itself, a notification goes out of sight after 10 seconds.
    await workbench.showNotifications();
    await workbench.notification("Cleared").getByRole("button", { name: "Undo" }).click();
    await row(LEXER).waitFor();
  });

  it("the buttons of the view's title work while a row has the focus", async () => {
    await workbench.clickRow(row(LEXER));
    await titleButton("Launch Task").click();
    await workbench.quickInput.shows("Select an agent");
    await workbench.quickInput.cancel();
  });

  describe("cleared tasks", () => {
    const clear = (prompt: string): Promise<void> =>
      workbench.contextMenu(row(prompt), "Clear from Task List");

    const inDialog = (text: string, button: string): Promise<void> =>
      workbench.dialog(text).locator(".monaco-button", { hasText: button }).click();

    it("are out of sight until the filter shows them, in a collapsed group that stays after a reload", async () => {
      for (const prompt of [LEXER, PARSER]) {
        await clear(prompt);
        await row(prompt).waitFor({ state: "detached" });
      }
      await titleButton("Filter and Sort").click();
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
      await row("Finished Today, 6").waitFor();
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

  describe("the preview of outputs", () => {
    before(async () => {
      await workbench.runCommand("View: Close All Editors");
      for (const name of PREVIEWED) {
        await launch(name);
        await row(`${name}, completed`).waitFor();
      }
    });

    const showsTabs = (...names: readonly string[]): Promise<unknown> =>
      until(`the tabs ${names.join()}`, async () => {
        const tabs = await workbench.tab("").allInnerTexts();
        return tabs.map((text) => text.trim()).join() === names.join();
      });
    /** The tab's icon is that of this state. */
    const showsIcon = (name: string, state: string): Promise<unknown> =>
      until(`the icon of ${name}`, async () => {
        const style = await workbench.tab(name).locator(".monaco-icon-label-iconpath").getAttribute("style");
        return style?.includes(`output-${state}.svg`) ?? false;
      });
    const answer = (name: string): Promise<void> =>
      workbench.webviewFrame().getByText(`Done: ${name}`).waitFor();

    it("single clicks use one panel again, which shows the task's state in its tab", async () => {
      await workbench.clickRow(row(CART));
      await answer(CART);
      await workbench.clickRow(row(MENU));
      await answer(MENU);
      await showsTabs(MENU);
      await showsIcon(MENU, "completed");
      await takePictures(workbench, "preview");
    });

    it("a double-click keeps the panel, and so does writing in it", async () => {
      await workbench.hoverRow(row(PRICES));
      await row(PRICES).dblclick();
      await answer(PRICES);
      await workbench.clickRow(row(CART));
      await answer(CART);
      await showsTabs(PRICES, CART);
      await workbench
        .webviewFrame()
        .getByRole("textbox", { name: "Follow-up prompt" })
        .fill("Half a thought");
      await workbench.clickRow(row(MENU));
      await answer(MENU);
      await showsTabs(PRICES, CART, MENU);
    });

    it("a pinned tab is kept, and the selected row follows the active panel", async () => {
      await workbench.runCommand("View: Close All Editors");
      const selected = workbench.page.locator('.part.sidebar [role="treeitem"][aria-selected="true"]');
      for (const [name, pin] of [
        [CART, true],
        [MENU, false],
        [PRICES, false],
      ] as const) {
        await workbench.clickRow(row(name));
        await answer(name);
        if (pin) await workbench.runCommand("View: Pin Editor");
      }
      await showsTabs(CART, PRICES);
      await workbench.tab(CART).click();
      await selected.and(row(CART)).waitFor();
      await workbench.tab(PRICES).click();
      await selected.and(row(PRICES)).waitFor();
      assert.equal(await selected.count(), 1);
    });

    it("keys for a task name the one in front of the user first, so that Enter is enough", async () => {
      const { quickInput } = workbench;
      const isFirst = async (name: string, title: string): Promise<void> => {
        await quickInput.shows(title);
        await quickInput.items.first().filter({ hasText: name }).waitFor();
      };
      await workbench.clickRow(row(CART));
      await answer(CART);
      await workbench.pressAfterCtrlK("a", "r");
      await isFirst(CART, "Copy Result");
      await quickInput.cancel();

      // Without the view, it is the task of the active panel.
      await workbench.press("Control+Shift+E");
      await workbench.page.locator(".part.sidebar .composite.title", { hasText: "Explorer" }).waitFor();
      await workbench.tab(CART).click();
      await workbench.pressAfterCtrlK("a", "d");
      await isFirst(CART, "Clear Task");
      await quickInput.accept();
      const cleared = workbench.notification(`Cleared "${CART}"`);
      await cleared.getByRole("button", { name: "Undo" }).click();
      await workbench.openView();
      await row(CART).waitFor();

      await launch(LOOP);
      await workbench.clickRow(row(`${LOOP}, running`));
      await showsIcon(LOOP, "running");
      await workbench.pressAfterCtrlK("a", "x");
      await isFirst(LOOP, "Cancel Task");
      await quickInput.accept();
      await row(`${LOOP}, cancelled`).waitFor();
      await showsIcon(LOOP, "cancelled");
    });
  });
});
