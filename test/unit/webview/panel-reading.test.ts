import assert from "node:assert/strict";

import type { Browser } from "playwright-core";

import { barriers } from "../../support/panel-page/barriers.ts";
import { launchChromium } from "../../support/panel-page/browser.ts";
import { FakeTranscript, fakeTask, NOW } from "../../support/panel-page/fake-task.ts";
import {
  buildPanel,
  PanelPage,
  type PanelBundle,
  type PanelOptions,
} from "../../support/panel-page/panel-page.ts";
import { until } from "../../support/wait.ts";

const WORDS = "Some words. ".repeat(400);

/** Reading and finding in the page, in a browser instead of the editor. */
describe("reading the output panel", () => {
  let browser: Browser;
  let bundle: PanelBundle;
  let panel: PanelPage;

  before(async () => {
    [browser, bundle] = await Promise.all([launchChromium(), buildPanel()]);
  });

  after(() => browser.close());

  afterEach(async () => {
    assert.deepEqual(panel.pageErrors, []);
    await panel.close();
  });

  async function open(transcript: FakeTranscript, options: Partial<PanelOptions> = {}): Promise<void> {
    panel = await PanelPage.open(browser, bundle, {
      task: fakeTask(),
      transcript: () => Promise.resolve(transcript),
      ...options,
    });
    await panel.page.locator(".row").first().waitFor();
    await until("all messages", () => panel.page.locator(".earlier").isHidden());
  }

  /** A conversation of many views, with "needle" in different kinds of entries, none of them near the end. */
  function haystack(): FakeTranscript {
    const transcript = new FakeTranscript().user("The first **nee**dle").assistant();
    transcript.reasoning("Where is the needle?");
    transcript.ran("bash", { command: "ls" }, `${"line\n".repeat(300)}a needle, a NEEDLE\n`, "List files");
    for (let index = 0; index < 40; index++) transcript.text(`# Part ${index}\n\n${WORDS}`);
    transcript.text("| a | b |\n|---|---|\n| nee | dle |\n\nThe `needle`\nhere");
    for (let index = 0; index < 10; index++) transcript.text(`# End ${index}\n\n${WORDS}`);
    return transcript;
  }

  const box = () => panel.page.getByRole("textbox", { name: "Find in output" });
  const count = (text: string) =>
    panel.page.locator(".find-count").getByText(text, { exact: true }).waitFor({ timeout: 10_000 });
  /** The marked text, and whether the reader can see it. */
  const current = (): Promise<{ text: string; seen: boolean }> =>
    panel.page.evaluate(() => {
      const [range] = [...(CSS.highlights.get("found-current") ?? [])] as Range[];
      if (!range) return { text: "", seen: false };
      const { top, bottom, left } = range.getBoundingClientRect();
      const hit = document.elementFromPoint(left + 2, (top + bottom) / 2);
      const { parentElement } = range.startContainer;
      return { text: range.toString(), seen: hit !== null && (parentElement?.contains(hit) ?? false) };
    });
  const shows = (text: string): Promise<unknown> =>
    until(`"${text}" to be shown`, async () => {
      const now = await current();
      return now.text === text && now.seen;
    });
  const className = (): Promise<string> => panel.page.evaluate("document.activeElement.className");

  it("shows a match in the details of a call whose line matches, too", async () => {
    await open(
      new FakeTranscript()
        .user("Go")
        .assistant()
        .ran("bash", { command: "x" }, `${"line\n".repeat(300)}a needle`, "Find the needle"),
    );
    await panel.page.keyboard.press("Control+f");
    await box().fill("needle");
    await count("1 of 2");
    await box().press("Enter");
    await count("2 of 2");
    await until("the match in the details", async () =>
      panel.page.evaluate(() => {
        const [range] = [...(CSS.highlights.get("found-current") ?? [])] as Range[];
        if (!range?.startContainer.parentElement?.closest(".output")) return false;
        const { top, bottom, left } = range.getBoundingClientRect();
        const hit = document.elementFromPoint(left + 2, (top + bottom) / 2);
        return hit !== null && range.startContainer.parentElement.contains(hit);
      }),
    );
  });

  it("finds text in the whole conversation, also in what is collapsed or not in the page", async () => {
    await open(haystack());
    await panel.page.keyboard.press("Control+f");
    await panel.page.keyboard.type("needle");
    await count("1 of 5");
    for (const [position, text] of [
      ["1 of 5", "needle"],
      ["2 of 5", "needle"],
      ["3 of 5", "needle"],
      ["4 of 5", "NEEDLE"],
      ["5 of 5", "needle"],
      ["1 of 5", "needle"],
    ] as const) {
      await count(position);
      await shows(text);
      await box().press("Enter");
    }
    await box().press("Shift+Enter");
    await box().press("Shift+Enter");
    await count("5 of 5");
    await shows("needle");
    assert.ok((await panel.page.locator("*").count()) < 900);
    assert.equal(await panel.page.getByRole("status").textContent(), "5 of 5");
    await box().press("Escape");
    assert.equal(await panel.page.locator(".find").isVisible(), false);
    assert.equal(await panel.page.evaluate("CSS.highlights.size"), 0);
    assert.equal(await panel.page.evaluate("getSelection().toString()"), "needle");
    assert.equal(await className(), "scroller");
  });

  it("marks the current match by a line, as themes can give it almost the color of the others or of the page", async () => {
    for (const theme of ["dark", "light"] as const) {
      await open(new FakeTranscript().user("A needle").assistant().text("Another needle"), { theme });
      await panel.page.keyboard.press("Control+f");
      await panel.page.keyboard.type("needle");
      await count("1 of 2");
      const lines = await panel.page.evaluate(() =>
        ["found", "found-current"].map((name) => {
          const [row] = document.querySelectorAll(".row");
          const { textDecorationLine, textDecorationColor } = getComputedStyle(row!, `::highlight(${name})`);
          const isAsText = textDecorationColor === getComputedStyle(document.body).color;
          return textDecorationLine === "underline" && isAsText;
        }),
      );
      assert.deepEqual(lines, [false, true]);
      if (theme === "dark") await panel.close();
    }
  });

  it("looks from where the reader has just scrolled to, even if the rows there aren't in the page yet", async () => {
    await open(haystack().text("The last needle"));
    await panel.page.evaluate(() => {
      const scroller = document.querySelector(".scroller")!;
      scroller.scrollTop = 0;
      scroller.dispatchEvent(new KeyboardEvent("keydown", { key: "f", ctrlKey: true, bubbles: true }));
    });
    await panel.page.keyboard.type("needle");
    await count("1 of 6");
    await shows("needle");
  });

  it("says that nothing was found, and finds what is written later", async () => {
    const transcript = new FakeTranscript().user("Go").assistant().text("Hello");
    await open(transcript);
    await panel.page.keyboard.press("Control+f");
    await panel.page.keyboard.type("world (1)");
    await count("No results");
    transcript.stream(" world (1)");
    await count("1 of 1");
    await shows("world (1)");
    await box().fill("");
    await until("no count", async () => (await panel.page.locator(".find-count").textContent()) === "");
  });

  it("finds text while the agent writes, and goes on to the next match", async () => {
    const transcript = new FakeTranscript().user("needle").assistant().text("A needle, a needle. ");
    await open(transcript);
    const writing = setInterval(() => transcript.stream("More. "), 20);
    try {
      await panel.page.keyboard.press("Control+f");
      await panel.page.keyboard.type("needle");
      for (const position of ["1 of 3", "2 of 3", "3 of 3"]) {
        await count(position);
        await box().press("Enter");
      }
      transcript.stream("The last needle. ");
      await count("1 of 4");
    } finally {
      clearInterval(writing);
    }
  });

  it("shows a match in an entry that is not in the page yet, as soon as it is there", async () => {
    const transcript = haystack();
    const [, message] = transcript.messages;
    const [, call] = message?.parts ?? [];
    assert.ok(call);
    panel = await PanelPage.open(browser, bundle, {
      task: fakeTask(),
      transcript: () => Promise.resolve(transcript),
    });
    panel.find({ query: "needle", entryID: call.id, nth: 1 });
    await count("4 of 5");
    await shows("NEEDLE");
    assert.equal(await box().inputValue(), "needle");
    await box().press("Enter");
    await count("5 of 5");
    panel.find({ query: "first", entryID: transcript.messages[0]?.parts[0]?.id ?? "", nth: 7 });
    await count("1 of 1");
    await shows("first");
    panel.find({ query: "needle", entryID: "prt_gone", nth: 0 });
    await count("1 of 5");
  });

  it("looks from where the reader was when the box was opened, even if earlier messages are added", async () => {
    const transcript = haystack().text("The last needle");
    let load = (_: FakeTranscript): void => undefined;
    panel = await PanelPage.open(browser, bundle, {
      task: fakeTask(),
      transcript: () => new Promise((resolve) => (load = resolve)),
    });
    await panel.page.getByText("Loading the conversation").waitFor();
    await panel.holdNextPage();
    load(transcript);
    await panel.page.getByText("The last needle").waitFor();
    await panel.page.keyboard.press("Control+f");
    await panel.page.evaluate("ask()");
    await until("all messages", () => panel.page.locator(".earlier").isHidden());
    await panel.page.keyboard.type("needle");
    await count("6 of 6");
    await shows("needle");
  });

  it("searches for no more than it can, and says what was found of that", async () => {
    await open(haystack());
    await panel.page.keyboard.press("Control+f");
    await box().fill("needle");
    await count("1 of 5");
    await box().evaluate((at) => at.focus());
    await panel.page.keyboard.insertText("x".repeat(1_200));
    await count("No results");
    assert.equal((await box().inputValue()).length, 1_000);
  });

  it("stays at its match when the conversation is read again", async () => {
    const transcript = haystack();
    await open(transcript);
    await panel.page.keyboard.press("Control+f");
    await panel.page.keyboard.type("needle");
    for (const position of ["1 of 5", "2 of 5", "3 of 5"]) {
      await count(position);
      await box().press("Enter");
    }
    await count("4 of 5");
    await shows("NEEDLE");
    await panel.page.evaluate(() => {
      Object.assign(window, { counts: [] });
      const { counts } = window as unknown as { counts: (string | null)[] };
      const shown = document.querySelector(".find-count")!;
      new MutationObserver(() => counts.push(shown.textContent)).observe(shown, { childList: true });
    });
    transcript.reset();
    await until("another search", () => panel.page.evaluate<boolean>("counts.length > 0"));
    await panel.page.waitForTimeout(700);
    assert.equal((await panel.page.evaluate<readonly string[]>("counts")).at(-1), "4 of 5");
    await box().press("Enter");
    await count("5 of 5");
    await shows("needle");
  });

  it("starts with the selected text, from the reader's position on, and is opened by the extension", async () => {
    const transcript = new FakeTranscript().user("needle").assistant();
    for (let index = 0; index < 10; index++) transcript.text(`# Part ${index}\n\n${WORDS}`);
    transcript.text("needle at the end");
    await open(transcript);
    await panel.page.getByText("needle at the end").dblclick({ position: { x: 8, y: 8 } });
    panel.find();
    await until("the text in the box", async () => (await box().inputValue()) === "needle");
    await count("2 of 2");
    await shows("needle");
  });

  it("has no accessibility barriers while finding, in any theme and at a narrow width", async () => {
    const answer =
      "See [cart](src/cart.js#L12) at src/a.ts:3\n\n- [x] needle\n\n```ts\nconst needle = 1;\n```";
    for (const theme of ["dark", "light", "highContrast"] as const) {
      const transcript = new FakeTranscript()
        .user("Go")
        .assistant()
        .ran("read", {}, `needle${"\nline".repeat(90)}`);
      await open(transcript.text(answer), { theme, width: 300 });
      await panel.page.keyboard.press("Control+f");
      await panel.page.keyboard.type("needle");
      await count("1 of 3");
      await panel.page.locator(".output").waitFor();
      assert.deepEqual(await barriers((script) => panel.page.evaluate(script)), [], theme);
      assert.ok(await panel.page.evaluate("document.body.scrollWidth <= document.body.clientWidth"));
      if (theme !== "highContrast") await panel.close();
    }
  });

  it("links to an address that a long answer, or long reasoning, has at its end", async () => {
    const text = `See [the docs][1].\n\n${WORDS}\n\n${WORDS}\n\nEnd.\n\n`;
    const transcript = new FakeTranscript()
      .user("Go")
      .assistant()
      .reasoning(`${text}[1]: https://a.test/why`);
    await open(transcript.text(text));
    await panel.page.keyboard.press("Home");
    const thought = panel.page.locator(".line", { hasText: "Thought" });
    await thought.click();
    const link = panel.page.getByRole("link", { name: "the docs" });
    const leadsTo = (url: string): Promise<unknown> =>
      until(url, async () => (await link.getAttribute("href")) === url);
    await leadsTo("https://a.test/why");
    await thought.click();
    await until("the answer", async () => (await link.count()) === 0);
    transcript.stream("[1]: https://a.test/docs");
    await leadsTo("https://a.test/docs");
    assert.equal(await panel.page.getByText("a.test").count(), 0);
  });

  describe("images of the workspace", () => {
    /** A real image of the type that the browser draws: 300 by 200 pixels. */
    const picture = (color: string): Promise<string> =>
      panel.page.evaluate((fill) => {
        const canvas = Object.assign(document.createElement("canvas"), { width: 300, height: 200 });
        const context = canvas.getContext("2d")!;
        context.fillStyle = fill;
        context.fillRect(0, 0, 300, 200);
        return canvas.toDataURL("image/png");
      }, color);
    const link = (name: string) => panel.page.getByRole("button", { name });
    const drawn = (name: string): Promise<unknown> =>
      until(`the image of ${name}`, async () => {
        const box = await link(name).locator("img").boundingBox();
        return box?.width === 300 && box.height === 200;
      });

    it("are shown above their text, which names them, and open as files", async () => {
      const image = (_: string, path: string) => picture(path === "docs/a.png" ? "teal" : "navy");
      const transcript = new FakeTranscript().user("Draw ![B](b.png)").assistant();
      transcript
        .reasoning("Like ![C](docs/c.png)?")
        .text("Here: ![A chart](docs/a.png) and ![A chart](docs/a.png)");
      await open(transcript, { image });
      await drawn("B (b.png)");
      await until(
        "both images",
        async () => (await link("A chart (docs/a.png)").locator("img").count()) === 2,
      );
      await panel.page.locator(".line", { hasText: "Thought" }).click();
      await drawn("C (docs/c.png)");
      await link("C (docs/c.png)").click();
      assert.deepEqual(panel.calls, [["openFile", "docs/c.png", undefined]]);
      assert.deepEqual(await barriers((script) => panel.page.evaluate(script)), []);
      assert.deepEqual(panel.strayRequests, []);
    });

    it("are read once, one at a time, and stay as they are while text is added", async () => {
      const asked: string[] = [];
      let reading = 0;
      const image = async (_: string, path: string): Promise<string> => {
        asked.push(path);
        assert.equal(++reading, 1);
        const data = await picture("teal");
        reading--;
        return data;
      };
      const transcript = new FakeTranscript().user("Draw").assistant().text("![A](a.png) ![B](b.png) ");
      await open(transcript, { image });
      await drawn("A (a.png)");
      await drawn("B (b.png)");
      transcript.stream("and\n\nmore");
      await panel.page.getByText("more").waitFor();
      const first = await link("A (a.png)").locator("img").elementHandle();
      transcript.stream(" words");
      await panel.page.getByText("more words").waitFor();
      assert.ok(await first?.evaluate((element) => element.isConnected));
      assert.deepEqual(asked, ["a.png", "b.png"]);
    });

    it("are read once, however many are in the page", async () => {
      const asked: string[] = [];
      const data = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7";
      const image = (_: string, path: string): Promise<string> => {
        asked.push(path);
        return Promise.resolve(data);
      };
      const names = Array.from({ length: 40 }, (_, index) => `${index}.png`);
      const transcript = new FakeTranscript().user("Draw").assistant();
      await open(transcript.text(names.map((name) => `![${name}](${name})`).join(" ")), { image });
      await until("all images", async () => (await panel.page.locator("img").count()) === 40);
      await panel.page.waitForTimeout(300);
      assert.deepEqual(asked, names);
    });

    it("that can't be shown are named, with the reason", async () => {
      const image = (_: string, path: string) =>
        path === "big.png"
          ? Promise.reject(new Error("The image is larger than 2 MB."))
          : Promise.resolve("data:image/png;base64,iVBORw0KGgo=");
      const transcript = new FakeTranscript().user("Draw").assistant();
      await open(transcript.text("![Big](big.png) ![Half](half.png) ![Far](https://a.test/far.png)"), {
        image,
      });
      await link("Big (big.png) The image is larger than 2 MB. Try again.").waitFor();
      await link("Half (half.png) The image is damaged.").waitFor();
      await panel.page.getByRole("link", { name: "Far (https://a.test/far.png)" }).waitFor();
      assert.equal(await panel.page.locator("img").count(), 0);
      assert.deepEqual(panel.strayRequests, []);
    });

    it("don't move what the reader sees when they appear above it, also within one answer", async () => {
      for (const separate of [true, false]) {
        let show = (): void => undefined;
        const shown = new Promise<void>((resolve) => (show = resolve));
        const image = () => shown.then(() => picture("teal"));
        const transcript = new FakeTranscript().user("Draw").assistant();
        if (separate) transcript.text("![A](a.png)").text("Here");
        else transcript.text("Look:\n\n![A](a.png)\n\nHere\n\nEnd");
        transcript.text(WORDS).text(WORDS);
        await open(transcript, { image });
        await panel.page.keyboard.press("Home");
        const here = panel.page.getByText("Here", { exact: true });
        await here.waitFor();
        const top = async (): Promise<number> => (await here.boundingBox())?.y ?? NaN;
        const scroller = panel.page.locator(".scroller");
        await scroller.evaluate((element, by) => (element.scrollTop += by), (await top()) - 90);
        await until("the row at the top", async () => (await top()) < 130);
        const before = await top();
        show();
        await until("the image", async () => (await panel.page.locator("img").count()) === 1);
        assert.ok(Math.abs((await top()) - before) < 2, `${before} became ${await top()}`);
        if (separate) await panel.close();
      }
    });
  });

  it("copies the whole conversation if everything is selected, and says so", async () => {
    await open(haystack());
    await panel.page.keyboard.press("Control+a");
    await panel.page.evaluate("document.execCommand('copy')");
    await panel.page.locator(".toast", { hasText: "Copied the whole conversation" }).waitFor();
    const [name, text] = panel.calls[0] as [string, string];
    assert.equal(name, "copyText");
    assert.match(text, /The first \*\*nee\*\*dle[^]*a needle, a NEEDLE[^]*# End 9/);
  });

  it("is read by keys as soon as it is opened", async () => {
    await open(haystack());
    assert.equal(await className(), "scroller");
    const top = (): Promise<number> => panel.page.locator(".scroller").evaluate((at) => at.scrollTop);
    const view = await panel.page.locator(".scroller").evaluate((at) => at.clientHeight);
    const place = async (text: string): Promise<number> =>
      (await panel.page.getByText(text).first().boundingBox())?.y ?? Infinity;
    await until("the end", async () => (await top()) > 1_000);
    // Rows above the view have estimated heights, so the scroll position says nothing about the way that was scrolled.
    const before = await place("End 9");
    await panel.page.keyboard.press("PageUp");
    await until("the page above", async () => Math.abs((await place("End 9")) - before - view) < 60);
    await panel.page.keyboard.press("Home");
    await panel.page.getByText("The first needle").waitFor();
    assert.equal(await top(), 0);
    const first = await place("The first needle");
    await panel.page.keyboard.press("PageDown");
    await until(
      "the page below",
      async () => Math.abs(first - (await place("The first needle")) - view) < 60,
    );
    await panel.page.keyboard.press("End");
    await until("the end", async () => (await top()) > 1_000);
    assert.equal(await panel.page.getByText("Jump to Latest").isVisible(), false);
  });

  it("takes at most three Tabs from the conversation to the follow-up, and arrow keys to each control", async () => {
    const transcript = new FakeTranscript().user("Go").assistant();
    for (let index = 0; index < 5; index++)
      transcript.ran("read", { filePath: `/${index}.ts` }, "out", `${index}.ts`);
    transcript.text(`See \`src/a.ts:1\`, [b](src/b.ts)\n\n\`\`\`ts\nlet x\n\`\`\`\n\n${WORDS}`);
    await open(transcript);
    await panel.page.keyboard.press("Home");
    await panel.page.getByText("Jump to Latest").waitFor();
    const focused = (): Promise<string> =>
      panel.page.evaluate("document.activeElement.ariaLabel ?? document.activeElement.textContent");
    for (let tabs = 0; (await focused()) !== "Follow-up prompt"; tabs++) {
      assert.ok(tabs < 3, await focused());
      await panel.page.keyboard.press("Tab");
    }
    await panel.page.locator(".line").first().press("Enter");
    await panel.page.locator(".output").waitFor();
    const seen: string[] = [];
    for (let last = ""; last !== (last = await focused());) {
      seen.push(last);
      await panel.page.keyboard.press("ArrowDown");
    }
    assert.match(seen.join("|"), /read0\.ts.*\|.*out\|.*1\.ts.*\|.*4\.ts.*\|.*src\/a\.ts:1\|b\|Copy\|let x/s);
    await panel.page.keyboard.press("ArrowUp");
    assert.equal(await focused(), seen.at(-2));
    for (let tabs = 0; (await focused()) !== "Follow-up prompt"; tabs++) {
      assert.ok(tabs < 3, await focused());
      await panel.page.keyboard.press("Tab");
    }
  });

  it("is one stop of the Tab key backwards as well, without moving", async () => {
    const code = "```ts\nlet x\n```";
    const transcript = new FakeTranscript()
      .user("Go")
      .assistant()
      .text(`${code}\n\n${WORDS.repeat(4)}\n\n${code}`);
    await open(transcript);
    const top = (): Promise<number> => panel.page.locator(".scroller").evaluate((at) => at.scrollTop);
    await until("the end", async () => (await top()) > 100);
    await panel.page.locator(".scroller").evaluate((at) => void (at.scrollTop = at.scrollHeight * 0.3));
    await panel.page.getByText("Jump to Latest").waitFor();
    const before = await top();
    await panel.page.getByRole("textbox").focus();
    const isReading = (): Promise<boolean> =>
      panel.page.evaluate("document.activeElement.className === 'scroller'");
    for (let tabs = 0; !(await isReading()); tabs++) {
      assert.ok(tabs < 3, await panel.page.evaluate("document.activeElement.outerHTML"));
      await panel.page.keyboard.press("Shift+Tab");
    }
    assert.equal(await top(), before);
  });

  it("is scrolled by an arrow key if the next control isn't in the page yet", async () => {
    const transcript = new FakeTranscript().user("Go").assistant().ran("read", {}, "out", "first");
    transcript.text(Array.from({ length: 6 }, () => WORDS).join("\n\n")).ran("read", {}, "out", "second");
    await open(transcript, { height: 400 });
    await panel.page.keyboard.press("Home");
    await panel.page.locator(".line", { hasText: "first" }).focus();
    const top = (): Promise<number> => panel.page.locator(".scroller").evaluate((at) => at.scrollTop);
    const focused = (): Promise<string> => panel.page.evaluate("document.activeElement.outerHTML");
    for (let last = ""; last !== (last = await focused());) await panel.page.keyboard.press("ArrowDown");
    await until("the next rows", async () => (await top()) > 200);
  });

  it("opens files that links name, and a subagent from its call", async () => {
    const transcript = new FakeTranscript()
      .user("Go")
      .assistant()
      .text("[cart](src/cart.js#L12), src/cart.js:18:5 and ![chart](docs/chart.png)")
      .tool(
        "task",
        {
          status: "completed",
          input: { description: "Look" },
          output: '<task id="ses_b" state="completed">\n<task_result>\nFound it.\n</task_result>\n</task>',
          title: "Look",
          start: NOW,
          end: NOW,
        },
        "ses_b",
      );
    await open(transcript);
    for (const name of ["cart", "src/cart.js:18:5", "chart (docs/chart.png)"])
      await panel.page.getByRole("button", { name, exact: true }).click();
    await panel.page.getByRole("button", { name: "Open Subagent" }).click();
    await panel.page.locator(".line").click();
    await panel.page.locator(".output").getByText("Found it.", { exact: true }).waitFor();
    assert.deepEqual(panel.calls, [
      ["openFile", "src/cart.js", { line: 12, column: 1 }],
      ["openFile", "src/cart.js", { line: 18, column: 5 }],
      ["openFile", "docs/chart.png", undefined],
      ["openSession", "ses_b"],
    ]);
  });

  it("wraps long lines of errors", async () => {
    const error = `Error: ${"x".repeat(2_000)}`;
    const transcript = new FakeTranscript().user("Go").assistant();
    transcript.tool("bash", { status: "error", input: { command: "x" }, error, start: NOW, end: NOW });
    await open(transcript, { width: 520 });
    await panel.page.locator(".line").click();
    const output = panel.page.locator(".output");
    await output.waitFor();
    assert.ok(await output.evaluate((at) => at.scrollWidth <= at.clientWidth));
  });
});
