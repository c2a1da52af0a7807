import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { EngineSettings } from "../../src/engine/engine.ts";
import type { LaunchInput } from "../../src/engine/launcher.ts";
import type { PromptFile } from "../../src/engine/server-model.ts";
import type { Task } from "../../src/engine/task.ts";
import { createSession, ended, openWindow, promptText, type EngineWindow } from "../support/engine.ts";
import { type OpenCodeServer } from "../support/opencode.ts";
import { messageText, script, type ModelMessage, type ScriptedModel } from "../support/scripted-model.ts";
import { setUp } from "../support/set-up.ts";
import { tempDir } from "../support/temp.ts";
import { until } from "../support/wait.ts";

const PICTURE =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

describe("files that are sent with a prompt", () => {
  let model: ScriptedModel;
  let server: OpenCodeServer;
  let window: EngineWindow;
  let parent: string;

  setUp(async (start) => {
    model = await start.model();
    server = await start.server({ model });
    const write = (name: string, content: string | Buffer): void =>
      writeFileSync(join(server.directory, name), content);
    write("lines.ts", Array.from({ length: 40 }, (_, index) => `line ${index + 1}`).join("\n"));
    write("long.txt", `${"x".repeat(99)}\n`.repeat(52_000));
    write("data.bin", Buffer.from([0, 1, 2, 255]));
    write("dot.png", Buffer.from(PICTURE, "base64"));
    mkdirSync(join(server.directory, "many"));
    for (let index = 0; index < 2_500; index++) write(`many/file-${index}.txt`, "inside");
    parent = await createSession(server);
    window = await start.engine(server);
  });

  const file = (name: string, query = "", mime = "text/plain"): PromptFile => ({
    url: `${pathToFileURL(join(server.directory, name)).href}${query}`,
    mime,
    filename: name,
  });
  const launch = (
    files: readonly PromptFile[],
    more: Partial<LaunchInput> = {},
    on = window,
  ): Promise<Task> =>
    on.engine.launch({
      prompt: "Look at it.",
      files,
      agent: "general",
      parentSessionID: parent,
      launchedBy: "person",
      ...more,
    });
  const userMessage = (messages: readonly ModelMessage[]): ModelMessage | undefined =>
    messages.findLast(({ role }) => role === "user");
  /** What the model received with the prompt of a task. */
  async function told(taskID: string): Promise<string> {
    const { messages } = await model.waitForRequest(({ sessionID, title }) => sessionID === taskID && !title);
    return messageText(userMessage(messages));
  }

  it("reach the model as the requested lines, and stay with the prompt", async () => {
    const lines = file("lines.ts", "?start=3&end=5");
    const task = await launch([lines]);
    const text = await told(task.id);
    assert.match(text, /^Look at it\./);
    for (const line of ["3: line 3", "4: line 4", "5: line 5"]) assert.ok(text.includes(line), line);
    assert.ok(!text.includes("line 6"));
    assert.equal(await promptText(window.connection.server, task), "Look at it.");
    assert.equal(task.description, "Look at it.");
    const { parts } = (await window.connection.server.message(task.id, task.promptMessageID)) ?? {
      parts: [],
    };
    assert.deepEqual(
      parts.flatMap((part) => (part.type === "file" ? [part.url] : [])),
      [lines.url],
    );
    const { status, error } = await ended(window, task.id);
    assert.equal(status, "completed", error?.message);
  });

  it("are truncated if long, and the model learns how to read on", async () => {
    const text = await told((await launch([file("long.txt", "?start=10&end=52000")])).id);
    assert.ok(text.length < 100_000);
    assert.match(text, /Use offset=\d+ to continue/);
  });

  it("are only the names if a folder is sent, and not all of very many", async () => {
    const text = await told((await launch([file("many", "", "application/x-directory")])).id);
    assert.match(text, /file-0\.txt/);
    assert.match(text, /2000 of 2500 entries/);
    assert.doesNotMatch(text, /inside/);
  });

  it("that are missing or binary are reported as not read, and the task continues", async () => {
    const task = await launch([file("gone.ts"), file("data.bin")]);
    const text = await told(task.id);
    assert.match(text, /File not found/);
    assert.match(text, /Cannot read binary file/);
    const { status, error } = await ended(window, task.id);
    assert.equal(status, "completed", error?.message);
  });

  it("outside the folder are read without a permission request", async () => {
    const path = join(tempDir("elsewhere"), "note.txt");
    writeFileSync(path, "from elsewhere");
    const task = await launch([{ url: pathToFileURL(path).href, mime: "text/plain", filename: "note.txt" }]);
    assert.match(await told(task.id), /from elsewhere/);
    const { status, error } = await ended(window, task.id);
    assert.equal(status, "completed", error?.message);
  });

  it("are sent for a queued task as well", async () => {
    const narrow = await openWindow(server, { maxConcurrentTasks: 1 } satisfies Partial<EngineSettings>);
    try {
      const first = await launch([], { prompt: script([{ text: "x", gate: "files-1" }]) }, narrow);
      const second = await launch([file("lines.ts", "?start=7&end=7")], {}, narrow);
      assert.equal(narrow.engine.get(second.id)?.progress?.phase, "queued");
      model.release("files-1");
      await ended(narrow, first.id);
      assert.match(await told(second.id), /7: line 7/);
      await ended(narrow, second.id);
    } finally {
      narrow.dispose();
    }
  });

  it("are sent with the prompt of a fork", async () => {
    const source = await launch([], { prompt: "Remember the source." });
    await ended(window, source.id);
    const fork = await launch([file("lines.ts", "?start=8&end=8")], { fork: { sourceSessionID: source.id } });
    const text = await told(fork.id);
    assert.match(text, /8: line 8/);
    assert.match(text, /Look at it\./);
  });

  it("are sent again with a retry, including images", async () => {
    const files = [file("lines.ts", "?start=9&end=9"), file("dot.png", "", "image/png")];
    const task = await launch(files, { prompt: script([{ text: "never", gate: "files-2" }]) });
    await told(task.id);
    await window.engine.cancel(task.id);
    const again = await window.engine.retry(task.id);
    assert.match(await told(again.id), /9: line 9/);
    const request = await model.waitForRequest(({ sessionID }) => sessionID === again.id);
    assert.ok(JSON.stringify(userMessage(request.messages)).includes(PICTURE));
    const { parts } = await until("the prompt", () =>
      window.connection.server.message(again.id, again.promptMessageID),
    );
    assert.equal(parts.filter(({ type }) => type === "file").length, 2);
    await window.engine.cancel(again.id);
  });
});
