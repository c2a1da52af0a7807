import assert from "node:assert/strict";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as vscode from "vscode";
import type { CommandContext } from "../../src/ui/commands/command.ts";
import { showSelected } from "../../src/ui/commands/row-commands.ts";
import { OutputPanels, type PanelParts } from "../../src/ui/output/output-panels.ts";
import { loadPage } from "../../src/ui/output/web-page.ts";
import { tempDir } from "../support/temp.ts";
import { until } from "../support/wait.ts";

describe("a page in an editor tab", () => {
  let panel: vscode.WebviewPanel;

  beforeEach(() => {
    panel = vscode.window.createWebviewPanel("test", "Page", vscode.ViewColumn.Active);
  });
  afterEach(() => panel.dispose());

  it("is loaded again as long as its script doesn't run, also when it is shown again, and no longer", async () => {
    const extension = tempDir("extension");
    for (const name of ["dist", "media"]) mkdirSync(join(extension, name));
    const script = join(extension, "dist", "webview.js");
    const pages = new Set<string>();
    const answered = new Set<string>();
    const receive = (): void => void answered.add(panel.webview.html);
    const options = { name: "output", receive, patienceMs: 1_000 } as const;
    const page = loadPage(panel, vscode.Uri.file(extension), options);
    await until("another load", () => pages.add(panel.webview.html).size > 1);
    writeFileSync(script, "acquireVsCodeApi().postMessage({ taskID: '' });");
    await until("the script", () => answered.size > 0);
    page.dispose();
    const [last] = answered;
    // The loads of the next page show that those of the first are over.
    const next = loadPage(panel, vscode.Uri.file(tempDir("empty")), options);
    const seen = new Set([panel.webview.html]);
    await until("its second load", () => seen.add(panel.webview.html).size > 1);
    next.dispose();
    assert.equal(seen.size, 2);
    assert.ok(last !== undefined && !seen.has(last));

    loadPage(panel, vscode.Uri.file(extension), options);
    answered.clear();
    await until("the script of a third page", () => answered.size > 0);
    const [shown] = answered;
    const other = join(extension, "other.txt");
    writeFileSync(other, "");
    await vscode.window.showTextDocument(vscode.Uri.file(other), { viewColumn: vscode.ViewColumn.Active });
    await until("the page to be hidden", () => !panel.visible);
    rmSync(script);
    panel.reveal();
    await until("a load after the page is shown again", () => panel.webview.html !== shown);
  });

  it("is loaded again after ever longer times, so that a slow one can arrive", async () => {
    const patienceMs = 70_001;
    const pages: string[] = [];
    const times: number[] = [];
    const { setTimeout } = globalThis;
    const early = (run: () => void, ms = 0, ...others: []): unknown => {
      if (ms === 0 || ms % patienceMs > 0) return setTimeout(run, ms, ...others);
      pages.push(panel.webview.html);
      return times.push(ms) < 4 ? setTimeout(run) : undefined;
    };
    globalThis.setTimeout = early as typeof setTimeout;
    try {
      const empty = vscode.Uri.file(tempDir("empty"));
      const page = loadPage(panel, empty, { name: "output", receive: () => undefined, patienceMs });
      await until("three more loads", () => times.length === 4);
      page.dispose();
    } finally {
      globalThis.setTimeout = setTimeout;
    }
    assert.deepEqual(
      times.map((ms) => ms / patienceMs),
      [1, 2, 4, 8],
    );
    assert.equal(new Set(pages).size, 4);
  });

  it("receives nothing from the page of another task, which works until it is replaced", async () => {
    const [one, other] = [tempDir("extension"), tempDir("extension")];
    for (const extension of [one, other])
      for (const name of ["dist", "media"]) mkdirSync(join(extension, name));
    const says = (taskID: string): string => `api.postMessage({ taskID: "${taskID}", message: "${taskID}" })`;
    const script = "const api = acquireVsCodeApi();";
    writeFileSync(join(one, "dist", "webview.js"), `${script} setInterval(() => ${says("one")}, 5);`);
    const received: unknown[] = [];
    const load = (extension: string, taskID: string): vscode.Disposable =>
      loadPage(panel, vscode.Uri.file(extension), {
        name: "output",
        taskID,
        receive: (message) => received.push(message),
      });
    const first = load(one, "one");
    await until("the first page", () => received.includes("one"));
    first.dispose();
    received.length = 0;
    // While the second page has no script, the first one's messages still arrive.
    let late = 0;
    panel.webview.onDidReceiveMessage(() => late++);
    writeFileSync(join(other, "dist", "webview.js"), `${script} ${says("other")};`);
    load(other, "other");
    await until("the second page", () => received.includes("other"));
    assert.deepEqual(received, ["other"]);
    assert.ok(late > 1, "the first page sent something after the second was loaded");
  });
});

describe("an output that the editor restores when its tab is shown", () => {
  const never = (): vscode.Disposable => ({ dispose: () => undefined });

  it("gives way to one that was opened meanwhile, with what was written in it", async () => {
    const extension = tempDir("extension");
    for (const name of ["dist", "media"]) mkdirSync(join(extension, name));
    // The page keeps what it is told, and has a draft if it is told so.
    const script = `const api = acquireVsCodeApi();
      const taskID = document.getElementById("app").dataset.task;
      const say = (message) => api.postMessage({ taskID, message });
      addEventListener("message", ({ data }) => {
        if (data.type === "left") say({ type: "send", text: data.state.draft, how: "now" });
      });
      say({ type: "ready" });`;
    writeFileSync(join(extension, "dist", "webview.js"), script);
    const sent: unknown[] = [];
    const child = { id: "one", description: "One", status: "running", parentSessionID: "top" };
    const known = {
      child: (id: string) => (id === "one" ? child : undefined),
      ...{ session: () => undefined, children: () => [], openRequests: () => [] },
      ...{ onDidChange: never, onDidChangeSubagent: never, onDidChangeRequests: never },
    };
    const tasks = { steer: async (_: string, text: string) => void sent.push(text) };
    const folders = { of: () => undefined, all: [], onDidChange: never, follow: never };
    const logger = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
    const parts = { known, tasks, folders, logger } as unknown as PanelParts;
    const panels = new OutputPanels(vscode.Uri.file(extension), parts);
    const { registerWebviewPanelSerializer } = vscode.window;
    let restore: vscode.WebviewPanelSerializer["deserializeWebviewPanel"] | undefined;
    vscode.window.registerWebviewPanelSerializer = (_type, serializer) => {
      restore = (...args) => serializer.deserializeWebviewPanel(...args);
      return never();
    };
    panels.registerSerializer();
    Object.assign(vscode.window, { registerWebviewPanelSerializer });
    try {
      panels.click("one", 1_000);
      const late = vscode.window.createWebviewPanel("test", "Late", vscode.ViewColumn.Active);
      const isGone = new Promise<void>((resolve) => late.onDidDispose(() => resolve()));
      await restore?.(late, { version: 1, taskID: "one", opened: [], draft: "Go on", replies: {} });
      await isGone;
      await until("the draft in the other page", () => sent.length > 0);
      assert.deepEqual(sent, ["Go on"]);
    } finally {
      panels.dispose();
    }
  });
});

describe("the preview of outputs", () => {
  const never = (): vscode.Disposable => ({ dispose: () => undefined });
  const { createWebviewPanel } = vscode.window;
  let panels: OutputPanels;
  let made: number;

  beforeEach(() => {
    made = 0;
    vscode.window.createWebviewPanel = (() => {
      made++;
      const webview = { asWebviewUri: (uri: vscode.Uri) => uri, onDidReceiveMessage: never };
      const events = { onDidChangeViewState: never, onDidDispose: never };
      return { webview, ...events, reveal: () => undefined, dispose: () => undefined };
    }) as unknown as typeof createWebviewPanel;
    const known = {
      child: () => undefined,
      ...{ onDidChange: never, onDidChangeSubagent: never, onDidChangeRequests: never },
    };
    const folders = { of: () => undefined, all: [], onDidChange: never, follow: never };
    panels = new OutputPanels(vscode.Uri.file("/"), { known, folders } as unknown as PanelParts);
  });

  afterEach(() => {
    vscode.window.createWebviewPanel = createWebviewPanel;
    panels.dispose();
  });

  it("stays after a double-click, and not after two slow clicks", () => {
    panels.click("one", 1_000);
    panels.click("one", 1_600);
    panels.click("two", 3_000);
    assert.equal(made, 1);
    panels.click("two", 3_400);
    panels.click("three", 5_000);
    assert.equal(made, 2);
  });

  it("counts the time between clicks, not between the times at which their rows are drawn again", async () => {
    let drawn = (_id: string): void => undefined;
    const clickedID = (): Promise<string> => new Promise((resolve) => (drawn = resolve));
    const clicks: [string, number][] = [];
    const click = (id: string, at: number): void => void clicks.push([id, at]);
    const context = { panels: { click }, clickedID } as unknown as CommandContext;
    const before = Date.now();
    const first = showSelected(context);
    const after = Date.now();
    await until("another millisecond", () => Date.now() > after);
    drawn("one");
    await first;
    assert.equal(clicks.length, 1);
    assert.ok(clicks.every(([id, at]) => id === "one" && at >= before && at <= after));
  });
});
