import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import type { BringBackPlan, BroughtBack } from "../../src/engine/bring-back.ts";
import type { Task } from "../../src/engine/task.ts";
import { isAlive } from "../../src/state/processes.ts";
import { DaemonDesk, type DaemonWindow } from "../support/daemon.ts";
import { notices } from "../support/engine.ts";
import { processIn } from "../support/process.ts";
import { makeRepository, type TestRepository } from "../support/repository.ts";
import { script, startScriptedModel, type ScriptedModel } from "../support/scripted-model.ts";
import { tempDir } from "../support/temp.ts";
import { until } from "../support/wait.ts";

/** A Git that kills the process which calls it, or waits, at the first call with a given part in its arguments. */
class DangerousGit {
  readonly bin = tempDir("git");
  private readonly real = execFileSync("sh", ["-c", "command -v git"], { encoding: "utf8" }).trim();

  constructor() {
    const file = join(this.bin, "git");
    writeFileSync(
      file,
      `#!/bin/sh
here="${this.bin}"
if [ -f "$here/part" ]; then
  part=$(cat "$here/part")
  case "$*" in *$part*)
    when=$(cat "$here/when")
    rm "$here/part"
    if [ "$when" = before ]; then kill -9 $PPID; exit 1; fi
    if [ "$when" = hold ]; then touch "$here/held"; while [ -e "$here/held" ]; do sleep 0.05; done; fi
    "${this.real}" "$@"
    code=$?
    if [ "$when" = after ]; then kill -9 $PPID; fi
    exit $code
  esac
fi
exec "${this.real}" "$@"
`,
    );
    chmodSync(file, 0o755);
  }

  /** @param part a pattern of the shell */
  arm(when: "before" | "after" | "hold", part: string): void {
    writeFileSync(join(this.bin, "when"), when);
    const file = join(this.bin, "part");
    // Complete from the start: an empty pattern would fit every call, and the server calls this Git, too.
    writeFileSync(`${file}.new`, part);
    renameSync(`${file}.new`, file);
  }

  get isHeld(): boolean {
    return existsSync(join(this.bin, "held"));
  }

  release(): void {
    execFileSync("rm", [join(this.bin, "held")]);
  }
}

/** The same in all windows, so that their folders share a server. */
const MAX_DEPTH = 2;

describe("worktrees, when processes are killed", function () {
  this.timeout(240_000);
  let model: ScriptedModel;
  let git: DangerousGit;
  let desk: DaemonDesk;
  let repository: TestRepository;
  let window: DaemonWindow;

  before(async () => {
    model = await startScriptedModel();
    git = new DangerousGit();
    repository = makeRepository({
      "both.txt": "old\n",
      "mine.txt": "old\n",
      ".gitignore": ".env\n",
      ".worktreeinclude": ".env\n",
    });
    repository.write(".env", "KEY=1\n");
    const { directory } = repository;
    const { place, env } = await DaemonDesk.open(model, { directory });
    const path = `${git.bin}${delimiter}${env["PATH"]}`;
    desk = new DaemonDesk({ ...place, env: { ...env, PATH: path } });
    window = desk.window({ maxDepth: MAX_DEPTH });
    await window.folder.calls.connect();
  });
  after(async () => {
    await desk?.close();
    await model?.stop();
  });

  async function launch(content: string): Promise<Task> {
    const { calls } = window.folder;
    return calls.launch({
      prompt: script([
        { tools: [{ name: "write", args: { filePath: "both.txt", content } }] },
        { tools: [{ name: "write", args: { filePath: "new.txt", content } }] },
        { text: "Done." },
      ]),
      description: "Add cart tests",
      agent: "general",
      parentSessionID: await calls.ensureSession(),
      launchedBy: "person",
      isolation: "worktree",
    });
  }

  /** A task that has ended, which the next daemon knows, too. */
  async function ended(content: string): Promise<Task> {
    const { id } = await launch(content);
    const { task } = await window.folder.calls.output(id, { block: true });
    await untilStored(task, "completed");
    return task;
  }

  /** What is left of worktrees: their folders, Git's list, and our references. */
  const left = (): readonly string[] => [
    ...repository
      .git("worktree", "list", "--porcelain")
      .split("\n")
      .filter((line) => line.startsWith("worktree "))
      .slice(1),
    ...repository.git("for-each-ref", "--format=%(refname)", "refs/asyncagents").split("\n").filter(Boolean),
  ];

  /** Makes a call during which the daemon is killed, and waits for the next one. */
  async function killedIn(call: () => Promise<unknown>): Promise<void> {
    const pid = desk.daemonPid();
    await assert.rejects(call());
    await until("the next daemon", () => desk.daemonPid() !== pid && desk.daemonPid() !== undefined);
    await until("the folder", () => window.folder.connection() === "connected", 60_000);
  }

  /** Makes a call during which the server is killed, at a given call of Git, and waits for the next server. */
  async function serverKilledIn<T>(part: string, call: () => Promise<T>): Promise<T> {
    git.arm("hold", part);
    const calling = call();
    await until("Git", () => git.isHeld);
    // The next server may have started by the time that this process looks.
    let isLost = false;
    const subscription = window.folder.onDidChange((changes) => {
      isLost ||= changes.some((change) => change.type === "connection" && change.state.kind !== "connected");
    });
    process.kill((desk.server() ?? assert.fail("There is no server")).pid, "SIGKILL");
    await until("the loss", () => isLost);
    subscription.dispose();
    git.release();
    const result = await calling;
    await until("the next server", () => window.folder.connection() === "connected", 60_000);
    return result;
  }

  /** Waits until the server has stored this word with the task. */
  const untilStored = ({ id }: Task, word: string): Promise<unknown> =>
    until(`${word} on the server`, async () => {
      const response = await desk.fetch(`/session/${id}`);
      return (await response.text()).includes(word);
    });

  const treeOf = ({ worktree }: Task) => worktree ?? assert.fail("It has no worktree");
  const present = ({ id }: Task): Task => window.folder.tasks.get(id) ?? assert.fail("It is gone");
  const read = (directory: string, path: string): string => readFileSync(join(directory, path), "utf8");
  const plan = ({ id }: Task): Promise<BringBackPlan> => window.folder.calls.planBringBack(id, {});
  const bring = ({ id }: Task, planned: BringBackPlan): Promise<BroughtBack> =>
    window.folder.calls.bringBack(
      id,
      planned,
      planned.files.map(({ path }) => ({ path, take: "merged" })),
      [],
    );
  /** Discards everything, so that the next test begins with nothing. */
  const clear = async (task: Task): Promise<void> => {
    await window.folder.calls.discardWorktree(task.id);
    repository.git("checkout", "--quiet", ".");
    repository.git("clean", "--quiet", "--force");
  };

  for (const [when, part] of [
    ["before", "worktree add"],
    ["after", "worktree add"],
    ["after", "read-tree --reset"],
    // The worktree is complete; its task doesn't exist yet.
    ["after", "ls-files*--ignored"],
  ] as const)
    it(`a daemon that is killed while it makes one, ${when} "${part}", leaves nothing`, async () => {
      const before = left();
      git.arm(when, part);
      await killedIn(() => launch("x\n"));
      await until("the removal", () => JSON.stringify(left()) === JSON.stringify(before));
      assert.equal(window.folder.tasks.size, 0);
    });

  it("a server that is killed before the session is created leaves nothing, and the launch says so", async () => {
    const before = left();
    await serverKilledIn("ls-files*--ignored", () => assert.rejects(launch("x\n")));
    await until("the removal", () => JSON.stringify(left()) === JSON.stringify(before));
    assert.equal(window.folder.tasks.size, 0);
  });

  it("a server that is killed while work is discarded learns of that later, and the work can be made again", async () => {
    const task = await ended("agent\n");
    const { directory } = treeOf(task);
    await serverKilledIn("update-ref refs/asyncagents/discarded", () =>
      window.folder.calls.discardWorktree(task.id),
    );
    assert.ok(!existsSync(directory));
    await untilStored(task, "discarded");
    await window.folder.calls.remakeWorktree(task.id);
    assert.equal(read(directory, "new.txt"), "agent\n");
    await clear(task);
  });

  it("a server that is killed while work is brought back learns of that later, and it can be undone", async () => {
    const task = await ended("agent\n");
    const { directory } = treeOf(task);
    const planned = await plan(task);
    const { before, after } = await serverKilledIn("hash-object", () => bring(task, planned));
    assert.equal(read(repository.directory, "both.txt"), "agent\n");
    await untilStored(task, "broughtBack");
    await until("the removal", () => !existsSync(directory));
    await window.folder.calls.undoBringBack(task.id, { before, after });
    assert.equal(read(repository.directory, "both.txt"), "old\n");
    assert.equal(read(directory, "new.txt"), "agent\n");
    await clear(task);
  });

  it("a daemon that is killed while it discards loses nothing", async () => {
    const task = await ended("agent\n");
    const { directory } = treeOf(task);
    git.arm("after", "update-ref refs/asyncagents/discarded");
    await killedIn(() => window.folder.calls.discardWorktree(task.id));
    assert.equal(read(directory, "new.txt"), "agent\n");
    git.arm("after", "for-each-ref*discarded");
    await killedIn(() => window.folder.calls.discardWorktree(task.id));
    assert.ok(!existsSync(directory));
    await window.folder.calls.remakeWorktree(task.id);
    assert.equal(read(directory, "new.txt"), "agent\n");
    await clear(task);
  });

  it("a daemon that is killed while it brings work back writes all of it or nothing, and removes the worktree later", async () => {
    const task = await ended("agent\n");
    const { directory } = treeOf(task);
    git.arm("after", "hash-object");
    const planned = await plan(task);
    await killedIn(() => bring(task, planned));
    assert.equal(read(repository.directory, "both.txt"), "old\n");
    assert.ok(!existsSync(join(repository.directory, "new.txt")));
    git.arm("before", "update-ref*kept-");
    await killedIn(async () => bring(task, await plan(task)));
    assert.equal(read(repository.directory, "both.txt"), "agent\n");
    assert.equal(read(repository.directory, "new.txt"), "agent\n");
    await until("the removal", () => !existsSync(directory));
    assert.equal(treeOf(present(task)).outcome, "broughtBack");
    repository.git("checkout", "--quiet", ".");
    repository.git("clean", "--quiet", "--force");
  });

  it("a daemon that is killed when it has merged the folder into one knows that afterwards", async () => {
    const task = await ended("agent\n");
    const { name, base } = treeOf(task);
    repository.write("both.txt", "mine\n");
    repository.write("mine.txt", "mine\n");
    const planned = await plan(task);
    git.arm("after", "update-ref -z --stdin");
    await killedIn(() => window.folder.calls.letAgentMerge(task.id, planned));
    const kept = repository.git("rev-parse", `refs/asyncagents/${name}/base`).trim();
    assert.notEqual(kept, base);
    await until("the base", () => treeOf(present(task)).base === kept);
    writeFileSync(join(treeOf(task).directory, "both.txt"), "both\n");
    const again = await plan(task);
    assert.deepEqual(
      again.files.map(({ path, conflict }) => [path, conflict]),
      [
        ["both.txt", undefined],
        ["new.txt", undefined],
      ],
    );
    await clear(task);
  });

  it("a daemon that is killed leaves a task in one to the next daemon, which follows it, serves its agent the tools, and notifies the parent once", async () => {
    const own = desk.elsewhere(makeRepository().directory);
    const window = own.window({ maxDepth: MAX_DEPTH });
    const { calls } = window.folder;
    await calls.connect();
    const parent = await calls.ensureSession();
    const inner = { prompt: script([{ text: "Inside." }]), agent: "general" };
    const { id, worktree } = await calls.launch({
      prompt: script([
        { gate: "killed", tools: [{ name: "asyncagents_task", args: inner }] },
        { text: "Done." },
        { text: "Seen." },
      ]),
      agent: "general",
      parentSessionID: parent,
      launchedBy: "person",
      isolation: "worktree",
    });
    await model.waitForRequest(({ sessionID }) => sessionID === id);
    const daemon = desk.daemonPid() ?? assert.fail("There is no daemon");
    process.kill(daemon, "SIGKILL");
    await until("the next daemon", () => desk.daemonPid() !== daemon && desk.daemonPid() !== undefined);
    await until("the folder", () => window.folder.connection() === "connected", 60_000);
    assert.deepEqual(window.folder.tasks.get(id)?.worktree, worktree);
    model.release("killed");
    const { task, changes } = await calls.output(id, { block: true });
    assert.deepEqual([task.status, changes?.files], ["completed", []]);
    const child = await until("the task inside", () =>
      [...window.folder.tasks.values()].find(({ parentSessionID }) => parentSessionID === id),
    );
    assert.equal((await calls.output(child.id, { block: true })).task.status, "completed");
    await until("the notice", () => window.folder.tasks.get(id)?.notice.state === "delivered");
    assert.equal((await notices(own, parent)).length, 1);
    window.close();
  });

  it("[ISO-2] if a daemon is killed that sets one up, the command ends with it, the next one runs it again, and then sends the prompt", async () => {
    const command = "echo $$ >> runs; echo $$ > pid; until [ -e go ]; do sleep 0.05; done";
    const setup = { command, isAllowed: true, timeout: 60_000 };
    const window = desk.elsewhere(makeRepository().directory).window({
      maxDepth: MAX_DEPTH,
      isolation: { default: "worktree", startFrom: "whatYouSee", include: undefined, setup },
    });
    const { calls } = window.folder;
    await calls.connect();
    const task = await calls.launch({
      prompt: script([{ text: "Done." }]),
      agent: "general",
      parentSessionID: await calls.ensureSession(),
      launchedBy: "person",
    });
    const { id } = task;
    const worktree = treeOf(task).directory;
    const first = await processIn(join(worktree, "pid"));
    process.kill(desk.daemonPid() ?? assert.fail("There is no daemon"), "SIGKILL");
    await until("the end of the command", () => !isAlive(first));
    await until("the next run", async () => (await processIn(join(worktree, "pid"))) !== first);
    assert.equal(model.requests.filter(({ sessionID }) => sessionID === id).length, 0);
    assert.equal(window.folder.tasks.get(id)?.worktree?.setup, "pending");
    writeFileSync(join(worktree, "go"), "");
    const { task: done } = await calls.output(id, { block: true });
    assert.equal(done.status, "completed");
    assert.equal(readFileSync(join(worktree, "runs"), "utf8").trim().split("\n").length, 2);
    assert.equal(model.requests.filter(({ sessionID }) => sessionID === id).length, 1);
    window.close();
  });
});
