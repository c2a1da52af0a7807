import assert from "node:assert/strict";
import * as vscode from "vscode";
import { ActiveSession } from "../../src/engine/active-session.ts";
import type { TaskEngine } from "../../src/engine/engine.ts";
import type { TaskRecordDraft, Task } from "../../src/engine/task.ts";
import type { ContextKeys } from "../../src/ui/context-keys.ts";
import { batchLabel, BatchNode, ChildNode, type Node, rowID } from "../../src/ui/tree/items.ts";
import { runningIn } from "../../src/ui/tree/family.ts";
import { ListOptions, NO_FILTER } from "../../src/ui/tree/list-options.ts";
import { TaskTree } from "../../src/ui/tree/task-tree.ts";
import { TaskView } from "../../src/ui/tree/task-view.ts";
import { addRunningTasks, memoryEngine, strictLogger } from "../bench/support/memory-engine.ts";
import { AllTasks } from "../../src/ui/folders/all-tasks.ts";
import { MemoryWorkspace } from "../support/folders.ts";
import { MemoryServer } from "../support/memory-server.ts";
import { until } from "../support/wait.ts";
import type { Folders } from "../../src/ui/folders/folders.ts";
import { Unread } from "../../src/ui/tree/unread.ts";
import { MemoryMemento, NOTHING_SHOWN } from "./memory-parts.ts";
import type { Phase } from "../../src/engine/task.ts";
import type { Child } from "../../src/engine/subagent.ts";
import type { OverviewTask } from "../../src/protocol/overview.ts";
import { activity } from "../../src/ui/tree/words.ts";
import { L10n, phaseWord } from "../../src/webview/l10n.ts";
import { stateWord } from "../../src/webview/overview/words.ts";

/** What a task is doing: in its row, in its panel, and in the overview, which has one word for all work. */
const ACTIVITY_WORDS: Readonly<Record<Phase, readonly [row: string, panel: string, overview: string]>> = {
  queued: ["queued", "Queued", "Queued"],
  "setting-up": ["setting up", "Setting up its worktree…", "Running"],
  starting: ["starting", "Starting…", "Running"],
  thinking: ["thinking", "Thinking…", "Running"],
  streaming: ["writing", "Writing…", "Running"],
  tool: ["read src/cart.js", "Working…", "Running"],
  retrying: ["waiting to retry", "Waiting to retry", "Waiting to retry"],
  "needs-permission": ["needs permission", "Needs permission", "Needs permission"],
  "needs-answer": ["needs an answer", "Needs an answer", "Needs an answer"],
  stalled: ["stalled", "Stalled", "Stalled"],
};

/** The tree, with no output open. */
function openTree(folders: Folders, options: ListOptions, memento: vscode.Memento): TaskTree {
  const known = new AllTasks(folders, strictLogger);
  return new TaskTree(known, folders, options, new Unread(known, folders, memento, NOTHING_SHOWN));
}

/** A workspace of one folder. */
async function openFolder(engine: TaskEngine, session: ActiveSession): Promise<MemoryWorkspace> {
  const workspace = new MemoryWorkspace(strictLogger);
  workspace.add("one", { engine, session });
  await workspace.open();
  return workspace;
}

describe("what a task is doing", () => {
  it("is said with the same words in its row, its panel and the overview", () => {
    const l10n = new L10n({});
    const recentTools = [{ tool: "read", title: "src/cart.js", status: "running" }];
    for (const [phase, words] of Object.entries(ACTIVITY_WORDS)) {
      const child = { progress: { phase, recentTools } } as unknown as Child;
      const task = { status: "running", phase } as OverviewTask;
      assert.deepEqual([activity(child), phaseWord(l10n, phase as Phase), stateWord(l10n, task)], words);
    }
  });
});

describe("the tree", () => {
  let server: MemoryServer;
  let engine: TaskEngine;
  let session: ActiveSession;
  let options: ListOptions;
  let memento: MemoryMemento;
  let folders: Folders;
  let tree: TaskTree;
  let parent: string;
  /** What the editor was told to redraw: labels, or "root". */
  let drawn: string[];
  let made: number;
  const views: TaskView[] = [];

  beforeEach(async () => {
    server = new MemoryServer();
    engine = memoryEngine(server);
    session = new ActiveSession(engine, server, strictLogger);
    memento = new MemoryMemento();
    options = new ListOptions(memento);
    ({ folders } = await openFolder(engine, session));
    await options.sortBy("active");
    tree = openTree(folders, options, memento);
    parent = (await server.createSession({ title: "Parent", agent: "build" })).id;
    made = 0;
    await engine.connect();
    await session.refresh();
    drawn = [];
    tree.onDidChangeTreeData((node) => drawn.push(node ? label(node) : "root"));
  });

  afterEach(() => {
    for (const view of views.splice(0)) view.dispose();
    tree.dispose();
    options.dispose();
    session.dispose();
    engine.dispose();
  });

  /** A running task in its own batch, unless the facts say otherwise; each is newer than the previous one. */
  async function add(description: string, facts: Partial<TaskRecordDraft> = {}): Promise<string> {
    const at = 1_000_000 + ++made * 1_000;
    const task: TaskRecordDraft = {
      revision: 1,
      description,
      agent: "general",
      parentSessionID: parent,
      launchedBy: "person",
      batchID: `batch-${made}`,
      isForked: false,
      resumeCount: 0,
      status: "running",
      toolCalls: 0,
      promptMessageID: `msg_${made}`,
      createdAt: at,
      startedAt: at,
      notice: { state: "none" },
      ...facts,
    };
    const { parentSessionID: parentID, agent, promptMessageID: messageID } = task;
    const { id } = await server.createSession({ title: description, parentID, agent, task });
    if (task.status === "running") await server.prompt(id, { messageID, agent, parts: [{ text: "Go." }] });
    return id;
  }

  const ended = { status: "completed", endedAt: 2_000_000, finalMessageID: "msg_final" } as const;

  /** A child session as created by OpenCode's own tool. */
  async function addSubagent(title: string, parentID: string): Promise<string> {
    const { id } = await server.createSession({ title, parentID, agent: "explore" });
    return id;
  }

  const item = (node: Node): vscode.TreeItem => tree.getTreeItem(node);
  const label = (node: Node): string => {
    const { label = "" } = item(node);
    return typeof label === "string" ? label : label.label;
  };
  const words = (id: string): string => String(item(tree.node(id)).description);
  const menu = (node: Node): string => item(node).contextValue ?? "";

  /** All rows as the editor shows them when all are expanded, indented by depth. */
  function rows(node?: Node, indent = ""): string[] {
    return tree
      .getChildren(node)
      .flatMap((child) => [`${indent}${label(child)}`, ...rows(child, `${indent}  `)]);
  }

  /** The rows that are redrawn because of this. */
  async function drawnBy(act: () => unknown): Promise<readonly string[]> {
    const marker = await add("Marker");
    rows();
    drawn.splice(0);
    await act();
    // The marker gets a child at once; changes of the tree's structure are reported last.
    await add("Below the marker", { parentSessionID: marker });
    await until("the marker", () => drawn.filter((each) => each === "Marker").length > 1);
    return [...new Set(drawn)].filter((each) => each !== "Marker");
  }

  it("tells the editor again of a change that came while it loaded the rows for the first time", async () => {
    tree.getChildren();
    tree.refresh();
    await until("the change to be repeated", () => drawn.length === 2);
    assert.deepEqual(drawn, ["root", "root"]);
  });

  it("shows what is being launched until its task has a row", async () => {
    const [folder = assert.fail()] = folders.all;
    await add("Earlier");
    const [first, second] = [
      tree.launching.show("Fix the lexer", folder),
      tree.launching.show("Batch of 2", folder),
    ];
    const now = { createdAt: Date.now() };
    await add("Read later", { createdAt: Date.now() - 1_000 });
    await add("By an agent", { ...now, launchedBy: "agent" });
    const others = ["By an agent", "Earlier", "Read later"];
    assert.deepEqual(rows().sort(), ["Batch of 2", "Fix the lexer", ...others].sort());
    drawn.splice(0);
    await add("Fix the lexer", now);
    assert.deepEqual(drawn.slice(0, 1), ["root"]);
    assert.deepEqual(rows().sort(), ["Batch of 2", "Fix the lexer", ...others].sort());
    first.dispose();
    await add("Fix the parser", { ...now, batchID: "both" });
    await add("Fix the printer", { ...now, batchID: "both" });
    assert.deepEqual(
      rows().filter((row) => row.startsWith("Batch")),
      [],
    );
    second.dispose();
    tree.launching.show("Fix nothing", folder).dispose();
    assert.ok(!rows().includes("Fix nothing"));
  });

  it("keeps the row of a launch while the tasks of another one arrive", async () => {
    const [folder = assert.fail()] = folders.all;
    tree.launching.show("Batch of 2", folder);
    tree.launching.show("Fix the lexer", folder);
    const batch = { createdAt: Date.now(), batchID: "both" };
    await add("Fix the parser", batch);
    await add("Fix the printer", batch);
    assert.ok(!rows().includes("Batch of 2"));
    assert.ok(rows().includes("Fix the lexer"));
  });

  it("[EXT-2] groups the tasks of a batch, and nests the descendants of a task", async () => {
    const outer = await add("Improve the parser");
    const inner = await add("Read the lexer", { parentSessionID: outer });
    await addSubagent("Search the callers", inner);
    await add("Review the parser", { batchID: "review" });
    await add("Review the printer", { batchID: "review" });
    await add("Count the files");
    assert.deepEqual(rows(), [
      "Count the files",
      "Review the …",
      "  printer",
      "  parser",
      "Improve the parser",
      "  Read the lexer",
      "    Search the callers",
    ]);
  });

  it("finds the parent row at any depth, so that a row can be revealed", async () => {
    const outer = await add("Outer", { batchID: "b" });
    await add("Other", { batchID: "b" });
    const inner = await add("Inner", { parentSessionID: outer });
    const deepest = await addSubagent("Deepest", inner);
    rows();
    const path: string[] = [];
    for (let node: Node | undefined = tree.node(deepest); node; node = tree.getParent(node))
      path.push(node instanceof BatchNode ? "batch" : label(node));
    assert.deepEqual(path, ["Deepest", "Inner", "Outer", "batch"]);
  });

  it("names a batch by its size if its descriptions differ, and counts what is done", async () => {
    await add("Fix one", { batchID: "b" });
    await add("Test two", { batchID: "b", ...ended });
    await add("Drop three", { batchID: "b", status: "error", error: { name: "E", message: "No." } });
    const [batch] = tree.getChildren();
    assert.ok(batch);
    assert.equal(label(batch), "Batch of 3");
    assert.equal(item(batch).description, "2 of 3 done · 1 failed");
    assert.equal(item(batch).collapsibleState, vscode.TreeItemCollapsibleState.Expanded);
    assert.match(menu(batch), /^batch active answered$/);
  });

  it("sorts by need for the user, then running, then newest; another order is stored for the folder", async () => {
    const asking = await add("asks");
    await add("b ended", ended);
    await add("works");
    await add("a failed", { status: "error", error: { name: "E", message: "No." } });
    server.begin(asking);
    server.ask(asking);
    const order = async (by: Parameters<ListOptions["sortBy"]>[0]): Promise<readonly string[]> => {
      await options.sortBy(by);
      return rows();
    };
    assert.deepEqual(rows(), ["asks", "works", "a failed", "b ended"]);
    assert.deepEqual(await order("newest"), ["a failed", "works", "b ended", "asks"]);
    assert.deepEqual(await order("oldest"), ["asks", "b ended", "works", "a failed"]);
    assert.deepEqual(await order("status"), ["asks", "works", "a failed", "b ended"]);
    assert.deepEqual(await order("name"), ["a failed", "asks", "b ended", "works"]);
    assert.equal(new ListOptions(memento).sortOrder, "name");
    await memento.update("asyncagents.sortOrder", "of an older version");
    assert.equal(new ListOptions(memento).sortOrder, "groups");
  });

  it("shows what a filter matches, and the rows above it", async () => {
    const outer = await add("Improve the parser");
    await add("Read the lexer", { parentSessionID: outer, agent: "explore" });
    await add("Count the files", ended);
    const filtered = (filter: Partial<typeof NO_FILTER>): readonly string[] => {
      options.filter = { ...NO_FILTER, ...filter };
      return rows();
    };
    assert.deepEqual(filtered({ agents: ["explore"] }), ["Improve the parser", "  Read the lexer"]);
    assert.deepEqual(filtered({ states: ["completed"] }), ["Count the files"]);
    assert.deepEqual(filtered({ text: " PARSER " }), ["Improve the parser"]);
    assert.deepEqual(filtered({ text: "the", states: ["error"] }), []);
    assert.equal(filtered({}).length, 3);
  });

  it("redraws only the row of a task that changes", async () => {
    const id = await add("Works", { batchID: "b" });
    await add("Works too", { batchID: "b" });
    server.begin(id);
    assert.deepEqual(await drawnBy(() => server.write(id, "A word.")), ["Works"]);
  });

  it("redraws the batch and the rows above a task that ends", async () => {
    const outer = await add("Outer");
    const id = await add("Look at one", { parentSessionID: outer, batchID: "b" });
    await add("Look at two", { parentSessionID: outer, batchID: "b" });
    const told = await drawnBy(() => server.finish(id, "Done."));
    for (const row of ["one", "Look at …", "Outer"])
      assert.ok(told.includes(row), `${row} of ${told.join(", ")}`);
    assert.ok(!told.includes("two"));
  });

  it("redraws the nearest row above a task that is added", async () => {
    // The newest row would move its batch to the top.
    await options.sortBy("oldest");
    const outer = await add("Outer");
    await add("Review the a", { batchID: "b" });
    await add("Review the b", { batchID: "b" });
    const toBatch = await drawnBy(() => add("Review the c", { batchID: "b" }));
    assert.deepEqual(toBatch, ["Review the …"]);
    const below = await drawnBy(() => add("Inner", { parentSessionID: outer }));
    assert.deepEqual(below, ["Outer"]);
  });

  it("shows on a row that a subagent below it is running or needs the user", async () => {
    const outer = await add("Outer", ended);
    const subagent = await addSubagent("Search", outer);
    assert.doesNotMatch(words(outer), /below/);
    assert.equal(item(tree.node(outer)).collapsibleState, vscode.TreeItemCollapsibleState.Collapsed);
    await server.prompt(subagent, { messageID: "msg_s", agent: "general", parts: [{ text: "Go." }] });
    server.begin(subagent);
    assert.match(words(outer), /^1 subagent running · /);
    assert.equal(item(tree.node(outer)).collapsibleState, vscode.TreeItemCollapsibleState.Expanded);
    server.ask(subagent);
    assert.match(words(outer), /^1 subagent needs you · /);
    assert.match(String(item(tree.node(outer)).accessibilityInformation?.label), /1 subagent needs you/);
  });

  it("[EXT-5] gives the menus what can be done with a row", async () => {
    const running = await add("Runs");
    const done = await add("Done", { ...ended, batchID: "b", resumeCount: 1, isForked: true });
    await add("Done too", { ...ended, batchID: "b" });
    const subagent = await addSubagent("Search", running);
    rows();
    assert.equal(menu(tree.node(running)), "task active running");
    assert.equal(menu(tree.node(done)), "task ended completed answered forked resumed");
    assert.equal(menu(tree.node(subagent)), "subagent ended idle");
    const session = (await server.session(subagent)) ?? assert.fail("no session");
    server.put({ ...session, tokens: { ...session.tokens, output: 5 } }, undefined);
    assert.equal(menu(tree.node(subagent)), "subagent ended idle answered");
    assert.match(words(subagent), / · OpenCode$/);
  });

  it("[EXT-2] labels a subagent with its title, and shows it as not started until it starts", async () => {
    const outer = await add("Outer");
    const id = await addSubagent("Look around", outer);
    assert.equal(label(tree.node(id)), "Look around");
    const icon = (): string => (item(tree.node(id)).iconPath as vscode.ThemeIcon).id;
    assert.equal(icon(), "circle-outline");
    await server.prompt(id, { messageID: "msg_s", agent: "general", parts: [{ text: "Go." }] });
    server.begin(id);
    assert.equal(icon(), "sync~spin");
  });

  it("finds all running tasks and subagents, in whichever session", async () => {
    const task = await add("Works");
    await add("Done", ended);
    const other = (await server.createSession({ title: "Other", agent: "build" })).id;
    const subagent = await addSubagent("Look around", other);
    await server.prompt(subagent, { messageID: "msg_sub", agent: "general", parts: [{ text: "Go." }] });
    server.begin(subagent);
    assert.deepEqual(
      runningIn(engine)
        .map(({ id }) => id)
        .sort(),
      [task, subagent].sort(),
    );
  });

  it("opens a row once when its first child is running, then keeps it as the user left it", async () => {
    const told: string[] = [];
    tree.onDidBecomeParent((node) => told.push(label(node)));
    const [open, closed] = [await add("Opened"), await add("Closed")];
    rows();
    const addBelow = async (description: string): Promise<void> => {
      for (const parentSessionID of [open, closed]) await add(description, { parentSessionID });
      rows();
    };
    await addBelow("First below");
    assert.deepEqual(told.sort(), ["Closed", "Opened"]);
    tree.setOpen(tree.node(closed), false);
    await addBelow("Second below");
    assert.equal(told.length, 2);
    assert.equal(item(tree.node(open)).collapsibleState, vscode.TreeItemCollapsibleState.Expanded);
    assert.equal(item(tree.node(closed)).collapsibleState, vscode.TreeItemCollapsibleState.Collapsed);
  });

  it("opens a row when its subagent first starts, and only then", async () => {
    const told: string[] = [];
    tree.onDidBecomeParent((node) => told.push(label(node)));
    const above = await add("Above", ended);
    rows();
    const below = await addSubagent("Below", above);
    await until("the row", () => rows().includes("  Below"));
    // As the editor does on its own.
    tree.setOpen(tree.node(above), false);
    assert.deepEqual(told, []);
    const begin = async (messageID: string): Promise<void> => {
      await server.prompt(below, { messageID, agent: "general", parts: [{ text: "Go." }] });
      server.begin(below);
      rows();
    };
    await begin("msg_first");
    assert.deepEqual(told, ["Above"]);
    server.finish(below, "Done.");
    rows();
    await begin("msg_second");
    assert.deepEqual(told, ["Above"]);
  });

  it("restores a row that a filter hid as the user left it", async () => {
    await add("Review the a", { batchID: "b" });
    await add("Review the b", { batchID: "b" });
    const state = (): vscode.TreeItemCollapsibleState | undefined => {
      const [batch] = tree.getChildren();
      return batch && item(batch).collapsibleState;
    };
    const [batch] = tree.getChildren();
    assert.ok(batch);
    assert.equal(state(), vscode.TreeItemCollapsibleState.Expanded);
    tree.setOpen(batch, false);
    options.filter = { ...NO_FILTER, text: "nothing is called so" };
    assert.deepEqual(rows(), []);
    options.filter = NO_FILTER;
    assert.equal(state(), vscode.TreeItemCollapsibleState.Collapsed);
  });

  it("updates times by the minute while the view is visible, and only of running tasks", async () => {
    await add("Works", { startedAt: Date.now() - 50_000 });
    await add("Works too", { startedAt: Date.now() });
    await add("Done", ended);
    rows();
    tree.setVisible(true);
    drawn.splice(0);
    await until("a tick", () => drawn.length > 0);
    assert.deepEqual([...new Set(drawn)], ["Works"]);
    const intervals = (): number =>
      process.getActiveResourcesInfo().filter((resource) => resource === "Timeout").length;
    const before = intervals();
    tree.setVisible(false);
    assert.equal(intervals(), before - 1);
  });

  it("[EXT-2] shows the task's details in the tooltip, and hostile text as text", async () => {
    const hostile = "**bold** $(alert) [run](command:evil) <b>x</b> `code`\n# head";
    const id = await add(hostile, {
      status: "error",
      error: { name: "E", message: "The | key ~~was~~ refused: https://example.org" },
      model: { providerID: "fake", modelID: "m" },
      toolCalls: 3,
    });
    const shown = (await tree.resolveTreeItem(item(tree.node(id)), tree.node(id))).tooltip;
    assert.ok(shown instanceof vscode.MarkdownString);
    assert.ok(!shown.isTrusted && !shown.supportHtml && !shown.supportThemeIcons);
    const { value } = shown;
    assert.doesNotMatch(value, /[^\\]\[run|[^\\]\(command|[^\\]<b|\n#|[^\\]\$\(|[^\\]`|https:/);
    const text = value.replace(/\\(?=[!-/:-@[-`{-~])/g, "");
    for (const fact of [
      "failed",
      "**Error**: The | key ~~was~~ refused",
      "**Remedy**: Retry",
      "**Agent**: general",
      "**Model**: fake/m",
      "**Launched by**: you",
      "**Started**",
      "**Tool calls**: 3",
      `**ID**: ${id.slice(-6)}`,
    ])
      assert.ok(text.includes(fact), `${fact} in ${text}`);
  });

  it("names a batch by what all of its descriptions begin with", async () => {
    const named = (...descriptions: readonly string[]): string =>
      batchLabel(descriptions.map((description) => ({ description }) as Task));
    assert.equal(named("Fix the login", "Fix the login and the logout"), "Fix the login …");
    assert.equal(named("Fix the login and the logout", "Fix the login"), "Fix the login …");
    assert.equal(named("Fix the login", "Fix the login"), "Fix the login");
    const long = `${"a".repeat(40)} ${"b".repeat(40)}`;
    assert.equal(named(long, `${long} c`), `${"a".repeat(24)}…`);
  });

  it("says above the rows of several folders that a filter hides every task, and how to clear it", async () => {
    await add("Find the bug");
    const workspace = await openFolder(engine, session);
    workspace.add("two", {
      engine: memoryEngine(new MemoryServer()),
      session: new ActiveSession(engine, server, strictLogger),
    });
    await workspace.open();
    const { view } = showView(workspace);
    options.filter = { ...NO_FILTER, text: "nothing like it" };
    assert.equal(view.message, '0 of 1 shown: "nothing like it". Clear the filter to show all tasks.');
  });

  it("says that a filter hides every task but cleared ones, which are shown", async () => {
    await add("Find the bug");
    const ended = { status: "completed", endedAt: 2, finalMessageID: "msg_f" } as const;
    await engine.clear(await add("Fix the bug", ended));
    const { view } = showView(await openFolder(engine, session));
    options.filter = { ...NO_FILTER, text: "Fix" };
    assert.equal(view.message, "", "the view is empty, and says so itself");
    options.showsCleared = true;
    assert.equal(view.message, '0 of 1 shown: "Fix". Clear the filter to show all tasks.');
  });

  it("tells the menus whether any session has tasks, and whether any are cleared at any depth", async () => {
    const { parent: other, tasks } = await addRunningTasks(server, 1);
    const { keys, shown } = showView(await openFolder(engine, session));
    await until("the update", () => keys.has("hasAnyTasks"));
    assert.notEqual(session.id, other);
    assert.deepEqual([keys.get("hasTasks"), keys.get("hasAnyTasks")], [false, true]);
    await engine.clear(tasks[0] ?? "", { cancelRunning: true });
    await until("no tasks", () => keys.get("hasAnyTasks") === false);
    const above = await add("Find the bug");
    await engine.clear(await add("Fix the bug", { parentSessionID: above }), { cancelRunning: true });
    await until("a cleared one", () => keys.get("hasCleared") === true);
    shown.dispose();
  });

  it("keeps what is selected while its row is redrawn, when the editor has no selection, unless the row goes", async () => {
    const [id, other] = [await add("Find the bug"), await add("Fix it")];
    const { shown, view, select } = showView(await openFolder(engine, session));
    select([shown.tree.node(id)]);
    assert.equal(shown.selectedID, id);
    view.selection = [];
    assert.equal(shown.selectedID, id);
    assert.equal(await shown.clickedID(), id);
    options.filter = { ...NO_FILTER, text: "Fix" };
    assert.equal(shown.selectedID, undefined);
    select([shown.tree.node(other)]);
    assert.equal(shown.selectedID, other);
    select([]);
    assert.equal(shown.selectedID, undefined);
  });

  it("makes the folder of a selected row the current one, and not again while the row is redrawn", async () => {
    const id = await add("Find the bug");
    const workspace = await openFolder(engine, session);
    workspace.add("two", {
      engine: memoryEngine(new MemoryServer()),
      session: new ActiveSession(engine, server, strictLogger),
    });
    await workspace.open();
    const { folders } = workspace;
    const [first, second] = folders.all;
    const { shown, select } = showView(workspace);
    folders.use(second);
    select([shown.tree.node(id)]);
    assert.equal(folders.current?.name, first?.name);
    folders.use(second);
    select([]);
    select([shown.tree.node(id)]);
    assert.equal(folders.current?.name, second?.name);
  });

  it("has the task of the output in front of the user only while no row is selected, such as that of a group or batch", async () => {
    await options.sortBy("groups");
    await add("Fix one", { batchID: "both" });
    const id = await add("Fix two", { batchID: "both" });
    const { shown, view, select } = showView(await openFolder(engine, session));
    assert.equal(shown.frontID("ses_shown"), "ses_shown");
    view.visible = true;
    assert.equal(shown.frontID("ses_shown"), "ses_shown");
    const [group] = shown.tree.getChildren();
    assert.ok(group);
    const [batch] = shown.tree.getChildren(group);
    assert.ok(batch instanceof BatchNode);
    for (const [row, front] of [
      [group, undefined],
      [batch, undefined],
      [shown.tree.node(id), id],
    ] as const) {
      select([row]);
      assert.equal(shown.frontID("ses_shown"), front);
    }
    view.visible = false;
    assert.equal(shown.frontID("ses_shown"), "ses_shown");
  });

  it("has an output without a row in front of the user, once they go there, until they select another row", async () => {
    await options.sortBy("groups");
    const ids = [await add("Find the bug"), await add("Fix it"), await add("Ship it", ended)];
    const [id = "", other = "", cleared = ""] = ids;
    await engine.clear(cleared);
    const { shown, view, select } = showView(await openFolder(engine, session));
    view.visible = true;
    select([shown.tree.node(id)]);
    shown.follow(cleared);
    assert.equal(shown.frontID(cleared), cleared);
    // As while it is redrawn.
    select([]);
    select([shown.tree.node(id)]);
    assert.equal(shown.frontID(cleared), cleared);
    assert.equal(shown.frontID(undefined), id);
    select([shown.tree.node(other)]);
    select([shown.tree.node(id)]);
    assert.equal(shown.frontID(cleared), id);
    shown.follow(cleared);
    select(shown.tree.getChildren().slice(0, 1));
    assert.equal(shown.frontID(cleared), undefined);
    // While the row is redrawn.
    select([shown.tree.node(id)]);
    select([]);
    shown.follow(cleared);
    select([shown.tree.node(id)]);
    assert.equal(shown.frontID(cleared), cleared);
    select([shown.tree.node(id), shown.tree.node(other)]);
    assert.equal(shown.frontID(cleared), id);
  });

  it("selects the row of the output that the user is in, without expanding the group of cleared tasks for it", async () => {
    const [id, cleared] = [await add("Find the bug"), await add("Fix it", ended)];
    await engine.clear(cleared);
    options.showsCleared = true;
    const { shown, view, revealed } = showView(await openFolder(engine, session));
    view.visible = true;
    shown.follow(cleared);
    shown.follow(id);
    await until("the row", () => shown.selectedID === id);
    assert.deepEqual(revealed, [id]);
  });

  it("selects a row once more after a redraw, in which the editor drops the selection without saying so", async () => {
    const id = await add("Find the bug");
    const { shown, view, revealed, focused } = showView(await openFolder(engine, session));
    view.visible = true;
    shown.tree.getChildren();
    await shown.reveal(id, { focus: true });
    assert.deepEqual(revealed, [id, id]);
    assert.deepEqual(focused, [true, true]);
    assert.equal(shown.selectedID, id);
  });

  it("gives a row the focus once only if the user has gone to an output since", async () => {
    const [id, cleared] = [await add("Find the bug"), await add("Fix it", ended)];
    await engine.clear(cleared);
    const { shown, view, focused } = showView(await openFolder(engine, session));
    view.visible = true;
    shown.tree.getChildren();
    const revealing = shown.reveal(id, { focus: true });
    await until("the row", () => shown.selectedID === id);
    shown.follow(cleared);
    await revealing;
    assert.deepEqual(focused, [true]);
  });

  it("selects a row once if the editor isn't drawing rows", async () => {
    const id = await add("Find the bug");
    const { shown, view, revealed } = showView(await openFolder(engine, session));
    view.visible = true;
    await shown.reveal(id);
    assert.deepEqual(revealed, [id]);
  });

  it("gives the focus to a row that is being selected without it", async () => {
    const id = await add("Find the bug");
    const { shown, view, focused } = showView(await openFolder(engine, session));
    view.visible = true;
    shown.tree.getChildren();
    await Promise.all([shown.reveal(id), shown.reveal(id, { focus: true })]);
    assert.deepEqual(focused, [false, true, true]);
  });

  it("selects a row though the editor draws the one that was selected before first, in a view that was hidden", async () => {
    const [id, other] = [await add("Find the bug"), await add("Fix it")];
    const { shown, view, select, revealed } = showView(await openFolder(engine, session));
    select([shown.tree.node(other)]);
    // The rows of a hidden view are drawn again when it opens.
    view.selection = [];
    const { reveal } = view;
    view.reveal = async (node, options) => {
      await reveal(node, options);
      view.visible = true;
      if (revealed.length === 1) view.selection = [shown.tree.node(other)];
    };
    await shown.reveal(id);
    assert.equal(shown.selectedID, id);
  });

  it("selects no row again once the user has selected another one, or left the view", async () => {
    const [id, other] = [await add("Find the bug"), await add("Fix it")];
    const { shown, view, select, revealed } = showView(await openFolder(engine, session));
    view.visible = true;
    shown.tree.getChildren();
    const revealing = shown.reveal(id);
    await until("the row", () => shown.selectedID === id);
    select([shown.tree.node(other)]);
    await revealing;
    shown.tree.getChildren();
    const leaving = shown.reveal(id);
    await until("the row", () => shown.selectedID === id);
    view.visible = false;
    await leaving;
    assert.deepEqual(revealed, [id, id]);
  });

  it("doesn't open the view again that the user has just left, of which the editor tells late", async () => {
    const id = await add("Find the bug");
    const { shown, view, revealed } = showView(await openFolder(engine, session));
    view.visible = true;
    shown.tree.getChildren();
    const revealing = shown.reveal(id);
    await until("the row", () => shown.selectedID === id);
    const { executeCommand } = vscode.commands;
    // What happened in the editor before it answers a command is reported before.
    vscode.commands.executeCommand = async () => {
      view.visible = false;
      return undefined as never;
    };
    try {
      await revealing;
    } finally {
      vscode.commands.executeCommand = executeCommand;
    }
    assert.deepEqual(revealed, [id]);
  });

  it("selects a row in a view that it has opened once more only after the editor has drawn all changes", async () => {
    const id = await add("Find the bug");
    const { shown, view, revealed } = showView(await openFolder(engine, session));
    const { reveal } = view;
    const revealedAt: number[] = [];
    view.reveal = async (node, options) => {
      await reveal(node, options);
      view.visible = true;
      // Not yet selected.
      if (revealed.length === 1) view.selection = [];
      revealedAt.push(Date.now());
    };
    const revealing = shown.reveal(id);
    await until("the open view", () => view.visible);
    shown.tree.refresh();
    const changedAt = Date.now();
    await revealing;
    const [, again = 0] = revealedAt;
    assert.deepEqual(revealed, [id, id]);
    // The editor draws changes within half a second.
    assert.ok(again - changedAt >= 490, `${again - changedAt} ms`);
    assert.equal(shown.selectedID, id);
  });

  it("learns what was selected while its row was redrawn, which the editor reports as nothing", async () => {
    const id = await add("Find the bug");
    const { shown, view, select, keys } = showView(await openFolder(engine, session));
    await until("the view's first update", () => keys.get("selectionActive") === false);
    select([]);
    view.selection = [shown.tree.node(id)];
    await until("the menu's keys", () => keys.get("selectionActive") === true);
    view.selection = [];
    assert.equal(shown.selectedID, id);
  });

  /** The view with a stand-in for the editor's part of it. */
  function showView({ folders }: MemoryWorkspace) {
    const never = (): vscode.Disposable => ({ dispose: () => undefined });
    const selections = new vscode.EventEmitter<{ readonly selection: readonly Node[] }>();
    const revealed: string[] = [];
    const focused: boolean[] = [];
    const view = {
      message: "",
      selection: [] as readonly Node[],
      visible: false,
      onDidChangeVisibility: never,
      onDidExpandElement: never,
      onDidCollapseElement: never,
      onDidChangeSelection: selections.event,
      reveal: async (node: Node, { focus }: { readonly focus: boolean }) => {
        revealed.push(rowID(node));
        focused.push(focus);
        select([node]);
      },
      dispose: () => selections.dispose(),
    };
    const { createTreeView } = vscode.window;
    vscode.window.createTreeView = (() => view) as unknown as typeof createTreeView;
    const keys = new Map<string, unknown>();
    const known = new AllTasks(folders, strictLogger);
    const unread = new Unread(known, folders, memento, NOTHING_SHOWN);
    const shown = new TaskView({
      ...{ known, folders, options, unread },
      keys: { set: (key: string, value: unknown) => keys.set(key, value) } as unknown as ContextKeys,
      daemon: { message: undefined, onDidChange: never },
    });
    vscode.window.createTreeView = createTreeView;
    views.push(shown);
    const select = (selection: readonly Node[]): void => {
      view.selection = selection;
      selections.fire({ selection });
    };
    return { shown, view, keys, select, revealed, focused };
  }
});

describe("the tree of 5,000 tasks", () => {
  it("redraws one row when one task changes", async () => {
    const server = new MemoryServer();
    const { tasks } = await addRunningTasks(server, 5_000);
    const engine = memoryEngine(server);
    const session = new ActiveSession(engine, server, strictLogger);
    const options = new ListOptions(new MemoryMemento());
    const { folders } = await openFolder(engine, session);
    await options.sortBy("active");
    const tree = openTree(folders, options, new MemoryMemento());
    try {
      await engine.connect();
      await session.refresh();
      const [batch, ...others] = tree.getChildren();
      assert.ok(batch instanceof BatchNode && others.length === 0);
      const rows = tree.getChildren(batch);
      assert.equal(rows.length, tasks.length);
      for (const row of rows) tree.getTreeItem(row);
      const drawn: unknown[] = [];
      tree.onDidChangeTreeData((row) => drawn.push(row));
      const told = await server.session(tasks[2_500] ?? "");
      assert.ok(told?.task.kind === "task");
      const record = {
        ...told.task.record,
        revision: 2,
        description: told.task.record.description.replace("handles", "changes"),
      };
      server.emit({ type: "session-changed", session: { ...told, task: { kind: "task", record } } });
      const node = tree.node(record.id);
      assert.ok(node instanceof ChildNode);
      assert.deepEqual(drawn, [node]);
      assert.ok(rows.includes(node));
      const { label } = tree.getTreeItem(node);
      assert.ok(typeof label === "string" && label.includes("changes"));
    } finally {
      tree.dispose();
      options.dispose();
      session.dispose();
      engine.dispose();
    }
  });
});
