import * as vscode from "vscode";
import type { ActiveSession } from "../../engine/active-session.ts";
import type { ConnectionState } from "../../engine/connection.ts";
import type { TaskEngine } from "../../engine/engine.ts";
import { isActive, type Task } from "../../engine/task.ts";
import type { ContextKeys } from "../context-keys.ts";
import { TaskDecorations } from "./decorations.ts";
import type { VisibleConnection } from "../output/output-source.ts";
import { TaskNode, TaskTree } from "./task-tree.ts";

export const TASK_VIEW = "asyncagents.tasks";

const KEYS_DELAY_MS = 50;

/** The view: the tree, its heading, and the facts by which the editor chooses what an empty one says. */
export class TaskView implements vscode.Disposable {
  private readonly tree: TaskTree;
  private readonly view: vscode.TreeView<unknown>;
  private readonly subscriptions: readonly { dispose(): void }[];
  private pendingUpdate: NodeJS.Timeout | undefined;
  /** Tells when the person opens or leaves the view. */
  readonly onDidChangeVisibility: vscode.Event<boolean>;

  constructor(
    private readonly engine: TaskEngine,
    private readonly session: ActiveSession,
    private readonly connection: VisibleConnection,
    private readonly keys: ContextKeys,
  ) {
    this.tree = new TaskTree(engine, session);
    const view = vscode.window.createTreeView(TASK_VIEW, {
      treeDataProvider: this.tree,
      showCollapseAll: false,
      canSelectMany: true,
    });
    this.view = view;
    const visibility = new vscode.EventEmitter<boolean>();
    this.onDidChangeVisibility = visibility.event;
    this.subscriptions = [
      this.tree,
      view,
      visibility,
      view.onDidChangeVisibility(({ visible }) => {
        this.tree.setVisible(visible);
        visibility.fire(visible);
      }),
      vscode.window.registerFileDecorationProvider(new TaskDecorations()),
      session.onDidChange(() => this.update()),
      engine.onDidChangeSession((id) => {
        if (id === session.id) this.update();
      }),
      engine.onDidChange(() => this.updateKeysSoon()),
      connection.onDidChange(() => {
        this.update();
        if (connection.state.kind === "connected") this.tree.refresh();
      }),
      vscode.workspace.onDidGrantWorkspaceTrust(() => this.update()),
    ];
    this.tree.setVisible(view.visible);
    this.update();
  }

  /** The task whose row is selected. */
  get selectedTaskID(): string | undefined {
    const [node] = this.view.selection;
    return node instanceof TaskNode ? node.taskID : undefined;
  }

  get visible(): boolean {
    return this.view.visible;
  }

  /** Brings a task into sight without taking the focus, opening the view if need be. */
  reveal(taskID: string): void {
    // The row may be gone before the editor gets there.
    this.view.reveal(this.tree.node(taskID), { focus: false, select: true }).then(undefined, () => undefined);
  }

  refresh(): void {
    this.tree.refresh();
  }

  dispose(): void {
    clearTimeout(this.pendingUpdate);
    for (const subscription of this.subscriptions) subscription.dispose();
  }

  private update(): void {
    const { state } = this.connection;
    this.keys.set("asyncagents.state", viewState(state));
    this.keys.set("asyncagents.failure", state.kind === "failed" ? state.failure.code : undefined);
    this.keys.set("asyncagents.connected", state.kind === "connected");
    this.keys.set("asyncagents.ownServer", state.kind === "connected" && state.own);
    this.view.description = this.session.session?.title ?? "";
    this.view.message = this.message(state);
    this.updateKeys();
  }

  /** Many tasks can change within one moment; the keys are about all of them. */
  private updateKeysSoon(): void {
    this.pendingUpdate ??= setTimeout(() => this.updateKeys(), KEYS_DELAY_MS);
  }

  private updateKeys(): void {
    clearTimeout(this.pendingUpdate);
    this.pendingUpdate = undefined;
    const tasks = this.session.id === undefined ? [] : this.engine.list(this.session.id);
    this.keys.set("asyncagents.hasTasks", tasks.length > 0);
    const waiting = tasks.filter(needsPerson).length;
    const tooltip =
      waiting === 1
        ? vscode.l10n.t("1 task waits for you")
        : vscode.l10n.t("{0} tasks wait for you", waiting);
    this.view.badge = waiting > 0 ? { value: waiting, tooltip } : undefined;
    this.keys.set(
      "asyncagents.hasFinished",
      tasks.some((task) => !isActive(task)),
    );
  }

  /** Said above the tasks that were last known; an empty view has its welcome instead, unless there is more to say. */
  private message(state: ConnectionState): string {
    if (state.kind === "connecting" && state.detail !== "") return state.detail;
    if (this.session.id === undefined || this.engine.list(this.session.id).length === 0) return "";
    switch (state.kind) {
      case "connected":
        return "";
      case "connecting":
        return vscode.l10n.t("Connecting to OpenCode…");
      case "reconnecting":
        return vscode.l10n.t("The connection was lost; trying again. The tasks may be out of date.");
      case "disconnected":
        return vscode.l10n.t("Not connected. The tasks may be out of date.");
      case "failed":
        return `${state.failure.message} ${state.failure.remedy}`;
    }
  }
}

function needsPerson({ progress }: Task): boolean {
  return progress?.phase === "needs-permission" || progress?.phase === "needs-answer";
}

function viewState(state: ConnectionState): "noFolder" | "untrusted" | ConnectionState["kind"] {
  if (!vscode.workspace.workspaceFolders?.length) return "noFolder";
  if (!vscode.workspace.isTrusted) return "untrusted";
  return state.kind;
}
