import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { IsolatedWork, Task } from "../../src/engine/task.ts";
import {
  callTool,
  inFolder,
  openAgentWindow,
  startAgentServer,
  type AgentServer,
  type AgentWindow,
} from "../support/agent-tools.ts";
import { createSession, ended } from "../support/engine.ts";
import { makeRepository, type TestRepository } from "../support/repository.ts";
import { script, type ScriptedModel, type ScriptStep } from "../support/scripted-model.ts";
import { setUp } from "../support/set-up.ts";
import { until } from "../support/wait.ts";

const FILES = { "list.txt": "one\ntwo\nthree\n", "other.txt": "old\n" };

describe("predicting conflicts", () => {
  let model: ScriptedModel;
  let base: AgentServer;
  let server: AgentServer;
  let repository: TestRepository;
  let window: AgentWindow;
  let parent: string;

  setUp(async (start) => {
    model = await start.model();
    base = await startAgentServer({ model });
    start.stop(() => base.stop());
  });

  beforeEach(async () => {
    repository = makeRepository(FILES);
    server = inFolder(base, repository.directory);
    window = await openAgentWindow(server, { settings: { maxDepth: 2 } });
    parent = await createSession(server);
  });
  afterEach(() => window.dispose());

  const run = (command: string): ScriptStep => ({
    tools: [{ name: "bash", args: { command, description: "Runs a command" } }],
  });
  const write = (filePath: string, content: string): ScriptStep => ({
    tools: [{ name: "write", args: { filePath, content } }],
  });
  /** The step after which the task is still running, until the gate is opened. */
  const stay = (gate: string): ScriptStep => ({ gate, text: "Done." });

  const launch = (description: string, steps: readonly ScriptStep[]): Promise<Task> =>
    window.engine.launch({
      prompt: script(steps, "Do it. "),
      description,
      agent: "general",
      parentSessionID: parent,
      launchedBy: "person",
      isolation: "worktree",
    });

  const workOf = ({ id }: Task): IsolatedWork | undefined => window.engine.get(id)?.work;

  /** Who is in conflict with the task, and about what. */
  const conflictsOf = (task: Task): readonly string[] | undefined =>
    workOf(task)?.conflicts.map(
      ({ task: other, paths }) => `${other?.description ?? "folder"}: ${paths.join(", ")}`,
    );

  const untilConflicts = (task: Task, ...expected: readonly string[]): Promise<unknown> =>
    until(`the conflicts ${expected.join("; ")}`, () => {
      return JSON.stringify(conflictsOf(task)) === JSON.stringify(expected);
    });

  it("[COL-1] while they work, two tasks that changed the same lines are each marked with the other and the file", async () => {
    const first = await launch("First", [write("list.txt", "ONE\ntwo\nthree\n"), stay("first")]);
    await until("the work", () => workOf(first)?.files === 1);
    const second = await launch("Second", [run("echo 1 > list.txt; echo new > new.txt"), stay("second")]);
    await untilConflicts(first, "Second: list.txt");
    await untilConflicts(second, "First: list.txt");
    await until("the new file", () => workOf(second)?.files === 2);
    assert.deepEqual(
      [first, second].map(({ id }) => window.engine.get(id)?.status),
      ["running", "running"],
    );
    const { files, added, removed } = workOf(second) ?? assert.fail("Its work is unknown");
    assert.deepEqual([files, added, removed], [2, 2, 3]);
    model.release("first");
    model.release("second");
    await Promise.all([ended(window, first.id), ended(window, second.id)]);
    assert.deepEqual(conflictsOf(first), ["Second: list.txt"]);
  });

  it("[COL-1] a task is marked once the folder no longer fits, until the user or the agent changes that", async () => {
    const task = await launch("Shout", [
      run("printf 'ONE\\ntwo\\nthree\\n' > list.txt"),
      { gate: "more", ...run("printf 'eins\\ntwo\\nTHREE\\n' > list.txt; git add -A; git commit -qm Shout") },
      stay("end"),
    ]);
    await untilConflicts(task);
    repository.write("list.txt", "eins\ntwo\nthree\n");
    await window.engine.worktreeWork.predictConflicts();
    await untilConflicts(task, "folder: list.txt");
    model.release("more");
    await untilConflicts(task);
    assert.deepEqual(workOf(task), { files: 1, added: 2, removed: 2, conflicts: [] });
    repository.write("list.txt", "uno\ntwo\nthree\n");
    await window.engine.worktreeWork.predictConflicts();
    await untilConflicts(task, "folder: list.txt");
    repository.write("list.txt", FILES["list.txt"]);
    await window.engine.worktreeWork.predictConflicts();
    await untilConflicts(task);
    model.release("end");
    await ended(window, task.id);
    // In the worktree of an ended task, the user alone changes anything.
    const directory = task.worktree?.directory ?? assert.fail("It has no worktree");
    const inFolder = "zwei\ntwo\nthree\n";
    repository.write("list.txt", inFolder);
    await window.engine.worktreeWork.predictConflicts();
    await untilConflicts(task, "folder: list.txt");
    writeFileSync(join(directory, "list.txt"), inFolder);
    await window.engine.worktreeWork.predictConflicts();
    await untilConflicts(task);
  });

  it("[COL-1] a write of another task in the folder is taken into account", async () => {
    const isolated = await launch("Isolated", [write("list.txt", "1\n"), { text: "Done." }]);
    await ended(window, isolated.id);
    await untilConflicts(isolated);
    const { id } = await window.engine.launch({
      prompt: script([write("list.txt", "2\n"), { text: "Done." }]),
      agent: "general",
      parentSessionID: parent,
      launchedBy: "person",
    });
    await untilConflicts(isolated, "folder: list.txt");
    assert.equal(window.engine.get((await ended(window, id)).id)?.work, undefined);
  });

  it("[COL-1] a conflict is gone once the other work is brought back or discarded", async () => {
    const made = ["a", "b", "c"].map(async (name) => {
      const { id } = await launch(name, [write("list.txt", `${name}\n`), { text: "Done." }]);
      return ended(window, id);
    });
    const [a, b, c] = (await Promise.all(made)) as [Task, Task, Task];
    await until("the conflicts", () => [a, b, c].every((task) => conflictsOf(task)?.length === 2));
    await window.engine.worktreeWork.discard(c.id);
    assert.equal(workOf(c), undefined);
    await untilConflicts(b, "a: list.txt");
    const plan = await window.engine.worktreeWork.plan(a.id, {});
    await window.engine.worktreeWork.bringBack(a.id, plan, [{ path: "list.txt", take: "merged" }], []);
    assert.equal(workOf(a), undefined);
    await untilConflicts(b, "folder: list.txt");
  });

  it("[COL-1] is known again after the engine has started anew, and when a worktree is gone", async () => {
    const made = ["a", "b"].map(async (name) => {
      const { id } = await launch(name, [write("list.txt", `${name}\n`), { text: "Done." }]);
      return ended(window, id);
    });
    const [a, b] = (await Promise.all(made)) as [Task, Task];
    window.dispose();
    window = await openAgentWindow(server, { settings: { maxDepth: 2 } });
    await untilConflicts(a, "b: list.txt");
    await window.engine.worktreeWork.remove(b.id);
    await untilConflicts(a);
    assert.equal(workOf(b), undefined);
    await window.engine.worktreeWork.remake(b.id);
    await untilConflicts(a, "b: list.txt");
  });

  it("[COL-1] tells the agent that launched the tasks, in the list and in the output", async () => {
    const launchByAgent = (name: string): Promise<unknown> =>
      callTool(server, parent, "asyncagents_task", {
        prompt: script([write("list.txt", `${name}\n`), { text: "Done." }]),
        description: name,
        agent: "general",
        isolation: "worktree",
      });
    await launchByAgent("First");
    await launchByAgent("Second");
    const [first, second] = window.engine.list(parent) as [Task, Task];
    await Promise.all([ended(window, first.id), ended(window, second.id)]);
    const { text } = await callTool(server, parent, "asyncagents_output", { task_id: first.id });
    assert.match(text, /^Conflicts: with task \w+ \("list\.txt"\)$/m);
    repository.write("list.txt", "mine\n");
    await window.engine.worktreeWork.predictConflicts();
    await until("all conflicts", () => conflictsOf(second)?.length === 2);
    const list = await callTool(server, parent, "asyncagents_list", {});
    assert.match(
      list.text,
      /conflicts:\n(- \w+: with the folder \("list\.txt"\), with task \w+ \("list\.txt"\)\n?){2}$/,
    );
  });
});
