import assert from "node:assert/strict";
import * as vscode from "vscode";
import type { Task } from "../../src/engine/task.ts";
import type { AsyncAgentsApi } from "../../src/ui/api.ts";
import { Settings } from "../../src/ui/settings.ts";
import { ModelClient } from "../support/model-client.ts";
import { readReceived, type Received } from "../support/received.ts";
import { script } from "../support/script.ts";

const EXTENSION = "async-agents.opencode-async-agents";

describe("the fork settings in a real editor", () => {
  const model = ModelClient.fromEnv();
  let api: AsyncAgentsApi;
  let source: Task;

  const finished = async (task: Task): Promise<Task> =>
    (await api.tasks.wait(task.id, { timeoutMs: 30_000 })) ?? assert.fail("the task is gone");

  const set = async (name: "maxToolResultChars" | "maxTokens" | "strategy", value: unknown): Promise<void> =>
    vscode.workspace.getConfiguration("asyncagents").update(`fork.${name}`, value, true);

  before(async function () {
    this.timeout(120_000);
    const extension = vscode.extensions.getExtension<AsyncAgentsApi>(EXTENSION);
    assert.ok(extension);
    api = await extension.activate();
    await api.ready();
    const args = { command: "printf 'x%.0s' {1..500}", description: "count" };
    const prompt = script([{ text: "I look.", tools: [{ name: "bash", args }] }, { text: "Seen." }]);
    source = await finished(await api.tasks.launch({ prompt, agent: "build" }));
    assert.equal(source.status, "completed", source.error?.message);
  });

  afterEach(async () => {
    for (const name of ["maxToolResultChars", "maxTokens", "strategy"] as const) await set(name, undefined);
  });

  /** What the model of a fork of the source receives. */
  async function forked(): Promise<Received> {
    const task = await finished(await api.tasks.fork(source.id, script([{ text: "Done." }], "Carry on. ")));
    const { messages } = await model.waitForRequest(
      ({ sessionID, title }) => sessionID === task.id && !title,
    );
    return readReceived(messages);
  }

  const resultIn = ({ heard }: Received): string | undefined =>
    heard.flatMap((one) => ("result" in one ? [one.result] : []))[0];

  it("by default a result of 500 characters is inherited whole, and the conversation as messages", async () => {
    const got = await forked();
    assert.equal(resultIn(got), "x".repeat(500));
    assert.ok(got.native.length > 0);
    assert.equal(got.text, undefined);
  });

  it("[FRK-2] fork.maxToolResultChars limits what a fork inherits of a result", async () => {
    await set("maxToolResultChars", 100);
    assert.equal(
      resultIn(await forked()),
      `${"x".repeat(100)}\n[Shortened: the first 100 of 500 characters]`,
    );
  });

  it("[FRK-3] fork.maxTokens limits what a fork inherits", async () => {
    await set("maxTokens", 200);
    const got = await forked();
    assert.match(got.preamble, /Not everything was inherited/);
    assert.doesNotMatch(JSON.stringify(got.native), /x{500}/);
  });

  it("a limit of the wrong type is refused where it is used, and later changes of settings arrive", async () => {
    await set("maxTokens", "100000");
    await assert.rejects(
      api.tasks.fork(source.id, "Carry on."),
      /fork\.maxTokens must be a number greater than 0\. Change it in the settings\./,
    );
    const prompt = script([{ text: "Done without a fork." }]);
    assert.equal((await finished(await api.tasks.launch({ prompt, agent: "build" }))).status, "completed");
    await set("maxTokens", undefined);
    await set("maxToolResultChars", 100);
    assert.match(resultIn(await forked()) ?? "", /^x{100}\n\[Shortened/);
  });

  it("fork.strategy decides how a shortened conversation is inherited: as text with fork, else as messages", async () => {
    await set("maxToolResultChars", 100);
    for (const strategy of ["fork", "replay", "auto"]) {
      await set("strategy", strategy);
      const { text } = await forked();
      assert.equal(text !== undefined, strategy === "fork", strategy);
    }
  });
});

describe("a time in the settings that is too long for a timer", () => {
  const stallWarning = async (seconds: number | undefined): Promise<void> =>
    vscode.workspace.getConfiguration("asyncagents").update("stallWarning", seconds, true);

  afterEach(() => stallWarning(undefined));

  it("is shortened to the longest that works, instead of being over at once", async () => {
    await stallWarning(1e9);
    assert.equal(new Settings().engine().stallWarning, 2 ** 31 - 1);
  });
});
