import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { DaemonFolder, type Shared } from "../../../src/daemon/folder.ts";
import { DaemonFolders } from "../../../src/daemon/folders.ts";
import { Semaphore } from "../../../src/daemon/semaphore.ts";
import { StateFile } from "../../../src/daemon/state-files.ts";
import type { ConnectionState } from "../../../src/engine/connection.ts";
import { Emitter } from "../../../src/engine/event.ts";
import type { TaskRecord } from "../../../src/engine/task.ts";
import { FolderWorktrees } from "../../../src/git/folder-worktrees.ts";
import type { OwnServers } from "../../../src/opencode/own-servers.ts";
import { ServerEvents } from "../../../src/opencode/server-events.ts";
import type { FolderSettings } from "../../../src/rpc/contract.ts";
import type { HostedFolder } from "../../../src/rpc/folder-host.ts";
import { noOwnServers } from "../../support/engine.ts";
import { ManualClock, settled } from "../../support/manual-clock.ts";
import { roughTokens } from "../../support/rough-tokens.ts";
import { tempDir } from "../../support/temp.ts";
import { until } from "../../support/wait.ts";
import { lockReason } from "../../../src/git/our-worktrees.ts";
import { ARepository, writeFiles } from "../git/a-repository.ts";
import { settings, silentLogger } from "../rpc/fake-host.ts";

describe("the folders of the daemon", () => {
  const HOUR = 3_600_000;
  let clock: ManualClock;
  let shared: Shared;
  let folders: DaemonFolders;
  let directory: string;

  beforeEach(() => {
    clock = new ManualClock();
    directory = tempDir("folder");
    shared = {
      stateFolder: tempDir("state"),
      home: directory,
      bundle: (name) => name,
      ownServers: noOwnServers as OwnServers,
      tokens: roughTokens,
      starts: new Semaphore(1),
      graceMs: 1_000,
      events: new ServerEvents(clock),
      saves: new Emitter((error) => assert.fail(String(error))),
      clock,
      logger: silentLogger,
    };
    folders = new DaemonFolders(shared);
  });
  afterEach(() => folders.leave());

  /** No server can be started with these. */
  const noServer: FolderSettings = {
    ...settings,
    server: { ...settings.server, path: "/no/opencode" },
    keepWorkingMs: HOUR,
  };

  /** What an earlier daemon kept of the folder. */
  async function keep(isUsed: boolean, unsettled: readonly TaskRecord[]): Promise<void> {
    const state = await StateFile.open(directory, shared);
    state.setUsed(isUsed);
    state.saveUnsettled(unsettled);
    state.keepSettings(noServer);
    await state.close();
  }

  const keptState = (): Promise<StateFile> => StateFile.open(directory, shared);
  const TASK = { id: "ses_1", revision: 1 } as TaskRecord;

  it("don't count one that could not be opened, so that the daemon can end", async () => {
    shared = {
      get stateFolder(): string {
        throw new Error("There is no such folder.");
      },
    } as Shared;
    folders = new DaemonFolders(shared);
    const counts: number[] = [];
    folders.onDidChangeCount((count) => counts.push(count));
    await assert.rejects(folders.open({ directory: "/work", settings, env: {} }), /no such folder/);
    assert.deepEqual(counts, [1, 0]);
  });

  it("keep one that waits for the servers of others to start, and that it is used", async () => {
    await keep(true, []);
    const others = await shared.starts.enter(new AbortController().signal);
    void folders.reopen(directory, { env: {}, onlyIfUsed: true });
    await until("it to wait", () => shared.starts["waiting"].size > 0);
    await clock.advance(3 * shared.graceMs);
    assert.equal(folders.count, 1);
    await folders.leave();
    assert.equal((await keptState()).isUsed, true);
    others();
  });

  for (const [isOpened, what] of [
    [true, "not connected yet"],
    [false, "still being opened"],
  ] as const)
    it(`hand over the work of one that is ${what}`, async () => {
      await keep(true, [TASK]);
      const opening = folders.open({ directory, settings, env: {} });
      if (isOpened) await opening;
      assert.deepEqual(
        (await folders.leave()).map((folder) => folder.directory),
        [directory],
      );
      opening.catch(() => undefined);
    });

  it("keep one whose tasks couldn't be read yet, if it had unsettled ones", async () => {
    await keep(true, [TASK]);
    const { service, close } = await folders.open({
      directory,
      settings: { ...settings, keepWorkingMs: HOUR },
      env: {},
    });
    assert.ok(service instanceof DaemonFolder);
    const state = { kind: "connected", url: "http://127.0.0.1:1", version: "1", own: true };
    const failed = { kind: "failed", failure: { code: "gave-up", message: "", remedy: "" } };
    Object.defineProperty(service["connection"], "state", { value: state });
    Object.defineProperty(service["connecting"], "state", { value: failed });
    service["connection"].server.statuses = async () => new Map();
    close();
    await clock.advance(3 * shared.graceMs);
    assert.equal(folders.count, 1);
  });

  it("say of no task that it is unknown, and take no worktree for one without a task, before the tasks are known", async () => {
    await keep(true, [TASK]);
    const { service, close } = await folders.open({ directory, settings: noServer, env: {} });
    const { calls } = service;
    for (const call of [
      () => calls.rename("ses_1", "New name"),
      () => calls.output("ses_1"),
      () => calls.cleanUpWorktree("name"),
      () => calls.listWorktrees(),
      () => calls.undoBringBack("ses_1", { before: [], after: [] }),
    ])
      await assert.rejects(call(), { name: "Refusal", code: "unavailable" });
    close();
  });

  for (const how of ["cancelConnecting", "stopServer"] as const)
    it(`leave one alone that the user left by ${how} while it waited for the servers of others`, async () => {
      await keep(true, []);
      const others = await shared.starts.enter(new AbortController().signal);
      const { service, close } = await folders.open({ directory, settings: noServer, env: {} });
      assert.ok(service instanceof DaemonFolder);
      void service.calls.join();
      await until("it to wait", () => shared.starts["waiting"].size > 0);
      // No server may be stopped here.
      await service.calls[how]().catch(() => undefined);
      await settled();
      assert.equal(service["state"].isUsed, false);
      await service.calls.takenSince(0);
      assert.equal(shared.starts["waiting"].size, 0);
      close();
      others();
    });

  it("show no picture of the folder for one of a worktree, nor say that a conversation is gone, before the tasks are known", async () => {
    await keep(true, [TASK]);
    writeFileSync(join(directory, "a.png"), Buffer.from("89504e470d0a1a0a", "hex"));
    const { service, close } = await folders.open({ directory, settings: noServer, env: {} });
    await assert.rejects(service.calls.image("ses_1", "a.png"), { code: "unavailable" });
    await assert.rejects(
      service.openConversation("ses_1", () => undefined),
      { code: "unavailable" },
    );
    close();
  });

  it("don't make a call that was cancelled while it waited", async () => {
    await keep(true, [TASK]);
    const { service, close } = await folders.open({ directory, settings: noServer, env: {} });
    assert.ok(service instanceof DaemonFolder);
    const cancelled = new AbortController();
    service["connecting"].join = async () => cancelled.abort();
    await assert.rejects(service.calls.output("ses_1", { signal: cancelled.signal }), {
      code: "cancelled-by-caller",
    });
    close();
  });

  it("let calls wait until one is back at its tasks, but no longer", async () => {
    await keep(true, [TASK]);
    const { service, close } = await folders.open({ directory, settings: noServer, env: {} });
    assert.ok(service instanceof DaemonFolder);
    let state: ConnectionState = { kind: "disconnected" };
    let joined = 0;
    const connecting = service["connecting"];
    Object.defineProperty(connecting, "state", { get: () => state });
    connecting.join = async () => {
      joined++;
      state = { kind: "connected", url: "http://127.0.0.1:1", version: "1", own: true };
      connecting["changes"].fire();
    };
    await assert.rejects(service.calls.rename("ses_1", "New name"), { code: "unknown-task" });
    state = { kind: "connecting", detail: "" };
    await assert.rejects(service.calls.rename("ses_1", "New name"), { code: "unavailable" });
    assert.equal(joined, 1);
    close();
  });

  it("open the one for whose task a worktree was made, if that is asked for", async () => {
    const repository = new ARepository().commit({ "a.txt": "a\n" });
    directory = repository.root;
    await keep(false, []);
    const worktrees = new FolderWorktrees(directory, () => process.env, silentLogger);
    const made = await worktrees.make({ name: "work", startFrom: "head" });
    await worktrees.claim(made);
    // It was opened as a folder, too.
    const worktree = await StateFile.open(made.directory, shared);
    worktree.keepSettings(noServer);
    await worktree.close();
    await folders.reopen(made.directory, { env: {}, onlyIfUsed: true });
    assert.equal(folders.count, 0);
    await folders.reopen(made.directory, { env: {}, onlyIfUsed: false });
    assert.deepEqual([...folders["held"].keys()].sort(), [directory, made.directory].sort());
    await folders.reopen(tempDir("elsewhere"), { env: {}, onlyIfUsed: false });
    assert.equal(folders.count, 2);
  });

  it("open none for a repository that an agent has made to look like such a worktree", async () => {
    await keep(true, []);
    const own = tempDir("own");
    writeFiles(own, {
      "g/HEAD": "ref: refs/heads/main\n",
      "g/objects/keep": "",
      "g/refs/keep": "",
      "g/worktrees/x/HEAD": "ref: refs/heads/main\n",
      "g/worktrees/x/commondir": "../..\n",
      "g/worktrees/x/gitdir": `${join(own, ".git")}\n`,
      "g/worktrees/x/locked": `${lockReason("x")}\n`,
      "g/worktrees/x/asyncagents-task": JSON.stringify({ folder: directory }),
      ".git": "gitdir: g/worktrees/x\n",
    });
    await folders.reopen(own, { env: {}, onlyIfUsed: false });
    assert.equal(folders.count, 0);
  });

  it("stop nothing silently in one whose tasks couldn't be read yet", async () => {
    await keep(true, [TASK]);
    const { service, close } = await folders.open({ directory, settings, env: {} });
    assert.ok(service instanceof DaemonFolder);
    const connected = { kind: "connected", url: "http://127.0.0.1:1", version: "1", own: true };
    const failed = { kind: "failed", failure: { code: "gave-up", message: "", remedy: "" } };
    Object.defineProperty(service["connection"], "state", { value: connected });
    Object.defineProperty(service["connecting"], "state", { value: failed });
    await assert.rejects(folders.stop([directory]), { name: "Refusal", code: "unavailable" });
    close();
  });

  it("stop nothing silently where work goes on in one that isn't open again yet", async () => {
    await keep(true, [TASK]);
    await assert.rejects(folders.stop([directory]), { name: "Refusal", code: "unavailable" });
    await keep(true, []);
    await folders.stop([directory]);
  });

  it("stop nothing silently in one whose tasks are still unknown", async () => {
    await keep(true, [TASK]);
    const others = await shared.starts.enter(new AbortController().signal);
    void folders.reopen(directory, { env: {}, onlyIfUsed: true });
    await until("it to wait", () => shared.starts["waiting"].size > 0);
    await assert.rejects(folders.stop([directory]), { name: "Refusal", code: "unavailable" });
    await clock.advance(3 * shared.graceMs);
    assert.equal(folders.count, 1);
    others();
  });

  it("don't close one that a window has opened again while the tasks of the closed one were being cancelled", async () => {
    const { service, close } = await folders.open({ directory, settings, env: {} });
    assert.ok(service instanceof DaemonFolder);
    let cancel = (): void => assert.fail("nothing to cancel");
    service.cancelAll = () => new Promise((resolve) => (cancel = resolve));
    close();
    const stopped = folders.stop([directory]);
    await clock.advance(2 * shared.graceMs);
    await until("it to be closed", () => folders.count === 0);
    await folders.open({ directory, settings, env: {} });
    cancel();
    await clock.advance(2 * shared.graceMs);
    await stopped;
    assert.equal(folders.count, 1);
  });

  it("open one again only once the last state of the one that is being closed is written", async () => {
    const { service, close } = await folders.open({ directory, settings, env: {} });
    assert.ok(service instanceof DaemonFolder);
    const finish = service.finish.bind(service);
    let write = (): void => assert.fail("not closed");
    service.finish = async () => {
      await new Promise<void>((resolve) => (write = resolve));
      service["state"].saveUnsettled([TASK]);
      await finish();
    };
    close();
    await clock.advance(2 * shared.graceMs);
    const opening = folders.open({ directory, settings, env: {} });
    // Time in which the file could be read.
    for (let reads = 0; reads < 3; reads++) await keptState();
    write();
    const again = (await opening).service;
    assert.ok(again instanceof DaemonFolder);
    assert.deepEqual(again["state"].loadUnsettled(), [TASK]);
    assert.equal(folders.count, 1);
  });

  it("open none any more once they are left", async () => {
    await folders.leave();
    await assert.rejects(folders.open({ directory, settings, env: {} }), /is ending/);
    assert.equal(folders.count, 0);
  });

  it("keep one without a window for as long as tasks may keep running, whichever daemons have it open", async () => {
    await keep(true, [TASK]);
    const folder = { directory, settings: { ...noServer, keepWorkingMs: 10 * shared.graceMs }, env: {} };
    /** Opens it without a window in the next daemon, where its task is running. */
    const reopen = async (): Promise<void> => {
      folders = new DaemonFolders(shared);
      await folders.openWithoutWindow(folder);
      const { folder: opened } = folders["held"].get(directory) ?? assert.fail("not open");
      opened.isRunning = async () => true;
    };
    await reopen();
    await clock.advance(6 * shared.graceMs);
    await folders.leave();
    await reopen();
    await clock.advance(3 * shared.graceMs);
    assert.equal(folders.count, 1);
    await clock.advance(2 * shared.graceMs);
    await until("it to be closed", () => folders.count === 0);
  });

  it("let tasks keep running as long again after a window had the folder open", async () => {
    await keep(true, [TASK]);
    const folder = { directory, settings: { ...noServer, keepWorkingMs: 10 * shared.graceMs }, env: {} };
    const before = await keptState();
    before.setAlone(8 * shared.graceMs);
    await before.close();
    const { service, close } = await folders.open(folder);
    assert.ok(service instanceof DaemonFolder);
    service.isRunning = async () => true;
    close();
    await clock.advance(9 * shared.graceMs);
    assert.equal(folders.count, 1);
  });

  describe("of which a window names another server", () => {
    const at = (port: number): FolderSettings => ({
      ...settings,
      server: { ...settings.server, url: `http://127.0.0.1:${port}` },
    });
    const open = (port: number): Promise<HostedFolder> =>
      folders.open({ directory, settings: at(port), env: {} });

    /** Whether the folder goes to the server of a window that opens it next. */
    async function goesToAnother(): Promise<boolean> {
      await open(2);
      return isAtAnother();
    }

    async function isAtAnother(): Promise<boolean> {
      const [folder] = await folders.describe();
      return folder?.opened.settings.server.url === at(2).server.url;
    }

    for (const [isUsed, unsettled, goes, what] of [
      [false, [], true, "that nobody uses goes to it"],
      [true, [], true, "whose tasks are settled goes to it"],
      [false, [TASK], true, "that was disconnected on purpose goes to it"],
      [true, [TASK], false, "stays while it may be about to rejoin its tasks"],
    ] as const)
      it(`one ${what}, if no other window has it open`, async () => {
        await keep(isUsed, unsettled);
        (await open(1)).close();
        assert.equal(await goesToAnother(), goes);
      });

    it("one stays if another window has it open, too", async () => {
      await open(1);
      assert.equal(await goesToAnother(), false);
    });

    for (const isSettled of [true, false])
      it(`one ${isSettled ? "goes to it" : "stays, as tasks are running,"} once the other window has left`, async () => {
        const other = await open(1);
        be({ kind: "connected", url: "http://127.0.0.1:1", version: "1", own: false }, isSettled, other);
        assert.equal(await goesToAnother(), false);
        other.close();
        assert.equal(await isAtAnother(), isSettled);
      });

    /** Lets the folder be connected, with tasks that are settled or not, or have failed to connect. */
    function be(state: ConnectionState, isSettled: boolean, { service }: HostedFolder): void {
      assert.ok(service instanceof DaemonFolder);
      Object.defineProperty(service["connection"], "state", { value: state });
      Object.defineProperty(service["connecting"], "state", { value: state });
      service["engine"].isSettled = () => isSettled;
    }

    for (const isSettled of [true, false])
      it(`one that is connected ${isSettled ? "goes to it" : "stays while tasks are running"}`, async () => {
        await keep(true, isSettled ? [TASK] : []);
        const window = await open(1);
        be({ kind: "connected", url: "http://127.0.0.1:1", version: "1", own: false }, isSettled, window);
        window.close();
        assert.equal(await goesToAnother(), isSettled);
      });

    describe("and differ otherwise, too", () => {
      const limited = (taskCost: number): FolderSettings => ({
        ...noServer,
        engine: { ...settings.engine, budget: { ...settings.engine.budget, taskCost } },
      });
      const openWith = (with_: FolderSettings): Promise<HostedFolder> =>
        folders.open({ directory, settings: with_, env: {} });
      async function limit(): Promise<unknown> {
        const [folder] = await folders.describe();
        return folder?.opened.settings.engine.budget.taskCost;
      }

      it("one keeps those of the window that had it open first, whatever other windows show", async () => {
        const first = await openWith(limited(2));
        const other = await openWith(limited(1));
        assert.equal(await limit(), 2);
        other.configure({ ...limited(1), watched: true });
        assert.equal(await limit(), 2);
        // A password that is entered in one window is stored for all.
        for (const [window, taskCost] of [
          [first, 2],
          [other, 1],
        ] as const)
          window.configure({ ...limited(taskCost), password: "secret" });
        assert.equal(await limit(), 2);
      });

      it("one gets those of the window that changes them", async () => {
        const first = await openWith(limited(2));
        const other = await openWith(limited(1));
        other.configure(limited(3));
        assert.equal(await limit(), 3);
        first.configure({ ...limited(2), watched: true });
        assert.equal(await limit(), 3);
      });

      it("one gets those of a window that still has it open once their own window leaves", async () => {
        const first = await openWith(limited(2));
        await openWith(limited(1));
        await openWith(limited(3));
        first.close();
        assert.equal(await limit(), 3);
      });
    });

    it("one whose connection has failed goes to it, whoever has it open", async () => {
      await keep(true, [TASK]);
      be({ kind: "failed", failure: { code: "gave-up", message: "", remedy: "" } }, false, await open(1));
      assert.equal(await goesToAnother(), true);
    });
  });
});
