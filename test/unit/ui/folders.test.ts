import assert from "node:assert/strict";
import type * as vscode from "vscode";
import { ActiveSession } from "../../../src/engine/active-session.ts";
import type { TaskEngine } from "../../../src/engine/engine.ts";
import { Refusal } from "../../../src/engine/errors.ts";
import { connectedFolder } from "../../../src/ui/folders/folders.ts";
import { AllTasks } from "../../../src/ui/folders/all-tasks.ts";
import { FolderState } from "../../../src/ui/folders/window-session.ts";
import { addRunningTasks, memoryEngine, strictLogger } from "../../bench/support/memory-engine.ts";
import { MemoryWorkspace } from "../../support/folders.ts";
import { MemoryServer } from "../../support/memory-server.ts";
import { until } from "../../support/wait.ts";

/** A folder with its own server and running tasks. */
class MemoryFolder {
  readonly engine: TaskEngine;
  readonly session: ActiveSession;
  tasks: readonly string[] = [];
  readonly server: MemoryServer;

  constructor(name: string) {
    this.server = new MemoryServer({ name });
    this.engine = memoryEngine(this.server);
    this.session = new ActiveSession(this.engine, this.server, strictLogger);
  }

  async fill(count: number): Promise<this> {
    ({ tasks: this.tasks } = await addRunningTasks(this.server, count));
    await this.engine.connect();
    await this.session.refresh();
    return this;
  }

  dispose(): void {
    this.session.dispose();
    this.engine.dispose();
  }
}

describe("the folders of a workspace", () => {
  let workspace: MemoryWorkspace;
  let made: MemoryFolder[];

  beforeEach(() => {
    workspace = new MemoryWorkspace(strictLogger);
    made = [];
  });

  afterEach(() => {
    workspace.folders.dispose();
    for (const folder of made) folder.dispose();
  });

  async function add(name: string, taskCount = 0): Promise<MemoryFolder> {
    const folder = new MemoryFolder(name);
    made.push(folder);
    await folder.fill(taskCount);
    workspace.add(name, folder);
    return folder;
  }

  const names = (): readonly string[] => workspace.folders.all.map(({ name }) => name);

  it("are empty until they are opened, then those of the workspace, in its order", async () => {
    await add("b");
    await add("a");
    assert.deepEqual(names(), []);
    await workspace.open();
    await workspace.folders.opened;
    assert.deepEqual(names(), ["b", "a"]);
    await add("c");
    workspace.remove("b");
    assert.deepEqual(names(), ["a", "c"]);
  });

  it("try to join running servers, and start none, even if there are twenty", async () => {
    for (let at = 1; at <= 20; at++) await add(`folder ${at}`);
    await workspace.open();
    assert.equal(names().length, 20);
    assert.deepEqual(
      workspace.journal,
      names().map((name) => `adopt ${name}`),
    );
  });

  it("exclude those that are not on disk", async () => {
    workspace.add("web", new MemoryFolder("web"), "vscode-vfs");
    await add("disk");
    await workspace.open();
    workspace.add("web 2", new MemoryFolder("web"), "vscode-vfs");
    assert.deepEqual(names(), ["disk"]);
  });

  it("have as the current one the last one used, else the first, also after a removal", async () => {
    const { folders } = workspace;
    const told: (string | undefined)[] = [];
    folders.onDidChangeCurrent(() => told.push(folders.current?.name));
    for (const name of ["a", "b", "c"]) await add(name);
    await workspace.open();
    folders.use(workspace.get("b"));
    folders.use(workspace.get("b"));
    folders.use(undefined);
    assert.equal(folders.current?.name, "b");
    workspace.remove("b");
    workspace.remove("a");
    assert.equal(folders.current?.name, "c");
    workspace.remove("c");
    assert.equal(folders.current, undefined);
    assert.deepEqual(told, ["a", "b", "a", "c", undefined]);
  });

  it("do not use or connect one that was removed while the user selected it", async () => {
    const { folders } = workspace;
    for (const name of ["a", "b"]) await add(name);
    await workspace.open();
    const chosen = workspace.get("b");
    workspace.remove("b");
    folders.use(chosen);
    assert.equal(folders.current?.name, "a");
    await assert.rejects(
      connectedFolder(folders, chosen),
      (error) => error instanceof Refusal && /no longer in the workspace/.test(error.message),
    );
    assert.equal(await connectedFolder(folders), workspace.get("a"));
    assert.ok(!workspace.journal.includes("connect b"));
  });

  it("are followed each from its addition to its removal", async () => {
    const { folders } = workspace;
    const log: string[] = [];
    const follow = ({ name }: { name: string }) => {
      log.push(`+${name}`);
      return { dispose: () => log.push(`-${name}`) };
    };
    await add("a");
    await workspace.open();
    const subscription = folders.follow(follow);
    await add("b");
    workspace.remove("a");
    subscription.dispose();
    await add("c");
    assert.deepEqual(log, ["+a", "+b", "-a", "-b"]);
    // A folder is disposed after all its followers.
    assert.deepEqual(
      workspace.journal.filter((entry) => entry.startsWith("dispose")),
      ["dispose a"],
    );
  });

  it("announce one that closes while its running tasks can still be found", async () => {
    const atWork: number[] = [];
    workspace.folders.onWillClose(({ known }) => atWork.push(known.active().length));
    await add("a", 2);
    await workspace.open();
    workspace.remove("a");
    assert.deepEqual(atWork, [2]);
    assert.ok(workspace.journal.includes("dispose a"));
  });

  it("announce no closing when the window closes", async () => {
    workspace.folders.onWillClose(() => assert.fail("told"));
    await add("a", 1);
    await workspace.open();
    workspace.folders.dispose();
    assert.ok(workspace.journal.includes("dispose a"));
  });

  describe("their tasks", () => {
    let allTasks: AllTasks;

    beforeEach(() => (allTasks = new AllTasks(workspace.folders, strictLogger)));
    afterEach(() => allTasks.dispose());

    const refusal = (code: string, text: RegExp) => (error: unknown) =>
      error instanceof Refusal && error.code === code && text.test(error.message);

    it("are found by ID, in every folder", async () => {
      const [a, b] = [await add("a", 1), await add("b", 2)];
      await workspace.open();
      assert.equal(allTasks.active().length, 3);
      for (const [folder, id] of [
        [workspace.get("a"), a.tasks[0]],
        [workspace.get("b"), b.tasks[1]],
      ] as const) {
        assert.ok(id);
        assert.equal(allTasks.get(id)?.id, id);
        assert.equal(allTasks.folderOf(id), folder);
        assert.equal(allTasks.list(allTasks.find(id).parentSessionID).length, folder.known.active().length);
      }
      assert.deepEqual(allTasks.list("ses_unknown"), []);
      assert.equal(allTasks.child("ses_unknown"), undefined);
    });

    it("are refused, with the folders' names, if the end of an ID matches tasks of several folders", async () => {
      const [a] = [await add("a", 1), await add("b", 1)];
      await workspace.open();
      const id = a.tasks[0] ?? "";
      assert.throws(
        () => allTasks.find("ses_000000"),
        refusal("ambiguous-task", /several folders.*: a, b\./),
      );
      assert.throws(() => allTasks.find("nowhere"), refusal("unknown-task", /nowhere/));
      assert.equal(allTasks.find(id, allTasks.find(id).parentSessionID).id, id);
    });

    it("[RES-6] are, if unknown, refused in the same words as with a single folder, which suggest a new task", async () => {
      const remedy =
        /Task unknown doesn't exist, or .*no longer exists\. .*start a new asyncagents_task instead/;
      await workspace.open();
      assert.throws(() => allTasks.find("unknown"), refusal("unknown-task", remedy));
      await assert.rejects(
        allTasks.openConversation("unknown", () => undefined),
        refusal("unknown-task", remedy),
      );
      assert.deepEqual(allTasks.openRequests(), []);
      await add("a");
      await add("b");
      assert.throws(() => allTasks.find("unknown"), refusal("unknown-task", remedy));
    });

    it("are unknown to a session that no folder knows", async () => {
      const [a] = [await add("a", 1), await add("b", 1)];
      await workspace.open();
      for (const reference of [a.tasks[0] ?? "", "ses_000000"])
        assert.throws(() => allTasks.find(reference, "ses_unknown"), refusal("unknown-task", /start a new/));
    });

    it("report changes of each folder until it is removed", async () => {
      const [a, b] = [await add("a", 1), await add("b", 1)];
      await workspace.open();
      const told: string[] = [];
      allTasks.onDidChange(({ id, before, after }) => {
        if (before?.status === "running" && after?.status === "cancelled") told.push(id);
      });
      await b.engine.cancel(b.tasks[0] ?? "");
      workspace.remove("a");
      await a.engine.cancel(a.tasks[0] ?? "");
      assert.deepEqual(told, b.tasks);
      assert.equal(allTasks.get(a.tasks[0] ?? ""), undefined);
    });

    it("no longer wait for the user once their folder is removed", async () => {
      await add("a");
      const { server, engine, tasks } = await add("b", 1);
      const id = tasks[0] ?? "";
      await workspace.open();
      server.ask(id);
      await until("the request", () => engine.pendingRequests(id).length === 1);
      const open: number[] = [];
      allTasks.onDidChangeRequests(() => open.push(allTasks.openRequests().length));
      workspace.remove("b");
      assert.deepEqual(open, [0]);
    });

    it("can be waited for together", async () => {
      const [a, b] = [await add("a", 1), await add("b", 1)];
      await workspace.open();
      const ids = [...a.tasks, ...b.tasks];
      const waiting = allTasks.wait(ids);
      await b.engine.cancel(b.tasks[0] ?? "");
      await a.engine.cancel(a.tasks[0] ?? "");
      assert.deepEqual(
        (await waiting).map(({ id }) => id),
        ids,
      );
    });
  });
});

describe("what the editor stores for a folder", () => {
  const memento = (): vscode.Memento & { readonly kept: Map<string, unknown> } => {
    const kept = new Map<string, unknown>();
    return {
      kept,
      keys: () => [...kept.keys()],
      get: (key: string, fallback?: unknown) => kept.get(key) ?? fallback,
      update: async (key: string, value: unknown) =>
        void (value === undefined ? kept.delete(key) : kept.set(key, value)),
    } as vscode.Memento & { readonly kept: Map<string, unknown> };
  };
  const uri = (path: string): vscode.Uri => ({ toString: () => `file://${path}` }) as vscode.Uri;

  it("is separate for each folder", () => {
    const state = memento();
    const [a, b] = [new FolderState(state, uri("/a"), true), new FolderState(state, uri("/b"), false)];
    a.pickedSession = "ses_a";
    b.seen = { at: 1, requests: ["per_1"] };
    assert.equal(b.pickedSession, undefined);
    assert.equal(a.seen, undefined);
    assert.equal(new FolderState(state, uri("/a"), false).pickedSession, "ses_a");
    assert.deepEqual(new FolderState(state, uri("/b"), true).seen, { at: 1, requests: ["per_1"] });
  });

  it("includes, for the first folder, what an earlier version stored for the only one, once", () => {
    const state = memento();
    state.kept.set("asyncagents.pickedSession", "ses_old");
    const later = new FolderState(state, uri("/b"), false);
    const first = new FolderState(state, uri("/a"), true);
    assert.equal(later.pickedSession, undefined);
    assert.equal(first.pickedSession, "ses_old");
    first.pickedSession = undefined;
    assert.equal(new FolderState(state, uri("/a"), true).pickedSession, undefined);
  });

  it("includes the tasks that an earlier version stored, until the daemon has them", () => {
    const state = memento();
    const tombstones = [{ id: "ses_1", description: "Gone", parentSessionID: "ses_0" }];
    const unsettled = [{ id: "ses_2" }];
    state.kept.set("asyncagents.tombstones file:///a", tombstones);
    state.kept.set("asyncagents.unsettled file:///a", unsettled);
    const [a, b] = [new FolderState(state, uri("/a"), true), new FolderState(state, uri("/b"), false)];
    assert.deepEqual(a.keptTasks, { tombstones, unsettled });
    assert.equal(b.keptTasks, undefined);
    a.leaveTasks([]);
    assert.deepEqual(a.keptTasks, { tombstones, unsettled });
    a.leaveTasks(tombstones);
    assert.equal(a.keptTasks, undefined);
    assert.equal(state.kept.size, 0);
  });
});
