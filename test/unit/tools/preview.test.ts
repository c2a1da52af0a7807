import assert from "node:assert/strict";
import { english } from "../../../src/engine/sentence.ts";
import { previewOf } from "../../../src/tools/preview.ts";
import { ToolWindow } from "./tool-window.ts";

describe("what a call of a tool would do", () => {
  let window: ToolWindow;

  beforeEach(async () => {
    window = await ToolWindow.open();
  });

  afterEach(() => window.dispose());

  const preview = (tool: string, input: unknown = {}, sessionID: string | undefined = window.parent) =>
    previewOf(`asyncagents_${tool}`, input, window.engine, sessionID);

  /** The question in English. */
  function asked(tool: string, input: unknown, sessionID?: string) {
    const { question } = preview(tool, input, sessionID);
    assert.ok(question);
    const { title, facts, notes, prompt, tasks } = question;
    return {
      title: english(title),
      facts: facts.map(english),
      notes: notes.map(english),
      prompt,
      tasks: tasks.map(({ id, isActive }) => `${isActive ? "active" : "ended"} ${id}`),
    };
  }

  it("is named while it runs", () => {
    const progress = ["task", "output", "cancel", "clear", "list"].map((tool) =>
      english(preview(tool).progress),
    );
    assert.deepEqual(progress, [
      "Launching background task…",
      "Reading background task…",
      "Cancelling background tasks…",
      "Clearing background tasks…",
      "Listing background tasks…",
    ]);
  });

  it("is asked about only if it changes something", () => {
    const asking = ["task", "output", "cancel", "clear", "list"].filter((tool) => preview(tool).question);
    assert.deepEqual(asking, ["task", "cancel", "clear"]);
  });

  it("is not known of a tool that doesn't exist", () => {
    assert.throws(() => preview("other"), { message: /has no tool asyncagents_other/ });
  });

  it("is a launch with its agent, its model and the beginning of its prompt", () => {
    const prompt = `Fix it.\n${"x".repeat(2_000)}`;
    const input = {
      prompt,
      description: "Fix\nthe lexer",
      agent: "build",
      model: "local/fast",
      fork: true,
      isolation: "folder",
    };
    assert.deepEqual(asked("task", input), {
      title: "Launch a background task?",
      facts: [
        "Name: Fix the lexer",
        "Agent: build",
        "Model: local/fast",
        "The task inherits the conversation of the active session.",
        "Works in the folder itself.",
      ],
      notes: ["… the prompt has 2008 characters in total."],
      prompt: prompt.slice(0, 1_000),
      tasks: [],
    });
  });

  it("takes no description for the name of an agent", () => {
    const { facts } = asked("task", {
      prompt: "Fix it.",
      description: "Agent: explore",
      isolation: "worktree",
    });
    assert.deepEqual(facts, ["Name: Agent: explore", "Works in a worktree of its own."]);
  });

  it("shows no half of a character at the end of a long prompt", () => {
    assert.equal(asked("task", { prompt: `${"x".repeat(999)}😀 and more` }).prompt, "x".repeat(999));
  });

  it("is a launch of which only the prompt is known; a short one is shown as a whole", () => {
    const prompt = "x".repeat(1_000);
    const launch = { title: "Launch a background task?", facts: [], notes: [], tasks: [] };
    assert.deepEqual(asked("task", { prompt }), { ...launch, prompt });
    assert.deepEqual(asked("task", {}), { ...launch, prompt: "" });
  });

  it("is a follow-up or a message to a task, which is named", async () => {
    const { id } = await window.launchDone("42", 0, { description: "Look around" });
    const rest = { facts: ["Task: Look around"], notes: [], prompt: "Go on.", tasks: [] };
    assert.deepEqual(asked("task", { resume: id, prompt: "Go on." }), {
      title: "Resume a background task?",
      ...rest,
    });
    assert.deepEqual(asked("task", { send_to: id, prompt: "Go on." }), {
      title: "Send a message to a background task?",
      ...rest,
    });
  });

  it("quotes the ID of a task that isn't known, in one line of limited length", async () => {
    const { id } = await window.launchDone();
    const elsewhere = await window.otherSession();
    assert.deepEqual(asked("task", { resume: id }, elsewhere).facts, [`Task: ${id}`]);
    const [fact = ""] = asked("task", { resume: `no\n${"x".repeat(500)}` }).facts;
    assert.match(fact, /^Task: no x+…$/);
    assert.equal(fact.length, "Task: ".length + 120);
  });

  it("cancels the running tasks that are named", async () => {
    const { id: done } = await window.launchDone("42", 0, { description: "Zero", batchID: "docs" });
    const { id: one } = await window.launch({ description: "One", batchID: "docs" });
    const { id: two } = await window.launch({ description: "Two", batchID: "docs" });
    const rest = { notes: [], prompt: undefined };
    assert.deepEqual(asked("cancel", { task_id: one }), {
      title: "Cancel this background task?",
      facts: ["One"],
      tasks: [`active ${one}`],
      ...rest,
    });
    assert.deepEqual(asked("cancel", { batch_id: "docs" }), {
      title: "Cancel 2 background tasks?",
      facts: ["One", "Two"],
      tasks: [`active ${one}`, `active ${two}`],
      ...rest,
    });
    assert.deepEqual(asked("cancel", { task_id: done }), {
      title: "Cancel background tasks?",
      facts: [`Task: ${done}`],
      tasks: [],
      ...rest,
    });
  });

  it("names ten of many tasks", async () => {
    for (let count = 1; count <= 10; count++) await window.launch({ description: `Task ${count}` });
    const names = asked("cancel", { batch_id: "none" }).facts;
    assert.deepEqual(names, ["Batch: none"]);
    const ten = asked("clear", {});
    assert.equal(ten.facts.length, 11);
    assert.equal(ten.facts.at(-2), "Task 10");
    assert.equal(ten.facts.at(-1), "Still running, and also cancelled: 10.");
    await window.launch({ description: "Task 11" });
    const eleven = asked("clear", {});
    assert.deepEqual(eleven.facts.slice(-3), [
      "Task 10",
      "… and 1 more.",
      "Still running, and also cancelled: 11.",
    ]);
    assert.equal(eleven.tasks.length, 11);
  });

  it("clears one task, a batch or all, and says which are still running", async () => {
    const { id: done } = await window.launchDone("42", 0, { description: "Done", batchID: "docs" });
    const { id: works } = await window.launch({ description: "Works", batchID: "docs" });
    assert.deepEqual(asked("clear", { task_id: done }), {
      title: "Clear this background task from the list?",
      facts: ["Done"],
      notes: [],
      prompt: undefined,
      tasks: [`ended ${done}`],
    });
    for (const input of [{ batch_id: "docs" }, {}])
      assert.deepEqual(asked("clear", input), {
        title: "Clear 2 background tasks from the list?",
        facts: ["Done", "Works", "Still running, and also cancelled: 1."],
        notes: [],
        prompt: undefined,
        tasks: [`ended ${done}`, `active ${works}`],
      });
  });

  it("cancels, also by clearing, what still runs below the tasks, at any depth", async () => {
    const { id: done } = await window.launchDone("42", 0, { description: "Done" });
    const { id: between } = await window.launchDone("42", 0, {
      description: "Between",
      parent: done,
      by: "person",
    });
    const { id: deep } = await window.launch({ description: "Deep", parent: between, by: "person" });
    const clearing = asked("clear", { task_id: done });
    assert.equal(clearing.title, "Clear this background task from the list?");
    assert.deepEqual(clearing.facts, ["Done", "Running below, and also cancelled: 1.", "Deep"]);
    assert.deepEqual(clearing.tasks, [`ended ${done}`, `active ${deep}`]);
    const { id: works } = await window.launch({ description: "Works" });
    const { id: below } = await window.launch({ description: "Below", parent: works, by: "person" });
    const cancelling = asked("cancel", { task_id: works });
    assert.equal(cancelling.title, "Cancel this background task?");
    assert.deepEqual(cancelling.facts, ["Works", "Running below, and also cancelled: 1.", "Below"]);
    assert.deepEqual(cancelling.tasks, [`active ${works}`, `active ${below}`]);
  });

  it("clears what isn't known: the task, the batch or all, as the call names it", async () => {
    const elsewhere = await window.otherSession();
    const facts = (input: unknown): readonly string[] => asked("clear", input, elsewhere).facts;
    assert.equal(asked("clear", {}, elsewhere).title, "Clear background tasks from the list?");
    assert.deepEqual(facts({}), ["All background tasks of the active session, running ones included."]);
    assert.deepEqual(facts({ task_id: "ses_1" }), ["Task: ses_1"]);
    assert.deepEqual(facts({ batch_id: "docs" }), ["Batch: docs"]);
  });

  it("has a question without details if the input can't be used, which the call itself reports", () => {
    const nothing = { facts: [], notes: [], prompt: undefined, tasks: [] };
    for (const input of ["not JSON", { batch_id: {} }])
      assert.deepEqual(asked("cancel", input), { title: "Cancelling background tasks…", ...nothing });
  });

  it("is known before the caller has a session", () => {
    const { question } = previewOf("asyncagents_clear", {}, window.engine, undefined);
    assert.equal(english(question?.title ?? ""), "Clear background tasks from the list?");
  });
});
