import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import * as vscode from "vscode";
import { ActiveSession } from "../../src/engine/active-session.ts";
import type { ConnectionState } from "../../src/engine/connection.ts";
import type { TaskEngine } from "../../src/engine/engine.ts";
import { Refusal } from "../../src/engine/errors.ts";
import { type Child, isRunning, isTask } from "../../src/engine/subagent.ts";
import type { PromptContext, TaskContext } from "../../src/ui/commands/command.ts";
import { pickConnected, pickFrom } from "../../src/ui/commands/pick.ts";
import { retry } from "../../src/ui/commands/row-commands.ts";
import { connect } from "../../src/ui/commands/set-up.ts";
import { AllTasks, routedCommands } from "../../src/ui/folders/all-tasks.ts";
import { connectionOf } from "../../src/ui/output/open-session.ts";
import { ListOptions } from "../../src/ui/tree/list-options.ts";
import { BatchNode, ChildNode, FolderNode, type Node } from "../../src/ui/tree/items.ts";
import { TaskTree } from "../../src/ui/tree/task-tree.ts";
import { addRunningTasks, memoryEngine, strictLogger } from "../bench/support/memory-engine.ts";
import { MemoryWorkspace } from "../support/folders.ts";
import { MemoryServer } from "../support/memory-server.ts";
import { Unread } from "../../src/ui/tree/unread.ts";
import { MemoryMemento, NOTHING_SHOWN } from "./memory-parts.ts";
import { until } from "../support/wait.ts";

/** Sorts rows in a list without groups. */
const memento = new MemoryMemento();
void memento.update("asyncagents.sortOrder", "active");

describe("the tree of several folders", () => {
  let workspace: MemoryWorkspace;
  let allTasks: AllTasks;
  let options: ListOptions;
  let tree: TaskTree;
  let made: { dispose(): void }[];
  let drawn: string[];

  beforeEach(() => {
    workspace = new MemoryWorkspace(strictLogger);
    allTasks = new AllTasks(workspace.folders, strictLogger);
    const { folders } = workspace;
    const unread = new Unread(allTasks, folders, memento, NOTHING_SHOWN);
    options = new ListOptions(memento);
    tree = new TaskTree(allTasks, folders, options, unread);
    made = [];
    drawn = [];
    tree.onDidChangeTreeData((node) => drawn.push(node ? label(node) : "root"));
  });

  afterEach(() => {
    tree.dispose();
    allTasks.dispose();
    workspace.folders.dispose();
    for (const each of made) each.dispose();
  });

  const item = (node: Node): vscode.TreeItem => tree.getTreeItem(node);
  const label = (node: Node): string => {
    const { label } = item(node);
    return typeof label === "string" ? label : assert.fail("no label");
  };

  async function add(
    name: string,
    taskCount: number,
    state?: ConnectionState,
  ): Promise<{ engine: TaskEngine; tasks: readonly string[] }> {
    const server = new MemoryServer({ name });
    const { tasks } = await addRunningTasks(server, taskCount);
    const engine = memoryEngine(server);
    const session = new ActiveSession(engine, server, strictLogger);
    made.push(session, engine);
    await engine.connect();
    await session.refresh();
    workspace.add(name, { engine, session, ...(state ? { state } : {}) });
    return { engine, tasks };
  }

  /** The top-level rows as the editor has them, each with its children. */
  const rows = (): Record<string, string[]> =>
    Object.fromEntries(tree.getChildren().map((node) => [label(node), tree.getChildren(node).map(label)]));

  it("a single folder has no row; with two folders each has its own", async () => {
    await add("api", 1);
    await workspace.open();
    assert.ok(tree.getChildren()[0] instanceof ChildNode);
    const { tasks } = await add("web", 1);
    const [description] = ["Look into how module 0 handles…"];
    assert.deepEqual(rows(), { api: [description], web: [description] });
    const above = tree.getParent(tree.node(tasks[0] ?? ""));
    assert.ok(above instanceof FolderNode && label(above) === "web");
    assert.equal(tree.getParent(above), undefined);
    workspace.remove("api");
    assert.ok(tree.getChildren()[0] instanceof ChildNode);
    assert.equal(tree.getParent(tree.node(tasks[0] ?? "")), undefined);
  });

  it("a row shows the folder's running tasks, or why it is not connected, also to screen readers", async () => {
    await add("api", 2);
    await add("web", 0, { kind: "disconnected" });
    const failure = { code: "not-found", message: "OpenCode wasn't found.", remedy: "Install it." } as const;
    await add("docs", 0, { kind: "failed", failure });
    await workspace.open();
    const [api, web, docs] = tree.getChildren().map(item);
    assert.equal(api?.description, "2 running · Parent");
    assert.equal(api?.accessibilityInformation?.label, "api, 2 running · Parent");
    assert.equal(api?.contextValue, "folder connected own");
    assert.match(String(web?.description), /^not connected/);
    assert.equal(web?.contextValue, "folder disconnected");
    assert.match(String(docs?.description), /^OpenCode wasn't found\./);
    assert.ok(typeof docs?.tooltip === "string");
    assert.match(docs.tooltip, /OpenCode wasn't found\. Install it\.$/);
  });

  it("a folder with nothing but cleared tasks can be expanded while they are shown", async () => {
    const { engine, tasks } = await add("api", 1);
    await add("web", 0);
    await workspace.open();
    await engine.clear(tasks[0] ?? "", { cancelRunning: true });
    const api = (): vscode.TreeItem => item(tree.getChildren()[0] ?? assert.fail("no row"));
    const { None, Expanded } = vscode.TreeItemCollapsibleState;
    assert.deepEqual([api().collapsibleState, api().description], [None, "no tasks · Parent"]);
    options.showsCleared = true;
    assert.deepEqual(rows()["api"], ["Cleared"]);
    assert.deepEqual([api().collapsibleState, api().description], [Expanded, "Parent"]);
    options.showsCleared = false;
  });

  it("the overview is connected once one is, the output of an unknown task once all are", async () => {
    const { tasks } = await add("api", 1);
    await add("web", 0, { kind: "disconnected" });
    await workspace.open();
    const { folders } = workspace;
    assert.deepEqual(
      [undefined, tasks[0], "ses_unknown"].map((id) => connectionOf(folders, id)),
      ["connected", "connected", "disconnected"],
    );
    workspace.remove("api");
    assert.equal(connectionOf(folders), "disconnected");
  });

  it("with twenty folders, a change in one redraws no row of the others", async () => {
    let last: Awaited<ReturnType<typeof add>> | undefined;
    for (let at = 1; at <= 20; at++) last = await add(`folder ${at}`, 2);
    await workspace.open();
    for (const folder of tree.getChildren())
      for (const row of tree.getChildren(folder))
        if (row instanceof BatchNode) for (const task of tree.getChildren(row)) item(task);
    drawn.splice(0);
    await last?.engine.cancel(last.tasks[0] ?? "");
    await until("the folder's row", () => drawn.includes("folder 20"));
    assert.deepEqual(
      drawn.filter((row) => row === "root" || /^folder (?!20$)/.test(row)),
      [],
    );
  });
});

describe("commands in a workspace of several folders", () => {
  it("go to the folder of the task or session that they are about", async () => {
    const workspace = new MemoryWorkspace(strictLogger);
    const allTasks = new AllTasks(workspace.folders, strictLogger);
    const commands = routedCommands(workspace.folders, allTasks);
    await assert.rejects(
      commands.cancel("x"),
      (error) => error instanceof Refusal && /Open a folder first/.test(error.message),
    );
    const tasks: string[] = [];
    const own: { dispose(): void }[] = [allTasks, workspace.folders];
    for (const name of ["api", "web"]) {
      const server = new MemoryServer({ name });
      const added = await addRunningTasks(server, 1);
      const engine = memoryEngine(server);
      const session = new ActiveSession(engine, server, strictLogger);
      own.push(session, engine);
      await engine.connect();
      workspace.add(name, { engine, session });
      tasks.push(...added.tasks);
    }
    await workspace.open();
    const [inApi = "", inWeb = ""] = tasks;
    assert.equal((await commands.cancel(inWeb)).id, inWeb);
    assert.equal(allTasks.find(inApi).status, "running");
    const { parentSessionID, batchID } = allTasks.find(inApi);
    assert.deepEqual(
      (await commands.cancelBatch(batchID, parentSessionID)).map(({ id }) => id),
      [inApi],
    );
    assert.equal((await commands.clear(inApi)).id, inApi);
    await assert.rejects(commands.retry("ses_000000"), /several folders.*: api, web/);
    for (const each of own) each.dispose();
  });
});

describe("the list from which the task of a command is picked", () => {
  const { showQuickPick } = vscode.window;
  let workspace: MemoryWorkspace;
  let made: { dispose(): void }[];
  let front: string | undefined;
  let context: TaskContext;
  /** The IDs of the task of the active session, and of one of another session. */
  let own: string;
  let other: string;
  let server: MemoryServer;
  let parent: string;

  beforeEach(async () => {
    server = new MemoryServer({ name: "api" });
    const engine = memoryEngine(server);
    const session = new ActiveSession(engine, server, strictLogger);
    const sessions = [await addRunningTasks(server, 1), await addRunningTasks(server, 1)];
    await engine.connect();
    await session.refresh();
    const taskOf = (isActive: boolean): string =>
      sessions.find(({ parent }) => (parent === session.id) === isActive)?.tasks[0] ?? assert.fail();
    [own, other] = [taskOf(true), taskOf(false)];
    parent = session.id ?? assert.fail();
    workspace = new MemoryWorkspace(strictLogger);
    workspace.add("api", { engine, session });
    await workspace.open();
    const { folders } = workspace;
    const known = new AllTasks(folders, strictLogger);
    made = [known, folders, session, engine];
    front = undefined;
    context = { known, folders, list: new ListOptions(memento), frontID: () => front } as TaskContext;
  });

  afterEach(() => {
    Object.assign(vscode.window, { showQuickPick });
    for (const each of made) each.dispose();
  });

  /** The IDs of the tasks in the list, in order. */
  async function listed(accepts: (child: Child) => boolean = isRunning): Promise<readonly string[]> {
    let ids: readonly string[] = [];
    vscode.window.showQuickPick = (async (items: readonly { readonly ids: readonly string[] }[]) => {
      ids = items.flatMap((item) => item.ids);
    }) as unknown as typeof showQuickPick;
    await pickFrom(context, { title: "Cancel Task", accepts }, {});
    return ids;
  }

  it("begins with the one in front of the user, even if it belongs to another session", async () => {
    assert.deepEqual(await listed(), [own]);
    front = own;
    assert.deepEqual(await listed(), [own]);
    front = other;
    assert.deepEqual(await listed(), [other, own]);
  });

  it("connects no folder but that of what is picked, unless none is connected", async () => {
    const { folders, journal } = workspace;
    const idle = memoryEngine(new MemoryServer({ name: "web" }));
    const session = new ActiveSession(idle, server, strictLogger);
    workspace.add("web", { engine: idle, session, state: { kind: "disconnected" } });
    made.push(session, idle);
    folders.use(workspace.get("web"));
    assert.equal(folders.current?.name, "web");
    let offered: readonly string[] = [];
    vscode.window.showQuickPick = (async (items: readonly { readonly ids: readonly string[] }[]) => {
      offered = items.flatMap((item) => item.ids);
    }) as unknown as typeof showQuickPick;
    const pick = () => pickConnected(context, undefined, { title: "Open in Terminal" });
    const before = journal.length;
    await pick();
    assert.deepEqual(offered, [own]);
    assert.equal(journal.length, before);
    workspace.remove("api");
    await pick();
    assert.deepEqual(
      journal.filter((line) => line.startsWith("connect")),
      ["connect web"],
    );
  });

  it("offers no subagent for a retry, even if it has failed", async () => {
    const { showInformationMessage } = vscode.window;
    const told: string[] = [];
    vscode.window.showInformationMessage = async (text: string) => void told.push(text);
    const { id } = await server.createSession({ title: "Look", parentID: parent, agent: "general" });
    await server.prompt(id, { messageID: "msg_look", agent: "general", parts: [{ text: "Look." }] });
    server.end(id, { type: "failed", error: { name: "APIError", message: "No key." } });
    await until("the failure", () => context.known.child(id)?.status === "error");
    front = id;
    const tasks = { retry: assert.fail } as unknown as PromptContext["tasks"];
    try {
      await retry({ ...context, tasks } as PromptContext, undefined);
    } finally {
      Object.assign(vscode.window, { showInformationMessage });
    }
    assert.deepEqual(told, ["No failed or cancelled tasks."]);
  });

  it("leaves out the one in front of the user if the command can't be run for it, or if it is cleared", async () => {
    front = other;
    assert.deepEqual(await listed(({ id }) => id === own), [own]);
    await workspace.get("api").calls.clear(other, { cancelRunning: true });
    assert.deepEqual(await listed(isTask), [own]);
  });
});

describe("connecting from the output of a task", () => {
  it("connects the task's folder, or while no folder knows the task, one that isn't connected, whose connect hasn't failed if possible", async () => {
    const journal: string[] = [];
    const folder = (name: string, state: ConnectionState["kind"], taskID?: string) => ({
      known: { session: (id: string) => (id === taskID ? {} : undefined) },
      connector: {
        state: { kind: state },
        refresh: async () => journal.push(`refresh ${name}`),
        connectAsking: async () => journal.push(`connect ${name}`),
      },
    });
    const all = [
      folder("api", "connected", "ses_api"),
      folder("docs", "failed"),
      folder("web", "disconnected"),
    ];
    const folders = {
      all,
      current: all[0],
      of: (id: string) => all.find(({ known }) => known.session(id) !== undefined),
    };
    const context = { folders } as unknown as Parameters<typeof connect>[0];
    const made = async (taskID?: string): Promise<readonly string[]> => {
      await connect(context, taskID);
      return journal.splice(0);
    };
    assert.deepEqual(await made("ses_api"), ["refresh api"]);
    assert.deepEqual(await made(), ["refresh api"]);
    assert.deepEqual(await made("ses_unknown"), ["connect web"]);
    all[2] = folder("web", "connected");
    assert.deepEqual(await made("ses_unknown"), ["connect docs"]);
    all[1] = folder("docs", "connected", "ses_unknown");
    assert.deepEqual(await made("ses_unknown"), ["refresh docs"]);
  });
});

describe("a remote window", () => {
  it("runs the extension where the folder is, so that its paths are files there", () => {
    const extension = vscode.extensions.getExtension("async-agents.opencode-async-agents");
    const [folder] = vscode.workspace.workspaceFolders ?? [];
    assert.ok(extension && folder);
    assert.deepEqual(extension.packageJSON.extensionKind, ["workspace"]);
    assert.equal(extension.extensionKind, vscode.ExtensionKind.Workspace);
    assert.equal(folder.uri.scheme, "file");
    assert.ok(existsSync(folder.uri.fsPath) && existsSync(extension.extensionUri.fsPath));
    // The tests' own window is remote if a browser shows VS Code's server.
    if (vscode.env.uiKind === vscode.UIKind.Web) assert.notEqual(vscode.env.remoteName, undefined);
  });
});
