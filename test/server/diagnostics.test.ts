import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Task } from "../../src/engine/task.ts";
import { NO_ISOLATION } from "../../src/engine/settings.ts";
import { DaemonDesk, type DaemonWindow } from "../support/daemon.ts";
import { makeRepository } from "../support/repository.ts";
import { script, startScriptedModel, type ScriptedModel } from "../support/scripted-model.ts";
import { tempDir } from "../support/temp.ts";
import { until } from "../support/wait.ts";

describe("what the daemon says about itself", function () {
  this.timeout(120_000);
  let model: ScriptedModel;
  let desk: DaemonDesk;
  let window: DaemonWindow;
  let task: Task;

  /** Planted wherever a user may have one. */
  const SECRETS = {
    envKey: "plain-looking-key-of-a-provider",
    envPassword: "correct horse battery",
    setupToken: "setup-token-0123456789",
    promptKey: "sk-prompt-0123456789abcdef",
    prompt: "the launch codes of the prompt",
    description: "the launch codes of the title",
    batch: "the launch codes of the batch",
    answer: "the launch codes of the answer",
    password: "a-password-of-the-user",
    urlPassword: "it's/the-password-in-an-address",
  };

  before(async () => {
    model = await startScriptedModel();
    const opened = await DaemonDesk.open(model);
    const env = { ...opened.env, ACME_API_KEY: SECRETS.envKey, ACME_PASSWORD: SECRETS.envPassword };
    desk = new DaemonDesk({ ...opened.place, env });
    const setup = { command: `TOKEN=${SECRETS.setupToken} make`, isAllowed: true, timeout: 1_000 };
    // A secret of the environment is one wherever it appears.
    const location = `/srv/${SECRETS.envKey}`;
    window = desk.window({ isolation: { ...NO_ISOLATION, setup, location } }, { password: SECRETS.password });
    const { calls } = window.folder;
    await calls.connect();
    const parentSessionID = await calls.ensureSession();
    const { id } = await calls.launch({
      prompt: `${SECRETS.prompt} ${SECRETS.promptKey} ${script([{ text: SECRETS.answer }])}`,
      description: SECRETS.description,
      batchID: SECRETS.batch,
      agent: "general",
      parentSessionID,
      launchedBy: "person",
    });
    task = await until(
      "the notice",
      () => {
        const seen = window.folder.tasks.get(id);
        return seen?.notice.state === "delivered" && seen;
      },
      30_000,
    );
  });
  after(async () => {
    await desk?.close();
    await model?.stop();
  });

  it("its log tells the story of a task by its short ID, in few lines, without anyone's words", async () => {
    const lines = desk
      .log()
      .split("\n")
      .filter((line) => line.includes(task.id.slice(-6)));
    const story = lines.join("\n");
    assert.ok(lines.length < 20, story);
    const { notice, parentSessionID } = task;
    for (const part of [
      `session ${task.id} of ${parentSessionID}`,
      "agent general",
      "running → completed after",
      `notice ${"messageID" in notice ? notice.messageID : ""} delivered`,
    ])
      assert.ok(story.includes(part), `${part} is not in\n${story}`);
    for (const line of lines) assert.match(line, /^\d{4}-\S+Z \[info\] /);
    for (const words of [SECRETS.prompt, SECRETS.description, SECRETS.answer])
      assert.ok(!desk.log().includes(words));
  });

  it("its diagnostics hide the password in a server's address, also one that is no URL", async () => {
    const server = { url: `opencode:${SECRETS.urlPassword}@127.0.0.1:4096`, startTimeoutMs: 1_000 };
    const directory = tempDir("other");
    const other = desk.window({}, { server }, undefined, directory);
    const text = await until("the folder", async () => {
      const said = JSON.stringify(await other.client.diagnostics());
      return said.includes(`"directory":"${directory}"`) && said;
    });
    other.close();
    assert.ok(text.includes('"url":"invalid"'), text);
    assert.ok(!text.includes(SECRETS.urlPassword), text);
  });

  it("neither its log nor its diagnostics have the words of a description in the name of a worktree", async () => {
    const { directory } = makeRepository({ "a.txt": "a\n" });
    const { client, folder, close } = desk.window({}, {}, undefined, directory);
    await folder.calls.connect();
    const { id } = await folder.calls.launch({
      prompt: script([{ text: "Done." }]),
      description: "Salaries of Acme",
      agent: "general",
      parentSessionID: await folder.calls.ensureSession(),
      launchedBy: "person",
      isolation: "worktree",
    });
    const { name } = await until("the end", () => {
      const seen = folder.tasks.get(id);
      return seen?.status === "completed" && seen.worktree;
    });
    assert.match(name, /^salaries-of-acme-/);
    for (const text of [desk.log(), JSON.stringify(await client.diagnostics())]) {
      assert.ok(text.includes(`…${name.slice(-4)}`), text);
      assert.ok(!text.includes("salaries-of-acme"), text);
    }
    close();
  });

  it("its diagnostics have the facts for a report, and none of the secrets", async () => {
    const diagnostics = await window.client.diagnostics();
    const text = JSON.stringify(diagnostics);
    for (const fact of [
      process.version,
      task.id,
      `"status":"completed"`,
      "running → completed",
      `"pid":${desk.daemonPid()}`,
      `"pid":${desk.server()?.pid}`,
      `"maxDepth":1`,
      `"hasPassword":true`,
    ])
      assert.ok(text.includes(fact), `${fact} is not in ${text}`);

    const stored = readdirSync(desk.stateFolder)
      .filter((name) => name.endsWith(".json"))
      .flatMap((name) => {
        const content = readFileSync(join(desk.stateFolder, name), "utf8");
        return [...content.matchAll(/"(?:password|token)":"([^"]+)"/g)].map(([, value = ""]) => value);
      });
    assert.ok(stored.length >= 2, "The daemon and its server have secrets of their own.");
    for (const secret of [...Object.values(SECRETS), ...stored])
      assert.ok(!text.includes(secret), `${secret} is in ${text}`);
  });
});
