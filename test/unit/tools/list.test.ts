import assert from "node:assert/strict";
import { TASK_STATUSES } from "../../../src/engine/task.ts";
import { ToolWindow } from "./tool-window.ts";

const HEAD = [
  "",
  "| ID | Status | Agent | Batch | Time | Description |",
  "| --- | --- | --- | --- | --- | --- |",
];

describe("asyncagents_list", () => {
  let window: ToolWindow;

  beforeEach(async () => {
    window = await ToolWindow.open();
  });

  afterEach(() => window.dispose());

  it("says that there are no tasks", async () => {
    assert.deepEqual(await window.call("list"), { title: "0 tasks", text: "No background tasks found" });
    assert.equal(await window.text("list", { status: "completed" }), "No background tasks found");
  });

  it("lists those of a session that was archived while its agent works", async () => {
    const { id } = await window.launch({ description: "First" });
    const parent =
      (await window.server.session(window.engine.get(id)?.parentSessionID ?? "")) ?? assert.fail();
    window.server.put({ ...parent, archived: 1 }, undefined);
    assert.match(await window.text("list"), /^1 task: 1 running/);
    assert.match(await window.text("clear"), /^Cleared memory/);
    assert.equal(window.engine.get(id)?.status, "cancelled");
  });

  it("counts the tasks by status and lists each, oldest first", async () => {
    const first = await window.launchDone("42", 200_000, { description: "First", batchID: "docs" });
    const second = await window.launch({ description: "Second", batchID: "docs" });
    await window.engine.cancel(second.id);
    const third = await window.launch({ description: "Third", batchID: "tests" });
    window.server.ask(third.id);
    await window.clock.advance(61_000);
    const [a, b, c] = [first, second, third].map(({ id }) => id.slice(-7));
    const { title, text } = await window.call("list");
    assert.equal(title, "3 tasks");
    assert.deepEqual(text.split("\n"), [
      "3 tasks: 1 running, 1 completed, 1 cancelled",
      ...HEAD,
      `| ${a} | completed | general | docs | 3 m 20 s | First |`,
      `| ${b} | cancelled | general | docs | 0 ms | Second |`,
      `| ${c} | running (waiting for the user's permission) | general | tests | 1 m 1 s | Third |`,
    ]);
  });

  it("names the conflicts of isolated work: with tasks of the session, others, and the folder", async () => {
    const one = await window.launch({ description: "One" });
    const two = await window.launch({ description: "Two" });
    const three = await window.launch({ description: "Three" });
    const many = Array.from({ length: 10 }, (_, index) => `src/${index}.ts`);
    const conflicts = [
      { task: two, paths: ['a "quoted".ts'], count: 1 },
      { task: { id: "ses_elsewhere", description: "Elsewhere" }, paths: ["b.ts", "c\n.ts"], count: 2 },
      { paths: many, count: 12 },
    ];
    const work = { files: 3, added: 1, removed: 1, conflicts };
    const isolated = [{ ...one, work }, two, { ...three, work: { ...work, conflicts: [] } }];
    window.engine.list = () => isolated;
    const [a, b] = [one, two].map(({ id }) => id.slice(-7));
    const named = many.map((path) => JSON.stringify(path)).join(", ");
    const text = [
      `with task ${b} ("a \\"quoted\\".ts")`,
      'with a task of another session ("b.ts", "c .ts")',
      `with the folder (${named}, 2 more)`,
    ].join(", ");
    const listed = (await window.text("list")).split("\n");
    assert.deepEqual(listed.slice(-3), ["", "Work in worktrees that conflicts:", `- ${a}: ${text}`]);
  });

  it("marks resumed and forked tasks, and no others", async () => {
    const { id } = await window.launchDone();
    await window.engine.resume(id, "And 43?");
    assert.match(await window.text("list"), /^\| memory \(resumed\) \| resumed \(thinking\) \|/m);
    await window.server.saveRecord({ ...window.task(id), isForked: true, revision: 100 });
    assert.match(await window.text("list"), /^\| memory \(resumed\) \(forked\) \|/m);
    await window.server.saveRecord({ ...window.task(id), resumeCount: 0, revision: 101 });
    assert.match(await window.text("list"), /^\| memory \(forked\) \|/m);
    await window.server.saveRecord({ ...window.task(id), isForked: false, revision: 102 });
    assert.match(await window.text("list"), /^\| memory \|/m);
  });

  it("gives IDs that it accepts", async () => {
    for (let count = 0; count < 20; count++) await window.launch({ description: `Task ${count}` });
    const rows = (await window.text("list")).matchAll(/^\| (\w+memory) .*\| (Task \d+) \|$/gm);
    const descriptions = [...rows].map(([, id, description]) => {
      assert.equal(window.engine.find(id ?? "", window.parent).description, description);
      return description;
    });
    assert.equal(new Set(descriptions).size, 20);
  });

  it("gives IDs of batches that all tools accept, as does what they were launched with", async () => {
    const names = ["PR #12", "a | b", "team\\_x", "*all*", "C:\\work", "zero\u200bwidth"];
    for (const batch of names) await window.call("task", { prompt: "Work.", batch_id: batch });
    const cells = (await window.text("list")).split("\n").slice(4);
    const shown = cells.map((row) => row.split(/(?<!\\) \| /)[3] ?? "");
    for (const [index, batch] of names.entries())
      for (const batch_id of [batch, shown[index] ?? ""]) {
        assert.match(await window.text("list", { batch_id }), /^1 task: /, batch_id);
        await window.call("task", { prompt: "More.", batch_id });
        assert.match(await window.text("list", { batch_id }), /^2 tasks: /, batch_id);
        assert.match((await window.call("cancel", { batch_id })).title, /^Cancelled 2 tasks/);
        assert.match((await window.call("clear", { batch_id })).title, /^Cleared 2 tasks/);
        await window.call("task", { prompt: "Work.", batch_id: batch });
      }
  });

  it("lists only tasks of its own session, without cleared ones", async () => {
    await window.launch({ description: "Other", parent: await window.otherSession() });
    const { id } = await window.launchDone("42", 0, { description: "Cleared" });
    await window.engine.clear(id);
    await window.launch({ description: "Mine" });
    const text = await window.text("list");
    assert.match(text, /^1 task: 1 running\n/);
    assert.match(text, /\| Mine \|$/);
  });

  it("filters by status, in any spelling, and by batch", async () => {
    await window.launchDone("42", 0, { description: "A", batchID: "docs" });
    await window.launchDone("42", 0, { description: "B", batchID: "7" });
    await window.launch({ description: "C", batchID: "docs" });
    const found = async (input: unknown): Promise<readonly string[]> =>
      [...(await window.text("list", input)).matchAll(/ ([A-C]) \|$/gm)].map(([, name]) => name ?? "");
    assert.deepEqual(await found({ status: " Completed" }), ["A", "B"]);
    assert.deepEqual(await found({ batch_id: " docs " }), ["A", "C"]);
    assert.deepEqual(await found({ batch_id: 7 }), ["B"]);
    assert.deepEqual(await found({ status: "completed", batch_id: "docs" }), ["A"]);
    assert.deepEqual(await found('{"status": "running", "batch_id": null, "limit": 1}'), ["C"]);
    assert.deepEqual(await found({ status: "", batch_id: "" }), ["A", "B", "C"]);
  });

  it("says which filter found nothing", async () => {
    await window.launch();
    assert.equal(
      await window.text("list", { status: "error", batch_id: "docs" }),
      "No background tasks found with status error and batch docs",
    );
    assert.equal(
      await window.text("list", { batch_id: "a\nb\u202e" }),
      "No background tasks found with batch a b",
    );
  });

  for (const [input, sentence] of [
    [{ status: "done" }, `The parameter "status" must be one of ${TASK_STATUSES.join(", ")}, or left out.`],
    [{ status: ["running"] }, /"status" must be one of/],
    [{ batch_id: {} }, /"batch_id" must be one ID/],
    ["running", /one JSON object/],
  ] as const)
    it(`refuses ${JSON.stringify(input)}`, async () => {
      await window.launch();
      await window.refuses("list", input, sentence);
    });

  it("escapes descriptions and batches in the table, and shortens long ones", async () => {
    await window.launch({ description: "a | b\u2028`c` **d** <e> [f](g)\u202e\u0007", batchID: "x | y\nz" });
    await window.launch({ description: "é".repeat(200), batchID: "docs" });
    const [hostile = "", long = "", ...rest] = (await window.text("list")).split("\n").slice(4);
    assert.deepEqual(rest, []);
    assert.match(
      hostile,
      / \| x \\\| y z \| 0 ms \| a \\\| b \\`c\\` \\\*\\\*d\\\*\\\* \\<e\\> \\\[f\\\]\(g\) \|$/,
    );
    assert.ok(long.endsWith(`| ${"é".repeat(79)}… |`), long);
  });

  it("names unreadable sessions below the table, unless it is filtered", async () => {
    const metadata = { asyncagents: { v: 999 } };
    const session = await window.server.createSession({ title: "From | later", parentID: window.parent });
    window.server.put(session, metadata);
    const [unreadable] = window.engine.unreadable(window.parent);
    assert.ok(unreadable);
    const line = new RegExp(
      `^Not readable, so not in the table: session ${session.id} "From \\\\\\| later" \\(.+\\)$`,
    );
    const [nothing, beneath = ""] = (await window.text("list")).split("\n\n");
    assert.equal(nothing, "No background tasks found");
    assert.match(beneath, line);
    await window.launch();
    assert.match((await window.text("list")).split("\n\n").at(-1) ?? "", line);
    assert.doesNotMatch(await window.text("list", { status: "running" }), /Not readable/);
    window.server.put(await window.server.createSession({ title: "B", parentID: window.parent }), metadata);
    assert.match(await window.text("list"), /session \S+ "From .+\), session \S+ "B" \(.+\)$/);
  });
});
