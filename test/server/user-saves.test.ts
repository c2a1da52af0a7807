import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DaemonDesk } from "../support/daemon.ts";
import { script, startScriptedModel, type ScriptedModel } from "../support/scripted-model.ts";
import { until } from "../support/wait.ts";

describe("a file that the user saves while a task's command changes it", function () {
  this.timeout(180_000);
  let model: ScriptedModel;
  let desk: DaemonDesk;
  const at = (name: string): string => join(desk.directory, name);

  before(async () => {
    model = await startScriptedModel();
    desk = await DaemonDesk.open(model);
    for (const name of ["own.txt", "both.txt"]) writeFileSync(at(name), "before\n");
    execFileSync("git", ["init", "--quiet"], { cwd: desk.directory });
  });
  after(async () => {
    await desk?.close();
    await model?.stop();
  });

  it("isn't reverted with the task's change, even by the next daemon; what the task alone changed is", async () => {
    const { folder } = desk.window();
    await folder.calls.connect();
    const command =
      "echo agent >> own.txt; echo agent >> both.txt; touch begun; until [ -e go ]; do sleep 0.02; done; rm begun go";
    const { id, createdAt } = await folder.calls.launch({
      prompt: script([
        { tools: [{ name: "bash", args: { command, description: "Change both" } }] },
        { text: "Done." },
      ]),
      agent: "general",
      parentSessionID: await folder.calls.ensureSession(),
      launchedBy: "person",
    });
    await until("the command", () => existsSync(at("begun")), 60_000);
    appendFileSync(at("both.txt"), "user\n");
    // The window that saves can have another folder open.
    await desk.elsewhere().window().folder.calls.fileSaved(at("both.txt"), Date.now());
    writeFileSync(at("go"), "");
    assert.equal((await folder.calls.output(id, { block: true })).task.status, "completed");

    const daemon = desk.daemonPid();
    process.kill(daemon ?? assert.fail("no daemon"), "SIGKILL");
    await until("the next daemon", () => ![daemon, undefined].includes(desk.daemonPid()), 30_000);
    const files = await until("the task's changes", async () => {
      const { files } = await folder.calls.changes(id, createdAt);
      return files.length === 2 && files;
    });
    const plans = files.map(async (change) => {
      const text = readFileSync(change.path, "utf8");
      const present = { kind: "file", text, isUnsaved: false } as const;
      const plan = await folder.calls.planRevert(id, change, { name: "a file", present });
      return [change.path, plan.kind === "refused" ? plan.reason : plan];
    });
    assert.deepEqual(Object.fromEntries(await Promise.all(plans)), {
      [at("own.txt")]: { kind: "write", text: "before\n", isMerged: false },
      [at("both.txt")]: "mixed",
    });
  });
});
