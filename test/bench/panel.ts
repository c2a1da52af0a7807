import type { Browser } from "playwright-core";

import { launchChromium } from "../support/panel-page/browser.ts";
import { FakeTranscript, fakeTask } from "../support/panel-page/fake-task.ts";
import { buildPanel, PanelPage, type PanelBundle } from "../support/panel-page/panel-page.ts";
import { median } from "./support/measure.ts";
import { Report } from "./support/report.ts";

const RUNS = 5;
/** A conversation of 6.5 MB, and one that is ten times as long. */
const SIZES = [2_000, 20_000];
/** Two frames, which a browser says take 33.3 or 33.4 ms: at most one comes late. */
const TWO_FRAMES = 33.5;

/** The results of one run. Times in milliseconds. */
interface Figures {
  firstContent: number;
  allSent: number;
  mostElements: number;
  worstFrameScrolling: number;
  worstFrameJumping: number;
  worstFrameStreaming: number;
}

interface Measured {
  readonly what: string;
  readonly unit: string;
  readonly limit?: number;
}

const FIGURES: Readonly<Record<keyof Figures, Measured>> = {
  firstContent: { what: "first content", unit: "ms", limit: 1_000 },
  allSent: { what: "whole conversation sent", unit: "ms" },
  mostElements: { what: "elements at most", unit: "", limit: 3_000 },
  worstFrameScrolling: { what: "worst frame, scrolling", unit: "ms", limit: TWO_FRAMES },
  worstFrameJumping: { what: "worst frame, jumping", unit: "ms" },
  worstFrameStreaming: { what: "worst frame, streaming", unit: "ms" },
};

function part(index: number): string {
  const prose =
    "The quick brown fox jumps over the lazy dog, and **then** it runs `npm test`; see https://example.com/x. ";
  const code = `\`\`\`ts\n${"const x = compute(1, 2, 3);\n".repeat(25)}\`\`\``;
  return `## Step ${index}\n\n${prose.repeat(9)}\n\n- one\n- two\n- three\n\n${code}\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n${prose.repeat(13)}\n`;
}

function conversation(parts: number): FakeTranscript {
  const transcript = new FakeTranscript().user("Go");
  for (let index = 0; index < parts; index++) {
    if (index % 4 === 0) transcript.assistant();
    if (index % 4 === 3) transcript.ran("bash", { command: "npm test" }, part(index), `Run ${index}`);
    else transcript.text(part(index));
  }
  return transcript;
}

/** Scrolls once per frame for 200 frames; returns the longest frame in milliseconds and the highest element count. */
function scroll(panel: PanelPage, move: string): Promise<[number, number]> {
  return panel.page.evaluate(`(async () => {
    const view = document.querySelector(".scroller");
    let last = await new Promise(requestAnimationFrame), longest = 0, elements = 0;
    for (let step = 0; step < 200; step++) {
      ${move};
      const now = await new Promise(requestAnimationFrame);
      longest = Math.max(longest, now - last);
      elements = Math.max(elements, document.querySelectorAll("*").length);
      last = now;
    }
    return [longest, elements];
  })()`);
}

async function run(browser: Browser, bundle: PanelBundle, parts: number): Promise<Figures> {
  const transcript = conversation(parts);
  const panel = await PanelPage.open(browser, bundle, {
    task: fakeTask(),
    transcript: () => Promise.resolve(transcript),
  });
  const { page } = panel;
  await page.locator(".row").first().waitFor();
  const firstContent = await page.evaluate(() => performance.now());
  await page.locator(".earlier").waitFor({ state: "hidden" });
  const allSent = await page.evaluate(() => performance.now());
  const [worstFrameScrolling, elementsScrolling] = await scroll(panel, "view.scrollTop -= 200");
  const [worstFrameJumping, elementsJumping] = await scroll(
    panel,
    "view.scrollTop = Math.abs(Math.sin(step)) * view.scrollHeight",
  );
  await page.locator(".jump").click();
  transcript.assistant({ completed: undefined }).text("");
  const frames = scroll(panel, "");
  for (let index = 0; index < 300; index++) {
    transcript.stream(part(index).slice(0, 400));
    await new Promise((done) => setTimeout(done, 5));
  }
  const [worstFrameStreaming] = await frames;
  await panel.close();
  return {
    firstContent,
    allSent,
    mostElements: Math.max(elementsScrolling, elementsJumping),
    worstFrameScrolling,
    worstFrameJumping,
    worstFrameStreaming,
  };
}

const [browser, bundle] = await Promise.all([launchChromium(), buildPanel()]);
const report = new Report("panel");
for (const parts of SIZES) {
  const runs: Figures[] = [];
  for (let count = 0; count < RUNS; count++) runs.push(await run(browser, bundle, parts));
  for (const [name, { what, unit, limit }] of Object.entries(FIGURES)) {
    const values = runs.map((figures) => figures[name as keyof Figures]);
    const row = `${parts.toLocaleString("en")} parts: ${what}`;
    report.figures(row, unit, values);
    if (limit !== undefined) report.budget({ what: row, value: median(values), limit, unit });
  }
}
await browser.close();
report.finish();
