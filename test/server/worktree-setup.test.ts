import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { Refusal } from "../../src/engine/errors.ts";
import type { Refused } from "../../src/engine/folder-changes.ts";
import type { LaunchInput } from "../../src/engine/launcher.ts";
import type { IsolationSettings, SetupSettings } from "../../src/engine/settings.ts";
import type { Task } from "../../src/engine/task.ts";
import { isAlive } from "../../src/state/processes.ts";
import { inFolder, startAgentServer, type AgentServer } from "../support/agent-tools.ts";
import { createSession, ended, openWindow, type EngineWindow } from "../support/engine.ts";
import { processIn } from "../support/process.ts";
import { makeRepository, type TestRepository } from "../support/repository.ts";
import { script, type ScriptedModel } from "../support/scripted-model.ts";
import { setUp } from "../support/set-up.ts";
import { until } from "../support/wait.ts";

function isolated(setup?: Partial<SetupSettings>, include?: readonly string[]): IsolationSettings {
  return {
    default: "worktree",
    startFrom: "whatYouSee",
    include,
    setup: setup && { command: "true", isAllowed: true, timeout: 60_000, ...setup },
  };
}

const worktreeOf = ({ worktree }: Task): string => worktree?.directory ?? assert.fail("It has no worktree");

describe("setting up a worktree", () => {
  let model: ScriptedModel;
  let base: AgentServer;
  let server: AgentServer;
  let repository: TestRepository;
  let window: EngineWindow;
  let isolation: IsolationSettings;

  setUp(async (start) => {
    model = await start.model();
    base = await startAgentServer({ model });
    start.stop(() => base.stop());
  });

  beforeEach(async () => {
    repository = makeRepository({ "a.txt": "a\n", ".gitignore": ".env\nlocal/\n" });
    repository.write(".env", "KEY=1\n");
    mkdirSync(join(repository.directory, "local"));
    repository.write("local/data.txt", "data\n");
    server = inFolder(base, repository.directory);
    isolation = isolated();
    window = await openWindow(server, {
      get isolation() {
        return isolation;
      },
    });
  });
  afterEach(() => window.dispose());

  const launch = async (more: Partial<LaunchInput> = {}): Promise<Task> =>
    window.engine.launch({
      prompt: script([{ text: "Done." }], "Do it. "),
      agent: "general",
      parentSessionID: await createSession(server),
      launchedBy: "person",
      ...more,
    });

  const requestsOf = (id: string): number =>
    model.requests.filter(({ sessionID }) => sessionID === id).length;

  it("[ISO-2] the listed files are copied and the command has ended before the model gets the prompt", async () => {
    repository.write(".worktreeinclude", ".env\n");
    isolation = isolated({ command: 'cat .env && sleep 0.5 && cp .env "made by setup" && echo ready >&2' }, [
      "local/",
    ]);
    const look = "cat 'made by setup'; ls local";
    const { id, status, queued } = await launch({
      prompt: script([
        { tools: [{ name: "bash", args: { command: look, description: "Looks" } }] },
        { text: "Done." },
      ]),
    });
    assert.deepEqual([status, queued], ["running", true]);
    const task = await ended(window, id);
    assert.equal(task.status, "completed", task.error?.message);
    assert.equal(task.worktree?.setup, undefined);
    assert.match(JSON.stringify(model.requests.at(-1)?.messages), /KEY=1/);
    assert.ok(!existsSync(join(worktreeOf(task), "local")));
    assert.equal(await window.engine.worktreeWork.setupOutput(id), "KEY=1\nready\n");
  });

  it("[ISO-2] without `.worktreeinclude`, the patterns of the settings say which ignored files are copied", async () => {
    isolation = isolated(undefined, ["local/"]);
    const { id } = await launch();
    const worktree = worktreeOf(await ended(window, id));
    assert.equal(readFileSync(join(worktree, "local/data.txt"), "utf8"), "data\n");
    assert.ok(!existsSync(join(worktree, ".env")));
    assert.equal(await window.engine.worktreeWork.setupOutput(id), undefined);
  });

  it("[ISO-2] a command that fails ends the task without a request; a retry sets up a new worktree", async () => {
    isolation = isolated({ command: "echo No registry; exit 7" });
    const { id } = await launch();
    const failed = await ended(window, id);
    assert.deepEqual([failed.status, failed.error?.name], ["error", "SetupFailed"]);
    assert.match(failed.error?.message ?? "", /failed with exit code 7\. Retry/);
    assert.equal(await window.engine.worktreeWork.setupOutput(id), "No registry\n");
    isolation = isolated({ command: "touch ready.txt" });
    const again = await window.engine.retry(id);
    const retried = await ended(window, again.id);
    assert.equal(retried.status, "completed");
    assert.notEqual(worktreeOf(retried), worktreeOf(failed));
    assert.ok(existsSync(join(worktreeOf(retried), "ready.txt")));
    assert.equal(requestsOf(id), 0);
  });

  it("[ISO-2] a command that takes too long is killed with its child processes, and ends the task", async () => {
    isolation = isolated({ command: "(echo $$ > pid; sleep 600) & wait", timeout: 1_500 });
    const { id } = await launch();
    const task = await ended(window, id);
    assert.equal(task.status, "error");
    assert.match(task.error?.message ?? "", /took longer than/);
    const pid = await processIn(join(worktreeOf(task), "pid"));
    await until("the end of the command", () => !isAlive(pid));
    assert.equal(requestsOf(id), 0);
  });

  it("[ISO-2] cancelling the task kills the command", async () => {
    isolation = isolated({ command: "sleep 600 & echo $! > pid; wait" });
    const task = await launch();
    const pid = await processIn(join(worktreeOf(task), "pid"));
    assert.equal(window.engine.get(task.id)?.progress?.phase, "setting-up");
    assert.equal((await window.engine.cancel(task.id)).status, "cancelled");
    await until("the end of the command", () => !isAlive(pid));
    assert.equal(requestsOf(task.id), 0);
    assert.deepEqual(window.engine.active(), []);
  });

  it("keeps the last 64 kB of the output", async () => {
    isolation = isolated({ command: "seq 1 30000" });
    const { id } = await launch();
    await ended(window, id);
    const output = (await window.engine.worktreeWork.setupOutput(id)) ?? "";
    assert.equal(output.length, 64 * 1024);
    assert.ok(output.endsWith("\n30000\n"));
  });

  it("a command that is not allowed refuses isolated tasks, and no others", async () => {
    isolation = isolated({ command: "touch ran.txt", isAllowed: false });
    const isRefusal = (error: unknown): boolean =>
      error instanceof Refusal && error.code === "setup-not-allowed" && /touch ran\.txt/.test(error.message);
    await assert.rejects(launch(), isRefusal);
    assert.ok(!existsSync(`${repository.directory}.worktrees`));
    const { id } = await launch({ isolation: "folder" });
    assert.equal((await ended(window, id)).status, "completed");
  });

  it("[ISO-2] an agent's launch that the command refuses is reported, a user's is not", async () => {
    isolation = isolated({ command: "true", isAllowed: false });
    const refused: Refused[] = [];
    window.engine.onDidRefuse((one) => refused.push(one));
    const sessionID = await createSession(server);
    for (const launchedBy of ["person", "agent"] as const)
      await assert.rejects(launch({ launchedBy, parentSessionID: sessionID }), /isn't allowed yet: true/);
    await launch({ launchedBy: "agent", parentSessionID: sessionID, isolation: "folder" });
    assert.deepEqual(refused, [{ kind: "setup", sessionID }]);
  });

  it("a worktree that is made again is set up again", async () => {
    isolation = isolated({ command: "cat .env > .env.copy" }, [".env"]);
    const { id } = await launch();
    const worktree = worktreeOf(await ended(window, id));
    await window.engine.worktreeWork.remove(id);
    await window.engine.worktreeWork.remake(id);
    assert.equal(readFileSync(join(worktree, ".env.copy"), "utf8"), "KEY=1\n");
  });

  it("the setup of a worktree that is made again can be cancelled, and ends with the engine", async () => {
    const { id } = await launch();
    const worktree = worktreeOf(await ended(window, id));
    isolation = isolated({ command: "sleep 600 & echo $! > pid; wait" });
    const abort = new AbortController();
    for (const [signal, cancel] of [
      [abort.signal, () => abort.abort()],
      [undefined, () => window.dispose()],
    ] as const) {
      await window.engine.worktreeWork.remove(id);
      const making = assert.rejects(window.engine.worktreeWork.remake(id, signal), /was cancelled/);
      const pid = await processIn(join(worktree, "pid"));
      cancel();
      await making;
      await until("the end of the command", () => !isAlive(pid));
      rmSync(join(worktree, "pid"));
    }
  });
});
