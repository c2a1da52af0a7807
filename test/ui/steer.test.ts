import assert from "node:assert/strict";
import type { FrameLocator, Locator } from "playwright-core";
import { createSession } from "../support/engine.ts";
import type { OpenCodeServer } from "../support/opencode.ts";
import {
  lastUserText,
  messageText,
  type ModelMessage,
  type ScriptedModel,
  type ScriptStep,
} from "../support/scripted-model.ts";
import { seedTasks } from "../support/seeded-tasks.ts";
import { until } from "../support/wait.ts";
import { takeAllPictures } from "./support/pictures.ts";
import { setUp } from "./support/set-up.ts";
import type { Workbench } from "./support/workbench.ts";

const TASKS = ["Review the cart", "Review the menu", "Review the price", "Review the drinks"] as const;

/** The first step of each task waits for a gate with the task's name. */
function answer({ messages }: { readonly messages: readonly ModelMessage[] }): ScriptStep {
  const prompt = lastUserText(messages);
  const task = TASKS.find((name) => prompt.includes(name));
  if (task === "Review the price") return { status: 401, body: { error: { message: "No credit" } } };
  return task === undefined ? { text: `Read: ${prompt}` } : { text: "First answer.", gate: task };
}

describe("steering and continuing tasks in a real editor", () => {
  let model: ScriptedModel;
  let server: OpenCodeServer;
  let workbench: Workbench;
  let frame: FrameLocator;

  setUp(async (start) => {
    model = await start.model({ fallback: answer });
    server = await start.server({ model });
    const parentSessionID = await createSession(server, "Sell something");
    await seedTasks(
      server,
      TASKS.map((prompt) => ({
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
      shows: (opened) => opened.treeItem("Review the cart").waitFor(),
    });
    frame = workbench.webviewFrame();
  });

  async function show(name: string): Promise<void> {
    await workbench.clickRow(workbench.treeItem(name).first());
    await frame.getByRole("heading", { level: 1, name }).waitFor();
  }

  /** Sets the width of the panel, in pixels. */
  async function resize(width: number): Promise<void> {
    const { width: window, height } = workbench.page.viewportSize()!;
    const now = (await frame.locator("body").boundingBox())!.width;
    await workbench.page.setViewportSize({ width: Math.round(window - now + width), height });
    await until("the panel's width", async () => {
      const box = await frame.locator("body").boundingBox();
      return box !== null && Math.abs(box.width - width) < 40;
    });
  }

  async function pictures(name: string): Promise<void> {
    const before = workbench.page.viewportSize()!;
    for (const width of [300, 520]) {
      await resize(width);
      await takeAllPictures(workbench, `steer-${name}-${width}`);
    }
    await workbench.page.setViewportSize(before);
  }

  const button = (name: string): Locator => frame.getByRole("button", { name, exact: true });
  const box = (): Locator => frame.getByRole("textbox", { name: "Message to the running task" });
  const text = (content: string): Locator => frame.locator(".scroller").getByText(content).first();
  const isEmpty = (): Promise<unknown> =>
    until("the box to be empty", async () => (await box().inputValue()) === "");

  it("[STE-1] a message from the panel is read by the running task, and one that waits can be withdrawn", async () => {
    await show("Review the cart");
    await box().fill("Look at b.ts, too");
    await box().press("Enter");
    await isEmpty();
    await text("Look at b.ts, too").waitFor();
    await frame.locator(".status", { hasText: "Running" }).waitFor();

    await box().fill("Then write the notes");
    await button("Send After This").click();
    const waiting = frame.locator(".waiting", { hasText: "Then write the notes" });
    await waiting.waitFor();
    await isEmpty();
    await pictures("waiting");
    await button("Withdraw").click();
    await until("the text", async () => (await box().inputValue()) === "Then write the notes");
    await waiting.waitFor({ state: "hidden" });

    model.release("Review the cart");
    await text("Read: Look at b.ts, too").waitFor();
    await frame.locator(".status", { hasText: "Completed" }).waitFor();
    const followUp = frame.getByRole("textbox", { name: "Follow-up prompt" });
    assert.equal(await followUp.inputValue(), "Then write the notes");
    assert.equal(await frame.locator(".mark").count(), 0);
  });

  it("[STE-1] the command sends a message from the row, and its button lets one wait", async () => {
    await show("Review the menu");
    await workbench.contextMenu(workbench.treeItem("Review the menu"), "Send Message…");
    await workbench.quickInput.shows("Enter a message. The agent reads it at its next step.");
    await workbench.quickInput.enter("Mind the soups");
    await text("Mind the soups").waitFor();
    await box().fill("And the desserts");
    await button("Send After This").click();
    await frame.locator(".waiting", { hasText: "And the desserts" }).waitFor();
    model.release("Review the menu");
    await text("Read: And the desserts").waitFor();
    await workbench.treeItem("Review the menu").filter({ hasText: "(resumed)" }).waitFor();
  });

  it("[STE-2] a failed task is continued from the panel, and both tasks link to each other", async () => {
    await show("Review the price");
    await frame.locator(".status", { hasText: "Failed" }).waitFor();
    await pictures("failed");
    await button("Continue").click();
    await text("Continue where you left off.").waitFor();
    await text("Read: You are a background agent").waitFor();
    const asked = model.requests.findLast(({ messages }) =>
      lastUserText(messages).includes("Continue where"),
    );
    assert.match(asked?.messages.map(messageText).join("\n") ?? "", /Review the price/);
    await pictures("continued");
    await frame.getByRole("button", { name: /^Continues task/ }).click();
    await frame.getByRole("button", { name: /^Continued as task/ }).waitFor();
  });

  it("[STE-2] the command continues a failed task from the row, with a prompt to edit", async () => {
    const failed = workbench.row("Review the price, failed");
    await workbench.contextMenu(failed, "Continue Task…");
    await workbench.quickInput.shows("A new task carries on from the whole conversation.");
    assert.equal(
      await workbench.page.locator(".quick-input-box input").inputValue(),
      "Continue where you left off.",
    );
    await workbench.quickInput.enter("Try again with the other price");
    await until("the new task", () =>
      model.requests.some(({ messages }) =>
        lastUserText(messages).includes("Try again with the other price"),
      ),
    );
  });

  it("[STE-2] the command sends a message that still waits once, before the prompt", async () => {
    await show("Review the drinks");
    await box().fill("Then the wines");
    await button("Send After This").click();
    await frame.locator(".waiting", { hasText: "Then the wines" }).waitFor();
    await button("Cancel").click();
    const cancelled = workbench.row("Review the drinks, cancelled");
    await workbench.contextMenu(cancelled, "Continue Task…");
    await workbench.quickInput.shows("it gets your waiting message first.");
    await pictures("continues with a waiting message");
    await workbench.quickInput.enter("But not the sweet ones");
    const asked = await until("the new task", () =>
      model.requests
        .map(({ messages }) => lastUserText(messages))
        .find((text) => text.includes("But not the sweet ones")),
    );
    assert.match(asked, /Then the wines\s+But not the sweet ones/);
    assert.equal(asked.split("Then the wines").length, 2);
  });
});
