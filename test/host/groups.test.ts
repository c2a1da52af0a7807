import assert from "node:assert/strict";
import * as vscode from "vscode";
import { ActiveSession } from "../../src/engine/active-session.ts";
import type { TaskEngine } from "../../src/engine/engine.ts";
import type { TaskRecordDraft } from "../../src/engine/task.ts";
import { AllTasks } from "../../src/ui/folders/all-tasks.ts";
import { ListOptions } from "../../src/ui/tree/list-options.ts";
import { BatchNode, GroupNode, TaskDecorations, type Node } from "../../src/ui/tree/items.ts";
import { TaskTree } from "../../src/ui/tree/task-tree.ts";
import { Unread } from "../../src/ui/tree/unread.ts";
import { memoryEngine, strictLogger } from "../bench/support/memory-engine.ts";
import { MemoryWorkspace } from "../support/folders.ts";
import { MemoryServer } from "../support/memory-server.ts";
import { until } from "../support/wait.ts";
import { MemoryMemento } from "./memory-parts.ts";

const DAY = 24 * 60 * 60_000;

describe("groups and unread results", () => {
  let server: MemoryServer;
  let engine: TaskEngine;
  let session: ActiveSession;
  let workspace: MemoryWorkspace;
  let known: AllTasks;
  let memento: MemoryMemento;
  let options: ListOptions;
  let unread: Unread;
  let tree: TaskTree;
  let parent: string;
  let shown: Set<string>;
  let shows: vscode.EventEmitter<string>;
  let made: number;

  beforeEach(async () => {
    server = new MemoryServer();
    engine = memoryEngine(server);
    session = new ActiveSession(engine, server, strictLogger);
    workspace = new MemoryWorkspace(strictLogger);
    workspace.add("one", { engine, session });
    await workspace.open();
    known = new AllTasks(workspace.folders, strictLogger);
    memento = new MemoryMemento();
    // A task that ends in the millisecond in which the window was opened would count as read.
    await memento.update("asyncagents.read", { until: Date.now() - 1, ends: {} });
    options = new ListOptions(memento);
    shown = new Set();
    shows = new vscode.EventEmitter();
    unread = openUnread();
    tree = new TaskTree(known, workspace.folders, options, unread);
    parent = (await server.createSession({ title: "Parent", agent: "build" })).id;
    made = 0;
    await engine.connect();
    await session.refresh();
  });

  afterEach(() => {
    for (const part of [tree, unread, options, known, session, engine]) part.dispose();
    workspace.folders.dispose();
  });

  /** As a window does when it opens. */
  function openUnread(): Unread {
    const outputs = { isShown: (id: string) => shown.has(id), onDidShow: shows.event };
    return new Unread(known, workspace.folders, memento, outputs);
  }

  /** A running task, unless the facts say otherwise; each is launched a second after the previous one. */
  async function add(description: string, facts: Partial<TaskRecordDraft> = {}): Promise<string> {
    const at = Date.now() - DAY + ++made * 1_000;
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
    if (task.status === "running" && !task.queued)
      await server.prompt(id, { messageID, agent, parts: [{ text: "Go." }] });
    return id;
  }

  const endedAt = (time: number) =>
    ({ status: "completed", endedAt: time, finalMessageID: "msg_f" }) as const;
  /** After the window was opened for the first time. */
  const justNow = () => endedAt(Date.now() + 1_000);

  function rows(node?: Node, indent = ""): string[] {
    return tree.getChildren(node).flatMap((child) => {
      const { label, description } = tree.getTreeItem(child);
      const facts = child instanceof GroupNode ? ` (${String(description)})` : "";
      return [`${indent}${typeof label === "string" ? label : ""}${facts}`, ...rows(child, `${indent}  `)];
    });
  }
  const badge = (id: string): string | undefined => {
    const { resourceUri } = tree.getTreeItem(tree.node(id));
    return resourceUri && new TaskDecorations().provideFileDecoration(resourceUri)?.badge;
  };

  it("groups rows by what they need, and ended ones by the time of their end", async () => {
    const asking = await add("asks");
    await add("ended first today", justNow());
    await add("long ago", endedAt(Date.now() - 3 * DAY));
    await add("queued second", { queued: true, createdAt: Date.now() + 2_000 });
    await add("queued first", { queued: true, createdAt: Date.now() + 1_000 });
    await add("works first");
    await add("works second");
    await add("ended last today", endedAt(Date.now() + 2_000));
    server.begin(asking);
    server.ask(asking);
    assert.deepEqual(rows(), [
      "Needs You (1)",
      "  asks",
      "Working (4)",
      "  works first",
      "  works second",
      "  queued first",
      "  queued second",
      "Finished Today (2 · 2 unread)",
      "  ended last today",
      "  ended first today",
      "Earlier (1)",
      "  long ago",
    ]);
    const states = tree.getChildren().map((node) => tree.getTreeItem(node).collapsibleState);
    const { Collapsed, Expanded } = vscode.TreeItemCollapsibleState;
    assert.deepEqual(states, [Expanded, Expanded, Expanded, Collapsed]);
  });

  it("cleared tasks are below all others in every order, once they are shown, if the filter matches them", async () => {
    await add("listed", justNow());
    const ids = [await add("cleared first", justNow()), await add("cleared last", justNow())];
    for (const id of ids) await engine.clear(id);
    assert.deepEqual(rows(), ["Finished Today (1 · 1 unread)", "  listed"]);
    options.showsCleared = true;
    const cleared = ["Cleared (2)", "  cleared last", "  cleared first"];
    assert.deepEqual(rows(), ["Finished Today (1 · 1 unread)", "  listed", ...cleared]);
    await options.sortBy("name");
    assert.deepEqual(rows(), ["listed", ...cleared]);
    options.filter = { states: [], agents: [], text: "first" };
    assert.deepEqual(rows(), ["Cleared (1)", "  cleared first"]);
    options.filter = { states: [], agents: [], text: "" };
    await engine.restore(ids[0] ?? "");
    assert.deepEqual(rows(), ["cleared first", "listed", "Cleared (1)", "  cleared last"]);
  });

  it("cleared subtasks are below their task, also if a filter matches nothing else there", async () => {
    const above = await add("above", justNow());
    const below = await add("below", { ...justNow(), parentSessionID: above });
    const { Collapsed, None } = vscode.TreeItemCollapsibleState;
    const state = () => tree.getTreeItem(tree.node(above)).collapsibleState;
    await engine.clear(below);
    assert.equal(state(), None);
    options.showsCleared = true;
    assert.notEqual(state(), None);
    const all = ["Finished Today (1 · 1 unread)", "  above", "    Cleared (1)", "      below"];
    assert.deepEqual(rows(), all);
    options.filter = { states: [], agents: [], text: "below" };
    assert.deepEqual(rows(), all);
    const [group] = tree.getChildren(tree.node(above));
    assert.ok(group instanceof GroupNode);
    assert.equal(tree.getTreeItem(group).collapsibleState, Collapsed);
    assert.equal(tree.getParent(group), tree.node(above));
    options.filter = { states: [], agents: [], text: "above" };
    assert.deepEqual(rows(), all.slice(0, 2));
    options.filter = { states: [], agents: [], text: "" };
    await engine.restore(below);
    assert.deepEqual(rows(), ["Finished Today (1 · 1 unread)", "  above", "    below"]);
  });

  it("a batch that was expanded stays so when it moves to another group", async () => {
    const ids = [];
    for (const name of ["Review the lexer", "Review the parser"]) ids.push(await add(name, { batchID: "b" }));
    rows();
    for (const id of ids) {
      server.begin(id);
      server.finish(id, "Done.");
    }
    await until("the end", () => rows()[0]?.startsWith("Finished Today") === true);
    const [group] = tree.getChildren();
    const [batch] = tree.getChildren(group);
    assert.ok(batch);
    assert.equal(tree.getTreeItem(batch).collapsibleState, vscode.TreeItemCollapsibleState.Expanded);
  });

  it("a group that shows its rows was expanded, even if the editor did not report it", async () => {
    const id = await add("cleared", justNow());
    await engine.clear(id);
    options.showsCleared = true;
    const group = (): Node | undefined => tree.getChildren()[0];
    const state = (): vscode.TreeItemCollapsibleState | undefined => {
      const node = group();
      return node && tree.getTreeItem(node).collapsibleState;
    };
    const { Collapsed, Expanded } = vscode.TreeItemCollapsibleState;
    tree.getChildren(group());
    assert.equal(state(), Collapsed, "of a hidden view, the editor asks for rows to reveal");
    tree.setVisible(true);
    tree.getChildren(group());
    assert.equal(state(), Expanded);
    await engine.restore(id);
    assert.equal(tree.getChildren().length, 1);
    await engine.clear(id);
    assert.equal(state(), Expanded);
  });

  it("a task that ends in front of the user is never in two groups at once", async () => {
    await add("Ended before", justNow());
    const id = await add("Fix the lexer");
    await add("Works on");
    tree.setVisible(true);
    /** The children of each row, as the editor has them; it asks for them when it is told of a change. */
    const given = new Map<Node | undefined, readonly Node[]>();
    const load = (node?: Node): void => {
      const children = tree.getChildren(node);
      given.set(node, children);
      children.forEach(load);
    };
    const groupsOf = (node: Node): readonly string[] =>
      [...given].flatMap(([row, children]) =>
        row instanceof GroupNode && children.includes(node) ? [row.group] : [],
      );
    load();
    const seen: string[] = [];
    tree.onDidChangeTreeData((node) => {
      if (!node) given.clear();
      if (!node || given.has(node)) load(node);
      seen.push(groupsOf(tree.node(id)).join(" and "));
    });
    shown.add(id);
    server.begin(id);
    server.finish(id, "Done.");
    await until("the new group", () => seen.at(-1) === "today");
    assert.deepEqual([...new Set(seen)], ["working", "today"]);
  });

  it("a queued row says its place, and moves up when the queue does", async () => {
    const first = await add("first", { queued: true });
    const second = await add("second", { queued: true });
    rows();
    const place = (): string => String(tree.getTreeItem(tree.node(second)).description);
    assert.match(place(), /queued, #2/);
    const drawn: unknown[] = [];
    tree.onDidChangeTreeData((node) => drawn.push(node));
    await engine.cancel(first);
    await until("the second row to be redrawn", () => drawn.includes(tree.node(second)));
    assert.match(place(), /queued, #1/);
  });

  it("a queued row moves up also when a task of another session starts", async () => {
    const other = (await server.createSession({ title: "Other", agent: "build" })).id;
    const first = await add("first", { queued: true, parentSessionID: other });
    const second = await add("second", { queued: true });
    rows();
    const place = (): string => String(tree.getTreeItem(tree.node(second)).description);
    assert.match(place(), /queued, #2/);
    await engine.cancel(first);
    await until("the next place", () => /queued, #1/.test(place()));
  });

  it("a queued row and its tooltip say that the task waits, not that it runs", async () => {
    const id = await add("Later", { queued: true });
    const node = tree.node(id);
    const row = tree.getTreeItem(node);
    assert.match(row.accessibilityInformation?.label ?? "", /queued/);
    assert.doesNotMatch(row.accessibilityInformation?.label ?? "", /running/);
    const { tooltip } = await tree.resolveTreeItem(row, node);
    assert.ok(tooltip instanceof vscode.MarkdownString);
    assert.match(tooltip.value, /Queued since[^]*Queued for/);
    assert.doesNotMatch(tooltip.value, /[Rr]unning|Started/);
  });

  it("a row keeps its batch and its group as the path to reveal it; other orders have no groups", async () => {
    const id = await add("Review the lexer", { batchID: "b" });
    await add("Review the parser", { batchID: "b" });
    const path = (): readonly unknown[] => {
      const labels: unknown[] = [];
      for (let node: Node | undefined = tree.node(id); node; node = tree.getParent(node))
        labels.push(tree.getTreeItem(node).label);
      return labels;
    };
    assert.deepEqual(path(), ["lexer", "Review the …", "Working"]);
    await options.sortBy("newest");
    assert.deepEqual(path(), ["lexer", "Review the …"]);
  });

  it("a renamed task has its new name in its row, also next to others that begin alike", async () => {
    const id = await add("Compare our implementation with the Testing view");
    await add("Compare our implementation with the chat sessions");
    const labels = (): readonly unknown[] => {
      const [group] = tree.getChildren();
      return tree.getChildren(group).map((node) => tree.getTreeItem(node).label);
    };
    assert.deepEqual(labels(), ["Compare … Testing view", "Compare … chat sessions"]);
    const drawn: unknown[] = [];
    tree.onDidChangeTreeData((node) => drawn.push(node));
    await engine.rename(id, "  Testing view\n");
    assert.ok(drawn.includes(tree.node(id)));
    assert.equal(labels()[0], "Testing view");
    await assert.rejects(engine.rename(id, " "), /needs a name/);
  });

  it("a batch that is named after its tasks has its new name once one of them is renamed", async () => {
    const [one] = [await add("Fix tests", { batchID: "a" }), await add("Fix tests", { batchID: "a" })];
    assert.ok(rows().includes("  Fix tests"));
    const drawn: Node[] = [];
    tree.onDidChangeTreeData((node) => void (node && drawn.push(node)));
    await engine.rename(one, "Gemini attempt");
    const batch = drawn.find((node) => node instanceof BatchNode);
    assert.equal(batch && tree.getTreeItem(batch).label, "Batch of 2");
    drawn.length = 0;
    await engine.rename(one, "Claude attempt");
    assert.ok(!drawn.some((node) => node instanceof BatchNode));
  });

  it("a result of a batch that has become a single row is read in that row", async () => {
    const [one, other] = [
      await add("one", { ...justNow(), batchID: "a" }),
      await add("other", { ...justNow(), batchID: "a" }),
    ];
    rows();
    await engine.clear(one);
    tree.fireMoved();
    assert.deepEqual(rows(), ["Finished Today (1 · 1 unread)", "  other"]);
    const drawn: unknown[] = [];
    tree.onDidChangeTreeData((node) => drawn.push(node));
    shows.fire(other);
    assert.ok(
      drawn.length > 0 && drawn.every((node) => node instanceof GroupNode || node === tree.node(other)),
    );
  });

  it("an unreadable task's row goes with its session", async () => {
    await add("works");
    rows();
    const session = server.known().find(({ title }) => title === "works") ?? assert.fail();
    const id = "ses_unreadable";
    const task = { kind: "unreadable", reason: "Of a newer version." } as const;
    server.put({ ...session, id, title: "Broken", task }, undefined);
    server.emit({ type: "session-changed", session: { ...session, id, title: "Broken", task } });
    assert.ok(rows().includes("Broken"), rows().join());
    const drawn: unknown[] = [];
    tree.onDidChangeTreeData((node) => drawn.push(node));
    await server.deleteSession(id);
    assert.ok(drawn.length > 0);
    assert.ok(!rows().includes("Broken"));
  });

  it("a task that ends moves to another group by one redraw of all groups", async () => {
    const id = await add("works");
    await add("works too");
    assert.deepEqual(rows(), ["Working (2)", "  works", "  works too"]);
    const drawn: unknown[] = [];
    tree.onDidChangeTreeData((node) => drawn.push(node));
    server.begin(id);
    server.finish(id, "Done.");
    await until("the groups to be redrawn", () => drawn.includes(undefined));
    assert.deepEqual(rows(), ["Working (1)", "  works too", "Finished Today (1 · 1 unread)", "  works"]);
  });

  it("a result is unread until its output is shown, also after a reload", async () => {
    const [read, left] = [await add("read", justNow()), await add("left", justNow())];
    const cancelled = await add("cancelled", { ...justNow(), status: "cancelled" });
    const below = await add("below", { ...justNow(), parentSessionID: left });
    assert.deepEqual([read, left, cancelled, below].map(badge), ["●", "●", undefined, undefined]);
    rows();
    shows.fire(read);
    assert.deepEqual([read, left].map(badge), [undefined, "●"]);
    unread.dispose();
    const reloaded = openUnread();
    assert.deepEqual(
      reloaded.list().map(({ id }) => id),
      [left],
    );
    reloaded.dispose();
  });

  it("what ended before the first window, and what ends in front of the user, is read", async () => {
    const old = await add("old", endedAt(Date.now() - 60_000));
    const watched = await add("watched");
    shown.add(watched);
    server.begin(watched);
    server.finish(watched, "Done.");
    await until("the end", () => known.get(watched)?.status === "completed");
    assert.deepEqual([old, watched].map(badge), [undefined, undefined]);
  });

  it("a resumed task is unread again at its next end", async () => {
    const id = await add("resumed", justNow());
    unread.markRead(id);
    assert.deepEqual(unread.list(), []);
    await engine.resume(id, "More.");
    server.begin(id);
    server.finish(id, "More done.");
    await until("the end", () => unread.list().length === 1);
  });

  it("all are marked as read at once", async () => {
    for (const name of ["one", "two", "three"]) await add(name, justNow());
    assert.equal(unread.list().length, 3);
    unread.markAllRead();
    assert.deepEqual(unread.list(), []);
    assert.equal(rows()[0], "Finished Today (3)");
  });

  it("the next one is each request once, then the results, the last end first", async () => {
    const [first, second] = [await add("asks"), await add("asks too")];
    for (const id of [first, second]) {
      server.begin(id);
      server.ask(id);
    }
    const older = await add("older", endedAt(Date.now() + 1_000));
    const newer = await add("newer", endedAt(Date.now() + 2_000));
    const next = (): string | undefined => {
      const id = unread.next(known.openRequests());
      if (id !== undefined) unread.markRead(id);
      return id;
    };
    const requests = known.openRequests().map(({ child }) => child.id);
    assert.deepEqual([next(), next(), next()], [...requests, newer]);
    assert.deepEqual([next(), next(), next(), next()], [...requests, older, requests[0]]);
    assert.equal(unread.next([]), undefined);
  });

  it("stores the last five hundred that were read one by one", async () => {
    const until = Date.now();
    const stored = (): { until: number; ends: object } | undefined => memento.get("asyncagents.read");
    const ids = [];
    for (let at = 1; at <= 502; at++) ids.push(await add(`task ${at}`, endedAt(until + at)));
    for (const id of ids) unread.markRead(id);
    assert.equal(Object.keys(stored()?.ends ?? {}).length, 500);
    assert.equal(stored()?.until, until + 2);
    assert.deepEqual(unread.list(), []);
  });
});
