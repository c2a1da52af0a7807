import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Frame, FrameLocator, Locator } from "playwright-core";
import { createSession } from "../support/engine.ts";
import { type OpenCodeServer } from "../support/opencode.ts";
import { barriers } from "../support/panel-page/barriers.ts";
import {
  lastUserText,
  type ModelMessage,
  type ScriptedModel,
  type ScriptStep,
} from "../support/scripted-model.ts";
import { seedTasks } from "../support/seeded-tasks.ts";
import { tempDir } from "../support/temp.ts";
import { until } from "../support/wait.ts";
import { setUp } from "./support/set-up.ts";
import { picturesWanted, type Theme, type Workbench } from "./support/workbench.ts";

/** Themes, and widths of the panel; without pictures, the last is enough. */
const LOOKS = (["dark", "light", "hc"] as const satisfies readonly Theme[]).flatMap((theme) =>
  [520, 300].map((width) => ({ theme, width })),
);

const CART = `${"// a line of code\n".repeat(200)}export const needle = 1;\n`;

const WORDS = "The cart adds up its items and asks the server for the price of each. ".repeat(8);

const ANSWER = `The **first needle** of the answer. See [the cart](src/cart.js#L12), src/cart.js:18:5 and \`src/cart.js\`,
and [the price list](https://prices.test/a%2Fb?q=C%23).

- [x] Read the cart
- [ ] Write a test

${Array.from({ length: 60 }, (_, index) => `## Part ${index}\n\n${WORDS}`).join("\n\n")}

מחיר הפריט מחושב ב־\`price(item, { tax: true })\` לפני ההנחה.

The last needle.`;

const PUSH = "cd src &&\n  git push origin main";

/** The model's steps for each prompt. */
const SCRIPTS: Readonly<Record<string, readonly ScriptStep[]>> = {
  "Describe the cart": [
    {
      reasoning: "First the file, then its callers. ",
      tools: [
        { name: "read", args: { filePath: "src/cart.js" } },
        {
          name: "task",
          args: { description: "Look for callers", prompt: "Who calls it?", subagent_type: "general" },
        },
      ],
    },
    { text: ANSWER },
  ],
  "Who calls it?": [{ text: "Two files call it." }],
  "Publish it": [
    { tools: [{ name: "bash", args: { command: PUSH, description: "Publish the branch" } }] },
    { text: "Published." },
  ],
  "And then": [{ text: "Carried on." }],
};

function answer({ messages }: { readonly messages: readonly ModelMessage[] }): ScriptStep {
  const prompt = lastUserText(messages);
  const steps = Object.entries(SCRIPTS).findLast(([text]) => prompt.includes(text))?.[1] ?? [];
  const since = messages.slice(messages.findLastIndex(({ role }) => role === "user") + 1);
  return steps[since.filter(({ role }) => role === "assistant").length] ?? { text: "Done." };
}

describe("reading and finding in the output panel, in a real editor", () => {
  let model: ScriptedModel;
  let server: OpenCodeServer;
  let workbench: Workbench;
  let frame: FrameLocator;

  setUp(async (start) => {
    model = await start.model({ fallback: answer });
    // Not a Git repository: there the server names files relative to the root of the file system.
    const folder = tempDir("shop");
    mkdirSync(join(folder, "src"));
    writeFileSync(join(folder, "src", "cart.js"), CART);
    const permission = { bash: { "*": "allow", "cd *": "ask", "git push *": "ask" } };
    server = await start.server({ model, directory: folder, config: { permission, subagent_depth: 3 } });
    const parentSessionID = await createSession(server, "Sell something");
    await seedTasks(
      server,
      ["Describe the cart", "Publish it"].map((prompt) => ({
        parentSessionID,
        description: prompt,
        prompt,
        agent: "build",
        launchedBy: "person" as const,
      })),
    );
    workbench = await start.window({
      server,
      settings: { "asyncagents.notifyParent": false, "asyncagents.notifyUser": "never" },
      shows: (opened) => opened.treeItem("Describe the cart").waitFor(),
    });
    frame = workbench.webviewFrame();
  });

  async function show(prompt: string): Promise<void> {
    await workbench.clickRow(workbench.treeItem(prompt));
    await frame.getByRole("heading", { level: 1, name: prompt }).waitFor();
  }

  /** Opens the long conversation, at its end. */
  async function showCart(): Promise<void> {
    await workbench.runCommand("View: Close All Editors");
    await show("Describe the cart");
    await frame.locator(".status", { hasText: "Completed" }).waitFor();
    await frame.getByText("The last needle.").waitFor();
    await until("the focus in the text", async () => (await focused()) === "Conversation");
  }

  async function panelFrame(): Promise<Frame> {
    const page = await (await frame.locator("html").elementHandle())?.ownerFrame();
    assert.ok(page);
    return page;
  }

  const press = async (...keys: readonly string[]): Promise<void> => {
    for (const key of keys) await workbench.page.keyboard.press(key);
  };
  const button = (name: string): Locator => frame.getByRole("button", { name, exact: true });
  const box = (): Locator => frame.getByRole("textbox", { name: "Find in output" });
  const count = (text: string): Promise<void> =>
    frame.locator(".find-count").getByText(text, { exact: true }).waitFor();
  const focused = async (): Promise<string> =>
    (await panelFrame()).evaluate("document.activeElement.ariaLabel ?? document.activeElement.className");
  /** The current match, and whether it is in view. */
  const isShown = async (): Promise<boolean> =>
    (await panelFrame()).evaluate(() => {
      const [range] = [...(CSS.highlights.get("found-current") ?? [])] as Range[];
      if (!range) return false;
      const { top, bottom } = range.getBoundingClientRect();
      const view = document.querySelector(".scroller")!.getBoundingClientRect();
      return top >= view.top && bottom <= view.bottom;
    });

  /** Sets the width of the panel, in pixels. */
  async function resize(width: number): Promise<void> {
    const { height } = workbench.page.viewportSize()!;
    const now = (await frame.locator("body").boundingBox())!.width;
    const window = workbench.page.viewportSize()!.width;
    await workbench.page.setViewportSize({ width: Math.round(window - now + width), height });
    await until("the panel's width", async () => {
      const box = await frame.locator("body").boundingBox();
      return box !== null && Math.abs(box.width - width) < 40;
    });
  }

  it("has the focus in the text as soon as a row is opened, so that keys scroll it", async () => {
    await showCart();
    await press("Home");
    const first = frame.locator(".row-prompt");
    await first.waitFor();
    const before = (await first.boundingBox())!.y;
    await press("PageDown");
    await until("the next page", async () => ((await first.boundingBox())?.y ?? -Infinity) < before - 200);
    await press("PageUp");
    await until("the first page", async () => ((await first.boundingBox())?.y ?? -Infinity) === before);
    let tabs = 0;
    for (; (await focused()) !== "Follow-up prompt"; tabs++) {
      assert.ok(tabs < 3, `${tabs} Tabs lead to ${await focused()}`);
      await press("Tab");
    }
  });

  it("finds text in the whole conversation with Ctrl+F, also in high contrast and a narrow panel", async () => {
    await showCart();
    await press("Home");
    await press("Control+f");
    await box().waitFor();
    await workbench.page.keyboard.type("needle");
    await count("1 of 3");
    await until("the first match", isShown);
    await frame.locator(".output").waitFor();
    for (const position of ["2 of 3", "3 of 3", "1 of 3", "2 of 3"]) {
      await press("Enter");
      await count(position);
      await until(`match ${position}`, isShown);
    }
    await press("Shift+Enter");
    await count("1 of 3");
    await press("F3");
    await count("2 of 3");
    const found: string[] = [];
    for (const { theme, width } of picturesWanted ? LOOKS : LOOKS.slice(-1)) {
      await workbench.setTheme(theme);
      await resize(width);
      await until("the match", isShown);
      await workbench.page.mouse.move(0, 0);
      await workbench.screenshot(`find-${width}-${theme}`);
      const page = await panelFrame();
      const here = await barriers((script) => page.evaluate(script));
      found.push(...here.map((barrier) => `${theme}, ${width}: ${barrier}`));
      assert.ok(await frame.locator("body").evaluate((body) => body.scrollWidth <= body.clientWidth));
    }
    assert.deepEqual(found, []);
    // The editor took the focus away to change the theme.
    await until("the focus in the box again", async () => (await focused()) === "Find in output");
    await press("Escape");
    await until("the focus in the text", async () => (await focused()) === "Conversation");
    await workbench.runCommand("Async Agents: Find in Output");
    await until("the box again", async () => (await focused()) === "Find in output");
    await count("2 of 3");
  });

  it("leaves Ctrl+F to the view that the focus is in", async () => {
    await showCart();
    await workbench.runCommand("Output: Focus on Output View");
    await workbench.page.locator(".part.panel .monaco-editor .view-lines").click();
    await workbench.page.locator(".part.panel .monaco-editor.focused").waitFor();
    await press("Control+f");
    await workbench.page.locator(".part.panel .find-widget.visible").waitFor();
    await workbench.runCommand("Async Agents: Focus on Tasks View");
    await press("Control+f");
    assert.equal(await box().count(), 0);
    await frame.locator(".scroller").focus();
    await press("Control+f");
    await box().waitFor();
    await press("Escape");
    await workbench.runCommand("View: Hide Panel");
  });

  it("copies the whole conversation if everything is selected", async () => {
    await showCart();
    await workbench.screenshot("right-to-left-dark");
    await frame.locator(".scroller").focus();
    await press("Control+a", "Control+c");
    await frame.locator(".toast", { hasText: "Copied the whole conversation" }).waitFor();
    const all = /# Describe the cart[^]*const needle = 1[^]*first needle[^]*last needle/;
    await until("the copy", async () =>
      all.test(String(await workbench.page.evaluate("navigator.clipboard.readText()"))),
    );
  });

  it("opens files from links and paths, at their line, and names them relative to a folder without Git", async () => {
    await showCart();
    await press("Home");
    await frame.locator(".line", { hasText: "read" }).getByText("src/cart.js", { exact: true }).waitFor();
    await frame.getByText("☑ Read the cart").waitFor();
    await workbench.screenshot("links-dark");
    for (const [name, place] of [
      ["the cart", "Ln 12, Col 1"],
      ["src/cart.js:18:5", "Ln 18, Col 5"],
    ] as const) {
      await button(name).click();
      await workbench.tab("cart.js").waitFor();
      await workbench.statusBarItem(place).waitFor();
      await workbench.runCommand("View: Close Editor");
    }
  });

  it("opens a link as it is written", async () => {
    await showCart();
    await press("Home");
    await frame.getByRole("link", { name: "the price list" }).click();
    const dialog = workbench.page.locator(".monaco-dialog-box");
    await dialog.getByText("https://prices.test/a%2Fb?q=C%23").waitFor();
    await press("Escape");
    await dialog.waitFor({ state: "hidden" });
  });

  it("opens a subagent from the call that launched it, whose answer is shown without tags", async () => {
    await showCart();
    await press("Home");
    const call = frame.locator(".row-tool", { hasText: "Look for callers" });
    await call.locator(".line").click();
    await call.locator(".output").getByText("Two files call it.", { exact: true }).waitFor();
    assert.equal(await call.getByText("task_result").count(), 0);
    await workbench.screenshot("subagent-call-dark");
    await call.getByRole("button", { name: "Open Subagent" }).click();
    await frame.getByRole("heading", { level: 1, name: "Look for callers" }).waitFor();
    await frame.getByText("Two files call it.").waitFor();
  });

  it("shows a command that asks for several permissions as one item", async () => {
    await show("Publish it");
    const items = frame.locator(".request-subjects pre");
    await until("the whole command", async () => (await items.first().textContent()) === PUSH);
    assert.equal(await items.count(), 1);
    await workbench.screenshot("command-dark");
    await button("Reject").click();
  });

  it("sends a follow-up with Enter, and breaks its line with Shift+Enter", async () => {
    await showCart();
    const followUp = frame.getByRole("textbox", { name: "Follow-up prompt" });
    await followUp.fill("And then");
    await press("Shift+Enter");
    await workbench.page.keyboard.type("rest");
    await press("Enter");
    await frame.getByText("Carried on.").waitFor();
    const { messages } = await model.waitForRequest((request) =>
      /And then/.test(JSON.stringify(request.messages)),
    );
    assert.match(lastUserText(messages), /And then\nrest/);
  });
});
