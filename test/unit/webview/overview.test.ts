import assert from "node:assert/strict";
import type { Browser, Locator } from "playwright-core";
import type { OverviewTask } from "../../../src/protocol/overview.ts";
import { barriers } from "../../support/panel-page/barriers.ts";
import { launchChromium } from "../../support/panel-page/browser.ts";
import { NOW } from "../../support/panel-page/fake-task.ts";
import {
  buildOverview,
  DAY_START,
  HOUR,
  laneTask,
  MINUTE,
  type OverviewOptions,
  OverviewTestPage,
} from "../../support/panel-page/overview-page.ts";

const active = { status: "running", endedAt: undefined, phase: "tool" } as const;
const LONG = "Find out why the tests of the parser are so slow on the machines of the continuous integration";

function tasks(count: number): readonly OverviewTask[] {
  return Array.from({ length: count }, (_, index) => {
    const createdAt = NOW - (count - index) * MINUTE;
    return laneTask(`t${index}`, {
      description: index % 3 === 0 ? `${LONG} ${index}` : `Task ${index}`,
      createdAt,
      startedAt: createdAt + 5_000,
      endedAt: createdAt + 50_000,
    });
  });
}

describe("the page of the overview", () => {
  let browser: Browser;
  let files: Readonly<Record<string, string>>;
  let overview: OverviewTestPage;

  before(async () => {
    [browser, files] = await Promise.all([launchChromium(), buildOverview()]);
  });

  after(() => browser.close());

  afterEach(async () => {
    assert.deepEqual(overview.pageErrors, []);
    assert.deepEqual(overview.strayRequests, []);
    await overview.close();
  });

  async function open(shown: readonly OverviewTask[], options: OverviewOptions = {}): Promise<void> {
    overview = await OverviewTestPage.open(browser, files, options);
    await overview.show(shown);
  }

  const rows = (): Locator => overview.page.getByRole("rowheader");
  const names = async (): Promise<readonly string[]> =>
    (await rows().allTextContents()).map((text) => text.trim());
  const cells = (name: string): Promise<readonly string[]> =>
    overview.page.getByRole("row").filter({ hasText: name }).getByRole("cell").allTextContents();
  const focused = (): Promise<string> =>
    overview.page.evaluate(() => document.activeElement?.textContent ?? "");

  it("is a table with the status, the times, the duration, the tokens and the cost of each task", async () => {
    await open([
      laneTask("a", {
        description: "Fix the lexer",
        ...active,
        phase: "needs-permission",
        createdAt: NOW - 10 * MINUTE,
        startedAt: NOW - 8 * MINUTE,
        spans: [["wait", NOW - 6 * MINUTE, NOW - 5 * MINUTE]],
        waitingSince: NOW - MINUTE,
      }),
      laneTask("b", {
        description: "Test the lexer",
        parentID: "a",
        createdAt: NOW - 7 * MINUTE,
        startedAt: NOW - 7 * MINUTE,
      }),
    ]);
    assert.deepEqual(await overview.page.getByRole("columnheader").allTextContents(), [
      "Task",
      "Status",
      "Times9:20 AM9:22 AM9:24 AM9:26 AM9:28 AM9:30 AM",
      "Duration",
      "Tokens",
      "Cost",
    ]);
    assert.deepEqual(await names(), ["Fix the lexer", "Test the lexerSubtask, level 1"]);
    assert.deepEqual(await cells("Fix the lexer"), [
      "Needs permission",
      "Queued: 9:20 AM – 9:22 AM. Ran: 9:22 AM – 9:24 AM. Waited for you: 9:24 AM – 9:25 AM. " +
        "Ran: 9:25 AM – 9:29 AM. Waiting for you since 9:29 AM. ",
      "8 m",
      "12K",
      "$0.05",
    ]);
    assert.match(await overview.page.locator(".facts").innerText(), /2 tasks.*1 needs you.*1 completed/s);
  });

  it("names the day of times before today, also once today is over", async () => {
    const yesterday = DAY_START - 14 * HOUR;
    const early = laneTask("a", { ...active, createdAt: yesterday, startedAt: yesterday });
    await open([early]);
    assert.match((await cells("Task a"))[1] ?? "", /^Running since May 31, 2026, 10:00:00\sAM\. $/);
    const late = laneTask("b", { ...active, createdAt: NOW, startedAt: NOW });
    await overview.show([early, late]);
    assert.match((await cells("Task b"))[1] ?? "", /^Running since 9:30\sAM\. $/);
    await overview.show([early, late], "connected", DAY_START + 24 * HOUR);
    assert.match((await cells("Task b"))[1] ?? "", /^Running since Jun 1, 2026, 9:30:00\sAM\. $/);
  });

  it("has one tab stop for all rows; arrow keys, Home and End move, Enter and a click open the task", async () => {
    await open(tasks(30));
    const { page } = overview;
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement?.tagName), "SELECT");
    await page.keyboard.press("Tab");
    assert.equal(await focused(), "Task 29");
    for (const [key, name] of [
      ["ArrowDown", "Task 28"],
      ["PageDown", `${LONG} 18`],
      ["ArrowUp", "Task 19"],
      ["End", `${LONG} 0`],
      ["ArrowDown", `${LONG} 0`],
      ["Home", "Task 29"],
    ] as const) {
      await page.keyboard.press(key);
      assert.equal(await focused(), name, key);
    }
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.locator('[data-lane="t26"] .lane-track').click();
    await page.waitForFunction("true");
    assert.deepEqual(overview.messages, [
      { type: "ready" },
      { type: "open-task", id: "t28" },
      { type: "open-task", id: "t26" },
    ]);
  });

  it("lets the Tab key reach the first row until the user has been to another one", async () => {
    await open([laneTask("a")]);
    await overview.show([laneTask("b", { createdAt: NOW }), laneTask("a")]);
    const { page } = overview;
    const stops = (): Promise<readonly string[]> => page.locator('.lane-open[tabindex="0"]').allInnerTexts();
    assert.deepEqual(await stops(), ["Task b"]);
    await page.locator('[data-lane="a"] button').focus();
    await overview.show([
      laneTask("c", { createdAt: NOW }),
      laneTask("b", { createdAt: NOW }),
      laneTask("a"),
    ]);
    assert.deepEqual(await stops(), ["Task a"]);
  });

  it("doesn't let anything grow without a connection", async () => {
    await open([laneTask("a", { ...active, startedAt: NOW - MINUTE })]);
    await overview.show([laneTask("a", { ...active, startedAt: NOW - MINUTE })], "disconnected");
    const { page } = overview;
    await page.clock.runFor(20_000);
    assert.equal((await cells("Task a"))[2], "1 m");
    const width = (): Promise<number> =>
      page.locator(".bar-working").evaluate((bar) => bar.getBoundingClientRect().width);
    const before = await width();
    // Neither does a redraw, as for another folder of the window or another range.
    await overview.show([laneTask("a", { ...active, startedAt: NOW - MINUTE })], "connecting");
    assert.equal((await cells("Task a"))[2], "1 m");
    await page.getByLabel("Time range").selectOption("Last hour");
    assert.equal((await cells("Task a"))[2], "1 m");
    assert.equal(await width(), before);
    await overview.show([laneTask("a", { ...active, startedAt: NOW - MINUTE })]);
    assert.equal((await cells("Task a"))[2], "1 m 20 s");
  });

  it("keeps the focus and the elements of rows that haven't changed", async () => {
    const shown = tasks(4);
    await open(shown);
    const { page } = overview;
    await page.locator('[data-lane="t2"] button').focus();
    await page.evaluate(() => {
      for (const element of document.querySelectorAll("[data-lane]")) element.setAttribute("data-old", "");
    });
    const changed = shown.map((task) => (task.id === "t1" ? { ...task, cost: 9 } : task));
    const launched = laneTask("new", { createdAt: NOW - 1, ...active });
    await overview.show([...changed, launched]);
    assert.deepEqual(await names(), ["Task new", `${LONG} 3`, "Task 2", "Task 1", `${LONG} 0`]);
    assert.equal(await page.locator("[data-old]").count(), 4);
    assert.equal(await focused(), "Task 2");
    await overview.show([...shown.filter(({ id }) => id !== "t2"), launched]);
    assert.equal(await focused(), "Task 1");
  });

  it("neither moves the focus nor scrolls when a row changes that has it", async () => {
    const shown = [...tasks(60), laneTask("a", { ...active, createdAt: NOW - 90 * MINUTE })];
    await open(shown);
    const { page } = overview;
    await page.locator('[data-lane="a"] button').focus();
    await page.evaluate(() => {
      document.querySelector(".overview")!.scrollTop = 0;
      Object.assign(window, { moves: [] });
      for (const name of ["focusin", "focusout"])
        document.addEventListener(
          name,
          () => void (window as unknown as { moves: string[] }).moves.push(name),
        );
    });
    await overview.show(shown.map((task) => (task.id === "a" ? { ...task, tokens: 99_000 } : task)));
    assert.equal((await cells("Task a"))[3], "99K");
    assert.equal(await focused(), "Task a");
    assert.deepEqual(await page.evaluate("[window.moves, document.querySelector('.overview').scrollTop]"), [
      [],
      0,
    ]);
    // A row that moves loses the focus for a moment.
    await overview.show(
      shown.map((task) => (task.id === "a" ? { ...task, createdAt: NOW - 80 * MINUTE } : task)),
    );
    await overview.show(
      shown.map((task) => (task.id === "t0" ? { ...task, createdAt: NOW - 99 * MINUTE } : task)),
    );
    assert.equal(await focused(), "Task a");
    assert.equal(await page.evaluate("document.querySelector('.overview').scrollTop"), 0);
  });

  it("grows what is active without making it again", async () => {
    await open([
      laneTask("b", { ...active, createdAt: NOW - 3 * MINUTE, startedAt: NOW - 3 * MINUTE }),
      laneTask("a", { createdAt: NOW - 3 * MINUTE, startedAt: NOW - 3 * MINUTE, endedAt: NOW - 2 * MINUTE }),
    ]);
    const { page } = overview;
    const widths = (): Promise<readonly number[]> =>
      page.locator(".bar").evaluateAll((bars) => bars.map((bar) => bar.getBoundingClientRect().width));
    const [running, ended] = await widths();
    await page.evaluate(() => {
      for (const bar of document.querySelectorAll(".bar")) bar.setAttribute("data-old", "");
    });
    await page.clock.runFor(20_000);
    const [later, same] = await widths();
    assert.ok(later! > running!, `${running} to ${later}`);
    assert.equal(same, ended);
    assert.deepEqual((await cells("Task b"))[2], "3 m 20 s");
    // Beyond the end of the axis, all bars move.
    await page.clock.runFor(5 * MINUTE);
    assert.ok((await widths())[1]! < ended!);
    assert.equal(await page.locator(".bar[data-old]").count(), 2);
  });

  it("shows a shorter time on demand, and remembers that", async () => {
    await open(tasks(90), { state: { range: 10 * MINUTE } });
    assert.equal((await names()).length, 10);
    await overview.page.getByLabel("Time range").selectOption("Last hour");
    assert.equal((await names()).length, 60);
    assert.deepEqual(await overview.page.evaluate("window.keptState.range"), 60 * MINUTE);
    await overview.show([laneTask("old", { createdAt: NOW - 90 * MINUTE, endedAt: NOW - 80 * MINUTE })]);
    assert.equal(await overview.page.locator(".placeholder").innerText(), "No task was active in this time.");
  });

  it("says that there are no tasks to show, as cleared ones aren't shown, and that the connection is lost", async () => {
    await open([]);
    await overview.page.getByText("No tasks to show today.").waitFor();
    await overview.page.getByText("until they are cleared").waitFor();
    assert.equal(await overview.page.getByRole("table").count(), 0);
    await overview.show([], "disconnected");
    await overview.page.getByText("Not connected to OpenCode.").waitFor();
    await overview.page.getByRole("button", { name: "Connect" }).click();
    await overview.page.waitForFunction("true");
    assert.deepEqual(overview.messages.at(-1), { type: "run", command: "connect" });
  });

  it("announces what begins to wait for the user", async () => {
    await open([laneTask("a", active)]);
    await overview.show([
      laneTask("a", { ...active, phase: "needs-answer", waitingSince: NOW, description: "Pick a name" }),
    ]);
    assert.equal(await overview.page.getByRole("status").innerText(), "Pick a name: Needs an answer");
  });

  it("asks for the tasks of the new day after midnight", async () => {
    await open([laneTask("a", active)]);
    await overview.page.clock.fastForward(15 * 60 * MINUTE);
    await overview.page.waitForFunction("true");
    assert.deepEqual(overview.messages, [{ type: "ready" }, { type: "ready" }]);
  });

  for (const theme of ["dark", "light", "highContrast"] as const)
    for (const width of [300, 600, 1000])
      it(`has no barriers and nothing that overflows, ${width} pixels wide, ${theme}`, async () => {
        await open([...tasks(60), laneTask("a", { ...active, waitingSince: NOW - MINUTE })], {
          theme,
          width,
        });
        const { page } = overview;
        // axe waits for timers.
        await page.clock.resume();
        assert.deepEqual(await barriers((script) => page.evaluate(script)), []);
        const wide = await page.evaluate(() =>
          [...document.querySelectorAll("main, header, main *")]
            .filter(
              (each) =>
                each.scrollWidth > each.clientWidth && /auto|scroll/.test(getComputedStyle(each).overflowX),
            )
            .map((each) => each.className),
        );
        assert.deepEqual(wide, []);
      });
});
