import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createSession } from "../support/engine.ts";
import type { ScriptedModel } from "../support/scripted-model.ts";
import { seedTask, seedTasks, type SeededTask } from "../support/seeded-tasks.ts";
import { until } from "../support/wait.ts";
import { extensionBeside } from "./support/extension.ts";
import { takeAllPictures } from "./support/pictures.ts";
import { setUp } from "./support/set-up.ts";
import { picturesWanted, type Workbench } from "./support/workbench.ts";

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

/** Fills the Testing view with tests that have run. */
const testing = `
const { tests, TestMessage, TestRunProfileKind, TestRunRequest, Uri } = require("vscode");
exports.activate = () => {
  const controller = tests.createTestController("sixty", "Sixty");
  controller.createRunProfile("Run", TestRunProfileKind.Run, () => undefined, true);
  const run = controller.createTestRun(new TestRunRequest());
  for (const part of ${JSON.stringify(PARTS)}) {
    const suite = controller.createTestItem(part, part, Uri.file("/" + part));
    controller.items.add(suite);
    for (const what of ${JSON.stringify(WORK)}) {
      const test = controller.createTestItem(part + what, what + " " + part, suite.uri);
      suite.children.add(test);
      if (what.startsWith("Fix") && part.length === 6) run.failed(test, new TestMessage("Refused."), 95_000);
      else run.passed(test, 95_000);
    }
  }
  run.end();
};`;

/** Gives the Source Control view a change of each part. */
function changeFiles(directory: string): void {
  const git = (...args: readonly string[]): void => {
    execFileSync("git", ["-c", "user.name=Test", "-c", "user.email=test@localhost", ...args], {
      cwd: directory,
      stdio: "ignore",
    });
  };
  const write = (text: string): void => {
    for (const part of PARTS) writeFileSync(join(directory, `${part}.ts`), text);
  };
  git("init");
  write("before\n");
  git("add", ".");
  git("commit", "-m", "Before");
  write("after\n");
}

describe("a list of sixty tasks, in a real editor", function () {
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
    if (picturesWanted) changeFiles(server.directory);
    workbench = await start.window({
      server,
      ...(picturesWanted && {
        extensions: extensionBeside({
          name: "sixty-tests",
          activationEvent: "onStartupFinished",
          source: testing,
        }),
      }),
      settings: { "asyncagents.notifyParent": false, "asyncagents.notifyUser": "never", "git.enabled": true },
      shows: (opened) => opened.row("Check the lexer, running").waitFor(),
    });
  });

  /** Drags the edge of the side bar, or that of the secondary one. */
  async function setWidth(width: number, bar = workbench.page.locator(".part.sidebar")): Promise<void> {
    const { mouse } = workbench.page;
    const { x, y, width: now, height } = (await bar.boundingBox())!;
    // The edge that can be dragged lies between a side bar and the editors.
    const isLeft = x < 200;
    const edge = isLeft ? x + now + 2 : x - 2;
    await mouse.move(edge, y + height / 2);
    await mouse.down();
    await mouse.move(edge + (isLeft ? width - now : now - width), y + height / 2, { steps: 5 });
    await mouse.up();
    await until(`the width ${width}`, async () => Math.abs((await bar.boundingBox())!.width - width) < 10);
  }

  it("has short titles that can be told apart; pictures at every width, in every theme", async () => {
    const titles = await workbench.treeItems.locator(".label-name").allInnerTexts();
    const long = titles.filter((title) => title.startsWith("Compare"));
    assert.ok(long.length > 2);
    for (const title of long) assert.match(title, /^Compare … \w/);
    for (const width of picturesWanted ? [200, 300, 520] : []) {
      await setWidth(width);
      const { x, y, height } = (await workbench.page.locator(".part.sidebar").boundingBox())!;
      await takeAllPictures(workbench, `sixty-${width}`, { x, y, width, height });
    }
  });

  if (!picturesWanted) return;

  it("is as neat as the editor's own views of tests and changes: pictures of all three", async () => {
    const { page, quickInput } = workbench;
    const move = async (view: string, place: string): Promise<void> => {
      await workbench.runCommand("View: Move View");
      await quickInput.shows("Select a View to Move");
      await quickInput.type(view);
      await quickInput.choose(view);
      await quickInput.shows("Select a Destination");
      await quickInput.type(place);
      await quickInput.choose(place);
    };
    await page.locator('.activitybar a[aria-label^="Testing"]').waitFor();
    await move("Test Explorer", "New Secondary Side Bar Entry");
    await move("Changes", "Test Explorer");
    await workbench.openView();
    const bar = page.locator(".part.auxiliarybar");
    await bar.getByText("lexer.ts").waitFor();
    await bar.getByRole("treeitem", { name: "docs (Passed)" }).waitFor();
    for (const width of [200, 300, 520]) {
      await setWidth(width);
      await setWidth(width, bar);
      await takeAllPictures(workbench, `beside-${width}`);
    }
  });
});
