import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import type { LaunchInput } from "../../src/engine/launcher.ts";
import type { MirroredRequest } from "../../src/engine/folder-changes.ts";
import { sentence } from "../../src/engine/sentence.ts";
import { INTERRUPTED_ERROR, type Task } from "../../src/engine/task.ts";
import { reopenFolder } from "../../src/plugin/reopen-folder.ts";
import type { FolderClient, FolderSettings } from "../../src/rpc/contract.ts";
import { isAlive } from "../../src/state/processes.ts";
import { callTool, startAgentServer, type AgentServer, type MadeCall } from "../support/agent-tools.ts";
import { DaemonDesk, newerRelease, type DaemonWindow, type DeskOptions } from "../support/daemon.ts";
import { notices, storedMessages } from "../support/engine.ts";
import {
  script,
  startScriptedModel,
  type ScriptedModel,
  type ScriptStep,
} from "../support/scripted-model.ts";
import { tempDir } from "../support/temp.ts";
import { until } from "../support/wait.ts";

/** It takes half a second on an idle machine. */
const BACK_WITHIN_MS = 20_000;

describe("the daemon", function () {
  this.timeout(120_000);
  let model: ScriptedModel;
  /** The user of the tests that leave a server running. Each of them works in a folder of its own. */
  let shared: DaemonDesk;
  let desk: DaemonDesk;
  let parent: string;

  before(async () => {
    model = await startScriptedModel();
    shared = await DaemonDesk.open(model);
  });
  afterEach(() => (desk?.stateFolder === shared.stateFolder ? desk.closeWindows() : desk?.close()));
  after(async () => {
    await shared?.close();
    await model?.stop();
  });

  /**
   * A window that is connected, and a session of its folder to launch from.
   * @param own for a user with nothing else running
   */
  async function open(engine = {}, own?: DeskOptions): Promise<DaemonWindow> {
    desk = own ? await DaemonDesk.open(model, own) : shared.elsewhere();
    const window = desk.window(engine);
    await window.folder.calls.connect();
    parent = await window.folder.calls.ensureSession();
    return window;
  }

  const input = (...steps: readonly ScriptStep[]): LaunchInput => ({
    prompt: script(steps),
    description: "Shared",
    agent: "general",
    parentSessionID: parent,
    launchedBy: "person",
  });

  /** Whether the model works on this step for the task. */
  const asked = (id: string): Promise<unknown> => model.waitForRequest(({ sessionID }) => sessionID === id);

  async function end(folder: FolderClient, id: string): Promise<Task> {
    const { task } = await folder.calls.output(id, { block: true, timeout: 60 });
    return task;
  }

  /** Waits until the parent got this many notices, and this window shows all of them as delivered. */
  async function told(count: number, window: DaemonWindow): Promise<void> {
    await until(`${count} notices`, async () => (await notices(desk, parent)).length === count, 30_000);
    await until("the delivery", () =>
      [...window.folder.tasks.values()].every(({ notice }) => notice.state === "delivered"),
    );
    assert.equal((await notices(desk, parent)).length, count);
  }

  it("runs a task and notifies its parent once; the window sees the task as the call left it", async () => {
    const window = await open();
    const { folder } = window;
    assert.equal(folder.connection(), "connected");
    const { id } = await folder.calls.launch(input({ text: "First." }));
    assert.equal(folder.tasks.get(id)?.status, "running");
    const output = await folder.calls.output(id, { block: true });
    assert.deepEqual([output.task.status, output.result], ["completed", "First."]);
    assert.equal(folder.tasks.get(id)?.status, "completed");
    await told(1, window);
    await assert.rejects(folder.calls.launch({ ...input(), prompt: " " }), {
      name: "Refusal",
      code: "empty-prompt",
    });
  });

  it("[BKG-1] continues running and queued tasks while no window is open, and a new window sees them", async () => {
    const first = await open({ maxConcurrentTasks: 1 });
    const working = await first.folder.calls.launch(input({ text: "One.", gate: "one" }));
    const queued = await first.folder.calls.launch(input({ text: "Two.", gate: "two" }));
    await asked(working.id);
    assert.equal(first.folder.tasks.get(queued.id)?.queued, true);
    first.close();
    model.release("one");
    await asked(queued.id);

    const second = desk.window({ maxConcurrentTasks: 1 });
    await until("the tasks", () => second.folder.tasks.size === 2);
    assert.equal(second.folder.tasks.get(working.id)?.status, "completed");
    assert.equal(second.folder.tasks.get(queued.id)?.status, "running");
    model.release("two");
    await end(second.folder, queued.id);
    await told(2, second);
  });

  it("[BKG-4] is restarted by the window after it is killed, keeps the same server, and notifies the parent once of each task", async () => {
    const window = await open();
    const { folder } = window;
    const tasks = await Promise.all(
      ["a", "b"].map((gate) => folder.calls.launch(input({ text: gate, gate }))),
    );
    await Promise.all(tasks.map(({ id }) => asked(id)));
    const [daemon = 0, server] = [desk.daemonPid(), desk.server()];
    const back = new Promise<number>((resolve) =>
      window.client.onDidChangeState(({ kind }) => {
        if (kind === "connected") resolve(performance.now());
      }),
    );
    // The next daemon opens the folder before it knows its tasks.
    const waiting = tasks.map(({ id }) => end(folder, id));
    const killedAt = performance.now();
    process.kill(daemon, "SIGKILL");
    model.release("a");
    await until("the loss", () => folder.connection() !== "connected");
    await until("another daemon", () => ![undefined, daemon].includes(desk.daemonPid()));
    await until("the folder", () => folder.connection() === "connected");
    const away = (await back) - killedAt;
    assert.ok(away < BACK_WITHIN_MS, `The window was without a daemon for ${away} ms.`);
    model.release("b");
    const ends = await Promise.all([...waiting, ...tasks.map(({ id }) => end(folder, id))]);
    assert.deepEqual(
      ends.map(({ status }) => status),
      ["completed", "completed", "completed", "completed"],
    );
    assert.equal(desk.server()?.pid, server?.pid);
    await told(2, window);
  });

  it("[BKG-4] killed while OpenCode can't list the permissions of a folder, knows what its agents wait for", async () => {
    const directory = realpathSync(tempDir("asks"));
    writeFileSync(join(directory, "opencode.json"), JSON.stringify({ permission: { glob: "ask" } }));
    const { folder } = await open({}, { directory });
    // OpenCode refuses to list a search without a path, and with it all others.
    const tools = [{ name: "glob", args: { pattern: "*.ts" } }];
    const { id } = await folder.calls.launch(input({ tools }, { text: "Found." }));
    const requests: MirroredRequest[] = [];
    folder.onDidChange((changes) => {
      for (const change of changes)
        if (change.type === "requests") requests.splice(0, Infinity, ...change.requests);
    });
    const isWaiting = () => folder.tasks.get(id)?.progress?.phase === "needs-permission";
    await until("the request", isWaiting);
    const daemon = desk.daemonPid() ?? assert.fail();
    process.kill(daemon, "SIGKILL");
    await until("the next daemon", () => ![undefined, daemon].includes(desk.daemonPid()));
    await until("the connection", () => folder.connection() === "connected", 30_000);
    const request = await until("the request again", () => isWaiting() && requests[0]);
    await folder.calls.answer(request, { type: "permission", reply: "once" });
    assert.equal((await end(folder, id)).status, "completed");
  });

  it("[BKG-4] killed after settings changed that a new server would get, keeps the same server until it disconnects", async () => {
    const window = await open({}, {});
    const { folder, settings } = window;
    const { id } = await folder.calls.launch(input({ text: "Kept.", gate: "kept" }));
    await asked(id);
    const [daemon = 0, server] = [desk.daemonPid(), desk.server()];
    folder.configure({ ...settings, engine: { ...settings.engine, maxDepth: 2 } });
    // An answer: the settings have arrived.
    await folder.calls.ensureSession();
    process.kill(daemon, "SIGKILL");
    await until("the loss", () => folder.connection() !== "connected");
    await until("the folder", () => folder.connection() === "connected");
    assert.equal(desk.server()?.pid, server?.pid);
    model.release("kept");
    assert.equal((await end(folder, id)).status, "completed");
    await told(1, window);
    await folder.calls.stopServer();
    await until("the end of the server", () => !isAlive(server?.pid ?? 0));
    await folder.calls.connect();
    const next = await until("the next server", () => desk.server());
    assert.notEqual(next.pid, server?.pid);
  });

  it("killed, continues a conversation that a window shows", async () => {
    const { folder } = await open();
    const { id } = await folder.calls.launch(input({ text: "First answer." }));
    await end(folder, id);
    const received: unknown[] = [];
    const shows = (text: string) => until(text, () => JSON.stringify(received).includes(text), 30_000);
    const conversation = await folder.openConversation(id, (message) => void received.push(message));
    conversation.ask({ type: "newest" });
    await shows("First answer.");
    received.length = 0;
    process.kill(desk.daemonPid() ?? assert.fail(), "SIGKILL");
    await shows("First answer.");
    await folder.calls.resume(id, script([{ text: "Second answer." }]));
    await shows("Second answer.");
    conversation.dispose();
  });

  it("[BKG-3] ends by itself once nobody needs it, and leaves no server", async () => {
    const window = await open({}, { graceMs: 500 });
    const { id } = await window.folder.calls.launch(input({ text: "Done.", gate: "done" }));
    await asked(id);
    const [daemon = 0, server] = [desk.daemonPid(), desk.server()];
    assert.ok(server);
    window.close();
    await until("a look at whether something works", () => /Opened /.test(desk.log()));
    model.release("done");
    await until("the end of the daemon", () => !isAlive(daemon), 20_000);
    await until("the end of the server", () => !isAlive(server.pid), 10_000);
    assert.match(desk.log(), /running → completed/);
    assert.equal(desk.daemonPid(), undefined);
  });

  it("[BKG-4] killed while no window is open, is restarted by its server: tasks continue, and the parent is notified", async () => {
    const window = await open({ maxConcurrentTasks: 1 }, {});
    const { calls } = window.folder;
    const first = await calls.launch(input({ text: "First.", gate: "first" }));
    await asked(first.id);
    const second = await calls.launch(input({ text: "Second." }));
    await until("its prompt", async () => (await storedMessages(desk, second.id))[0]?.parts.length);
    const [daemon = 0, server] = [desk.daemonPid(), desk.server()];
    window.close();
    await until("that the window is gone", async () =>
      (await desk.status()).folders.every(({ windows }) => windows === 0),
    );
    process.kill(daemon, "SIGKILL");
    await until("the next daemon", () => ![undefined, daemon].includes(desk.daemonPid()));
    model.release("first");
    await asked(second.id);
    await until("the notices", async () => (await notices(desk, parent)).length === 2);
    assert.equal(desk.server()?.pid, server?.pid);
    // The next daemon is responsible for the server.
    await desk.stop();
    await until("the end of the server", () => !isAlive(server?.pid ?? 0));
  });

  it("killed together with its server, both are restarted: queued tasks start, and the parent is notified of all", async () => {
    const window = await open({ maxConcurrentTasks: 1 });
    const { folder } = window;
    const first = await folder.calls.launch(input({ text: "First.", gate: "never at all" }));
    await asked(first.id);
    const second = await folder.calls.launch(input({ text: "Second." }));
    await until("its prompt", async () => (await storedMessages(desk, second.id))[0]?.parts.length);
    const [daemon = 0, server] = [desk.daemonPid(), desk.server()];
    process.kill(server?.pid ?? 0, "SIGKILL");
    process.kill(daemon, "SIGKILL");
    await until("the loss", () => folder.connection() !== "connected");
    await until("the folder", () => folder.connection() === "connected", 60_000);
    assert.equal((await end(folder, second.id)).status, "completed");
    assert.equal((await end(folder, first.id)).error?.name, INTERRUPTED_ERROR);
    await told(2, window);
  });

  it("[BKG-3] leaves no server even if it is killed and cannot be restarted", async () => {
    const window = await open({}, { graceMs: 1_000 });
    rmSync(join(desk.stateFolder, "daemon-program.json"));
    await asked((await window.folder.calls.launch(input({ text: "never", gate: "never at all" }))).id);
    const [daemon = 0, server] = [desk.daemonPid(), desk.server()];
    window.close();
    process.kill(daemon, "SIGKILL");
    await until("the end of the server", () => !isAlive(server?.pid ?? 0));
  });

  it("stays while its server is replaced after the last window closed, until it knows how the task ended", async () => {
    const window = await open({}, { graceMs: 300 });
    const { id } = await window.folder.calls.launch(input({ text: "never", gate: "never again" }));
    await asked(id);
    process.kill(desk.server()?.pid ?? 0, "SIGKILL");
    await until("the loss", () => window.folder.connection() !== "connected");
    window.close();
    await until("the word of it", () => /running → error/.test(desk.log()), 60_000);
    assert.equal(desk.log().match(/The daemon of version/g)?.length, 1);
  });

  it("[BKG-3] stops its tasks and ends once they have run without a window for the allowed time, and logs it", async () => {
    desk = await DaemonDesk.open(model, { graceMs: 500 });
    const window = desk.window({}, { keepWorkingMs: 0 });
    await window.folder.calls.connect();
    parent = await window.folder.calls.ensureSession();
    const { id } = await window.folder.calls.launch(input({ text: "never", gate: "never" }));
    await asked(id);
    const [daemon = 0, server] = [desk.daemonPid(), desk.server()];
    window.close();
    await until("the end of the daemon", () => !isAlive(daemon), 20_000);
    await until("the end of the server", () => !isAlive(server?.pid ?? 0), 10_000);
    assert.match(desk.log(), /Stopping all tasks in .*: no window has had it open/);
    model.release("never");
  });

  it("asked to end, leaves the server and its tasks to the next daemon", async () => {
    const window = await open();
    const { folder } = window;
    const { id } = await folder.calls.launch(input({ text: "Handed on.", gate: "handed on" }));
    await asked(id);
    const [daemon = 0, server] = [desk.daemonPid(), desk.server()];
    process.kill(daemon, "SIGTERM");
    await until("the end", () => !isAlive(daemon));
    await until("the next daemon", () => ![undefined, daemon].includes(desk.daemonPid()), 20_000);
    await until("the folder", () => folder.connection() === "connected");
    assert.equal(desk.server()?.pid, server?.pid);
    model.release("handed on");
    const { status } = await end(folder, id);
    assert.equal(status, "completed");
    await told(1, window);
  });

  it("asked to end while no window is open, leaves its entry, so that the next window comes back to the tasks", async () => {
    const window = await open();
    const { id } = await window.folder.calls.launch(input({ text: "Left.", gate: "left" }));
    await asked(id);
    const daemon = desk.daemonPid() ?? 0;
    window.close();
    process.kill(daemon, "SIGTERM");
    await until("the end", () => !isAlive(daemon));
    const next = desk.window();
    assert.equal(await next.client.isStarted(), true);
    model.release("left");
    assert.equal((await end(next.folder, id)).status, "completed");
  });

  it("while ending, answers neither a new window nor OpenCode's plugin: the next daemon does", async () => {
    const window = await open({}, {});
    const daemon = desk.daemonPid() ?? 0;
    window.close();
    process.kill(daemon, "SIGTERM");
    while (!/The daemon ends/.test(desk.log())) await setImmediate();
    // On a busy machine, it may have ended by now.
    assert.ok([daemon, undefined].includes(desk.daemonPid()));
    const elsewhere = tempDir("elsewhere");
    await Promise.all([
      desk.window({}, {}, undefined, elsewhere).folder.calls.connect(),
      reopenFolder(desk.stateFolder, desk.directory, { onlyIfUsed: false }),
    ]);
    assert.ok(![undefined, daemon].includes(desk.daemonPid()));
    const { folders } = await desk.status();
    assert.deepEqual(
      new Set(folders.map(({ directory, windows }) => `${windows} in ${directory}`)),
      new Set([`1 in ${elsewhere}`, `0 in ${desk.directory}`]),
    );
  });

  it("[BKG-6] hands over to a newer version without ending a turn, also where no window is open, and an older window asks for an update", async () => {
    const older = await open({}, {});
    const { id } = await older.folder.calls.launch(input({ text: "Handed on.", gate: "newer" }));
    const unseen = desk.elsewhere();
    const window = unseen.window({ maxConcurrentTasks: 1 });
    const { calls } = window.folder;
    await calls.connect();
    const unseenParent = await calls.ensureSession();
    const launch = (gate: string) =>
      calls.launch({ ...input({ text: `${gate} is done.`, gate }), parentSessionID: unseenParent });
    const [working, queued] = [await launch("First handed on"), await launch("Second handed on")];
    await asked(id);
    await asked(working.id);
    const [daemon, server] = [desk.daemonPid(), desk.server()];
    window.close();

    const newer = desk.window({}, {}, await newerRelease());
    await newer.folder.calls.connect();
    assert.equal(newer.folder.tasks.get(id)?.status, "running");
    assert.notEqual(desk.daemonPid(), daemon);
    assert.equal(existsSync(join(desk.stateFolder, "handed-over.json")), false);
    await until("the older window to give up", () => older.client.state.kind === "failed", 20_000);
    const { state } = older.client;
    assert.ok(state.kind === "failed" && state.failure.code === "outdated");
    assert.deepEqual(
      state.failure.remedy,
      sentence("Update the extension if needed, then reload the window."),
    );

    model.release("newer");
    const { status } = await end(newer.folder, id);
    assert.equal(status, "completed");
    await told(1, newer);
    model.release("First handed on");
    await asked(queued.id);
    model.release("Second handed on");
    await until("the notices", async () => (await notices(unseen, unseenParent)).length === 2);
    assert.equal(desk.server()?.pid, server?.pid);
    const requests = model.requests.filter(({ sessionID }) => sessionID === id || sessionID === working.id);
    assert.deepEqual(
      requests.map(({ aborted }) => aborted),
      [false, false],
    );
  });

  it("[BKG-6] hands over running and queued tasks of a folder that only a window of the older version has open", async () => {
    const { calls } = (await open({ maxConcurrentTasks: 1 }, {})).folder;
    const launch = (gate: string) => calls.launch(input({ text: gate, gate }));
    const [working, queued] = [await launch("First of older"), await launch("Second of older")];
    await asked(working.id);
    const server = desk.server();
    const newer = desk.window({}, {}, await newerRelease(), tempDir("elsewhere"));
    await newer.folder.calls.connect();
    assert.equal(existsSync(join(desk.stateFolder, "handed-over.json")), false);
    model.release("First of older");
    await asked(queued.id);
    model.release("Second of older");
    await until("the notices", async () => (await notices(desk, parent)).length === 2);
    assert.equal(desk.server()?.pid, server?.pid);
  });

  it("[BKG-7] stops the tasks of a folder: an open folder stays, a closed one ends with its server", async () => {
    const window = await open({ maxConcurrentTasks: 1 }, {});
    const launch = (gate: string) => window.folder.calls.launch(input({ text: gate, gate }));
    const [working, queued] = [await launch("stop"), await launch("stop")];
    await asked(working.id);
    const { folders } = await desk.status();
    assert.deepEqual(
      folders.map(({ directory, windows, tasks }) => [directory, windows, tasks.map(({ id }) => id)]),
      [[desk.directory, 1, [working.id, queued.id]]],
    );
    const { pid = 0, memory = 0 } = folders[0]?.server ?? {};
    assert.equal(pid, desk.server()?.pid);
    assert.ok(process.platform !== "linux" || memory > 50_000_000, String(memory));

    await window.client.stop([desk.directory, "/nowhere"]);
    for (const { id } of [working, queued]) assert.equal(window.folder.tasks.get(id)?.status, "cancelled");
    assert.equal(window.folder.connection(), "connected");
    assert.ok(
      model.requests.every(({ sessionID }) => sessionID !== queued.id),
      "what was queued never starts",
    );
    await told(2, window);

    const other = await launch("stop");
    await asked(other.id);
    const server = desk.server();
    window.close();
    await until("that the window is gone", async () => (await desk.status()).folders[0]?.windows === 0);
    await desk.stop();
    assert.deepEqual((await desk.status()).folders, []);
    await until("the end of the server", () => !isAlive(server?.pid ?? 0), 10_000);
    assert.match(desk.log(), new RegExp(`Task ${other.id.slice(-6)}: running → cancelled`));
  });

  it("two windows on one folder see the same, and of two concurrent resumes one succeeds", async () => {
    const one = await open();
    const two = desk.window();
    const { id } = await one.folder.calls.launch(input({ text: "First." }));
    await end(two.folder, id);
    await told(1, two);
    const outcomes = await Promise.allSettled(
      [one, two].map(({ folder }) => folder.calls.resume(id, script([{ text: "Again.", gate: "again" }]))),
    );
    assert.deepEqual(outcomes.map(({ status }) => status).sort(), ["fulfilled", "rejected"]);
    const refused = outcomes.find((outcome) => outcome.status === "rejected");
    assert.match(String(refused?.reason), /currently being resumed/);
    model.release("again");
    await end(one.folder, id);
    await told(2, one);
    const seen = ({ folder }: DaemonWindow): string => JSON.stringify([...folder.tasks.values()]);
    await until("the same in both", () => seen(one) === seen(two));
    assert.equal(one.folder.tasks.get(id)?.resumeCount, 1);
  });

  it("a window that names another server doesn't take the folder from the one that is in use, unless it changes that", async () => {
    const first = await open();
    const { id } = await first.folder.calls.launch(input({ text: "Stayed.", gate: "stayed" }));
    await asked(id);
    const at = (port: number): Partial<FolderSettings> => ({
      server: { url: `http://127.0.0.1:${port}`, startTimeoutMs: 5_000 },
    });
    const second = desk.window({}, at(1));
    await second.folder.calls.lastAnswer(parent);
    second.folder.configure({ ...second.settings, watched: false });
    await second.folder.calls.lastAnswer(parent);
    assert.equal(second.folder.connection(), "connected");
    model.release("stayed");
    assert.equal((await end(first.folder, id)).status, "completed");
    await told(1, first);
    first.close();
    second.folder.configure({ ...second.settings, ...at(2), watched: false });
    await until("that it has left", () => second.folder.connection() === "disconnected");
  });

  it("[BKG-5] serves the agents' tools with no window open", async () => {
    const window = await open();
    window.close();
    await until("that the window is gone", async () =>
      (await desk.status()).folders.every(({ windows }) => windows === 0),
    );
    const call = await callTool(desk as never, parent, "asyncagents_task", {
      description: "From an agent",
      prompt: script([{ text: "By an agent." }]),
      agent: "general",
    });
    assert.equal(call.status, "completed", call.text);
    await until("the notice", async () => (await notices(desk, parent)).length === 1, 30_000);
  });

  describe("if agents on the user's own server have the tools, and no daemon is running", () => {
    let server: AgentServer;
    let user: DaemonDesk;
    let call: () => Promise<MadeCall>;

    before(async () => {
      server = await startAgentServer({
        model,
        plugin: { patienceMs: 500 },
        env: { ASYNCAGENTS_DAEMON_GRACE_MS: "500" },
      });
      user = await DaemonDesk.open(model, { stateFolder: server.stateFolder, graceMs: 500 });
      call = () =>
        callTool(server, parent, "asyncagents_task", {
          description: "From an agent",
          prompt: script([{ text: "By an agent." }]),
          agent: "general",
        });
    });
    beforeEach(() => void (desk = user));
    after(() => server?.stop());

    /** Has a window connect to the server and close; resolves when the daemon has ended. */
    async function workBefore(settings: Partial<FolderSettings> = {}): Promise<void> {
      const { url, password, directory } = server;
      const atServer = { server: { url, startTimeoutMs: 60_000 }, password, ...settings };
      const { folder, close } = desk.window({}, atServer, undefined, directory);
      await folder.calls.connect();
      parent = await folder.calls.ensureSession();
      close();
      await until("the daemon's end", () => desk.daemonPid() === undefined);
    }

    /** The server with the password in its address, and not beside it. */
    const withCredentials = (watched = true): Partial<FolderSettings> => {
      const url = server.url.replace("//", `//opencode:${server.password ?? assert.fail()}@`);
      return { server: { url, startTimeoutMs: 60_000 }, password: undefined, watched };
    };

    for (const [where, settings] of [
      ["", () => ({})],
      [" with a password in its address", withCredentials],
    ] as const)
      it(`[BKG-5] is started for a call in a folder that was connected to that server${where}, notifies the parent, and ends`, () =>
        callAfter(settings()));

    async function callAfter(settings: Partial<FolderSettings>): Promise<void> {
      await workBefore(settings);
      // The session may be the one of an earlier call.
      const before = (await notices(server, parent)).length;
      const { status, text } = await call();
      assert.equal(status, "completed", text);
      await until("the notice", async () => (await notices(server, parent)).length === before + 1);
      await until("the daemon's end", () => desk.daemonPid() === undefined);
      assert.doesNotMatch(readState(desk), new RegExp(server.password ?? assert.fail()));
    }

    for (const where of ["", " in its address"])
      it(`stays connected in a folder that was opened for a call when a window comes that has the password${where}`, async () => {
        const { password, stateFolder, directory } = server;
        const settings = withCredentials(false);
        const given =
          where === ""
            ? { ...settings, server: { url: server.url, startTimeoutMs: 60_000 }, password }
            : settings;
        await workBefore(given);
        process.env.OPENCODE_SERVER_PASSWORD = password ?? assert.fail();
        try {
          await reopenFolder(stateFolder, directory, { onlyIfUsed: false });
        } finally {
          delete process.env.OPENCODE_SERVER_PASSWORD;
        }
        const { folder } = desk.window({}, given, undefined, directory);
        await folder.calls.lastAnswer(parent);
        assert.equal(folder.connection(), "connected");
      });

    it("[BKG-5] is not started if its program is missing, and does not open a folder whose tools are switched off", async () => {
      await workBefore({ agentTools: false });
      assert.match(
        (await call()).text,
        /^Background agents need Async Agents to be connected in this folder/,
      );
      await workBefore();
      const record = join(desk.stateFolder, "daemon-program.json");
      const program = JSON.parse(readFileSync(record, "utf8")) as object;
      writeFileSync(record, JSON.stringify({ ...program, script: join(desk.stateFolder, "gone.cjs") }));
      assert.match(
        (await call()).text,
        /^Background agents need Async Agents to be connected in this folder/,
      );
      assert.equal(desk.daemonPid(), undefined);
    });
  });
});

/** All that is kept in the state folder. */
function readState({ stateFolder }: DaemonDesk): string {
  const files = readdirSync(stateFolder, { withFileTypes: true }).filter((entry) => entry.isFile());
  return files.map(({ name }) => readFileSync(join(stateFolder, name), "utf8")).join("\n");
}
