import * as vscode from "vscode";
import { describeFailure, type ConnectionState } from "../../engine/connection.ts";
import { isRunning, isTask, isCleared } from "../../engine/subagent.ts";
import type { ContextKeys } from "../context-keys.ts";
import type { DaemonTrouble } from "../daemon-trouble.ts";
import type { Tasks } from "../folders/all-tasks.ts";
import { type Folder, isOnDisk, type Folders } from "../folders/folders.ts";
import { title } from "../plain-text.ts";
import { enumerate, translate } from "../messages.ts";
import { badge } from "./badge.ts";
import {
  batchMembers,
  clearedBelow,
  descendants,
  isAnswered,
  isFinished,
  isListed,
  waitsForUser,
} from "./family.ts";
import { isFiltering, type ListOptions, matches, type TaskFilter } from "./list-options.ts";
import { BatchNode, ChildNode, FolderNode, folderOf, type Node, rowID, TaskDecorations } from "./items.ts";
import type { Unread } from "./unread.ts";
import { TaskTree } from "./task-tree.ts";
import { stateWord } from "./words.ts";

export const TASK_VIEW = "asyncagents.tasks";

const UPDATE_DELAY_MS = 50;
/** How long a clicked row may take to be redrawn. */
const SELECTION_MS = 2_000;
/** When a row is selected for the last time, in milliseconds. */
const LAST_MS = SELECTION_MS - UPDATE_DELAY_MS;
/** How long the editor may take to draw the rows that it asked for, in milliseconds. */
const REDRAW_MS = 500;

/** How many tasks a filter covers, how many it shows, and how many that wait for the user it hides. */
interface Filtered {
  readonly all: number;
  readonly shown: number;
  readonly waiting: number;
}

/** What the view shows, and how. */
export interface ViewParts {
  readonly known: Tasks;
  readonly folders: Folders;
  readonly options: ListOptions;
  readonly unread: Unread;
  readonly keys: ContextKeys;
  readonly daemon: Pick<DaemonTrouble, "message" | "onDidChange">;
}

/** The view of the tasks: tree, title, badge, message, and the context keys for menus and for the empty view. */
export class TaskView implements vscode.Disposable {
  readonly tree: TaskTree;
  private readonly view: vscode.TreeView<Node>;
  private readonly disposables: vscode.Disposable;
  private pendingUpdate: NodeJS.Timeout | undefined;
  /** The selected rows, as the editor last reported them. */
  private reported: readonly Node[] = [];
  /** The output that the user has gone to since they selected rows, and those rows. */
  private followedID: string | undefined;
  private formerRows = "";
  /** The selection that is being made; a newer one replaces it. */
  private toSelect: { readonly taskID: string } | undefined;
  /** Rows to expand once the view is visible. */
  private readonly toOpen = new Set<ChildNode>();
  readonly id = TASK_VIEW;
  /** Fires when the user opens or leaves the view. */
  readonly onDidChangeVisibility: vscode.Event<boolean>;
  /** Fires when the user expands the row of a folder that isn't connected. */
  readonly onDidOpenFolder: vscode.Event<Folder>;

  constructor(private readonly parts: ViewParts) {
    const { known, folders, options, unread, daemon } = parts;
    this.tree = new TaskTree(known, folders, options, unread);
    const view = vscode.window.createTreeView(TASK_VIEW, {
      treeDataProvider: this.tree,
      canSelectMany: true,
    });
    this.view = view;
    const visibility = new vscode.EventEmitter<boolean>();
    this.onDidChangeVisibility = visibility.event;
    const opened = new vscode.EventEmitter<Folder>();
    this.onDidOpenFolder = opened.event;
    const update = (): void => this.update();
    /** Many tasks can change at once, and the update covers all of them. */
    const updateSoon = (): void => void (this.pendingUpdate ??= setTimeout(update, UPDATE_DELAY_MS));
    this.disposables = vscode.Disposable.from(
      this.tree,
      view,
      visibility,
      opened,
      view.onDidChangeVisibility(({ visible }) => {
        this.tree.setVisible(visible);
        if (visible) this.openNew();
        visibility.fire(visible);
      }),
      this.tree.onDidBecomeParent((node) => {
        this.toOpen.add(node);
        this.openNew();
      }),
      vscode.window.registerFileDecorationProvider(new TaskDecorations()),
      folders.onDidChange(update),
      folders.onDidChangeCurrent(update),
      folders.follow(({ session }) => session.onDidChange(update)),
      known.onDidChangeSession((id) => {
        const folder = folders.all.find(({ session }) => session.id === id);
        if (!folder) return;
        this.update();
        this.tree.redrawFolder(folder);
      }),
      known.onDidChange(updateSoon),
      known.onDidChangeSubagent(updateSoon),
      known.onDidChangeRequests(updateSoon),
      options.onDidChange(update),
      unread.onDidChange(updateSoon),
      daemon.onDidChange(update),
      view.onDidExpandElement(({ element }) => {
        this.tree.setOpen(element, true);
        const folder = element instanceof FolderNode ? folderOf(folders, element) : undefined;
        if (folder?.connector.state.kind === "disconnected") opened.fire(folder);
      }),
      view.onDidCollapseElement(({ element }) => this.tree.setOpen(element, false)),
      view.onDidChangeSelection(({ selection }) => {
        this.reported = selection;
        this.useSelection();
        // Rows that are being redrawn are missing.
        if (selection.length === 0) void this.clickedID().then(() => this.useSelection());
      }),
      folders.follow((folder) =>
        folder.connector.onDidChange(() => {
          this.update();
          if (folder.connector.state.kind === "connected") this.tree.refresh(folder);
          else this.tree.redrawFolder(folder);
        }),
      ),
      vscode.workspace.onDidGrantWorkspaceTrust(update),
    );
    this.tree.setVisible(view.visible);
    // After the activation, in which other extensions wait.
    this.pendingUpdate = setTimeout(update);
  }

  /** The task or subagent whose row was clicked. Waits while rows are redrawn, when the editor reports no selection. */
  async clickedID(): Promise<string | undefined> {
    for (let waited = 0; this.selection.length === 0 && waited < SELECTION_MS; waited += UPDATE_DELAY_MS)
      await pause();
    return this.selectedID;
  }

  /** The task or subagent whose row is selected. */
  get selectedID(): string | undefined {
    const [node] = this.selection;
    return node instanceof ChildNode ? node.id : undefined;
  }

  /**
   * The task or subagent in front of the user: that of the selected row; if none is, or if the user has gone to the given
   * output since they selected it, that of this output.
   */
  frontID(shownID: string | undefined): string | undefined {
    const isRow = this.visible && this.selection.length > 0 && (!shownID || shownID !== this.followedID);
    return isRow ? this.selectedID : shownID;
  }

  /** While the selected rows are redrawn, the editor has no selection. */
  private get selection(): readonly Node[] {
    const { selection } = this.view;
    if (selection.length > 0) return selection;
    return this.tree.existing(this.reported);
  }

  private useSelection(): void {
    const { folders } = this.parts;
    this.reported = this.selection;
    const rows = this.reported.map(rowID).join();
    // Rows that were redrawn are selected again.
    if (rows !== "" && rows !== this.formerRows) {
      this.formerRows = rows;
      this.followedID = undefined;
      folders.use(folderOf(folders, this.reported[0]));
      // Any other row is the user's choice.
      if (rows !== this.toSelect?.taskID) this.toSelect = undefined;
    }
    this.updateSelectionKeys();
  }

  get visible(): boolean {
    return this.view.visible;
  }

  /**
   * Reveals a task, opening the view if necessary, and selects it until the editor keeps it selected: rows that are being
   * redrawn can't be selected, and a hidden view is redrawn when it opens, of which the editor tells late. Takes the focus
   * only if requested.
   */
  async reveal(taskID: string, { focus } = { focus: false }): Promise<void> {
    const { view, tree } = this;
    // The editor finds a top-level row only after it was notified of it.
    tree.fireMoved();
    const wasVisible = view.visible;
    const toSelect = (this.toSelect = { taskID });
    let revealedAt = 0;
    for (let waited = 0; waited < SELECTION_MS; waited += UPDATE_DELAY_MS) {
      const node = tree.node(taskID);
      // For a row that a filter hides, the editor would ask for the children of collapsed rows.
      if (tree.existing([node]).length === 0) break;
      const isSelected = view.selection.map(rowID).join() === taskID;
      const { askedAt, changedAt } = tree.reads;
      const now = Date.now();
      // A redraw that is in progress drops the selection, which the editor doesn't report.
      const isDropped = askedAt > revealedAt - REDRAW_MS;
      // A row is revealed only after the changes that the editor was told of, and the user may leave the view until then.
      const isDrawn = now - Math.max(askedAt, changedAt) > REDRAW_MS || waited >= LAST_MS;
      const isMissing = isSelected ? isDropped && isDrawn : wasVisible || isDrawn;
      if (waited === 0 || (view.visible && isMissing)) {
        revealedAt = now;
        // The row may be gone before the editor gets there.
        await view.reveal(node, { focus, select: true }).then(undefined, () => undefined);
      } else if (wasVisible && isSelected && !isDropped) break;
      await pause();
      if (this.toSelect !== toSelect) return;
    }
    this.toSelect = undefined;
  }

  /**
   * Selects the row of the task in front of the user, if the view is visible and no other choice would be lost. For a
   * cleared one, that would expand the group that keeps it out of sight.
   */
  follow(taskID: string): void {
    this.followedID = taskID;
    // A row that was revealed before no longer gets the focus.
    this.toSelect = undefined;
    const child = this.parts.known.child(taskID);
    if (!child || isCleared(child)) return;
    if (this.visible && this.selection.length <= 1 && this.selectedID !== taskID) void this.reveal(taskID);
  }

  dispose(): void {
    clearTimeout(this.pendingUpdate);
    this.disposables.dispose();
  }

  private openNew(): void {
    // Revealing a row would open a hidden view.
    if (!this.visible) return;
    const options = { focus: false, select: false, expand: true };
    for (const node of this.toOpen) this.view.reveal(node, options).then(undefined, () => undefined);
    this.toOpen.clear();
  }

  private update(): void {
    clearTimeout(this.pendingUpdate);
    this.pendingUpdate = undefined;
    const { view } = this;
    const { known, folders, keys, unread, options, daemon } = this.parts;
    const { all, current, sessionIDs } = folders;
    const requests = known.openRequests();
    const unreadTasks = unread.list();
    keys.set("hasUnread", unreadTasks.length > 0);
    keys.set("hasNext", unreadTasks.length + requests.length > 0);
    const state = current?.connector.state ?? { kind: "disconnected" as const };
    const children = sessionIDs.flatMap((id) => known.children(id));
    const filtered = this.filtered();
    keys.set("state", viewState(state));
    keys.set("failure", state.kind === "failed" ? state.failure.code : undefined);
    keys.set(
      "connected",
      all.some(({ connector }) => connector.state.kind === "connected"),
    );
    keys.set("ownServer", state.kind === "connected" && state.own);
    const cleared = sessionIDs.flatMap((id) => clearedBelow(known, id));
    const hasCleared = cleared.length > 0;
    keys.set("hasTasks", children.length > 0 || (options.showsCleared && hasCleared));
    keys.set(
      "hasAnyTasks",
      all.some((folder) => folder.known.sessions().some(({ id }) => isListed(known.child(id)))),
    );
    keys.set("hasCleared", hasCleared);
    keys.set(
      "hasFinished",
      children.some((child) => isFinished(known, child)),
    );
    keys.set("filtered", filtered !== undefined);
    keys.set("filterHidesAll", filtered?.shown === 0 && filtered.all > 0);
    this.updateSelectionKeys();
    const isGrouped = all.length > 1;
    view.description = isGrouped ? "" : title(current?.session.session?.title ?? "");
    view.badge = badge(requests, unreadTasks);
    view.message = [
      daemon.message ?? "",
      // The rows of folders show the state of each connection.
      isGrouped ? "" : this.message(state, children.length),
      leftOutMessage(vscode.workspace.workspaceFolders ?? []),
      // An empty view says itself that all rows are hidden, and offers to clear the filter.
      filtered &&
      filtered.all > 0 &&
      (filtered.shown > 0 ||
        isGrouped ||
        (options.showsCleared && cleared.some((task) => matches(task, options.filter))))
        ? filterMessage(options.filter, filtered)
        : "",
    ]
      .filter(Boolean)
      .join("\n");
  }

  /** The effect of the filter; undefined if there is none. */
  private filtered(): Filtered | undefined {
    const { known, folders, options } = this.parts;
    const { filter } = options;
    if (!isFiltering(filter)) return undefined;
    const all = folders.sessionIDs.flatMap((id) => descendants(known, id));
    const hidden = all.filter((child) => !matches(child, filter));
    const waiting = hidden.filter(waitsForUser).length;
    return { all: all.length, shown: all.length - hidden.length, waiting };
  }

  /** With several rows selected, a menu offers what applies to at least one of them. */
  private updateSelectionKeys(): void {
    const { known, keys } = this.parts;
    const tasks = this.selection.flatMap((node) => {
      if (node instanceof BatchNode) return batchMembers(known, node.parentSessionID, node.batchID);
      return node instanceof ChildNode ? (known.child(node.id) ?? []) : [];
    });
    keys.set("selectionActive", tasks.some(isRunning));
    keys.set("selectionAnswered", tasks.some(isAnswered));
    keys.set(
      "selectionTasks",
      tasks.some((child) => isTask(child) && !isCleared(child)),
    );
    keys.set("selectionSubagents", !tasks.every(isTask));
  }

  /** Shown above tasks that may be out of date; an empty view shows its welcome content instead, except for details. */
  private message(state: ConnectionState, count: number): string {
    if (state.kind === "connecting" && state.detail !== "") return translate(state.detail);
    if (count === 0) return "";
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
        return translate(describeFailure(state.failure));
    }
  }
}

/** Waits a moment, and until the editor has reported what the user has done by then: it answers commands after that. */
async function pause(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, UPDATE_DELAY_MS));
  await vscode.commands.executeCommand("vscode.getEditorLayout");
}

/** The message about folders in which agents can't work. */
function leftOutMessage(folders: readonly vscode.WorkspaceFolder[]): string {
  const names = folders.filter((folder) => !isOnDisk(folder)).map(({ name }) => name);
  return names.length === 0
    ? ""
    : vscode.l10n.t("Agents can't work in folders that aren't on disk: {0}", names.join(", "));
}

function filterMessage({ states, agents, text }: TaskFilter, { shown, all, waiting }: Filtered): string {
  const conditions = [
    enumerate(states.map(stateWord)),
    title(agents.join(", ")),
    text.trim() && vscode.l10n.t('"{0}"', title(text)),
  ];
  const hidden =
    waiting === 0
      ? ""
      : waiting === 1
        ? vscode.l10n.t("1 hidden task needs you.")
        : vscode.l10n.t("{0} hidden tasks need you.", waiting);
  const counts = vscode.l10n.t("{0} of {1} shown: {2}.", shown, all, conditions.filter(Boolean).join(" · "));
  const wayOut = shown === 0 ? vscode.l10n.t("Clear the filter to show all tasks.") : "";
  return [counts, hidden, wayOut].filter(Boolean).join(" ");
}

function viewState(state: ConnectionState): "noFolder" | "untrusted" | ConnectionState["kind"] {
  if (!vscode.workspace.workspaceFolders?.some(isOnDisk)) return "noFolder";
  if (!vscode.workspace.isTrusted) return "untrusted";
  return state.kind;
}
