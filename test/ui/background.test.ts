import assert from "node:assert/strict";
import { readFileSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isAlive } from "../../src/state/processes.ts";
import { DaemonState } from "../support/daemon-state.ts";
import { notices } from "../support/engine.ts";
import { hermeticEnv, hermeticHome, modelConfig, openCodeBinary } from "../support/opencode.ts";
import {
  lastUserText,
  type ModelMessage,
  type ScriptedModel,
  type ScriptStep,
} from "../support/scripted-model.ts";
import { tempDir } from "../support/temp.ts";
import { until } from "../support/wait.ts";
import { takeHighContrastPicture, takePictures } from "./support/pictures.ts";
import { setUp } from "./support/set-up.ts";
import { newerExtension } from "./support/extension.ts";
import { startWorkbench, type Workbench } from "./support/workbench.ts";

/** Each prompt waits for a gate of its own name; the second one then fails. */
function answer({ messages }: { readonly messages: readonly ModelMessage[] }): ScriptStep {
  const gate = /Write chapter \d/.exec(lastUserText(messages))?.[0];
  if (gate === undefined) return { text: "Noted." };
  if (gate !== "Write chapter 2") return { text: `${gate}: done.`, gate };
  if (messages.at(-1)?.role === "tool")
    return { status: 401, body: { error: { message: "The key was refused." } } };
  return { gate, tools: [{ name: "bash", args: { command: "true", description: "Look around" } }] };
}

const CHAPTERS = [1, 2, 3, 4, 5, 6].map((number) => `Write chapter ${number}`);

describe("work in the background, in a real editor", function () {
  const home = hermeticHome();
  const folder = tempDir("work");
  const state = stateOf(home, folder);
  let model: ScriptedModel;
  let workbench: Workbench;
  let parent: string;

  setUp(async (start) => {
    model = await start.model({ fallback: answer });
    workbench = await start.window({
      model,
      home,
      folder,
      settings: { "asyncagents.maxConcurrentTasks": 4 },
    });
  });

  const asked = (name: string): Promise<unknown> =>
    // The first request takes longer, because the server has just started.
    model.waitForRequest(({ title, messages }) => !title && lastUserText(messages).includes(name), 60_000);
  const label = async (name: string): Promise<string> =>
    (await workbench.treeItem(name).first().getAttribute("aria-label")) ?? "";
  const says = (name: string, words: RegExp): Promise<unknown> =>
    until(`${name} to say ${words}`, async () => words.test(await label(name)), 60_000);
  const told = (): Promise<readonly { line: string }[]> => notices(state, parent);
  const toldOf = (count: number): Promise<unknown> =>
    until(`${count} notices`, async () => (await told()).length >= count, 60_000);

  async function launch(prompts: readonly string[]): Promise<void> {
    const { quickInput } = workbench;
    await workbench.runCommand("Async Agents: Launch Batch");
    await quickInput.shows("One prompt per task");
    await quickInput.enter(prompts.join(" | "));
    await quickInput.shows("Each prompt is sent to each selected agent");
    await quickInput.shows("1 Selected");
    await quickInput.widget.getByRole("button", { name: "OK" }).click();
    for (const prompt of prompts) await workbench.treeItem(prompt).first().waitFor();
  }

  async function readParent(): Promise<string> {
    const response = await state.fetch("/session?roots=true");
    const sessions = (await response.json()) as { readonly id: string; readonly parentID?: string }[];
    const roots = sessions.filter(({ parentID }) => parentID === undefined);
    assert.equal(roots.length, 1);
    return roots[0]?.id ?? "";
  }

  it("[BKG-1] [BKG-2] tasks continue while the window is closed, and one notification sums up what happened", async () => {
    await launch(CHAPTERS);
    for (const name of CHAPTERS.slice(0, 4)) await asked(name);
    for (const name of CHAPTERS.slice(4)) await says(name, /queued/);
    parent = await readParent();
    await takePictures(workbench, "background-before");
    const [daemon, server] = [state.daemonPid(), state.server()?.pid];
    await closeWindow(workbench);

    for (const name of CHAPTERS.slice(0, 2)) model.release(name);
    for (const name of CHAPTERS.slice(4)) await asked(name);
    await toldOf(2);
    assert.deepEqual(workbench.server.extensionHosts(), [], "no window is open");
    assert.deepEqual([state.daemonPid(), state.server()?.pid], [daemon, server]);

    await workbench.open();
    // By itself, a notification goes out of sight after 10 seconds.
    await workbench.showNotifications();
    const news = workbench.notification("While you were away");
    await news.first().waitFor();
    await workbench.openView();
    assert.match(await news.first().innerText(), /While you were away: 1 completed, 1 failed/);
    await says("Write chapter 1", /completed/);
    await says("Write chapter 2", /failed/);
    for (const name of CHAPTERS.slice(2)) await says(name, /running/);
    await workbench.showNotifications();
    assert.equal(await workbench.notification("").count(), 1, "the summary is all that is said");
    await takePictures(workbench, "background-while-away");
    await takeHighContrastPicture(workbench, "background-while-away");
    assert.equal((await told()).length, 2);
    await workbench.runCommand("View: Show Explorer");
    await news.getByRole("button", { name: "Show" }).click();
    await workbench.treeItem("Write chapter 1").first().waitFor();
    await news.first().waitFor({ state: "detached" });
  });

  it("[BKG-4] after the daemon is killed, turns continue, another one serves the window, and each parent is notified once", async () => {
    const [daemon = 0, server] = [state.daemonPid(), state.server()?.pid];
    process.kill(daemon, "SIGKILL");
    model.release("Write chapter 3");
    await until("another daemon", () => ![undefined, daemon].includes(state.daemonPid()));
    await says("Write chapter 3", /completed/);
    model.release("Write chapter 4");
    await says("Write chapter 4", /completed/);
    for (const name of CHAPTERS.slice(4)) assert.match(await label(name), /running/);
    await toldOf(4);
    assert.equal((await told()).length, 4);
    assert.equal(state.server()?.pid, server, "the server is the same");
    assert.deepEqual(
      model.requests.filter(({ aborted }) => aborted),
      [],
      "no turn was interrupted",
    );
    await takePictures(workbench, "background-daemon-killed");
  });

  it("if the daemon doesn't respond, the view says so, and restarting it interrupts no turn", async () => {
    const daemon = state.daemonPid() ?? 0;
    process.kill(daemon, "SIGSTOP");
    try {
      await workbench.runCommand("Async Agents: Connect or Refresh");
      const trouble = workbench.notification("isn't responding");
      await trouble.waitFor();
      await workbench.page
        .locator(".part.sidebar", { hasText: "The background process of Async Agents isn't responding" })
        .waitFor();
      await takePictures(workbench, "background-daemon-silent");
      await takeHighContrastPicture(workbench, "background-daemon-silent");
      await trouble.getByRole("button", { name: "Restart" }).click();
      await until("another daemon", () => ![undefined, daemon].includes(state.daemonPid()), 60_000);
    } finally {
      if (isAlive(daemon)) process.kill(daemon, "SIGCONT");
    }
    assert.ok(!isAlive(daemon));
    for (const name of CHAPTERS.slice(4)) model.release(name);
    for (const name of CHAPTERS.slice(4)) await says(name, /completed/);
    await toldOf(6);
    assert.equal((await told()).length, 6);
    await workbench.page
      .locator(".part.sidebar", { hasText: "isn't responding" })
      .waitFor({ state: "detached" });
    await takePictures(workbench, "background-daemon-restarted");
  });

  it("[BKG-7] background work is listed, and stopped after a confirmation that says what stops", async () => {
    await launch(["Write chapter 7", "Write chapter 8"]);
    for (const name of ["Write chapter 7", "Write chapter 8"]) await says(name, /running/);

    await workbench.runCommand("Async Agents: Stop Background Work");
    await workbench.quickInput.shows("Select the folders whose work to stop");
    const { items, widget } = workbench.quickInput;
    await items.first().waitFor();
    assert.equal(await items.count(), 1);
    assert.match(await items.innerText(), /2 tasks, the oldest for .* open in 1 window · \d+ MB/);
    await takePictures(workbench, "background-stop");
    await takeHighContrastPicture(workbench, "background-stop");
    await items.first().click();
    await workbench.quickInput.press("Enter");
    await widget.waitFor({ state: "hidden" });
    const question = workbench.dialog("Stop work in");
    await question.getByText("stops the agents of 2 tasks").waitFor();
    await takePictures(workbench, "background-stop-confirm");
    await takeHighContrastPicture(workbench, "background-stop-confirm");
    await question.getByRole("button", { name: "Stop Work" }).click();
    for (const name of ["Write chapter 7", "Write chapter 8"]) await says(name, /cancelled/);

    await workbench.runCommand("Async Agents: Stop Background Work");
    await workbench.notification("No background work is running.").waitFor();
  });

  it("[BKG-8] the daemon's log opens at its end", async () => {
    await workbench.runCommand("Async Agents: Show Log or Collect Diagnostics");
    await workbench.quickInput.choose("Background");
    await workbench.tab("daemon.log").waitFor();
    await workbench.page
      .locator(".editor-instance .view-line", { hasText: "running → cancelled" })
      .first()
      .waitFor();
    await takePictures(workbench, "background-log");
  });

  it("diagnostics are saved where the user says, and opened to be read", async () => {
    const folder = tempDir("report");
    const path = join(folder, "report.json");
    writeFileSync(join(folder, "earlier.json"), "{}");
    const { quickInput } = workbench;
    await workbench.runCommand("Async Agents: Show Log or Collect Diagnostics");
    await quickInput.choose("Collect Diagnostics");
    await quickInput.shows("Save Diagnostics");
    await until("the name that is offered", async () =>
      (await quickInput.input.inputValue()).endsWith("/async-agents-diagnostics.json"),
    );
    // The editor's dialog takes a name only in a folder that it has listed.
    await quickInput.items.first().waitFor();
    await quickInput.type(`${folder}/`);
    await quickInput.items.filter({ hasText: "earlier.json" }).waitFor();
    await quickInput.enter(path);
    await workbench.tab("report.json").waitFor();
    const saved = JSON.parse(readFileSync(path, "utf8")) as Readonly<Record<"window" | "background", object>>;
    assert.deepEqual(Object.keys(saved), ["window", "background"]);
    assert.match(JSON.stringify(saved.window), /"version":"\d+\./);
    assert.match(JSON.stringify(saved.background), /Task \w{6}: running → /);
    await takePictures(workbench, "background-diagnostics");
  });
});

describe("two versions of the extension, in two real editors", function () {
  // Builds the newer version.
  this.timeout(600_000);
  const home = hermeticHome();
  const folder = tempDir("work");
  const state = stateOf(home, folder);
  let model: ScriptedModel;
  let older: Workbench;

  setUp(async (start) => {
    model = await start.model({ fallback: answer });
    older = await start.window({ model, home, folder });
    await older.runCommand("Async Agents: Launch Task");
    await older.quickInput.choose("general");
    await older.quickInput.shows("Enter a prompt.");
    await older.quickInput.enter("Write chapter 1");
    await model.waitForRequest(({ step }) => step.gate === "Write chapter 1", 60_000);
  });

  it("[BKG-6] the newer one takes over without ending a turn, and the older one asks for an update", async () => {
    const [daemon, server] = [state.daemonPid(), state.server()?.pid];
    const newer = await startWorkbench({
      extensions: newerExtension(),
      env: hermeticEnv(home, modelConfig(model)),
      folder,
      settings: { "asyncagents.server.path": openCodeBinary() },
    });
    try {
      await newer.openView();
      await newer.row("Write chapter 1, running").waitFor();
      await older.page
        .locator(".part.sidebar", { hasText: "Update the extension if needed, then reload the window." })
        .waitFor();
      await takePictures(older, "background-outdated");
      assert.notEqual(state.daemonPid(), daemon);
      assert.equal(state.server()?.pid, server);
      model.release("Write chapter 1");
      await newer.row("Write chapter 1, completed").waitFor();
      assert.deepEqual(
        model.requests.filter(({ aborted }) => aborted),
        [],
      );
    } finally {
      await newer.close();
    }
  });
});

function stateOf(home: string, folder: string): DaemonState {
  return new DaemonState(join(home, ".local", "state", "opencode-async-agents"), realpathSync(folder));
}

/** Like a user: closes the page, and with it its extension host. */
async function closeWindow({ page, server }: Workbench): Promise<void> {
  const isOver = (): boolean => server.extensionHosts().length === 0;
  await page.goto("about:blank");
  try {
    await until("the end of the extension host", isOver, 10_000);
  } catch {
    // The page's last message can get lost; then the server keeps the extension host, as after a network failure.
    server.killExtensionHosts();
    await until("the end of the extension host", isOver, 10_000);
  }
}
