import assert from "node:assert/strict";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { BringBackPlan, FileChoice } from "../../src/engine/bring-back.ts";
import { Refusal } from "../../src/engine/errors.ts";
import type { Budget } from "../../src/engine/limit.ts";
import { NO_ISOLATION, type EngineSettings } from "../../src/engine/settings.ts";
import type { Task } from "../../src/engine/task.ts";
import {
  inFolder,
  openAgentWindow,
  startAgentServer,
  type AgentServer,
  type AgentWindow,
} from "../support/agent-tools.ts";
import { createSession, ended, storedMessages } from "../support/engine.ts";
import { makeRepository, type TestRepository } from "../support/repository.ts";
import { script, type ScriptedModel, type ScriptStep } from "../support/scripted-model.ts";
import { setUp } from "../support/set-up.ts";
import { until } from "../support/wait.ts";

describe("bringing an isolated task's work back", () => {
  let model: ScriptedModel;
  let base: AgentServer;
  let server: AgentServer;
  let repository: TestRepository;
  let window: AgentWindow;
  const settings: { maxDepth: number; budget: Budget; isolation: EngineSettings["isolation"] } = {
    maxDepth: 2,
    budget: {},
    isolation: NO_ISOLATION,
  };
  let parent: string;

  setUp(async (start) => {
    model = await start.model();
    base = await startAgentServer({ model });
    start.stop(() => base.stop());
  });

  beforeEach(async () => {
    repository = makeRepository({ "clean.txt": "1\n2\n3\n", "both.txt": "old\n", "mine.txt": "mine\n" });
    server = inFolder(base, repository.directory);
    settings.budget = {};
    settings.isolation = NO_ISOLATION;
    window = await openAgentWindow(server, { settings });
    parent = await createSession(server);
  });
  afterEach(() => window.dispose());

  const run = (command: string): ScriptStep => ({
    tools: [{ name: "bash", args: { command, description: "Runs a command" } }],
  });
  const read = (path: string): string => readFileSync(join(repository.directory, path), "utf8");
  const status = (): string => repository.git("status", "--porcelain=v2");
  const staged = (): string => repository.git("ls-files", "--stage");

  async function launched(command: string): Promise<Task> {
    const { id } = await window.engine.launch({
      prompt: script([run(command), { text: "Done." }], "Do it. "),
      description: "Add cart tests",
      agent: "general",
      parentSessionID: parent,
      launchedBy: "person",
      isolation: "worktree",
    });
    return ended(window, id);
  }

  const plan = (task: Task): Promise<BringBackPlan> => window.engine.worktreeWork.plan(task.id, {});
  const bring = async (task: Task, planned: BringBackPlan, choices: readonly FileChoice[]) =>
    window.engine.worktreeWork.bringBack(task.id, planned, choices, []);
  const outcome = (task: Task): string | undefined => window.engine.get(task.id)?.worktree?.outcome;
  const worktree = (task: Task): string => task.worktree?.directory ?? assert.fail("It has no worktree");

  it("[ISO-4] writes into a dirty folder, changes nothing else, and undoes it", async () => {
    const task = await launched("printf '1\\n2\\nTHREE\\n' > clean.txt; echo new > new.txt");
    repository.write("clean.txt", "ONE\n2\n3\n");
    repository.write("mine.txt", "staged\n");
    repository.git("add", "mine.txt");
    repository.write("mine.txt", "unstaged\n");
    repository.write("untracked.txt", "untracked\n");
    const before = { status: status(), staged: staged() };
    const planned = await plan(task);
    assert.deepEqual(
      planned.files.map(({ path, kind, conflict }) => [path, kind, conflict]),
      [
        ["clean.txt", "modified", undefined],
        ["new.txt", "added", undefined],
      ],
    );
    assert.deepEqual({ status: status(), staged: staged() }, before);
    const done = await bring(
      task,
      planned,
      planned.files.map(({ path }) => ({ path, take: "merged" })),
    );
    assert.equal(read("clean.txt"), "ONE\n2\nTHREE\n");
    assert.equal(read("new.txt"), "new\n");
    assert.equal(read("mine.txt"), "unstaged\n");
    assert.equal(staged(), before.staged);
    assert.equal(repository.git("stash", "list"), "");
    assert.equal(outcome(task), "broughtBack");
    assert.ok(!existsSync(worktree(task)));
    await window.engine.worktreeWork.undoBringBack(task.id, done);
    assert.deepEqual({ status: status(), staged: staged() }, before);
    assert.equal(read("clean.txt"), "ONE\n2\n3\n");
    assert.ok(!existsSync(join(repository.directory, "new.txt")));
    assert.equal(outcome(task), undefined);
    assert.ok(existsSync(join(worktree(task), "new.txt")));
  });

  it("that a subtask is still working on stays open, so its worktree is not removed later", async () => {
    const task = await launched("echo new > new.txt");
    const { id: subtask } = await window.engine.launch({
      prompt: script([{ text: "Never.", gate: "subtask" }]),
      agent: "general",
      parentSessionID: task.id,
      launchedBy: "person",
    });
    await model.waitForRequest(({ step }) => step.gate === "subtask");
    const planned = await plan(task);
    await bring(task, planned, [{ path: "new.txt", take: "merged" }]);
    assert.equal(read("new.txt"), "new\n");
    assert.equal(outcome(task), undefined);
    await window.engine.cancel(subtask);
    window.engine.disconnect();
    await window.engine.connect();
    assert.ok(existsSync(join(worktree(task), "new.txt")));
  });

  it("stays open if more was done in the worktree since the plan was made", async () => {
    const task = await launched("echo new > new.txt");
    const planned = await plan(task);
    writeFileSync(join(worktree(task), "later.txt"), "later\n");
    await bring(task, planned, [{ path: "new.txt", take: "merged" }]);
    assert.equal(outcome(task), undefined);
    const rest = await plan(task);
    assert.deepEqual(
      rest.files.map(({ path }) => path),
      ["later.txt"],
    );
    await bring(task, rest, [{ path: "later.txt", take: "merged" }]);
    assert.equal(outcome(task), "broughtBack");
    assert.ok(!existsSync(worktree(task)));
  });

  it("stays as it is while another conversation works in it, such as in a terminal", async () => {
    const task = await launched("echo new > new.txt");
    const prompt = script([{ text: "Never.", gate: "terminal" }]);
    await base.fetch(`/session/${task.id}/prompt_async?directory=${encodeURIComponent(worktree(task))}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ agent: "general", parts: [{ type: "text", text: prompt }] }),
    });
    await model.waitForRequest(({ step }) => step.gate === "terminal");
    await assert.rejects(window.engine.worktreeWork.discard(task.id), /still working in the worktree/);
    assert.ok(existsSync(worktree(task)));
    model.release("terminal");
    await until("an idle session", () =>
      window.engine.worktreeWork.discard(task.id).then(
        () => true,
        () => false,
      ),
    );
  });

  it("of a cleared task that was brought back needs no worktree to be deleted", async () => {
    const task = await launched("echo new > new.txt");
    await bring(task, await plan(task), [{ path: "new.txt", take: "merged" }]);
    assert.equal(outcome(task), "broughtBack");
    await window.engine.clear(task.id, { deleteSession: true });
    assert.equal(window.engine.get(task.id), undefined);
  });

  it("refuses files that have changed since the plan was made", async () => {
    const task = await launched("echo agent > both.txt; echo new > new.txt");
    const planned = await plan(task);
    repository.write("both.txt", "mine\n");
    const choices = planned.files.map(({ path }) => ({ path, take: "merged" }) as const);
    await assert.rejects(bring(task, planned, choices), /both\.txt has changed in the meantime/);
    assert.equal(read("both.txt"), "mine\n");
    assert.ok(!existsSync(join(repository.directory, "new.txt")));
    assert.equal(outcome(task), undefined);
  });

  it("[ISO-5] says which files conflict, and resolves one as chosen", async () => {
    const task = await launched("echo agent > both.txt; echo new > new.txt");
    repository.write("both.txt", "mine\n");
    for (const [take, expected] of [
      ["mine", /^mine\n$/],
      ["agents", /^agent\n$/],
      ["markers", /^<{7} Your changes\nmine\n={7}\nagent\n>{7} Changes by the agent\n$/],
    ] as const) {
      const planned = await plan(task);
      assert.deepEqual(
        planned.files.map(({ path, conflict }) => [path, conflict]),
        [
          ["both.txt", "content"],
          ["new.txt", undefined],
        ],
      );
      const done = await bring(task, planned, [
        { path: "both.txt", take },
        { path: "new.txt", take: "merged" },
      ]);
      assert.match(read("both.txt"), expected);
      assert.equal(outcome(task), "broughtBack");
      await window.engine.worktreeWork.undoBringBack(task.id, done);
    }
  });

  it("is undone, and open again, even if its worktree can't be made again, which the error says", async () => {
    const task = await launched("echo new > new.txt");
    const planned = await plan(task);
    const { before, after } = await bring(task, planned, [{ path: "new.txt", take: "merged" }]);
    assert.equal(outcome(task), "broughtBack");
    settings.isolation = { ...NO_ISOLATION, setup: { command: "true", isAllowed: false, timeout: 1_000 } };
    await assert.rejects(window.engine.worktreeWork.undoBringBack(task.id, { before, after }), {
      code: "partly-done",
      message: /^The folder was restored, but .*isn't allowed yet/,
    });
    assert.ok(!existsSync(join(repository.directory, "new.txt")));
    assert.equal(outcome(task), undefined);
  });

  it("while a worktree is discarded, its task is not resumed there", async () => {
    const task = await launched("echo new > new.txt");
    const real = window.connection.server;
    const { releaseDirectory } = real;
    let resuming: Promise<unknown> = Promise.resolve();
    real.releaseDirectory = async (directory) => {
      resuming = assert.rejects(window.engine.resume(task.id, "More."), { code: "worktree-gone" });
      // More requests than a resume needs.
      for (let made = 0; made < 20; made++) await real.statuses();
      await releaseDirectory.call(real, directory);
    };
    try {
      await window.engine.worktreeWork.discard(task.id);
      await resuming;
    } finally {
      real.releaseDirectory = releaseDirectory;
    }
    assert.deepEqual([window.engine.get(task.id)?.status, outcome(task)], ["completed", "discarded"]);
  });

  it("[ISO-5] merges nothing in the worktree if the agent can't be asked, because the task has used up its limit", async () => {
    const task = await launched("echo agent > both.txt");
    repository.write("both.txt", "mine\n");
    const planned = await plan(task);
    settings.budget = { taskMinutes: 0.000_01 };
    await assert.rejects(window.engine.worktreeWork.letAgentMerge(task.id, planned), { code: "over-budget" });
    assert.equal(readFileSync(join(worktree(task), "both.txt"), "utf8"), "agent\n");
    assert.equal((await plan(task)).files[0]?.conflict, "content");
  });

  it("[ISO-5] lets the agent merge in its worktree; what it resolved is then brought back without a conflict", async () => {
    const task = await launched("echo agent > both.txt; echo agent > clean.txt; echo new > new.txt");
    repository.write("both.txt", "mine\n");
    repository.write("mine.txt", "also mine\n");
    rmSync(join(repository.directory, "clean.txt"));
    const planned = await plan(task);
    const before = status();
    await window.engine.worktreeWork.letAgentMerge(task.id, planned);
    const merged = await ended(window, task.id);
    assert.equal(merged.resumeCount, 1);
    const asked = (await storedMessages(server, task.id)).findLast(({ info }) => info.role === "user");
    const prompt = asked?.parts.map(({ text }) => text).join("\n") ?? "";
    assert.match(prompt, /^- both\.txt \(both sides changed the same part\)$/m);
    assert.match(prompt, /^- clean\.txt \(the user deleted it, you changed it\)$/m);
    rmSync(join(worktree(task), "clean.txt"), { force: true });
    assert.equal(status(), before);
    assert.match(readFileSync(join(worktree(task), "both.txt"), "utf8"), /^<{7} Your changes\nmine\n/);
    assert.equal(readFileSync(join(worktree(task), "mine.txt"), "utf8"), "also mine\n");
    writeFileSync(join(worktree(task), "both.txt"), "both\n");
    const again = await plan(task);
    assert.deepEqual(
      again.files.map(({ path, conflict }) => [path, conflict]),
      [
        ["both.txt", undefined],
        ["new.txt", undefined],
      ],
    );
    await bring(
      task,
      again,
      again.files.map(({ path }) => ({ path, take: "merged" })),
    );
    assert.equal(read("both.txt"), "both\n");
  });

  it("if the user keeps their own version of every file, nothing is brought back, and the worktree stays", async () => {
    const task = await launched("echo agent > both.txt");
    repository.write("both.txt", "mine\n");
    await bring(task, await plan(task), [{ path: "both.txt", take: "mine" }]);
    assert.equal(read("both.txt"), "mine\n");
    assert.equal(outcome(task), undefined);
    assert.ok(existsSync(worktree(task)));
  });

  it("brings back a part, and the worktree stays", async () => {
    const task = await launched("echo agent > both.txt; echo new > new.txt");
    await bring(task, await plan(task), [{ path: "new.txt", take: "merged" }]);
    assert.equal(read("both.txt"), "old\n");
    assert.equal(outcome(task), undefined);
    assert.ok(existsSync(worktree(task)));
    assert.deepEqual(
      (await plan(task)).files.map(({ path }) => path),
      ["both.txt"],
    );
  });

  it("[ISO-6] creates a branch, and the folder stays as it is", async () => {
    repository.git("config", "user.name", "A User");
    repository.git("config", "user.email", "user@localhost");
    const task = await launched("echo new > new.txt");
    repository.write("mine.txt", "changed\n");
    const before = status();
    await window.engine.worktreeWork.createBranch(task.id, "cart-tests");
    assert.equal(status(), before);
    assert.equal(repository.git("diff", "--name-only", "HEAD", "cart-tests"), "new.txt\n");
    assert.equal(outcome(task), "branched");
    assert.ok(!existsSync(worktree(task)));
  });

  it("[ISO-6] discards the work, and undoes that", async () => {
    const task = await launched("echo new > new.txt");
    const listed = await window.engine.worktreeWork.list();
    assert.deepEqual(
      listed.map(({ files, commits, task: its }) => [files?.map(({ path }) => path), commits, its?.id]),
      [[["new.txt"], 0, task.id]],
    );
    const ref = await window.engine.worktreeWork.discard(task.id);
    assert.ok(!existsSync(worktree(task)));
    assert.equal(outcome(task), "discarded");
    assert.deepEqual(await window.engine.worktreeWork.list(), []);
    await window.engine.worktreeWork.undoDiscard(task.id, ref);
    assert.equal(readFileSync(join(worktree(task), "new.txt"), "utf8"), "new\n");
    assert.equal(outcome(task), undefined);
  });

  it("[ISO-7] makes a discarded worktree again without its ref, and its work counts as not decided on", async () => {
    const task = await launched("echo new > new.txt");
    await window.engine.worktreeWork.discard(task.id);
    await window.engine.worktreeWork.remake(task.id);
    assert.equal(readFileSync(join(worktree(task), "new.txt"), "utf8"), "new\n");
    assert.equal(outcome(task), undefined);
  });

  it("offers to make a worktree again before it plans anything", async () => {
    const task = await launched("echo new > new.txt");
    await window.engine.worktreeWork.remove(task.id);
    const isGone = (error: unknown): boolean => error instanceof Refusal && error.code === "worktree-gone";
    await assert.rejects(plan(task), isGone);
  });
});
