import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { hermeticEnv, hermeticHome, modelConfig, openCodeBinary } from "../support/opencode.ts";
import { script, startScriptedModel, type ScriptedModel } from "../support/scripted-model.ts";
import { until } from "../support/wait.ts";
import { startWorkbench, type Workbench } from "../ui/support/workbench.ts";

/** What a task survives: a reload, a crash of the extension host, a crash of the server; and what the window's end leaves behind. */
describe("what a running task survives", () => {
  let model: ScriptedModel;
  let home: string;
  let workbench: Workbench;

  before(async function () {
    this.timeout(600_000);
    model = await startScriptedModel();
    home = hermeticHome();
    workbench = await startWorkbench({
      // Longer than a reload takes.
      env: { ...hermeticEnv(home, modelConfig(model)), ASYNCAGENTS_DAEMON_GRACE_MS: "10000" },
      settings: { "asyncagents.server.path": openCodeBinary() },
    });
    await workbench.openView();
    await workbench.page.locator(".welcome-view", { hasText: "No background tasks" }).waitFor();
  });

  afterEach(async function () {
    await workbench.recordFailure(this.currentTest);
  });

  after(async () => {
    await workbench?.stop();
    await model?.stop();
  });

  async function launch(name: string): Promise<void> {
    await workbench.runCommand("Async Agents: Launch Task");
    await workbench.quickInput.choose("general");
    await workbench.quickInput.shows("Enter a prompt.");
    await workbench.quickInput.enter(script([{ text: `${name} is done.`, gate: name }], `${name} `));
    // The first request takes longer, because the server has just started.
    await model.waitForRequest(({ step }) => step.gate === name, 60_000);
  }

  async function label(name: string): Promise<string> {
    return (await workbench.treeItem(name).first().getAttribute("aria-label")) ?? "";
  }

  it("[OUT-7] a reload of the window: the task keeps running and is followed to its end", async () => {
    await launch("Reloaded");
    await workbench.reload();
    await workbench.openView();
    await until("the running task", async () => /running/.test(await label("Reloaded")), 40_000);
    model.release("Reloaded");
    await until("its end", async () => /completed/.test(await label("Reloaded")));
  });

  it("[OUT-7] a crash of the extension host: the task keeps running and is followed by the next one", async () => {
    await launch("Crashed");
    const [server] = openCodeProcesses(home);
    await workbench.crashExtensionHost();
    await workbench.reload();
    await workbench.openView();
    await until("the running task", async () => /running/.test(await label("Crashed")), 40_000);
    assert.deepEqual(openCodeProcesses(home), [server], "the same server, and no second one");
    model.release("Crashed");
    await until("its end", async () => /completed/.test(await label("Crashed")));
  });

  it("[EXT-1] a killed server: it is started again, and the task says that it was interrupted", async () => {
    await launch("Interrupted");
    const [server] = openCodeProcesses(home);
    assert.ok(server);
    process.kill(server, "SIGKILL");
    await until("the failed task", async () => /failed/.test(await label("Interrupted")), 60_000);
    await workbench.screenshot("server-killed-dark");
    await workbench.clickRow(workbench.treeItem("Interrupted"));
    await workbench
      .webviewFrame()
      .getByText("The server stopped while the task was running")
      .first()
      .waitFor();
    assert.equal(openCodeProcesses(home).length, 1);
    assert.notDeepEqual(openCodeProcesses(home), [server]);
  });

  it("[EXT-1] a closed window: after the grace period no process is left", async function () {
    assert.equal(openCodeProcesses(home).length, 1);
    await workbench.close();
    assert.equal(openCodeProcesses(home).length, 1, "within the grace period the server stays");
    await until("the end of the daemon and the server", () => processesOf(home).length === 0, 60_000);
  });
});

/** The IDs of the processes that run in this home. */
function processesOf(home: string): readonly number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => pid !== process.pid && read(`/proc/${pid}/environ`).includes(`HOME=${home}\0`));
}

function openCodeProcesses(home: string): readonly number[] {
  return processesOf(home).filter((pid) => /opencode\0serve\0/.test(read(`/proc/${pid}/cmdline`)));
}

/** Empty if the process has just ended. */
function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
