import assert from "node:assert/strict";

import type { Browser, Locator } from "playwright-core";

import { inWords } from "../../../src/daemon/request-words.ts";
import type { MirroredRequest } from "../../../src/engine/folder-changes.ts";
import type { OpenRequest } from "../../../src/engine/requests.ts";
import { ServerFailure } from "../../../src/engine/ports.ts";
import type { PermissionRequest, ToolCall } from "../../../src/engine/server-model.ts";
import type { Task } from "../../../src/engine/task.ts";
import { pageOf } from "../../../src/daemon/conversation/entries.ts";
import { barriers } from "../../support/panel-page/barriers.ts";
import { launchChromium } from "../../support/panel-page/browser.ts";
import { until } from "../../support/wait.ts";
import { FakeTranscript, fakeSubagent, fakeTask, NOW, TASK_ID } from "../../support/panel-page/fake-task.ts";
import {
  buildPanel,
  NEXT_ID,
  PanelPage,
  type PanelBundle,
  type PanelOptions,
} from "../../support/panel-page/panel-page.ts";

const PARAGRAPHS = Array.from(
  { length: 12 },
  (_, index) => `Paragraph ${index}. ${"Some words. ".repeat(40)}`,
).join("\n\n");

/** Tests the page and the host side together, in a browser instead of the editor. */
describe("the output panel", () => {
  let browser: Browser;
  let bundle: PanelBundle;
  let panel: PanelPage;

  before(async () => {
    [browser, bundle] = await Promise.all([launchChromium(), buildPanel()]);
  });

  after(() => browser.close());

  afterEach(async () => {
    assert.deepEqual(panel.pageErrors, []);
    assert.deepEqual(panel.strayRequests, []);
    await panel.close();
  });

  async function open(transcript: FakeTranscript, options: Partial<PanelOptions> = {}): Promise<PanelPage> {
    panel = await PanelPage.open(browser, bundle, {
      task: fakeTask(),
      transcript: () => Promise.resolve(transcript),
      ...options,
    });
    return panel;
  }

  const button = (name: string) => panel.page.getByRole("button", { name, exact: true });
  const text = (content: string) => panel.page.getByText(content).first();
  const running = (progress: Partial<NonNullable<Task["progress"]>> = {}): Task =>
    fakeTask({
      status: "running",
      endedAt: undefined,
      progress: {
        phase: "streaming",
        toolCalls: 0,
        toolCounts: {},
        recentTools: [],
        lastUpdate: NOW,
        ...progress,
      },
    });
  const focused = (name: string): Promise<boolean> =>
    button(name).evaluate((at) => at === document.activeElement);
  const called = async (...call: unknown[]): Promise<void> => {
    await until(`the call of ${String(call[0])}`, () =>
      panel.calls.some((made) => JSON.stringify(made) === JSON.stringify(call)),
    );
  };
  const fromEnd = () =>
    panel.page.locator(".scroller").evaluate((at) => at.scrollHeight - at.scrollTop - at.clientHeight);

  it("shows the task, its prompt and its answer", async () => {
    await open(new FakeTranscript().user("Do *this*").assistant().text("## Done\n\nAll of it."), {
      task: fakeTask({ isForked: true, resumeCount: 1, createdAt: NOW - 300_000 }),
      result: "All of it.",
    });
    const { page } = panel;
    await page
      .getByRole("heading", { name: "Find out why the nightly build is slow (resumed) (forked)" })
      .waitFor();
    await page.getByRole("heading", { name: "Prompt" }).waitFor();
    await page.getByRole("heading", { name: "Done" }).waitFor();
    assert.equal(await page.locator(".prompt em").textContent(), "this");
    assert.match((await page.locator(".facts").textContent()) ?? "", /Completed.*build.*anthropic\/claude/s);
    assert.equal(await button("Cancel").count(), 0);
    await button("Copy Result").click();
    await called("copyText", "All of it.");
  });

  it("brings back the work of a task in a worktree until that was decided on", async () => {
    const worktree: NonNullable<Task["worktree"]> = {
      name: "slow",
      directory: "/work/slow",
      base: "0".repeat(40),
    };
    await open(new FakeTranscript(), { task: fakeTask() });
    await button("Show Changes").waitFor();
    assert.equal(await button("Bring Back…").count(), 0);
    panel.setTask(fakeTask({ worktree }));
    await panel.page.getByRole("heading", { name: "(worktree)" }).waitFor();
    await button("Bring Back…").click();
    await called("bringBack", TASK_ID);
    panel.setTask(fakeTask({ worktree: { ...worktree, outcome: "broughtBack" } }));
    await panel.page.getByRole("heading", { name: "(brought back)" }).waitFor();
    assert.equal(await button("Bring Back…").count(), 0);
  });

  it("shows the model of a task that was launched without one, and the time of all its turns", async () => {
    const model = { providerID: "fake", modelID: "m9" };
    const session = { model } as NonNullable<PanelOptions["session"]>;
    // The last turn took 184 seconds.
    const task = fakeTask({ model: undefined, resumeCount: 1, worked: 284_000 });
    await open(new FakeTranscript().user("Go"), { task, session });
    await text("4 m 44 s").waitFor();
    await text("fake/m9").waitFor();
    const startedAt = Date.now() - 600_000;
    panel.setTask({ ...running(), startedAt, worked: 3_600_000 });
    await text("1 h 10 m").waitFor();
  });

  it("calls a state the same in the header as below the conversation", async () => {
    await open(new FakeTranscript(), { task: running({ phase: "thinking" }) });
    const status = panel.page.locator(".status");
    await status.filter({ hasText: /^Running$/ }).waitFor();
    for (const [phase, words] of [
      ["queued", "Queued"],
      ["needs-permission", "Needs permission"],
      ["needs-answer", "Needs an answer"],
      ["stalled", "Stalled"],
    ] as const) {
      panel.setTask(running({ phase }));
      await status.filter({ hasText: new RegExp(`^${words}$`) }).waitFor();
      await panel.page.locator(".activity-text", { hasText: words }).waitFor();
    }
  });

  for (const [whose, task] of [
    ["a task", fakeTask()],
    ["a subagent", fakeSubagent()],
  ] as const)
    it(`copies nothing if the answer of ${whose} is empty, and says so`, async () => {
      await open(new FakeTranscript().user("Go").assistant(), { task, result: "" });
      await button("Copy Result").click();
      await panel.page.locator(".toast", { hasText: "There is no result to copy." }).waitFor();
      assert.deepEqual(panel.calls, []);
    });

  it("shows streamed parts as they arrive, and the end of the task", async () => {
    const transcript = new FakeTranscript().user("Go").assistant().text("");
    await open(transcript, { task: running() });
    await text("Go").waitFor();
    for (const word of ["Hel", "lo **wor", "ld**"]) transcript.stream(word);
    await panel.page.locator("strong", { hasText: "world" }).waitFor();
    transcript.tool("bash", { status: "running", input: {}, title: "Test", start: NOW });
    await panel.page.getByRole("button", { name: /bash.*Test.*running/s }).waitFor();
    const message = transcript.messages.at(-1)!;
    const call = message.parts.at(-1)!;
    assert.ok(call.type === "tool");
    transcript.part({
      ...call,
      state: { status: "completed", input: {}, output: "", title: "Tested", start: NOW, end: NOW + 1_500 },
    });
    await panel.page.getByRole("button", { name: /bash.*Tested.*2 s.*completed/s }).waitFor();
    panel.setTask(fakeTask());
    await button("Resume").waitFor();
    assert.equal(await panel.page.locator("[role=status]").textContent(), "Completed");
  });

  it("follows the end until the user scrolls up, and again on request", async () => {
    const transcript = new FakeTranscript().user("Go").assistant().text(PARAGRAPHS);
    await open(transcript, { task: running() });
    await text("Paragraph 11.").waitFor();
    transcript.stream(`\n\n${PARAGRAPHS}\n\nfirst end`);
    await text("first end").waitFor();
    assert.ok((await fromEnd()) <= 2);
    assert.equal(await button("Jump to Latest").count(), 0);

    await panel.page.locator(".scroller").hover();
    await panel.page.mouse.wheel(0, -900);
    await button("Jump to Latest").waitFor();
    const seen = await firstSeen(panel);
    transcript.stream(`\n\n${PARAGRAPHS}\n\nsecond end`);
    transcript.tool("read", { status: "pending", input: {} });
    await until("the conversation to grow", async () => (await fromEnd()) > 1_500);
    const now = await firstSeen(panel);
    // Heights have fractions of a pixel, scroll positions don't.
    assert.ok(now.text === seen.text && Math.abs(now.top - seen.top) <= 2, JSON.stringify([seen, now]));

    await button("Jump to Latest").click();
    await text("second end").waitFor();
    await until("the end to be in view", async () => (await fromEnd()) <= 2);
  });

  it("shows a tool's input and output once opened, and keeps the line in place", async () => {
    const transcript = new FakeTranscript().user("Go").assistant().text(PARAGRAPHS);
    transcript.ran(
      "read",
      { filePath: "/src/a.ts", note: "n" },
      `\u001b[31mred\u001b[0m ${"x".repeat(30_000)}`,
      "a.ts",
    );
    await open(transcript);
    const line = panel.page.getByRole("button", { name: /read.*a\.ts/s });
    await line.waitFor();
    const before = await line.boundingBox();
    assert.equal(await panel.page.locator(".output").count(), 0);
    await line.click();
    assert.equal(await panel.page.locator(".output .ansi-red").textContent(), "red");
    assert.equal(await line.getAttribute("aria-expanded"), "true");
    assert.ok(Math.abs((await line.boundingBox())!.y - before!.y) < 1);
    await button("/src/a.ts").click();
    await called("openFile", "/src/a.ts");
    await panel.page.getByRole("button", { name: /Show All/ }).click();
    await until("the document", () =>
      panel.calls.some(([name, title]) => name === "openDocument" && title === "read output.txt"),
    );
    await line.click();
    await panel.page.locator(".output").waitFor({ state: "detached" });
  });

  it("keeps the focus and the scroll position in the details of a running tool call", async () => {
    const lines = (count: number): string =>
      Array.from({ length: count }, (_, index) => `line ${index}`).join("\n");
    const transcript = new FakeTranscript().user("Go").assistant();
    const input = { command: "make", filePath: "/src/a.ts" };
    const state = (output: string) =>
      ({ status: "running", input, metadata: { output }, title: "Make", start: NOW }) as const;
    transcript.tool("bash", state(lines(80)));
    await open(transcript, { task: running() });
    await panel.page.locator(".line").click();
    const output = panel.page.locator(".output");
    await output.evaluate((at) => {
      at.scrollTop = 120;
      at.focus();
    });
    const call = transcript.messages.at(-1)!.parts.at(-1)!;
    assert.ok(call.type === "tool");
    transcript.part({ ...call, state: state(lines(90)) });
    await output.getByText("line 89").waitFor();
    assert.deepEqual(
      await output.evaluate((at) => [at.scrollTop, at === document.activeElement, at.textContent]),
      [120, true, lines(90)],
    );
    await button("/src/a.ts").focus();
    transcript.part({ ...call, state: state(lines(100)) });
    await output.getByText("line 99").waitFor();
    assert.ok(await focused("/src/a.ts"));
    transcript.part({ ...call, state: { status: "error", input, error: "No", start: NOW, end: NOW } });
    await output.getByText("No", { exact: true }).waitFor();
    assert.ok(await focused("/src/a.ts"));
  });

  it("keeps the focus and the scroll position in the code and the tables of a growing answer", async () => {
    const wide = "x".repeat(400);
    for (const [text, more, box] of [
      [`\`\`\`ts\nconst a = "${wide}";\n`, "b();\n", ".code pre"],
      [`| a | b |\n|---|---|\n| ${wide} | 1 |\n`, "| 2 | 3 |\n", "div.table"],
    ] as const) {
      const transcript = new FakeTranscript().user("Go").assistant().text(text);
      await open(transcript, { task: running() });
      const shown = panel.page.locator(box);
      await shown.evaluate((at) => {
        at.scrollLeft = 100;
        at.focus();
      });
      transcript.stream(more);
      await shown
        .getByText(/^b\(\);$|^2$/m)
        .first()
        .waitFor();
      assert.deepEqual(await shown.evaluate((at) => [at.scrollLeft, at === document.activeElement]), [
        100,
        true,
      ]);
      await panel.close();
    }
    await open(new FakeTranscript());
  });

  it("keeps the focus and the selection in the lists, quotes and paragraphs of a growing answer", async () => {
    for (const [text, more] of [
      ["- See `src/a.ts:1`\n", "- Then the end\n"],
      ["1. One\n   - See `src/a.ts:1`\n", "   - Then the end\n"],
      ["> See `src/a.ts:1`\n", "> Then the end\n"],
      ["See `src/a.ts:1`, ", "Then the end"],
      ["| File |\n|---|\n| `src/a.ts:1` |\n", "| Then the end |\n"],
    ] as const) {
      const transcript = new FakeTranscript().user("Go").assistant().text(text);
      await open(transcript, { task: running() });
      const link = panel.page.locator(".answer button.path");
      await link.evaluate((at) => {
        (at as HTMLElement).focus();
        getSelection()!.selectAllChildren(at);
      });
      transcript.stream(more);
      await panel.page.getByText("Then the end").waitFor();
      assert.deepEqual(await link.evaluate((at) => [at === document.activeElement, String(getSelection())]), [
        true,
        "src/a.ts:1",
      ]);
      await panel.close();
    }
    const transcript = new FakeTranscript().user("Go").assistant().text("```sh\nls\n```\n\n");
    await open(transcript, { task: running() });
    // The page has none without a secure connection.
    await panel.page.evaluate(
      "Object.defineProperty(navigator, 'clipboard', { value: { writeText: async () => undefined } })",
    );
    const copy = panel.page.locator(".code-copy");
    await copy.focus();
    await panel.page.keyboard.press("Enter");
    await copy.getByText("Copied").waitFor();
    transcript.stream("Then the end");
    await panel.page.getByText("Then the end").waitFor();
    assert.ok(await copy.evaluate((at) => at === document.activeElement));
  });

  it("loads nothing from elsewhere, runs no script, and opens links through the extension", async () => {
    const transcript = new FakeTranscript()
      .user("<script>window.pwned = 1</script>")
      .assistant()
      .text(
        '![x](http://evil.test/a.png) <img src="http://evil.test/b.png" onerror="window.pwned = 1">\n\n' +
          "[no](command:x) [no](javascript:window.pwned=1) [yes](https://ok.test/)",
      )
      .ran("<img src=x onerror=window.pwned=1>", {}, "<script>window.pwned = 1</script>", "<b>");
    await open(transcript, { task: fakeTask({ description: "<img src=x onerror=window.pwned=1>" }) });
    await panel.page.getByRole("link", { name: "yes" }).click();
    await called("openExternal", "https://ok.test/");
    await panel.page.locator(".line").last().click();
    await panel.page.locator(".output").waitFor();
    assert.equal(await panel.page.locator("img, script:not([nonce]), iframe, .stage b").count(), 0);
    assert.equal(await panel.page.evaluate("window.pwned"), undefined);
    assert.ok(panel.page.url().startsWith("http://panel.test/"));
  });

  it("resumes with Enter, breaks the line with Shift+Enter, and says why resuming failed", async () => {
    let refuse = true;
    const prompts: string[] = [];
    await open(new FakeTranscript().user("Go"), {
      resume: (_id, prompt) => {
        prompts.push(prompt);
        return refuse ? Promise.reject(new Error("the session is busy")) : Promise.resolve();
      },
    });
    const box = panel.page.getByRole("textbox", { name: "Follow-up prompt" });
    await box.fill("go on");
    await box.press("Shift+Enter");
    await box.pressSequentially("with it");
    await box.press("Enter");
    await panel.page.getByRole("alert").getByText("the session is busy").waitFor();
    refuse = false;
    await button("Resume").click();
    await until("the box to be empty", async () => (await box.inputValue()) === "");
    assert.deepEqual(prompts, ["go on\nwith it", "go on\nwith it"]);
    assert.ok(await button("Resume").isDisabled());
  });

  it("keeps a text that is too long to be sent, and says what to do", async () => {
    await open(new FakeTranscript().user("Go"), { resume: () => Promise.resolve() });
    const box = panel.page.getByRole("textbox", { name: "Follow-up prompt" });
    const text = "x".repeat(1_000_001);
    await box.fill(text);
    await box.press("Enter");
    await panel.page
      .getByRole("alert")
      .getByText("Texts can have up to 1,000,000 characters. Save this one in a file, and name the file here")
      .waitFor();
    assert.equal(await box.inputValue(), text);
    await box.fill(text.slice(1));
    await box.press("Enter");
    await until("the box to be empty", async () => (await box.inputValue()) === "");
  });

  it("clears a follow-up that was sent, even if the user left before it was accepted", async () => {
    let take = (): void => undefined;
    await open(new FakeTranscript().user("Go"), {
      resume: () => new Promise((resolve) => (take = resolve)),
    });
    const box = panel.page.getByRole("textbox", { name: "Follow-up prompt" });
    await box.fill("go on");
    await settledState(panel);
    await box.press("Enter");
    await until("the prompt on its way", () => button("Resume").isDisabled());
    await panel.leave();
    take();
    await panel.comeBack();
    assert.equal(await box.inputValue(), "");
  });

  it("restores a follow-up that was refused while the user was away, with the reason and what was written since", async () => {
    let refuse = (_: Error): void => undefined;
    await open(new FakeTranscript().user("Go"), {
      resume: () => new Promise((_, reject) => (refuse = reject)),
    });
    const box = panel.page.getByRole("textbox", { name: "Follow-up prompt" });
    await box.fill("go on");
    await box.press("Enter");
    await until("the prompt on its way", () => button("Resume").isDisabled());
    await panel.leave();
    refuse(new Error("the session is busy"));
    await panel.comeBack();
    await panel.page.getByRole("alert").getByText("the session is busy").waitFor();
    assert.equal(await box.inputValue(), "go on");

    await box.press("Enter");
    await until("the prompt on its way", () => button("Resume").isDisabled());
    await panel.leave();
    await panel.comeBack();
    await box.fill("and then rest");
    refuse(new Error("the session is gone"));
    await panel.page.getByRole("alert").getByText("the session is gone").waitFor();
    assert.equal(await box.inputValue(), "go on\n\nand then rest");
  });

  it("sends messages to a running task now or later, keeps the box while it ends, and returns refused ones", async () => {
    let refuse = false;
    const sent: unknown[] = [];
    await open(new FakeTranscript().user("Go"), {
      task: running(),
      steer: (_id, message, how) => {
        sent.push([message, how?.after ?? false]);
        return refuse ? Promise.reject(new Error("Task 1 has completed.")) : Promise.resolve();
      },
    });
    const box = panel.page.getByRole("textbox", { name: "Message to the running task" });
    await box.fill("Leave the tests");
    await box.press("Enter");
    await until("the box to be empty", async () => (await box.inputValue()) === "");
    await box.fill("Then the docs");
    await button("Send After This").click();
    await until("the box to be empty", async () => (await box.inputValue()) === "");
    refuse = true;
    await box.fill("Wait");
    await box.press("Enter");
    await panel.page.getByRole("alert").getByText("Task 1 has completed.").waitFor();
    assert.equal(await box.inputValue(), "Wait");
    assert.deepEqual(sent, [
      ["Leave the tests", false],
      ["Then the docs", true],
      ["Wait", false],
    ]);
    panel.setTask(fakeTask());
    const followUp = panel.page.getByRole("textbox", { name: "Follow-up prompt" });
    await button("Resume").waitFor();
    assert.equal(await followUp.inputValue(), "Wait");
    assert.ok(await followUp.evaluate((at) => at === document.activeElement));
  });

  it("shows a message that waits, and returns it to the box when it is withdrawn", async () => {
    const waits = { ...running(), followUp: { text: "Then the docs" } };
    const nothing = (_: string): void => undefined;
    let give = nothing;
    await open(new FakeTranscript().user("Go"), {
      task: waits,
      withdraw: () => new Promise((resolve) => (give = resolve)),
    });
    await panel.page.locator(".waiting", { hasText: "Then the docs" }).waitFor();
    const box = panel.page.getByRole("textbox", { name: "Message to the running task" });
    await box.fill("and the tests");
    await button("Withdraw").click();
    await until("the call", () => give !== nothing);
    await panel.leave();
    give("Then the docs");
    panel.setTask(running());
    await panel.comeBack();
    await until("the text", async () => (await box.inputValue()) === "Then the docs\n\nand the tests");
    assert.ok(await panel.page.locator(".waiting").isHidden());
  });

  it("loses no message that is withdrawn while another one is being sent", async () => {
    const gives: ((text: string) => void)[] = [];
    const sends: (() => void)[] = [];
    await open(new FakeTranscript().user("Go"), {
      task: { ...running(), followUp: { text: "Then the docs" } },
      withdraw: () => new Promise((resolve) => gives.push(resolve)),
      steer: () => new Promise((resolve) => sends.push(resolve)),
    });
    const box = panel.page.getByRole("textbox", { name: "Message to the running task" });
    await box.fill("and the tests");
    await button("Withdraw").click();
    await until("the call", () => gives.length > 0);
    await box.press("Enter");
    await until("the message on its way", () => sends.length > 0);
    gives[0]?.("Then the docs");
    panel.setTask(running());
    await panel.page.locator(".waiting").waitFor({ state: "hidden" });
    sends[0]?.();
    await until("the text", async () => (await box.inputValue()) === "Then the docs");
  });

  it("says when a message that waits will be sent, and what to do if it couldn't be", async () => {
    const followUp = { text: "Then the docs" };
    await open(new FakeTranscript().user("Go"), { task: { ...running(), followUp } });
    const waiting = panel.page.locator(".waiting");
    for (const [task, words] of [
      [running(), "Sent once the task has completed:"],
      [fakeTask(), "Not sent yet. Withdraw it to send it yourself:"],
      [
        fakeTask({ status: "error" }),
        "Not sent because the task didn't complete. Select Continue to send it:",
      ],
    ] as const) {
      panel.setTask({ ...task, followUp });
      await waiting.getByText(words, { exact: true }).waitFor();
    }
  });

  it("is kept for its task as soon as a message is withdrawn, whose text is in the box then", async () => {
    await open(new FakeTranscript().user("Go"), {
      task: { ...running(), followUp: { text: "Then the docs" } },
      withdraw: () => Promise.resolve("Then the docs"),
    });
    await button("Withdraw").click();
    await called("keep");
    const box = panel.page.getByRole("textbox", { name: "Message to the running task" });
    await until("the text", async () => (await box.inputValue()) === "Then the docs");
  });

  it("leaves the focus in the box when a message is sent by its button", async () => {
    let accept = (): void => undefined;
    const sent = new Promise<void>((resolve) => (accept = resolve));
    await open(new FakeTranscript(), { task: running(), steer: () => sent });
    const box = panel.page.getByRole("textbox", { name: "Message to the running task" });
    await box.fill("Hello");
    await button("Send").click();
    await until("the message to be sent", () => button("Send").isDisabled());
    assert.ok(await box.evaluate((at) => at === document.activeElement));
    accept();
    await until("an empty box", async () => (await box.inputValue()) === "");
    await panel.page.keyboard.type("again");
    assert.equal(await box.inputValue(), "again");
  });

  it("lets a message to a queued task only wait", async () => {
    await open(new FakeTranscript(), { task: running({ phase: "queued" }) });
    const box = panel.page.getByRole("textbox", { name: "Message to the queued task" });
    await box.fill("Then the docs");
    assert.equal(await button("Send").count(), 0);
    await box.press("Enter");
    await called("steer", TASK_ID, "Then the docs", { after: true });
  });

  it("continues a failed task once with a double-click, with a prompt or without, and opens the new task", async () => {
    const failed = fakeTask({ status: "error", error: { name: "X", message: "No credit" } });
    await open(new FakeTranscript().user("Go"), { task: failed });
    await button("Continue").dblclick();
    await called("openSession", NEXT_ID);
    await panel.page.getByRole("textbox", { name: "Prompt to continue with" }).fill("Try b.ts");
    await button("Continue").click();
    const continued = (): readonly unknown[] => panel.calls.filter(([name]) => name === "continue");
    await until("both", () => continued().length === 2);
    assert.deepEqual(continued(), [
      ["continue", TASK_ID, undefined],
      ["continue", TASK_ID, "Try b.ts"],
    ]);
  });

  it("links the task to those that it replaces, and that replace it", async () => {
    const old = fakeTask({ id: "ses_old0000000000000000000Old" });
    const next = fakeTask({ id: NEXT_ID, insteadOf: TASK_ID, forkedFrom: TASK_ID });
    await open(new FakeTranscript().user("Go"), {
      task: fakeTask({ status: "cancelled", insteadOf: old.id }),
      others: [old, next],
    });
    await panel.page.getByRole("button", { name: /^Retries task/ }).click();
    await called("openSession", old.id);
    await panel.page.getByRole("button", { name: /^Continued as task/ }).click();
    await called("openSession", NEXT_ID);
  });

  it("says what an active task is doing and waiting for", async () => {
    await open(new FakeTranscript(), { task: running({ phase: "queued" }) });
    await text("appears here once the task starts").waitFor();
    for (const [progress, words] of [
      [{ phase: "starting" }, "Starting…"],
      [{ phase: "thinking" }, "Thinking…"],
      [{ phase: "streaming" }, "Writing…"],
      [
        { phase: "tool", recentTools: [{ tool: "bash", status: "running", title: "Test" }] },
        "Running bash: Test",
      ],
      [
        { phase: "retrying", retry: { attempt: 2, message: "Overloaded", next: 0 } },
        "Overloaded · 0 ms · attempt 2",
      ],
      [{ phase: "stalled", lastUpdate: Date.now() - 90_500 }, /Stalled for 1 m \d+ s/],
      [{ phase: "needs-answer" }, "Needs an answer"],
      [{ phase: "needs-permission" }, "Needs permission"],
    ] as const) {
      panel.setTask(running(progress));
      await panel.page.locator(".activity-text", { hasText: words }).waitFor();
    }
    assert.equal(await panel.page.locator("[role=status]").textContent(), "Needs permission");
    for (const [name, action] of [
      ["Cancel", "cancel"],
      ["Fork", "fork"],
      ["Show Changes", "showChanges"],
      ["Open in Terminal", "openInTerminal"],
    ] as const) {
      await button(name).click();
      await called(action, TASK_ID);
    }
  });

  describe("requests", () => {
    const push: PermissionRequest = {
      type: "permission",
      id: "per_1",
      sessionID: TASK_ID,
      permission: "bash",
      patterns: ["git push"],
      always: ["git push *"],
      metadata: {},
    };
    const bash = (input: ToolCall["input"]): ToolCall => ({ tool: "bash", input });
    const permission: OpenRequest<MirroredRequest> = {
      request: inWords(push, "/work"),
      child: fakeTask({ status: "running" }),
    };
    const question: OpenRequest<MirroredRequest> = {
      request: inWords(
        {
          type: "question",
          id: "que_1",
          sessionID: fakeSubagent().id,
          questions: [
            {
              header: "Database",
              question: "Which one?",
              options: [
                { label: "SQLite", description: "a file" },
                { label: "Postgres", description: "a server" },
              ],
              multiple: false,
              custom: true,
            },
            {
              header: "Checks",
              question: "Which of them?",
              options: [
                { label: "Lint", description: "" },
                { label: "Types", description: "" },
              ],
              multiple: true,
              custom: false,
            },
          ],
        },
        "/work",
      ),
      child: fakeSubagent({ status: "running" }),
    };
    const card = () => panel.page.getByRole("article");
    const ask = (requests: readonly OpenRequest<MirroredRequest>[], options: Partial<PanelOptions> = {}) =>
      open(new FakeTranscript().user("Go"), {
        task: running(),
        others: [fakeSubagent()],
        requests,
        ...options,
      });
    const replied = (id: string, reply: unknown) => called("answer", id, reply);

    it("are announced, take no focus, and are removed when answered elsewhere", async () => {
      await ask([]);
      await text("Go").waitFor();
      await panel.page.locator(".scroller").focus();
      panel.setRequests([permission]);
      await card().getByRole("heading", { name: "Run a Command" }).waitFor();
      const announced = (): Promise<string | null> => panel.page.getByRole("status").textContent();
      assert.equal(await announced(), "Run a Command: build");
      assert.equal(await panel.page.evaluate("document.activeElement.className"), "scroller");
      panel.setRequests([]);
      await card().waitFor({ state: "detached" });
      panel.setRequests([permission, { ...permission, request: { ...permission.request, id: "other" } }]);
      await card().nth(1).waitFor();
      // The state of the task doesn't speak over them.
      panel.setTask(running({ phase: "needs-permission" }));
      await panel.page.locator(".activity-text", { hasText: "Needs permission" }).waitFor();
      assert.equal(await announced(), "Run a Command: build\nRun a Command: build");
      panel.setTask(fakeTask({ status: "cancelled" }));
      panel.setRequests([]);
      await card().first().waitFor({ state: "detached" });
      assert.equal(await announced(), "Cancelled");
      assert.deepEqual(panel.calls, []);
    });

    it("are read by a screen reader after the task, its actions and the conversation, and before the follow-up", async () => {
      const transcript = new FakeTranscript().user("Go").assistant().text("Working on it.");
      await open(transcript, { task: running(), requests: [permission] });
      await card().waitFor();
      await text("Working on it.").waitFor();
      const read = await panel.page.locator("body").ariaSnapshot();
      const places = [
        'heading "Find out why the nightly build is slow"',
        "Running",
        'button "Cancel"',
        'main "Conversation"',
        "Working on it.",
        'region "Waiting for you"',
        'heading "Run a Command build"',
        "git push",
        'button "Allow Once"',
        'textbox "Message to the running task"',
        'button "Send"',
      ].map((part) => read.indexOf(part));
      assert.ok(!places.includes(-1), read);
      assert.deepEqual(
        places,
        places.toSorted((a, b) => a - b),
        read,
      );
    });

    it("for a permission show what is asked and what Always Allow covers; each button sends its answer", async () => {
      for (const [name, reply] of [
        ["Allow Once", "once"],
        ["Always Allow", "always"],
        ["Reject", "reject"],
      ] as const) {
        await ask([permission]);
        await card().getByText("git push", { exact: true }).waitFor();
        await card().getByText("Always Allow: git push *").waitFor();
        await button(name).click();
        await replied("per_1", { type: "permission", reply });
        assert.ok(await button("Allow Once").isDisabled());
        await panel.close();
      }
      await ask([permission]);
    });

    it("for a permission show the reason as soon as it is known, and keep what was typed", async () => {
      const asked: string[] = [];
      let tell: ((explained: MirroredRequest) => void) | undefined;
      await ask([permission], {
        explainRequest: ({ id }) => {
          asked.push(id);
          return new Promise((resolve) => (tell ??= resolve));
        },
      });
      await button("Reject with Message…").click();
      await panel.page.keyboard.type("wait");
      assert.equal(await card().getByText("Reason").count(), 0);
      tell?.(inWords(push, "/work", bash({ description: "Publish the branch" })));
      await card().getByText("Reason: Publish the branch").waitFor();
      await panel.page.keyboard.type(" for me");
      assert.equal(await panel.page.getByRole("textbox").first().inputValue(), "wait for me");
      panel.setRequests([permission, question]);
      await card().nth(1).waitFor();
      assert.equal(await card().getByText("Reason: Publish the branch").count(), 1);
      assert.deepEqual(asked, ["per_1", "que_1"]);
    });

    it("for a permission outside the folder say that a file is to be changed, and what is written, once that is known", async () => {
      const metadata = { filepath: "/etc/motd" };
      const outside = { ...push, permission: "external_directory", patterns: ["/etc/*"], metadata };
      const input = { filePath: "/etc/motd", content: "Hello\nthere" };
      let tell: ((explained: MirroredRequest) => void) | undefined;
      await ask([{ ...permission, request: inWords(outside, "/work") }], {
        explainRequest: () => new Promise((resolve) => (tell = resolve)),
      });
      await card().getByText("Access Files Outside the Folder").waitFor();
      tell?.(inWords(outside, "/work", { tool: "write", input }));
      await card().getByText("Change a File Outside the Folder").waitFor();
      await card().getByText("Hello\nthere").waitFor();
    });

    it("for a permission ask for the reason again if that failed", async () => {
      const explained = inWords(push, "/work", bash({ description: "Publish the branch" }));
      let asked = 0;
      await ask([permission], {
        explainRequest: () =>
          asked++ === 0 ? Promise.reject(new Error("Lost.")) : Promise.resolve(explained),
      });
      await button("Allow Once").waitFor();
      panel.setRequests([permission]);
      await card().getByText("Reason: Publish the branch").waitFor({ timeout: 5_000 });
      assert.equal(asked, 2);
    });

    it("have no Always Allow if that is no possible answer", async () => {
      await ask([{ ...permission, request: inWords({ ...push, always: [] }, "/work") }]);
      await button("Allow Once").waitFor();
      assert.equal(await button("Always Allow").count(), 0);
    });

    it("are rejected with a message, which is kept when the page is loaded again", async () => {
      await ask([permission]);
      await button("Reject with Message…").click();
      const box = () => panel.page.getByRole("textbox", { name: "Enter what the agent should do instead" });
      await box().fill("push to a branch");
      await box().press("Enter");
      await box().press("Control+Enter");
      const kept = await settledState(panel);
      // Typing keeps the preview; nothing is sent.
      assert.deepEqual(panel.calls, [["keep"]]);
      await panel.close();
      await ask([permission], { state: kept });
      assert.match(await box().inputValue(), /^push to a branch/);
      await button("Reject and Send").click();
      await replied("per_1", { type: "permission", reply: "reject", message: "push to a branch" });
    });

    it("take over what was written in another page, as does the box, and keep what was written here", async () => {
      await ask([permission, question]);
      await button("Reject with Message…").click();
      const reason = () =>
        panel.page.getByRole("textbox", { name: "Enter what the agent should do instead" });
      const box = () => panel.page.getByRole("textbox", { name: "Message to the running task" });
      await reason().fill("here");
      await box().fill("Now this");
      const answers = [{ chosen: [], own: "DuckDB", takesOwn: true }];
      const left = {
        ...{ version: 1, taskID: TASK_ID, opened: [] },
        draft: "First that",
        replies: { per_1: { message: "there" }, que_1: { answers } },
      };
      panel.takeOver(left);
      await until("both texts", async () => (await box().inputValue()) === "First that\n\nNow this");
      assert.equal(await reason().inputValue(), "here");
      assert.equal(await panel.page.getByRole("textbox", { name: "Other answer" }).inputValue(), "DuckDB");
      await panel.leave();
      panel.takeOver({ ...left, draft: "Before all", replies: {} });
      panel.takeOver({ ...left, draft: "", replies: {} });
      panel.takeOver(undefined);
      await panel.comeBack();
      await until("all texts", async () => /^Before all\n\nFirst that/.test(await box().inputValue()));
      assert.equal(await reason().inputValue(), "here");
      assert.equal(await panel.page.getByRole("textbox", { name: "Other answer" }).inputValue(), "DuckDB");
      // By the input, and by what was taken over.
      await until("the calls", () => panel.calls.length >= 3);
      assert.deepEqual(panel.calls, [["keep"], ["keep"], ["keep"]]);
    });

    it("from a subagent name it; questions take one, several or an own answer", async () => {
      await ask([question]);
      await card().getByText('explore of "Look for slow tests').waitFor();
      await card().getByText("2 questions").waitFor();
      assert.ok(await button("Submit").isDisabled());
      await panel.page.getByRole("radio", { name: /Postgres/ }).check();
      await panel.page.getByRole("checkbox", { name: "Lint" }).check();
      await panel.page.getByRole("checkbox", { name: "Types" }).check();
      await panel.page.getByRole("textbox", { name: "Other answer" }).fill("DuckDB");
      assert.equal(await panel.page.getByRole("radio", { name: /Postgres/ }).isChecked(), false);
      const kept = await settledState(panel);
      await panel.close();
      await ask([question], { state: kept });
      await button("Submit").click();
      await replied("que_1", { type: "question", answers: [["DuckDB"], ["Lint", "Types"]] });
    });

    it("keep which answer is selected, also if another one was typed before", async () => {
      await ask([question]);
      await panel.page.getByRole("checkbox", { name: "Lint" }).check();
      await panel.page.getByRole("textbox", { name: "Other answer" }).fill("DuckDB");
      await panel.page.getByRole("radio", { name: /Postgres/ }).check();
      const kept = await settledState(panel);
      await panel.close();
      await ask([question], { state: kept });
      assert.equal(await panel.page.getByRole("textbox", { name: "Other answer" }).inputValue(), "DuckDB");
      await button("Submit").click();
      await replied("que_1", { type: "question", answers: [["Postgres"], ["Lint"]] });
    });

    it("refuse a text that is too long to be sent, and say so", async () => {
      await ask([permission, question]);
      await button("Reject with Message…").click();
      const box = panel.page.getByRole("textbox", { name: "Enter what the agent should do instead" });
      await box.fill("x".repeat(100_001));
      await button("Reject and Send").click();
      await card()
        .getByRole("alert")
        .getByText("Couldn't send the answer: Texts can have up to 100,000 characters.")
        .waitFor();
      await box.fill("shorter");
      await button("Reject and Send").click();
      await replied("per_1", { type: "permission", reply: "reject", message: "shorter" });
    });

    it("with a question can be dismissed", async () => {
      await ask([question]);
      await button("Dismiss").click();
      await replied("que_1", { type: "dismiss" });
    });

    it("say why an answer failed, and that a request is no longer waiting", async () => {
      let open = [permission];
      await ask(open, {
        answer: () => {
          if (open.length === 0) panel.setRequests(open);
          return Promise.reject(new Error("status 500"));
        },
      });
      await button("Allow Once").click();
      await card().getByRole("alert").getByText("Couldn't send the answer: status 500").waitFor();
      open = [];
      await button("Allow Once").click();
      await panel.page.getByRole("status").getByText("This request is no longer waiting.").waitFor();
      assert.equal(await card().count(), 0);
      assert.equal(await panel.page.evaluate("document.activeElement.className"), "scroller");
    });

    it("ignore the mouse while they move, but not the keyboard", async () => {
      await ask([permission, question]);
      await panel.page.locator(".requests:not(.settling)").waitFor();
      await panel.page.evaluate(`{
        const cards = document.querySelector(".requests");
        window.mouse = [];
        new MutationObserver(() => {
          mouse.push(getComputedStyle(cards).pointerEvents);
          if (mouse.length === 1) [...cards.querySelectorAll("button")].at(-1).click();
        }).observe(cards, { attributeFilter: ["class"] });
      }`);
      panel.setRequests([question]);
      await replied("que_1", { type: "dismiss" });
      await until("the mouse to count again", () => panel.page.evaluate("mouse.length > 1"));
      assert.deepEqual(await panel.page.evaluate("mouse"), ["none", "auto"]);
    });

    it("ignore the mouse also when one changes because its command or reason becomes known", async () => {
      let tell: ((explained: MirroredRequest) => void) | undefined;
      await ask([permission], { explainRequest: () => new Promise((resolve) => (tell = resolve)) });
      const settled = panel.page.locator(".requests:not(.settling)");
      await settled.waitFor();
      await panel.page.evaluate(`{
        const cards = document.querySelector(".requests");
        window.mouse = [];
        new MutationObserver(() => mouse.push(cards.className)).observe(cards, { attributeFilter: ["class"] });
      }`);
      panel.setRequests([permission]);
      tell?.(inWords(push, "/work", bash({ command: "git commit && git push" })));
      await card().getByText("git commit && git push").waitFor();
      await settled.waitFor();
      assert.deepEqual(await panel.page.evaluate("mouse"), ["requests settling", "requests"]);
    });

    it("show the change, and all of it on request", async () => {
      const diff = `@@ -1 +1,5000 @@\n-a\n${"+line of code\n".repeat(5_000)}`;
      const metadata = { diff };
      const edit = inWords({ ...push, permission: "edit", metadata }, "/work");
      await ask([{ ...permission, request: edit }]);
      await card().locator(".removed", { hasText: "-a" }).waitFor();
      assert.ok((await panel.page.locator("*").count()) < 200);
      await panel.page.getByRole("button", { name: /Open All Changes/ }).click();
      await called("openDocument", "changes.diff", diff);
    });

    it("from other tasks are not shown", async () => {
      const child = fakeTask({ id: "ses_other", status: "running" });
      await ask([{ request: { ...permission.request, sessionID: child.id }, child }, question]);
      await card().getByText("2 questions").waitFor();
      assert.equal(await card().count(), 1);
    });
  });

  it("follows, cancels and adopts a subagent, and offers nothing that only tasks have", async () => {
    const transcript = new FakeTranscript().user("Go").assistant().text("Found *three*.");
    await open(transcript, {
      task: fakeSubagent({
        status: "running",
        progress: { phase: "thinking", toolCalls: 0, toolCounts: {}, recentTools: [], lastUpdate: NOW },
      }),
    });
    await text("OpenCode subagent").waitFor();
    await button("Cancel").click();
    await called("cancel", fakeSubagent().id);
    await button("Open in Terminal").click();
    await called("openInTerminal", fakeSubagent().id);
    panel.setTask(fakeSubagent());
    await text("Idle").waitFor();
    await button("Copy Result").click();
    await called("copyText", "Found *three*.");
    for (const name of ["Fork", "Show Changes"]) await button(name).waitFor();
    for (const name of ["Retry", "Resume", "Cancel"]) assert.equal(await button(name).count(), 0, name);
    await panel.page.getByRole("textbox").fill("Go on");
    await button("Adopt and Resume").click();
    await called("resume", fakeSubagent().id, "Go on");
    panel.setTask(fakeSubagent({ status: "error", error: { name: "X", message: "No credit" } }));
    const foot = panel.page.getByRole("contentinfo");
    await foot.getByText("No credit").waitFor();
    assert.equal(await button("Retry").count(), 0);
    await foot.getByRole("button", { name: "Adopt", exact: true }).click();
    await called("adopt", fakeSubagent().id);
  });

  it("has no accessibility barriers for a subagent, in any theme", async () => {
    const answer = "See `src/a.ts`:\n\n```ts\nconst a = f(1000); // one\n```\n\n| a |\n|---|\n| 1 |";
    for (const theme of ["dark", "light", "highContrast"] as const) {
      await open(new FakeTranscript().user("Go").assistant().text(answer), { theme, task: fakeSubagent() });
      await panel.page.locator(".tok-kwd").waitFor();
      assert.deepEqual(await barriers((script) => panel.page.evaluate(script)), [], theme);
      if (theme !== "highContrast") await panel.close();
    }
  });

  it("opens files that an answer names through the extension, and says if one is missing", async () => {
    const transcript = new FakeTranscript()
      .user("Go")
      .assistant()
      .text("See `src/a.ts:12`, [`b.ts`](https://ok.test/), not `console.log`.");
    let found = true;
    const opened: unknown[] = [];
    await open(transcript, {
      openFile: (...at) => {
        opened.push(at);
        return found ? Promise.resolve() : Promise.reject(new Error("src/a.ts was not found."));
      },
    });
    await button("src/a.ts:12").click();
    assert.equal(await panel.page.locator(".path").count(), 1);
    await until("the file", () => opened.length === 1);
    found = false;
    await button("src/a.ts:12").focus();
    await panel.page.keyboard.press("Enter");
    await panel.page.getByRole("status").getByText("src/a.ts was not found.").waitFor();
    assert.deepEqual(opened, Array(2).fill(["src/a.ts", { line: 12, column: 1 }]));
  });

  it("shows an edit as a diff with signs and line numbers", async () => {
    const diff = "--- a\n+++ a\n@@ -7,2 +7,2 @@\n same\n-old\n+new\n";
    const input = { filePath: "/src/a.ts", oldString: "old", newString: "new" };
    const times = { start: NOW, end: NOW + 5 };
    const transcript = new FakeTranscript()
      .user("Go")
      .assistant()
      .tool("edit", {
        status: "completed",
        input,
        output: "ok",
        title: "a.ts",
        metadata: { diff },
        ...times,
      });
    await open(transcript);
    await panel.page.getByRole("button", { name: /edit.*a\.ts/s }).click();
    await panel.page.getByRole("group", { name: "Changes" }).waitFor();
    assert.equal(await panel.page.locator(".added").textContent(), "+new");
    assert.equal(await panel.page.locator(".removed").textContent(), "-old");
    assert.equal(await panel.page.locator(".diff-numbers").textContent(), "\n7\n8\n8");
    assert.equal(await panel.page.getByText("oldString").count(), 0);
  });

  it("highlights code, and copies it and whole messages unchanged", async () => {
    const answer = "Use this:\n\n```ts\nconst a = `1`;\n```\n";
    await open(new FakeTranscript().user("Go").assistant().text(answer));
    await panel.page.locator(".tok-kwd", { hasText: "const" }).waitFor();
    // Pages over plain HTTP, as here, have no clipboard.
    await panel.page.evaluate(
      "Object.defineProperty(navigator, 'clipboard', { value: { writeText: async (text) => { window.copied = text } } })",
    );
    const clipboard = (): Promise<string> => panel.page.evaluate("window.copied");
    await panel.page.locator(".code").hover();
    await button("Copy").click();
    await panel.page.getByRole("status").getByText("Copied").waitFor();
    assert.equal(await clipboard(), "const a = `1`;\n");
    await button("Copy Message").last().click();
    await until("the message", async () => (await clipboard()) === answer);
  });

  it("says why a task failed, and lets the user retry it", async () => {
    const error = { name: "APIError", message: "No credit" };
    await open(new FakeTranscript().user("Go").assistant({ error }), {
      task: fakeTask({ status: "error", error }),
    });
    await panel.page.getByRole("contentinfo").getByText("No credit").waitFor();
    await button("Retry").click();
    await called("retry", TASK_ID);
    await text("Launched a new task").waitFor();
    await button("Retry").dblclick();
    await until("a second retry", () => panel.calls.length > 1);
    await button("Open in Terminal").click();
    await called("openInTerminal", TASK_ID);
    assert.deepEqual(
      panel.calls.map(([name]) => name),
      ["retry", "retry", "openInTerminal"],
    );
  });

  it("retries once while a retry is in progress, even if the user leaves, and says when it is done", async () => {
    let asked = 0;
    let finish = (_: Task | undefined): void => undefined;
    await open(new FakeTranscript().user("Go").assistant(), {
      task: fakeTask({ status: "cancelled" }),
      retry: () => {
        asked++;
        return new Promise((resolve) => (finish = resolve));
      },
    });
    const retry = panel.page.getByRole("button", { name: "Retry" });
    await retry.dblclick();
    await until("the button to be off", () => retry.isDisabled());
    await retry.press("Enter");
    await panel.leave();
    await panel.comeBack();
    await until("the button to be off", () => retry.isDisabled());
    await retry.press("Enter");
    finish(fakeTask());
    await panel.page.locator(".toast", { hasText: "new task" }).waitFor();
    assert.equal(asked, 1);
    assert.ok(await retry.isEnabled());
    await retry.press("Enter");
    await until("the second retry", () => asked === 2);
    finish(undefined);
    await until("the button to be on", () => retry.isEnabled());
  });

  it("retries once while its key is held", async () => {
    await open(new FakeTranscript().user("Go").assistant(), { task: fakeTask({ status: "cancelled" }) });
    await button("Retry").focus();
    await panel.page.keyboard.down("Enter");
    await called("retry", TASK_ID);
    await until("the button to be on", () => button("Retry").isEnabled());
    await panel.page.keyboard.down("Enter");
    await panel.page.keyboard.up("Enter");
    await button("Open in Terminal").click();
    await called("openInTerminal", TASK_ID);
    assert.equal(panel.calls.filter(([name]) => name === "retry").length, 1);
    await panel.page.getByRole("textbox").focus();
    await panel.page.keyboard.down("Enter");
    await until("the message", () => panel.calls.filter(([name]) => name === "continue").length === 1);
    await until("the box to be empty", () => panel.page.getByRole("textbox").isEditable());
    await panel.page.keyboard.down("Enter");
    await panel.page.keyboard.up("Enter");
    await button("Retry").click();
    await until("the retry", () => panel.calls.at(-1)?.[0] === "retry");
    assert.equal(panel.calls.filter(([name]) => name === "continue").length, 1);
  });

  it("keeps what is being written to a task that is deleted meanwhile", async () => {
    await open(new FakeTranscript().user("Go").assistant());
    const box = panel.page.getByRole("textbox");
    await box.fill("Then the docs");
    panel.setTask(undefined);
    await text("This task is no longer available.").waitFor();
    assert.equal(await box.inputValue(), "Then the docs");
    assert.ok(await box.isVisible());
    assert.equal(await button("Resume").count(), 0);
    await box.press("Enter");
    panel.setTask(fakeTask());
    await button("Resume").click();
    await called("resume", TASK_ID, "Then the docs");
  });

  it("leaves nothing of the box if nothing was written", async () => {
    await open(new FakeTranscript().user("Go").assistant());
    panel.setTask(undefined);
    await text("This task is no longer available.").waitFor();
    assert.equal(await panel.page.getByRole("contentinfo").count(), 0);
  });

  it("cuts nothing off in a panel that is short", async () => {
    const error = { name: "X", message: "No credit is left for this. ".repeat(4) };
    await open(new FakeTranscript().user("Go").assistant().text(PARAGRAPHS), {
      task: fakeTask({ status: "error", error }),
      width: 420,
      height: 260,
    });
    const box = panel.page.getByRole("textbox");
    await box.focus();
    const { y, height } = (await box.boundingBox()) ?? assert.fail();
    assert.ok(y + height <= 260, `${y + height}`);
    const stage = (await panel.page.locator(".scroller").boundingBox()) ?? assert.fail();
    assert.ok(stage.height >= 80, `${stage.height}`);
    const isCut = await panel.page.evaluate("document.body.scrollHeight > innerHeight");
    assert.equal(isCut, false);
  });

  it("keeps focus, place and selection in a command's output while that grows, and when it is aborted", async () => {
    const transcript = new FakeTranscript().user("Go").assistant();
    const lines = (count: number): string =>
      Array.from({ length: count }, (_, at) => `line ${at}\n`).join("");
    const state = { status: "running", input: { command: "make" }, title: "Make", start: NOW } as const;
    transcript.tool("bash", { ...state, metadata: { output: lines(40) } });
    await open(transcript, { task: running() });
    await panel.page.locator(".line").click();
    const output = panel.page.locator(".output");
    await output.getByText("line 39").waitFor();
    await output.evaluate((at) => {
      at.focus();
      at.scrollTop = 300;
      document.getSelection()?.setBaseAndExtent(at.firstChild ?? at, 0, at.firstChild ?? at, 6);
    });
    const call = transcript.messages.at(-1)?.parts.at(-1);
    assert.ok(call?.type === "tool");
    const held = (): Promise<unknown> =>
      output.evaluate((at) => [document.activeElement === at, at.scrollTop, String(document.getSelection())]);
    transcript.part({ ...call, state: { ...state, metadata: { output: lines(60) } } });
    await output.getByText("line 59").waitFor();
    assert.deepEqual(await held(), [true, 300, "line 0"]);
    const error = "Tool execution aborted";
    transcript.part({
      ...call,
      state: { ...state, status: "error", error, end: NOW, partialOutput: lines(60) },
    });
    await panel.page.locator(".output.wrapped").waitFor();
    assert.deepEqual(await held(), [true, 300, "line 0"]);
  });

  it("keeps the focus while the task is updated", async () => {
    const failed = fakeTask({ status: "error", error: { name: "X", message: "No credit" } });
    await open(new FakeTranscript().user("Go").assistant(), { task: failed });
    await button("Retry").focus();
    panel.setTask({ ...failed, cost: 1.5 });
    await panel.page.locator(".facts", { hasText: "$1.50" }).waitFor();
    assert.ok(await focused("Retry"));
    panel.setConnection("disconnected");
    await button("Connect").focus();
    panel.setTask({ ...failed, cost: 2.5 });
    await panel.page.locator(".facts", { hasText: "$2.50" }).waitFor();
    assert.ok(await focused("Connect"));
  });

  it("gives the focus to the conversation when the button that has it goes away", async () => {
    const atWork = { ...running(), followUp: { text: "Then the docs" } };
    await open(new FakeTranscript().user("Go"), { task: atWork });
    const inText = (): Promise<boolean> =>
      until(
        "the focus in the conversation",
        async () => (await panel.page.evaluate("document.activeElement.className")) === "scroller",
      );
    for (const [name, goes] of [
      ["Withdraw", () => panel.setTask(running())],
      ["Cancel", () => panel.setTask(fakeTask({ status: "cancelled" }))],
      ["Retry", () => panel.setTask(running())],
    ] as const) {
      await button(name).focus();
      goes();
      await button(name).waitFor({ state: "hidden" });
      await inText();
    }
    panel.setConnection("disconnected");
    await button("Connect").focus();
    panel.setConnection("connecting");
    await button("Connect").waitFor({ state: "hidden" });
    await inText();
  });

  it("says that there is no connection, and loads the conversation once there is one", async () => {
    await open(new FakeTranscript().user("Go"), { connection: "disconnected" });
    await text("Not connected to OpenCode").waitFor();
    await button("Connect").click();
    await called("connect", TASK_ID);
    panel.setConnection("connecting");
    await text("Connecting to OpenCode").waitFor();
    panel.setConnection("connected");
    await text("Go").waitFor();
    assert.equal(await panel.page.locator(".banner").isVisible(), false);
  });

  it("follows the conversation again after its folder was removed from the workspace and added again", async () => {
    const task = fakeTask();
    const transcripts = [new FakeTranscript().user("Go"), new FakeTranscript().user("Go on")];
    const loads: FakeTranscript[] = [];
    const transcript = (): Promise<FakeTranscript> => {
      loads.push(transcripts[loads.length]!);
      return Promise.resolve(loads.at(-1)!);
    };
    await open(transcripts[0]!, { task, transcript });
    await text("Go").waitFor();
    panel.task = undefined;
    // The window's other folders are connected.
    panel.setConnection("connected");
    await text("its folder is no longer in the workspace").waitFor();
    assert.equal(transcripts[0]!.followers, 0);
    // What is in the page can be found, and nothing else is silently left out.
    await panel.page.keyboard.press("Control+f");
    await panel.page.keyboard.type("Go");
    await panel.page.locator(".find-count").getByText("1 of 1").waitFor();
    await panel.page.keyboard.press("Escape");
    await button("Open as Document").click();
    await panel.page.locator(".toast", { hasText: "The conversation can't be read now." }).waitFor();
    // The connection is told of once the tasks were read.
    panel.setTask(task);
    panel.setConnection("connected");
    await text("Go on").waitFor();
    assert.equal(await panel.page.locator(".banner").isVisible(), false);
    assert.ok(await button("Fork").isVisible());
    assert.equal(loads.length, 2);
    assert.deepEqual(
      panel.calls.filter(([name]) => name === "error"),
      [],
    );
  });

  it("loads the conversation again if the connection returned while loading it failed", async () => {
    const transcript = new FakeTranscript().user("Go");
    const loads: ((error: Error) => void)[] = [];
    await open(transcript, {
      transcript: () =>
        loads.length > 0 ? Promise.resolve(transcript) : new Promise((_, reject) => loads.push(reject)),
    });
    await until("the first attempt", () => loads.length === 1);
    panel.setConnection("disconnected");
    panel.setConnection("connected");
    loads[0]?.(new Error("cut off"));
    await text("Go").waitFor();
    assert.equal(await text("cut off").isVisible(), false);
  });

  it("says that the conversation could not be loaded, and tries again", async () => {
    let fail = true;
    const transcript = new FakeTranscript().user("Go");
    await open(transcript, {
      transcript: () => (fail ? Promise.reject(new Error("status 500")) : Promise.resolve(transcript)),
    });
    await text("status 500").waitFor();
    panel.setTask(fakeTask({ cost: 3.5 }));
    await panel.page.locator(".facts", { hasText: "$3.50" }).waitFor();
    assert.ok(await text("status 500").isVisible());
    fail = false;
    await button("Try Again").click();
    await text("Go").waitFor();
  });

  it("says nothing more of what a task is doing that no longer exists", async () => {
    const transcript = new FakeTranscript().user("Go").assistant();
    transcript.tool("bash", { status: "running", input: {}, title: "Make", start: Date.now() });
    await open(transcript, { task: { ...running(), startedAt: Date.now() } });
    await panel.page.locator(".status", { hasText: "Running" }).waitFor();
    panel.setTask(undefined);
    await text("This task is no longer available.").waitFor();
    assert.equal(await panel.page.locator(".status").count(), 0);
    const times = (): Promise<readonly string[]> =>
      panel.page.locator("[data-since], .facts").allTextContents();
    const before = await times();
    await panel.page.waitForTimeout(2_100);
    assert.deepEqual(await times(), before);
    panel.setTask(fakeTask());
    await panel.page.locator(".status", { hasText: "Completed" }).waitFor();
  });

  it("says that the task no longer exists", async () => {
    const gone = new ServerFailure("GET /session/x", "not-found", "Not found", 404);
    await open(new FakeTranscript(), { task: undefined, transcript: () => Promise.reject(gone) });
    await text("This task is no longer available").waitFor();
  });

  it("says that also if it was removed while its conversation was read", async () => {
    let fail = (_: Error): void => undefined;
    await open(new FakeTranscript(), { transcript: () => new Promise((_, reject) => (fail = reject)) });
    await text("Loading the conversation").waitFor();
    panel.setTask(undefined);
    await text("This task is no longer available").waitFor();
    fail(new Error("The folder was closed."));
    await panel.leave();
    await panel.comeBack();
    await text("This task is no longer available").waitFor();
    assert.deepEqual(panel.calls, []);
  });

  it("renders few elements of a long conversation, and restores the scroll position", async () => {
    const transcript = new FakeTranscript().user("The very first prompt");
    for (let index = 0; index < 300; index++) transcript.assistant().text(`# Part ${index}\n\n${PARAGRAPHS}`);
    await open(transcript);
    await text("Paragraph 11.").waitFor();
    await until("all messages", () => panel.page.locator(".earlier").isHidden());
    const scrollTo = (share: number): Promise<void> =>
      panel.page
        .locator(".scroller")
        .evaluate((at, share) => void (at.scrollTop = at.scrollHeight * share), share);
    await scrollTo(0);
    await text("The very first prompt").waitFor();
    await scrollTo(0.4);
    await button("Jump to Latest").waitFor();
    assert.ok((await panel.page.locator("*").count()) < 600);
    const kept: unknown = await settledState(panel);
    const seen = await firstSeen(panel);
    await panel.close();
    await open(transcript, { state: kept });
    // Heights have fractions of a pixel, scroll positions don't.
    await until("the same place", async () => {
      const now = await firstSeen(panel);
      return now.text === seen.text && Math.abs(now.top - seen.top) <= 2;
    });
  });

  it("keeps the reader's place when the panel becomes narrower or wider", async () => {
    const transcript = new FakeTranscript().user("The very first prompt");
    for (let index = 0; index < 20; index++)
      transcript.assistant().text(PARAGRAPHS.replaceAll("Paragraph", `${index}: paragraph`));
    await open(transcript);
    await text("19: paragraph 11.").waitFor();
    await until("all messages", () => panel.page.locator(".earlier").isHidden());
    await panel.page.locator(".scroller").evaluate((at) => void (at.scrollTop = at.scrollHeight * 0.4));
    await button("Jump to Latest").waitFor();
    await settledState(panel);
    const size = panel.page.viewportSize() ?? assert.fail();
    const { text: seen } = await firstSeen(panel, ".answer > *");
    const y = async (at: Locator): Promise<number> => (await at.boundingBox())?.y ?? NaN;
    // The header may take another line.
    const top = async (): Promise<number> =>
      (await y(text(seen))) - (await y(panel.page.locator(".scroller")));
    const before = await top();
    for (const width of [420, size.width]) {
      await panel.page.setViewportSize({ ...size, width });
      await settledState(panel);
      const now = await top();
      assert.ok(Math.abs(now - before) <= 3, `${now} instead of ${before}`);
    }
  });

  it("doesn't lead a reader back who went on before the former place was loaded", async () => {
    const transcript = new FakeTranscript().user("The very first prompt");
    for (let index = 0; index < 60; index++)
      transcript.assistant().text(PARAGRAPHS.replaceAll("Paragraph", `${index}: paragraph`));
    await open(transcript);
    await text("59: paragraph 11.").waitFor();
    await until("all messages", () => panel.page.locator(".earlier").isHidden());
    await panel.page.locator(".scroller").evaluate((at) => void (at.scrollTop = 0));
    await text("The very first prompt").waitFor();
    await button("Jump to Latest").waitFor();
    await settledState(panel);
    await panel.leave();
    await panel.holdNextPage("loaded");
    await panel.comeBack();
    await text("59: paragraph 11.").waitFor();
    await panel.page.locator(".scroller").hover();
    await panel.page.mouse.wheel(0, -300);
    await button("Jump to Latest").waitFor();
    await panel.page.evaluate("ask()");
    await until("all messages", () => panel.page.locator(".earlier").isHidden());
    await settledState(panel);
    assert.match((await firstSeen(panel, ".answer > *")).text, /^59: paragraph/);
  });

  it("keeps the reader's place when the conversation is read again, and follows the end if it did", async () => {
    const transcript = new FakeTranscript().user("The very first prompt");
    for (let index = 0; index < 40; index++)
      transcript.assistant().text(PARAGRAPHS.replaceAll("Paragraph", `${index}: paragraph`));
    await open(transcript);
    await text("39: paragraph 11.").waitFor();
    await until("all messages", () => panel.page.locator(".earlier").isHidden());
    const readAgain = async (): Promise<void> => {
      await panel.page.evaluate(() => {
        for (const row of document.querySelectorAll(".row")) row.setAttribute("data-old", "");
      });
      transcript.reset();
      await until("other rows", async () => (await panel.page.locator("[data-old]").count()) === 0);
      await until("all messages", () => panel.page.locator(".earlier").isHidden());
      await settledState(panel);
    };
    for (const share of [0.4, 0.95]) {
      await panel.page
        .locator(".scroller")
        .evaluate((at, share) => void (at.scrollTop = at.scrollHeight * share), share);
      await button("Jump to Latest").waitFor();
      await settledState(panel);
      const seen = await firstSeen(panel, ".answer > *");
      // The second time, the list has restored the place itself.
      for (let time = 0; time < 2; time++) {
        await readAgain();
        await until("the same place", async () => {
          const now = await firstSeen(panel, ".answer > *");
          return now.text === seen.text && Math.abs(now.top - seen.top) <= 2;
        });
      }
    }
    await button("Jump to Latest").click();
    await until("the end to be in view", async () => (await fromEnd()) <= 2);
    await readAgain();
    await until("the end to be in view", async () => (await fromEnd()) <= 2);
    assert.equal(await button("Jump to Latest").count(), 0);
  });

  it("keeps the order of messages that arrive after the conversation was read again", async () => {
    const transcript = new FakeTranscript().user("The very first prompt");
    for (let index = 0; index < 12; index++) transcript.assistant().text(`# Part ${index}`).text(PARAGRAPHS);
    let load = (_: FakeTranscript): void => undefined;
    await open(transcript, { transcript: () => new Promise((resolve) => (load = resolve)) });
    await text("Loading the conversation").waitFor();
    await panel.holdNextPage();
    load(transcript);
    await until("the page to be about to ask", () => panel.page.evaluate<boolean>("'ask' in window"));
    // The page asks for what is before its oldest message, and gets the newest ones again before the answer.
    for (let index = 12; index < 24; index++) transcript.assistant().text(`# Part ${index}`).text(PARAGRAPHS);
    transcript.reset();
    await panel.page.evaluate("ask()");
    await until("all messages", () => panel.page.locator(".earlier").isHidden());
    await panel.page.locator(".scroller").evaluate((at) => void (at.scrollTop = 0));
    await text("The very first prompt").waitFor();
    const shown = async (): Promise<readonly string[]> => panel.page.locator(".row h2").allTextContents();
    await until("the beginning", async () => (await shown())[1] === "Part 0");
  });

  it("continues to load earlier messages if the one it asked for was removed", async () => {
    const transcript = new FakeTranscript().user("The very first prompt");
    for (let index = 0; index < 20; index++) transcript.assistant().text(PARAGRAPHS);
    let load = (_: FakeTranscript): void => undefined;
    await open(transcript, { transcript: () => new Promise((resolve) => (load = resolve)) });
    await text("Loading the conversation").waitFor();
    await panel.holdNextPage();
    load(transcript);
    await until("the page to be about to ask", () => panel.page.evaluate<boolean>("'ask' in window"));
    assert.ok(await panel.page.locator(".earlier").isVisible());
    // The page requests messages before its oldest one, before it learns that this one was removed.
    const oldest = pageOf(transcript.messages, { ownSince: 0, promptMessageID: undefined }, 60_000)
      ?.entries[0];
    const asking = panel.page.evaluate("ask()");
    transcript.removeMessage(oldest?.messageID ?? "");
    await asking;
    await until("all messages", () => panel.page.locator(".earlier").isHidden());
    await panel.page.locator(".scroller").evaluate((at) => void (at.scrollTop = 0));
    await text("The very first prompt").waitFor();
  });

  it("stops following the conversation when it is closed", async () => {
    const transcript = new FakeTranscript().user("Go");
    await open(transcript);
    await text("Go").waitFor();
    assert.equal(transcript.followers, 1);
    await panel.close();
    assert.equal(transcript.followers, 0);
  });
});

/** The first visible words, and their position. */
function firstSeen(
  panel: PanelPage,
  blocks = ".row > *",
): Promise<{ readonly text: string; readonly top: number }> {
  return panel.page.locator(".scroller").evaluate((scroller, blocks) => {
    const { top } = scroller.getBoundingClientRect();
    const block = [...scroller.querySelectorAll(blocks)].find(
      (at) => at.getBoundingClientRect().bottom > top,
    );
    return {
      text: block?.textContent?.slice(0, 30) ?? "",
      top: (block?.getBoundingClientRect().top ?? 0) - top,
    };
  }, blocks);
}

/** The state that the page stores, once it no longer changes. */
async function settledState(panel: PanelPage): Promise<unknown> {
  let last = "";
  let state: unknown;
  await until("the state to settle", async () => {
    // Two frames first: a scroll is told with a frame, and the state is written a moment after that.
    state = await panel.page.evaluate(
      "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => done(window.keptState), 200))))",
    );
    const now = JSON.stringify(state);
    const same = now === last;
    last = now;
    return same;
  });
  return state;
}
