import assert from "node:assert/strict";
import type { Locator } from "playwright-core";
import { lastUserText, type ModelRequest, type ScriptStep } from "../support/scripted-model.ts";
import { until } from "../support/wait.ts";
import { takePictures } from "./support/pictures.ts";
import { setUp } from "./support/set-up.ts";
import type { Workbench } from "./support/workbench.ts";

const NAMES = ["Lexer", "Parser", "Printer"] as const;
const [LEXER, PARSER, PRINTER] = NAMES;
const LOOP = "Loop";

function answerTo({ messages, title }: Pick<ModelRequest, "messages" | "title">): ScriptStep {
  const prompt = lastUserText(messages);
  if (title) return { text: "A title" };
  return { text: `ok: ${prompt}`, ...(prompt.includes(LOOP) && { gate: LOOP }) };
}

describe("the preview of outputs, in a real editor", function () {
  let workbench: Workbench;

  setUp(async (start) => {
    workbench = await start.window({
      model: await start.model({ fallback: answerTo }),
      settings: { "asyncagents.notifyUser": "never" },
    });
    for (const name of NAMES) {
      await launch(name);
      await row(`${name}, completed`).waitFor();
    }
  });

  async function launch(name: string): Promise<void> {
    await workbench.runCommand("Async Agents: Launch Task");
    await workbench.quickInput.choose("general");
    await workbench.quickInput.shows("Prompt for general");
    await workbench.quickInput.enter(name);
  }

  const row = (name: string): Locator => workbench.row(name);
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
  const answer = (name: string): Promise<void> => workbench.webviewFrame().getByText(`ok: ${name}`).waitFor();

  it("single clicks use one panel again, which shows the task's state in its tab", async () => {
    await workbench.clickRow(row(LEXER));
    await answer(LEXER);
    await workbench.clickRow(row(PARSER));
    await answer(PARSER);
    await showsTabs(PARSER);
    await showsIcon(PARSER, "completed");
    await takePictures(workbench, "preview");
  });

  it("a double-click keeps the panel, and so does writing in it", async () => {
    await workbench.hoverRow(row(PRINTER));
    await row(PRINTER).dblclick();
    await answer(PRINTER);
    await workbench.clickRow(row(LEXER));
    await answer(LEXER);
    await showsTabs(PRINTER, LEXER);
    await workbench.webviewFrame().getByRole("textbox", { name: "Follow-up prompt" }).fill("Half a thought");
    await workbench.clickRow(row(PARSER));
    await answer(PARSER);
    await showsTabs(PRINTER, LEXER, PARSER);
  });

  it("a pinned tab is kept, and the selected row follows the active panel", async () => {
    await workbench.runCommand("View: Close All Editors");
    const selected = workbench.page.locator('.part.sidebar [role="treeitem"][aria-selected="true"]');
    for (const [name, pin] of [
      [LEXER, true],
      [PARSER, false],
      [PRINTER, false],
    ] as const) {
      await workbench.clickRow(row(name));
      await answer(name);
      if (pin) await workbench.runCommand("View: Pin Editor");
    }
    await showsTabs(LEXER, PRINTER);
    await workbench.tab(LEXER).click();
    await selected.and(row(LEXER)).waitFor();
    await workbench.tab(PRINTER).click();
    await selected.and(row(PRINTER)).waitFor();
    assert.equal(await selected.count(), 1);
  });

  it("keys for a task name the one in front of the user first, so that Enter is enough", async () => {
    const { quickInput } = workbench;
    const isFirst = async (name: string, title: string): Promise<void> => {
      await quickInput.shows(title);
      await quickInput.items.first().filter({ hasText: name }).waitFor();
    };
    await workbench.clickRow(row(LEXER));
    await answer(LEXER);
    await workbench.pressAfterCtrlK("a", "r");
    await isFirst(LEXER, "Copy Result");
    await quickInput.cancel();

    // Without the view, it is the task of the active panel.
    await workbench.press("Control+Shift+E");
    await workbench.page.locator(".part.sidebar .composite.title", { hasText: "Explorer" }).waitFor();
    await workbench.tab(LEXER).click();
    await workbench.pressAfterCtrlK("a", "d");
    await isFirst(LEXER, "Clear Task");
    await quickInput.accept();
    const cleared = workbench.notification(`Cleared "${LEXER}"`);
    await cleared.getByRole("button", { name: "Undo" }).click();
    await workbench.openView();
    await row(LEXER).waitFor();

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
