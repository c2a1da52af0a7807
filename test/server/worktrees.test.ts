import assert from "node:assert/strict";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { Refusal } from "../../src/engine/errors.ts";
import type { LaunchInput } from "../../src/engine/launcher.ts";
import type { Task } from "../../src/engine/task.ts";
import {
  callTool,
  inFolder,
  openAgentWindow,
  startAgentServer,
  startTurn,
  type AgentServer,
  type AgentWindow,
} from "../support/agent-tools.ts";
import { createSession, ended, notices } from "../support/engine.ts";
import { makeRepository, type TestRepository } from "../support/repository.ts";
import { script, type ScriptedModel, type ScriptStep } from "../support/scripted-model.ts";
import { setUp } from "../support/set-up.ts";
import { tempDir } from "../support/temp.ts";
import { until } from "../support/wait.ts";

describe("a task in a worktree", () => {
  let model: ScriptedModel;
  let base: AgentServer;
  /** The server as seen from the repository of the current test. */
  let server: AgentServer;
  let repository: TestRepository;
  let window: AgentWindow;
  let parent: string;

  setUp(async (start) => {
    model = await start.model();
    base = await startAgentServer({
      model,
      config: { agent: { careful: { mode: "all", description: "Asks.", permission: { bash: "ask" } } } },
    });
    start.stop(() => base.stop());
  });

  beforeEach(async () => {
    repository = makeRepository({ "a.txt": "a\n", "b.txt": "b\n" });
    server = inFolder(base, repository.directory);
    window = await openAgentWindow(server, { settings: { maxDepth: 2 } });
    parent = await createSession(server);
  });
  afterEach(() => window.dispose());

  const write = (filePath: string, content: string): ScriptStep => ({
    tools: [{ name: "write", args: { filePath, content } }],
  });
  const run = (command: string): ScriptStep => ({
    tools: [{ name: "bash", args: { command, description: "Runs a command" } }],
  });

  const launch = (steps: readonly ScriptStep[], more: Partial<LaunchInput> = {}): Promise<Task> =>
    window.engine.launch({
      prompt: script(steps, "Do it. "),
      description: "Add cart tests",
      agent: "general",
      parentSessionID: parent,
      launchedBy: "person",
      isolation: "worktree",
      ...more,
    });

  const worktreeOf = (task: Task): string => task.worktree?.directory ?? assert.fail("It has no worktree");

  /** What a user sees of the repository: every file that is not ignored, and the status. */
  const visible = (): readonly string[] => [
    repository.git("status", "--porcelain=v2", "--branch"),
    repository.git("stash", "list"),
    ...repository
      .git("ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate")
      .split("\n")
      .filter((path) => path !== "" && existsSync(join(repository.directory, path)))
      .map((path) => `${path}: ${readFileSync(join(repository.directory, path), "utf8")}`),
  ];

  /** Makes changes of every kind that are not committed. */
  function makeDirty(): void {
    repository.write("a.txt", "staged\n");
    repository.git("add", "a.txt");
    repository.write("b.txt", "unstaged\n");
    repository.write("new.txt", "untracked\n");
  }

  const requestsOf = (id: string): number =>
    model.requests.filter(({ sessionID }) => sessionID === id).length;

  const has = (code: string) => (error: unknown) => error instanceof Refusal && error.code === code;

  it("[ISO-1] begins with what the user sees, and the folder does not change", async () => {
    makeDirty();
    const before = visible();
    const { id } = await launch([
      { tools: [{ name: "write", args: { filePath: "made.txt", content: "made\n" } }] },
      {
        tools: [{ name: "bash", args: { command: "rm b.txt; git status --short", description: "Removes" } }],
      },
      { text: "Done." },
    ]);
    const task = await ended(window, id);
    assert.equal(task.status, "completed");
    const worktree = worktreeOf(task);
    assert.equal(dirname(worktree), `${repository.directory}.worktrees`);
    assert.match(basename(worktree), /^add-cart-tests-[0-9a-z]{4}$/);
    assert.equal(window.engine.session(id)?.directory, worktree);
    assert.equal(readFileSync(join(worktree, "a.txt"), "utf8"), "staged\n");
    assert.equal(readFileSync(join(worktree, "new.txt"), "utf8"), "untracked\n");
    assert.equal(readFileSync(join(worktree, "made.txt"), "utf8"), "made\n");
    assert.ok(!existsSync(join(worktree, "b.txt")));
    assert.deepEqual(visible(), before);
    const changed = [join(worktree, "b.txt"), join(worktree, "made.txt")];
    await until("the changes", async () => {
      const { files } = await window.connection.server.changes(id, 0);
      return isDeepStrictEqual(
        files.map(({ path }) => path),
        changed,
      );
    });
  });

  it("[ISO-1] with the setting `head`, begins with the last commit", async () => {
    const isolation = { default: "worktree", startFrom: "head" } as const;
    const headed = await openAgentWindow(server, { settings: { isolation } });
    makeDirty();
    const { id } = await headed.engine.launch({
      prompt: script([{ text: "Done." }]),
      agent: "general",
      parentSessionID: parent,
      launchedBy: "person",
    });
    const worktree = worktreeOf(await ended(headed, id));
    assert.equal(readFileSync(join(worktree, "a.txt"), "utf8"), "a\n");
    assert.ok(!existsSync(join(worktree, "new.txt")));
    headed.dispose();
  });

  it("[ISO-3] asks for permission as in the folder, also an engine that connects later, and continues with the answer", async () => {
    const { id } = await launch([run("echo hi > said.txt"), { text: "Done." }], { agent: "careful" });
    const [request] = await until("the permission", () => {
      const requests = window.engine.pendingRequests(id);
      return requests.length > 0 && requests;
    });
    assert.deepEqual(
      [request?.type === "permission" && request.permission, request?.sessionID],
      ["bash", id],
    );
    window.dispose();
    window = await openAgentWindow(server, { settings: { maxDepth: 2 } });
    const [again] = window.engine.pendingRequests(id);
    assert.equal(again?.id, request?.id);
    const worktree = worktreeOf(window.engine.find(id));
    assert.ok(!existsSync(join(worktree, "said.txt")));
    if (again) await window.engine.answer(again, { type: "permission", reply: "once" });
    assert.equal((await ended(window, id)).status, "completed");
    assert.equal(readFileSync(join(worktree, "said.txt"), "utf8"), "hi\n");
  });

  it("[ISO-7] is not prompted once its worktree is gone; when it is made again, the task goes on from its last state", async () => {
    const { id } = await launch([write("made.txt", "made\n"), { text: "Done." }]);
    const worktree = worktreeOf(await ended(window, id));
    await window.engine.worktreeWork.remove(id);
    assert.ok(!existsSync(worktree));
    const before = requestsOf(id);
    await assert.rejects(window.engine.resume(id, "Go on."), has("worktree-gone"));
    assert.equal(window.engine.get(id)?.status, "completed");
    assert.equal(requestsOf(id), before);
    await window.engine.worktreeWork.remake(id);
    assert.equal(readFileSync(join(worktree, "made.txt"), "utf8"), "made\n");
    await window.engine.resume(id, script([run("cat made.txt > copy.txt"), { text: "Again." }]));
    assert.equal((await ended(window, id)).status, "completed");
    assert.equal(readFileSync(join(worktree, "copy.txt"), "utf8"), "made\n");
  });

  it("[ISO-7] a worktree that someone deleted is noticed, by what works inside it too", async () => {
    const { id } = await launch([{ text: "Done." }]);
    const worktree = worktreeOf(await ended(window, id));
    rmSync(worktree, { recursive: true });
    await assert.rejects(window.engine.resume(id, "Go on."), has("worktree-gone"));
    const inside = { parentSessionID: id, isolation: undefined };
    await assert.rejects(launch([{ text: "Inside." }], inside), has("worktree-gone"));
    assert.deepEqual(window.engine.list(id), []);
    await window.engine.worktreeWork.remake(id);
    assert.equal(readFileSync(join(worktree, "a.txt"), "utf8"), "a\n");
  });

  it("[ISO-9] keeps the result of a task whose parent isn't notified", async () => {
    // It would keep the result for its notice.
    window.dispose();
    const silent = await openAgentWindow(server, { settings: { notifyParent: false } });
    const { id } = await silent.engine.launch({
      prompt: script([write("made.txt", "made\n"), { text: "Done." }]),
      agent: "general",
      parentSessionID: parent,
      launchedBy: "person",
      isolation: "worktree",
    });
    const task = await ended(silent, id);
    assert.equal(task.notice?.state, "skipped");
    const ref = `refs/asyncagents/${task.worktree?.name}/result`;
    await until("the result is kept", () => repository.git("for-each-ref", ref) !== "");
    rmSync(worktreeOf(task), { recursive: true });
    const { files } = await silent.engine.worktreeWork.changes(id);
    assert.deepEqual(
      files.map(({ path }) => path),
      ["made.txt"],
    );
    silent.dispose();
  });

  it("[ISO-8] tells the agent that launched it which files it changed, and a ref with the result", async () => {
    const args = {
      prompt: script([write("made.txt", "made\n"), run("rm b.txt"), { text: "Done." }]),
      agent: "general",
      isolation: "worktree",
    };
    const call = await callTool(server, parent, "asyncagents_task", args);
    assert.match(call.text, /^Launched task/);
    const [{ id } = assert.fail("There is no task")] = window.engine.list(parent);
    await ended(window, id);
    const [notice] = await until("the notice", async () => {
      const all = await notices(server, parent);
      return all.length > 0 && all;
    });
    const { hidden = "" } = notice ?? {};
    assert.match(hidden, /\ndeleted "b\.txt"\nadded "made\.txt"\n/);
    const [, command = "", ref = ""] = /: git (diff [0-9a-f]+ (refs\/asyncagents\/\S+))\./.exec(hidden) ?? [];
    assert.equal(repository.git(...command.split(" "), "--name-status"), "D\tb.txt\nA\tmade.txt\n");
    assert.equal(repository.git("show", `${ref}:made.txt`), "made\n");
    const output = await callTool(server, parent, "asyncagents_output", { task_id: id });
    assert.match(output.text, /\nadded "made\.txt"\n/);
    assert.ok(output.text.includes(ref));
    assert.ok(!existsSync(join(repository.directory, "made.txt")));
  });

  it("[PRM-1] asks for what the agent that launched it is asked for, though its worktree lacks that configuration", async () => {
    const configured = makeRepository({ "a.txt": "a\n", ".gitignore": "opencode.json\n" });
    configured.write("opencode.json", JSON.stringify({ permission: { bash: "ask" } }));
    const there = inFolder(base, configured.directory);
    const opened = await openAgentWindow(there, { settings: { maxDepth: 2 } });
    try {
      const calling = await createSession(there);
      const args = {
        prompt: script([run("touch made"), { text: "Done." }]),
        agent: "general",
        isolation: "worktree",
      };
      assert.match((await callTool(there, calling, "asyncagents_task", args)).text, /^Launched task/);
      const [{ id } = assert.fail("There is no task")] = opened.engine.list(calling);
      const [request] = await until("the request", () => {
        const asked = opened.engine.pendingRequests(id);
        return asked.length > 0 && asked;
      });
      assert.equal(request?.type === "permission" && request.permission, "bash");
      await opened.engine.cancel(id);
    } finally {
      opened.dispose();
    }
  });

  it("is followed by an engine that connects while it runs", async () => {
    const { id } = await launch([{ gate: "later", text: "Done." }]);
    await model.waitForRequest(({ sessionID }) => sessionID === id);
    window.dispose();
    window = await openAgentWindow(server, { settings: { maxDepth: 2 } });
    const found = window.engine.find(id);
    assert.deepEqual([found.status, window.engine.list(parent).length], ["running", 1]);
    model.release("later");
    assert.equal((await ended(window, id)).status, "completed");
    await until("the notice", () => window.engine.get(id)?.notice.state === "delivered");
    assert.equal((await notices(server, parent)).length, 1);
  });

  it("is cancelled like any other", async () => {
    const { id } = await launch([{ gate: "never", text: "Done." }]);
    await model.waitForRequest(({ sessionID }) => sessionID === id);
    await assert.rejects(window.engine.worktreeWork.remove(id), has("still-running"));
    assert.equal((await window.engine.cancel(id)).status, "cancelled");
    const request = model.requests.find(({ sessionID }) => sessionID === id);
    await until("the end of the model's answer", () => request?.aborted);
  });

  it("what its agent launches works in the same worktree, with the same tools", async () => {
    const inner = { prompt: script([write("inner.txt", "inner\n"), { text: "Inside." }]), agent: "general" };
    const { id } = await launch([
      { tools: [{ name: "asyncagents_task", args: inner }] },
      { text: "Launched.", gate: "launched" },
      { text: "Seen." },
    ]);
    const child = await until("the task inside", () => window.engine.list(id)[0]);
    await ended(window, child.id);
    model.release("launched");
    const worktree = worktreeOf(await ended(window, id));
    assert.equal(window.engine.find(child.id).worktree, undefined);
    assert.equal(window.engine.session(child.id)?.directory, worktree);
    assert.equal(readFileSync(join(worktree, "inner.txt"), "utf8"), "inner\n");
    assert.ok(!existsSync(join(repository.directory, "inner.txt")));
  });

  it("a fork of it begins with the state of its worktree, in one of its own", async () => {
    const { id } = await launch([write("made.txt", "made\n"), { text: "Done." }]);
    const source = await ended(window, id);
    const { id: forkID } = await launch([write("more.txt", "more\n"), { text: "Forked." }], {
      fork: { sourceSessionID: id },
      isolation: undefined,
    });
    const fork = await ended(window, forkID);
    assert.equal(fork.status, "completed");
    assert.notEqual(worktreeOf(fork), worktreeOf(source));
    assert.equal(readFileSync(join(worktreeOf(fork), "made.txt"), "utf8"), "made\n");
    assert.ok(!existsSync(join(worktreeOf(source), "more.txt")));
    const inFolder = await launch([write("plain.txt", "plain\n"), { text: "Forked." }], {
      fork: { sourceSessionID: id },
      isolation: "folder",
    });
    await ended(window, inFolder.id);
    assert.equal(readFileSync(join(repository.directory, "plain.txt"), "utf8"), "plain\n");
  });

  it("a retry of it gets a worktree of its own", async () => {
    const { id } = await launch([{ status: 401, body: { error: { message: "No." } } }]);
    const failed = await ended(window, id);
    assert.equal(failed.status, "error");
    const again = await window.engine.retry(id);
    await ended(window, again.id);
    assert.notEqual(worktreeOf(again), worktreeOf(failed));
  });

  it("is refused before anything starts if Git can't make a worktree; in the folder it runs", async () => {
    const plain = inFolder(base, tempDir("plain"));
    const elsewhere = await openAgentWindow(plain);
    const session = await createSession(plain);
    const input: LaunchInput = {
      prompt: script([{ text: "Done." }]),
      agent: "general",
      parentSessionID: session,
      launchedBy: "person",
    };
    await assert.rejects(elsewhere.engine.launch({ ...input, isolation: "worktree" }), has("no-worktree"));
    assert.deepEqual(elsewhere.engine.list(session), []);
    const { id } = await elsewhere.engine.launch(input);
    assert.equal((await ended(elsewhere, id)).worktree, undefined);
    elsewhere.dispose();
  });

  it("belongs to the folder of its parent, not to a window on the worktree", async () => {
    const { id } = await launch([{ text: "Done." }]);
    const worktree = worktreeOf(await ended(window, id));
    const inside = await openAgentWindow(inFolder(base, worktree));
    assert.equal(inside.engine.get(id), undefined);
    const own = await createSession(inFolder(base, worktree), "Own");
    await until("the session", () => inside.engine.session(own));
    await launch([{ text: "Unrelated." }], { isolation: "folder" });
    assert.equal(window.engine.session(own), undefined);
    inside.dispose();
  });

  it("with a window on the worktree, each agent's calls go to the folder of its session, whichever opened last", async () => {
    const asking = (name: string): ScriptStep => ({
      tools: [
        {
          name: "asyncagents_task",
          args: { prompt: script([write(name, "made\n"), { text: "Made." }]), agent: "general" },
        },
      ],
    });
    const { id } = await launch([{ ...asking("ours.txt"), gate: "opened" }, { text: "Launched." }]);
    await model.waitForRequest(({ sessionID }) => sessionID === id);
    const worktree = worktreeOf(window.engine.find(id));
    const within = inFolder(base, worktree);
    const inside = await openAgentWindow(within, { settings: { maxDepth: 2 } });
    model.release("opened");
    const child = await until("the task of the isolated one", () => window.engine.list(id)[0]);
    await ended(window, child.id);
    await ended(window, id);
    assert.deepEqual(inside.calls, []);

    const own = await createSession(within, "Own");
    await window.reopen();
    await (await startTurn(within, own, [asking("own.txt"), { text: "Launched." }])).ended();
    const [task] = inside.engine.list(own);
    await ended(inside, task?.id ?? assert.fail("The window on the worktree has no task"));
    assert.equal(readFileSync(join(worktree, "own.txt"), "utf8"), "made\n");
    assert.ok(!existsSync(join(repository.directory, "own.txt")));
    assert.equal(window.calls.length, 1);
    inside.dispose();
  });
});
