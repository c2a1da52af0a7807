import assert from "node:assert/strict";
import * as vscode from "vscode";
import type { Task } from "../../src/engine/task.ts";
import type { OverviewMessage } from "../../src/protocol/overview.ts";
import { openOverview } from "../../src/ui/output/open-overview.ts";
import type { PanelParts } from "../../src/ui/output/output-panels.ts";
import { Overview } from "../../src/ui/output/overview.ts";
import { until } from "../support/wait.ts";
import { NO_TOKENS, record } from "../unit/engine/builders.ts";

const HOUR = 3_600_000;

describe("an overview that the editor restores when its tab is shown", () => {
  it("takes the place of one that was opened meanwhile", async () => {
    const never = (): vscode.Disposable => ({ dispose: () => undefined });
    const { createWebviewPanel, registerWebviewPanelSerializer } = vscode.window;
    const make = (): vscode.WebviewPanel => createWebviewPanel("test", "Overview", vscode.ViewColumn.Active);
    const opened = make();
    const gone: string[] = [];
    opened.onDidDispose(() => gone.push("opened"));
    let restore: vscode.WebviewPanelSerializer["deserializeWebviewPanel"] | undefined;
    Object.assign(vscode.window, {
      createWebviewPanel: () => opened,
      registerWebviewPanelSerializer: (_: string, serializer: vscode.WebviewPanelSerializer) => {
        restore = (...args) => serializer.deserializeWebviewPanel(...args);
        return never();
      },
    });
    const events = { onDidChange: never, onDidChangeSubagent: never, onDidChangeRequests: never };
    const parts = { known: events, folders: { onDidChange: never, follow: never } };
    const overview = new Overview(vscode.Uri.file("/"), parts as unknown as PanelParts);
    try {
      overview.show();
      const restored = make();
      restored.onDidDispose(() => gone.push("restored"));
      await restore?.(restored, undefined);
      await until("one of them to be closed", () => gone.length > 0);
      assert.deepEqual(gone, ["opened"]);
      overview.dispose();
      await until("the other to be closed", () => gone.length > 1);
    } finally {
      Object.assign(vscode.window, { createWebviewPanel, registerWebviewPanelSerializer });
      overview.dispose();
    }
  });
});

describe("what the overview is told", () => {
  const none = new vscode.EventEmitter<never>().event;
  let changes: vscode.EventEmitter<void>;
  let closes: vscode.EventEmitter<void>;
  let tasks: Task[];
  let posted: OverviewMessage[];
  let receive: (message: unknown) => void;

  beforeEach(() => {
    [tasks, posted] = [[], []];
    changes = new vscode.EventEmitter();
    closes = new vscode.EventEmitter();
    const known = {
      onDidChange: changes.event,
      onDidChangeSubagent: none,
      onDidChangeRequests: none,
      openRequests: () => [],
      sessions: () => tasks,
      child: (id: string) => tasks.find((task) => task.id === id),
    };
    const connector = { state: { kind: "connected" }, onDidChange: none };
    const folder = { known, connector };
    const folders = {
      all: [folder],
      current: folder,
      onDidChange: none,
      follow: (open: (one: typeof folder) => vscode.Disposable) => open(folder),
    };
    const panel = {
      visible: true,
      webview: { postMessage: async (message: OverviewMessage) => posted.push(message) },
      onDidDispose: closes.event,
    };
    receive = openOverview(
      panel as unknown as vscode.WebviewPanel,
      { known, folders } as unknown as PanelParts,
    );
  });

  afterEach(() => closes.fire());

  const midnight = (): number => new Date().setHours(0, 0, 0, 0);
  const task = (id: string, facts: Partial<Task>): Task => ({
    ...record({ id, ...facts }),
    cost: 0,
    tokens: NO_TOKENS,
  });
  const last = (): { readonly dayStart: number; readonly ids: readonly string[] } => {
    const message = posted.at(-1);
    assert.ok(message?.type === "tasks");
    return { dayStart: message.dayStart, ids: message.tasks.map(({ id }) => id) };
  };

  it("is of today: what ended since midnight or still runs, and is in the list", () => {
    const today = midnight();
    const ended = (id: string, endedAt: number, facts: Partial<Task> = {}): Task =>
      task(id, { status: "completed", createdAt: endedAt - HOUR, endedAt, ...facts });
    tasks = [
      ended("yesterday", today - 1),
      ended("today", today),
      ended("cleared", today, { clearedAt: today }),
      task("running", { createdAt: today - 48 * HOUR }),
    ];
    receive({ type: "ready" });
    assert.equal(posted[0]?.type, "setup");
    assert.deepEqual(last(), { dayStart: today, ids: ["today", "running"] });
  });

  it("is that there is nothing on a day that begins, and then the first task", async () => {
    receive({ type: "ready" });
    assert.deepEqual(last().ids, []);
    tasks = [task("first", {})];
    changes.fire();
    await until("the task", () => last().ids.join() === "first");
  });
});
