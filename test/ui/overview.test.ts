import assert from "node:assert/strict";
import type { FrameLocator, Frame, Locator } from "playwright-core";
import { createSession } from "../support/engine.ts";
import type { OpenCodeServer } from "../support/opencode.ts";
import { barriers } from "../support/panel-page/barriers.ts";
import {
  lastUserText,
  type ModelRequest,
  type ScriptedModel,
  type ScriptStep,
} from "../support/scripted-model.ts";
import { seedTask, seedTasks, type SeededTask } from "../support/seeded-tasks.ts";
import { until } from "../support/wait.ts";
import { takeAllPictures } from "./support/pictures.ts";
import { setUp } from "./support/set-up.ts";
import type { Workbench } from "./support/workbench.ts";

const NAMES = [
  "Fix the lexer",
  "Port the printer to streams",
  "Compare our implementation with that of the reference compiler, and list every difference with its cause",
  "מצא את כל הקוראים של parse() ותקן אותם",
];

/** The model's steps for the prompts below. */
function answer({ messages, title }: Pick<ModelRequest, "messages" | "title">): ScriptStep {
  const prompt = lastUserText(messages);
  if (title) return { text: "A title" };
  if (messages.at(-1)?.role === "tool") return { text: "Done." };
  if (prompt.includes("Measure"))
    return { tools: [{ name: "bash", args: { command: "npm test", description: "Measure" } }] };
  return { text: "Looking…", gate: prompt };
}

/** Sixty tasks that ended today, spread over the last hours. */
function seeds(parentSessionID: string): readonly SeededTask[] {
  const now = Date.now();
  const start = Math.max(new Date(now).setHours(0, 0, 0, 0), now - 5 * 3_600_000);
  const unit = (now - start) / 64;
  return Array.from({ length: 60 }, (_, index) => {
    const createdAt = start + index * unit;
    const status = index % 11 === 3 ? "error" : index % 13 === 4 ? "cancelled" : "completed";
    return {
      parentSessionID,
      description: `${NAMES[index % NAMES.length]} ${index}`,
      status,
      createdAt,
      startedAt: createdAt + (index % 3) * unit * 0.4,
      endedAt: createdAt + unit * (1.2 + (index % 5) * 0.6),
      worked: unit,
      ...(status === "error" && { error: { name: "APIError", message: "Refused." } }),
    };
  });
}

describe("the overview in a real editor", function () {
  let model: ScriptedModel;
  let server: OpenCodeServer;
  let workbench: Workbench;
  let frame: FrameLocator;
  let session: string;

  setUp(async (start) => {
    model = await start.model({ fallback: answer });
    server = await start.server({ model, config: { permission: { bash: "ask" } } });
    session = await createSession(server, "A day");
    await seedTasks(server, seeds(session));
    workbench = await start.window({
      server,
      settings: { "asyncagents.notifyParent": false, "asyncagents.notifyUser": "never" },
      shows: (opened) => opened.row("Finished Today, 60").waitFor(),
    });
    frame = workbench.webviewFrame();
  });

  const row = (name: string): Locator => frame.getByRole("row").filter({ hasText: name });
  const waited = (): Locator =>
    row("Measure below").filter({ has: frame.locator('[title^="Waited for you: "]') });
  const counts = (): Locator => frame.locator(".facts");
  const tab = (): Locator => workbench.tab("Task Overview");

  async function overviewFrame(): Promise<Frame> {
    const page = await (await frame.locator("html").elementHandle())?.ownerFrame();
    assert.ok(page);
    return page;
  }

  it("shows all tasks of the day on one axis, the latest first, without barriers", async () => {
    await workbench.runCommand("Async Agents: Show Overview");
    await tab().waitFor();
    await counts().filter({ hasText: "60 tasks" }).waitFor();
    assert.equal(await frame.getByRole("rowheader").count(), 60);
    assert.match(await frame.getByRole("rowheader").first().innerText(), / 59$/);
    const tops = await frame
      .locator(".bar-working")
      .evaluateAll((bars) => bars.map((bar) => bar.getBoundingClientRect().left));
    assert.deepEqual(
      tops,
      tops.toSorted((a, b) => b - a),
      "each launch is left of later ones",
    );
    const page = await overviewFrame();
    assert.deepEqual(await barriers((script) => page.evaluate(script)), []);
    await takeAllPictures(workbench, "overview-60");
  });

  it("follows what happens: a task waits for the user, with its subtask below it", async () => {
    const outer = await seedTask(server, { parentSessionID: session, description: "Look", prompt: "Look." });
    await model.waitForRequest((request) => !request.title && lastUserText(request.messages) === "Look.");
    await seedTask(server, { parentSessionID: outer, description: "Measure below", prompt: "Measure." });
    await counts().filter({ hasText: "1 needs you" }).waitFor();
    await row("Look").filter({ hasText: "Running" }).waitFor();
    await row("Measure below").filter({ hasText: "Needs permission" }).waitFor();
    const [first, second] = await frame.getByRole("rowheader").allInnerTexts();
    assert.equal(first?.trim(), "Look");
    assert.match(second ?? "", /^Measure below\s+Subtask, level 1/);
    await row("Measure below").locator(".bar-waiting").waitFor();
    const width = async (): Promise<number> =>
      (await row("Look").locator(".bar-working").boundingBox())?.width ?? 0;
    await frame.getByLabel("Time range").selectOption("Last 10 minutes");
    const before = await width();
    await until("the bar to grow", async () => (await width()) > before);
    await takeAllPictures(workbench, "overview-waiting");
    await frame.getByLabel("Time range").selectOption("All of today");
  });

  it("still shows that a task waited, once the user has answered", async () => {
    await workbench.pressAfterCtrlK("a", "a");
    await workbench.quickInput.choose("Allow Once");
    await row("Measure below").filter({ hasText: "Completed" }).waitFor();
    await waited().waitFor();
    await takeAllPictures(workbench, "overview-waited");
  });

  it("is used by keyboard: Tab to the rows, arrow keys to a row, Enter opens its output", async () => {
    await tab().click();
    await frame.getByLabel("Time range").focus();
    await workbench.press("Tab", "ArrowDown", "ArrowDown", "Enter");
    await workbench.tab(`${NAMES[3]} 59`).waitFor();
  });

  it("is there again after a reload, with what the window reads again, and says when the connection is lost", async () => {
    await workbench.runCommand("Async Agents: Show Overview");
    await workbench.reload();
    await tab().waitFor();
    await counts().filter({ hasText: "62 tasks" }).waitFor();
    await waited().waitFor();
    await server.stop();
    await frame.getByText(/Not connected to OpenCode|Connecting to OpenCode/).waitFor();
    await workbench.screenshot("overview-disconnected-dark");
    assert.equal(await frame.getByRole("rowheader").count(), 62);
  });
});
