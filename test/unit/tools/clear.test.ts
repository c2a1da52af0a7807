import assert from "node:assert/strict";
import { settled } from "../../support/manual-clock.ts";
import { ToolWindow } from "./tool-window.ts";

describe("asyncagents_clear", () => {
  let window: ToolWindow;

  beforeEach(async () => {
    window = await ToolWindow.open();
  });

  afterEach(() => window.dispose());

  const listed = (): readonly string[] =>
    window.engine.list(window.parent).map(({ description }) => description);

  it("clears one task and names it", async () => {
    const { id } = await window.launchDone("42", 0, { description: "Look around" });
    await window.launch({ description: "Stays" });
    assert.deepEqual(await window.call("clear", { task_id: ` ${id} (resumed)`, why: "done" }), {
      title: "Cleared 1 task",
      text: `Cleared ${id.slice(-7)} "Look around".`,
    });
    assert.deepEqual(listed(), ["Stays"]);
    assert.equal(window.task(id).status, "completed");
    assert.ok(window.server.has(id), "its conversation stays");
  });

  it("cancels a running task first, and says so", async () => {
    const { id } = await window.launch({ description: "Look around" });
    assert.equal(
      await window.text("clear", { task_id: id }),
      'Cleared memory "Look around".\nStill running, so cancelled first: memory "Look around".',
    );
    await settled();
    assert.equal(window.task(id).status, "cancelled");
    assert.equal(window.task(id).notice.state, "skipped", "who cleared it need not be told");
    assert.equal(window.server.running().size, 0);
  });

  it("does not name a task as cancelled that was cancelled before", async () => {
    const { id } = await window.launch();
    await window.engine.cancel(id);
    assert.equal(await window.text("clear", { task_id: id }), 'Cleared memory "Work.".');
  });

  it("clears a batch of its own session", async () => {
    await window.launchDone("42", 0, { description: "One", batchID: "docs" });
    await window.launch({ description: "Two", batchID: "docs" });
    await window.launch({ description: "Stays", batchID: "tests" });
    const { id: other } = await window.launch({ batchID: "docs", parent: await window.otherSession() });
    const text = await window.text("clear", '{"batch_id": " docs ", "task_id": ""}');
    assert.match(text, /^Cleared \w+memory "One", \w+memory "Two"\.\nStill running, .+: \w+memory "Two"\.$/);
    assert.deepEqual(listed(), ["Stays"]);
    assert.equal(window.task(other).status, "running");
  });

  for (const input of [undefined, {}, { task_id: null, batch_id: "" }, "{}", { all: null }])
    it(`clears with ${JSON.stringify(input)} all tasks of the session, and no others`, async () => {
      await window.launchDone("42", 0, { description: "One" });
      await window.launch({ description: "Two" });
      const { id: other } = await window.launch({ parent: await window.otherSession() });
      const { title, text } = await window.call("clear", input);
      assert.equal(title, "Cleared 2 tasks");
      assert.match(text, /^Cleared \w+memory "One", \w+memory "Two"\.\nStill running/);
      assert.deepEqual(listed(), []);
      assert.equal(window.task(other).clearedAt, undefined);
      assert.equal(window.task(other).status, "running");
    });

  it("says that there is nothing to clear", async () => {
    assert.deepEqual(await window.call("clear"), {
      title: "Cleared 0 tasks",
      text: "There are no background tasks to clear.",
    });
  });

  it("names only some of many tasks, and counts the rest", async () => {
    for (let count = 0; count < 25; count++) await window.launch();
    const text = await window.text("clear");
    assert.equal(text.match(/"Work\."/g)?.length, 40);
    assert.match(text, / and 5 more\.\nStill running, .+ and 5 more\.$/);
    assert.deepEqual(listed(), []);
  });

  it("names what could not be cleared, and why", async () => {
    await window.launchDone("42", 0, { description: "One" });
    const { id: two } = await window.launchDone("42", 0, { description: "Two" });
    const { engine } = window;
    window.commands = {
      ...window.commands,
      clear: async (id, options, by) => {
        if (id === two) throw new Error("The server is away.");
        return engine.clear(id, options, by);
      },
    };
    const text = await window.text("clear");
    assert.match(text, /^Cleared \w+memory "One"\.\nNot cleared: \w+memory \(The server is away\.\)\.$/);
    assert.deepEqual(listed(), ["Two"]);
  });

  it("rejects with the reason if nothing could be cleared", async () => {
    await window.launchDone();
    window.window.link.fail("refused");
    await assert.rejects(window.call("clear"), /could not be reached/);
  });

  for (const [input, sentence, code = "invalid-argument"] of [
    [{ task_id: "a", batch_id: "b" }, 'Give either "task_id" or "batch_id", not both.'],
    [{ task_id: {} }, /"task_id" must be one ID/],
    [{ batch_id: true }, /"batch_id" must be one ID/],
    [{ task_id: " (resumed)" }, /task ID is empty/, "unknown-task"],
    [
      { taskId: "memory" },
      'There is no parameter "taskId": give "task_id" or "batch_id", or nothing at all to clear all tasks.',
    ],
    [{ status: "completed" }, /^There is no parameter "status"/],
    [{ "task\n\nid": "memory" }, /^There is no parameter "task id": /],
    ["all", /one JSON object/],
    [["memory"], /one JSON object/],
  ] as const)
    it(`refuses ${JSON.stringify(input)}, and clears nothing`, async () => {
      await window.launchDone();
      await window.launch();
      await window.refuses("clear", input, sentence, code);
      assert.equal(listed().length, 2);
    });

  it("refuses an unknown task, and one of another session", async () => {
    await window.refuses("clear", { task_id: "zzzzzz" }, /Task zzzzzz doesn't exist/, "unknown-task");
    await window.refuses("clear", { batch_id: "docs" }, /Batch docs doesn't exist/, "unknown-batch");
    const { id: other } = await window.launch({ batchID: "docs", parent: await window.otherSession() });
    await window.refuses("clear", { task_id: other }, /Task .* doesn't exist/, "unknown-task");
    await window.refuses("clear", { batch_id: "docs" }, /Batch docs doesn't exist/, "unknown-batch");
  });

  it("says that tasks are already cleared, so that a repeated call doesn't seem to have failed", async () => {
    const { id } = await window.launchDone("42", 0, { batchID: "docs" });
    const { id: newer } = await window.launchDone("42", 0, { batchID: "docs", description: "Newer" });
    await window.call("clear", { task_id: id });
    assert.match(await window.text("clear", { batch_id: "docs" }), /^Cleared \w+ "Newer"\.$/);
    const { writes } = window;
    for (const input of [{ task_id: newer }, { batch_id: "docs" }])
      assert.match(await window.text("clear", input), /^Already cleared: [^\n]*\w+ "Newer"[^\n]*\.$/);
    assert.equal((await window.call("clear", { batch_id: "docs" })).title, "Cleared 2 tasks");
    assert.equal(window.writes, writes);
    await window.refuses(
      "cancel",
      { task_id: id },
      /was cleared: it is no longer on the list/,
      "unknown-task",
    );
  });

  it("of a repeated call for all tasks, names those that were cleared since it was first made", async () => {
    await window.launchDone("42", 0, { description: "Before" });
    await window.call("clear");
    await window.clock.advance(1_000);
    await window.launchDone("42", 0, { description: "One" });
    await window.call("clear");
    await window.clock.advance(500);
    const again = { waitedMs: 900 };
    assert.deepEqual(await window.call("clear", {}, again), {
      title: "Cleared 1 task",
      text: 'Already cleared: memory "One".',
    });
    await window.launchDone("42", 0, { description: "Two" });
    assert.match(
      await window.text("clear", {}, again),
      /^Cleared \w+ "Two"\.\nAlready cleared: \w+ "One"\.$/,
    );
    assert.equal((await window.call("clear")).title, "Cleared 0 tasks");
  });
});
