import * as vscode from "vscode";
import type { TaskEngine } from "../../engine/engine.ts";
import type { ActiveSession } from "../../engine/active-session.ts";
import type { UnreadableTask } from "../../engine/registry.ts";
import { taskItem, taskTooltip } from "./task-item.ts";

/** How often the time of active tasks is drawn anew, in milliseconds. */
const TICK_MS = 1_000;

/** Shows the output of the row that was just clicked, and so is the selected one. */
export const SHOW_SELECTED = "_asyncagents.showSelected";

/** A row of the tree. */
export abstract class TreeNode {}

/** The task with this ID. */
export class TaskNode extends TreeNode {
  constructor(readonly taskID: string) {
    super();
  }
}

class UnreadableNode extends TreeNode {
  constructor(readonly task: UnreadableTask) {
    super();
  }
}

type Node = TaskNode | UnreadableNode;

/** The tasks of the active session. A change of one task draws one row anew. */
export class TaskTree implements vscode.TreeDataProvider<Node>, vscode.Disposable {
  private readonly nodes = new Map<string, TaskNode>();
  private readonly changes = new vscode.EventEmitter<Node | undefined>();
  private readonly subscriptions: readonly { dispose(): void }[];
  private ticking: NodeJS.Timeout | undefined;
  private visible = false;
  readonly onDidChangeTreeData = this.changes.event;

  constructor(
    private readonly engine: TaskEngine,
    private readonly session: ActiveSession,
  ) {
    this.subscriptions = [
      session.onDidChange(() => this.refresh()),
      engine.onDidChangeSession((id) => {
        const changed = engine.session(id);
        if (changed?.task.kind === "unreadable" && changed.parentID === session.id)
          this.changes.fire(undefined);
      }),
      engine.onDidChange(({ id, before, after }) => {
        const parent = (after ?? before)?.parentSessionID;
        if (parent !== session.id) return;
        const sameRows = before && after && before.clearedAt === after.clearedAt;
        this.changes.fire(sameRows ? this.nodes.get(id) : undefined);
        this.tick();
      }),
    ];
  }

  /** The node of a task, so that it can be revealed. */
  node(taskID: string): TaskNode {
    let node = this.nodes.get(taskID);
    if (!node) this.nodes.set(taskID, (node = new TaskNode(taskID)));
    return node;
  }

  refresh(): void {
    this.nodes.clear();
    this.changes.fire(undefined);
    this.tick();
  }

  /** Times move only while someone can see them. */
  setVisible(visible: boolean): void {
    this.visible = visible;
    this.tick();
  }

  getChildren(element?: Node): Node[] {
    const parent = this.session.id;
    if (element || parent === undefined) return [];
    return [
      ...this.engine.unreadable(parent).map((task) => new UnreadableNode(task)),
      ...this.engine.list(parent).map(({ id }) => this.node(id)),
    ];
  }

  getParent(): undefined {
    return undefined;
  }

  getTreeItem(element: Node): vscode.TreeItem {
    if (element instanceof UnreadableNode) return unreadableItem(element.task);
    const task = this.engine.get(element.taskID);
    if (!task) return new vscode.TreeItem(vscode.l10n.t("Gone"));
    const item = taskItem(task, Date.now());
    // Without arguments: the editor forgets those of a row that is drawn anew, and a click in that moment would be lost.
    item.command = { command: SHOW_SELECTED, title: vscode.l10n.t("Show Output") };
    return item;
  }

  resolveTreeItem(item: vscode.TreeItem, element: Node): vscode.TreeItem {
    const task = element instanceof TaskNode ? this.engine.get(element.taskID) : undefined;
    if (task) item.tooltip = taskTooltip(task, Date.now());
    return item;
  }

  dispose(): void {
    clearInterval(this.ticking);
    for (const subscription of this.subscriptions) subscription.dispose();
    this.changes.dispose();
  }

  private tick(): void {
    const wanted = this.visible && this.activeNodes().length > 0;
    if (wanted === (this.ticking !== undefined)) return;
    clearInterval(this.ticking);
    this.ticking = wanted
      ? setInterval(() => {
          for (const node of this.activeNodes()) this.changes.fire(node);
        }, TICK_MS)
      : undefined;
  }

  private activeNodes(): readonly TaskNode[] {
    const parent = this.session.id;
    return this.engine
      .active()
      .filter(({ parentSessionID }) => parentSessionID === parent)
      .flatMap(({ id }) => this.nodes.get(id) ?? []);
  }
}

function unreadableItem({ sessionID, title, reason }: UnreadableTask): vscode.TreeItem {
  const item = new vscode.TreeItem(title);
  item.id = sessionID;
  item.description = vscode.l10n.t("cannot be read");
  item.tooltip = vscode.l10n.t("The record of this task cannot be read, and is left as it is: {0}", reason);
  item.iconPath = new vscode.ThemeIcon("question", new vscode.ThemeColor("list.warningForeground"));
  item.contextValue = "unreadable";
  return item;
}
