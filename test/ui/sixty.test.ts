import assert from "node:assert/strict";
import { createSession } from "../support/engine.ts";
import type { ScriptedModel } from "../support/scripted-model.ts";
import { seedTask, seedTasks, type SeededTask } from "../support/seeded-tasks.ts";
import { until } from "../support/wait.ts";
import { takeAllPictures } from "./support/pictures.ts";
import { setUp } from "./support/set-up.ts";
import type { Workbench } from "./support/workbench.ts";

const DAY = 24 * 60 * 60_000;
const PARTS = [
  "lexer",
  "parser",
  "printer",
  "type checker",
  "language server",
  "formatter",
  "web page",
  "docs",
];
const WORK = ["Compare our implementation with the one of the", "Fix the flaky tests of the", "Port the"];

describe("a list of sixty tasks, in a real editor", function () {
  this.timeout(180_000);
  let model: ScriptedModel;
  let workbench: Workbench;

  setUp(async (start) => {
    model = await start.model({
      fallback: ({ title }) => ({ text: title ? "A title" : "Done.", gate: "work" }),
    });
    const server = await start.server({ model });
    const parentSessionID = await createSession(server, "Ship the release");
    const now = Date.now();
    const ended = (at: number): SeededTask => {
      const endedAt = now - (at < 16 ? at * 1_000 : DAY + at * 60_000);
      return {
        parentSessionID,
        description: `${WORK[at % WORK.length]} ${PARTS[at % PARTS.length]}`,
        startedAt: endedAt - 95_000,
        createdAt: endedAt - 95_000,
        endedAt,
        status: at % 9 === 4 ? "error" : at % 13 === 6 ? "cancelled" : "completed",
        ...(at < 4 && { batchID: "release" }),
      };
    };
    await seedTasks(
      server,
      Array.from({ length: 56 }, (_, at) => ended(at)),
    );
    for (const part of PARTS.slice(0, 4))
      await seedTask(server, {
        parentSessionID,
        description: `Check the ${part}`,
        prompt: `Check the ${part}`,
      });
    workbench = await start.window({
      server,
      settings: { "asyncagents.notifyParent": false, "asyncagents.notifyUser": "never" },
      shows: (opened) => opened.row("Check the lexer, running").waitFor({ timeout: 60_000 }),
    });
  });

  async function setWidth(width: number): Promise<void> {
    const { page } = workbench;
    const bar = page.locator(".part.sidebar");
    const { x, y, width: now, height } = (await bar.boundingBox())!;
    await page.mouse.move(x + now, y + height / 2);
    await page.mouse.down();
    await page.mouse.move(x + width, y + height / 2, { steps: 5 });
    await page.mouse.up();
    await until(`the width ${width}`, async () => Math.abs((await bar.boundingBox())!.width - width) < 10);
  }

  it("has short titles that can be told apart; pictures at every width, in every theme", async () => {
    const titles = await workbench.treeItems.locator(".label-name").allInnerTexts();
    const long = titles.filter((title) => title.startsWith("Compare"));
    assert.ok(long.length > 2);
    for (const title of long) assert.match(title, /^Compare … \w/);
    for (const width of [200, 300, 520]) {
      await setWidth(width);
      const { x, y, height } = (await workbench.page.locator(".part.sidebar").boundingBox())!;
      await takeAllPictures(workbench, `sixty-${width}`, { x, y, width, height });
    }
  });
});
