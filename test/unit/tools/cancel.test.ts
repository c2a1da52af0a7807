import assert from "node:assert/strict";
import { Refusal } from "../../../src/engine/errors.ts";
import { settled } from "../../support/manual-clock.ts";
import { ToolWindow } from "./tool-window.ts";

describe("asyncagents_cancel", () => {
  let window: ToolWindow;

  beforeEach(async () => {
    window = await ToolWindow.open();
  });

  afterEach(() => window.dispose());

  it("cancels a task and names it", async () => {
    const { id } = await window.launch({ description: "Look around" });
    assert.deepEqual(await window.call("cancel", { task_id: ` ${id}\n`, batch_id: null, why: "done" }), {
      title: "Cancelled 1 task",
      text: 'Cancelled memory "Look around".',
    });
    assert.equal(window.task(id).status, "cancelled");
    assert.equal(window.server.running().size, 0);
  });

  it("says that a task is already cancelled, so that a repeated call doesn't seem to have failed", async () => {
    const { id } = await window.launch({ batchID: "docs" });
    await window.call("cancel", { task_id: id });
    const { writes } = window;
    assert.deepEqual(await window.call("cancel", { task_id: id }), {
      title: "Cancelled 1 task",
      text: 'Already cancelled: memory "Work.".',
    });
    assert.deepEqual(await window.call("cancel", { batch_id: "docs" }), {
      title: "Cancelled 1 task",
      text: 'Already cancelled: memory "Work.".',
    });
    assert.equal(window.writes, writes);
  });

  it("tells an agent to launch a new task in place of one that failed, as it can't retry", async () => {
    const { id } = await window.launch();
    window.server.end(id, { type: "failed", error: { name: "APIError", message: "No." } });
    await settled();
    await window.refuses(
      "cancel",
      { task_id: id },
      /error\. Launch a new task to continue\.$/,
      "wrong-status",
    );
  });

  it("sends the parent no notice if an agent cancels, and one if a user does", async () => {
    for (const by of ["agent", "person"] as const) {
      const { id } = await window.launch();
      await window.call("cancel", { task_id: id }, { by });
      await settled();
      assert.equal(window.task(id).notice.state, by === "agent" ? "skipped" : "delivered");
    }
  });

  it("cancels the running tasks of a batch in its own session, and names them", async () => {
    const { id: done } = await window.launchDone("42", 0, { batchID: "docs" });
    const { id: one } = await window.launch({ description: "One", batchID: "docs" });
    const { id: two } = await window.launch({ description: "Two", batchID: "docs" });
    const { id: else_ } = await window.launch({ batchID: "tests" });
    const { id: other } = await window.launch({ batchID: "docs", parent: await window.otherSession() });
    const { title, text } = await window.call("cancel", '{"batch_id": " docs "}');
    assert.equal(title, "Cancelled 2 tasks");
    assert.match(text, /^Cancelled \w+memory "One", \w+memory "Two"\.$/);
    const statuses = [done, one, two, else_, other].map((id) => window.task(id).status);
    assert.deepEqual(statuses, ["completed", "cancelled", "cancelled", "running", "running"]);
  });

  it("says that no task of a batch is running", async () => {
    await window.launchDone("42", 0, { batchID: "docs" });
    assert.deepEqual(await window.call("cancel", { batch_id: "docs" }), {
      title: "Cancelled 0 tasks",
      text: "None of these tasks is running any more; there is nothing to cancel.",
    });
  });

  it("names a task that ended by itself at the same moment", async () => {
    const { id } = await window.launch();
    const completed = { ...window.task(id), status: "completed" as const };
    window.commands = { ...window.commands, cancel: async () => completed };
    assert.deepEqual(await window.call("cancel", { task_id: id }), {
      title: "Cancelled 0 tasks",
      text: 'Ended by itself before it could be cancelled: memory "Work.".',
    });
  });

  it("names the tasks of a batch that could not be cancelled, and why", async () => {
    const { id: one } = await window.launch({ description: "One", batchID: "docs" });
    const { id: two } = await window.launch({ description: "Two", batchID: "docs" });
    const { engine } = window;
    window.commands = {
      ...window.commands,
      cancel: async (id, by) => {
        if (id === two) throw new Error("The server is away.");
        return engine.cancel(id, by);
      },
    };
    const text = await window.text("cancel", { batch_id: "docs" });
    assert.match(text, /^Cancelled \w+memory "One"\.\nNot cancelled: \w+memory \(The server is away\.\)\.$/);
    assert.equal(window.task(one).status, "cancelled");
  });

  it("rejects with the reason if nothing could be cancelled", async () => {
    await window.launch({ batchID: "docs" });
    await window.launch({ batchID: "docs" });
    window.commands = {
      ...window.commands,
      cancel: async () => {
        throw new Refusal("unavailable", "Not now.");
      },
    };
    await window.refuses("cancel", { batch_id: "docs" }, "Not now.", "unavailable");
  });

  for (const [input, sentence] of [
    [{}, 'Give "task_id" or "batch_id": asyncagents_list shows the IDs.'],
    [{ task_id: "", batch_id: null }, /^Give "task_id" or "batch_id"/],
    [{ task_id: "a", batch_id: "b" }, 'Give either "task_id" or "batch_id", not both.'],
    [{ task_id: {} }, /"task_id" must be one ID/],
    [{ batch_id: ["docs"] }, /"batch_id" must be one ID/],
    [[], /one JSON object/],
  ] as const)
    it(`refuses ${JSON.stringify(input)}`, async () => {
      await window.launch();
      await window.refuses("cancel", input, sentence);
    });

  it("refuses an unknown task, one of another session and one that isn't running", async () => {
    await window.refuses("cancel", { task_id: "zzzzzz" }, /Task zzzzzz doesn't exist/, "unknown-task");
    await window.refuses("cancel", { batch_id: "docs" }, /Batch docs doesn't exist/, "unknown-batch");
    const { id: other } = await window.launch({ batchID: "docs", parent: await window.otherSession() });
    await window.refuses("cancel", { task_id: other }, /Task .* doesn't exist/, "unknown-task");
    await window.refuses("cancel", { batch_id: "docs" }, /Batch docs doesn't exist/, "unknown-batch");
    const { id: done } = await window.launchDone();
    await window.refuses("cancel", { task_id: done }, /isn't running/, "wrong-status");
  });
});
