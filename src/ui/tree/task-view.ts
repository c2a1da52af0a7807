import * as vscode from "vscode";
import { describeFailure, type ConnectionState } from "../../engine/connection.ts";
import type { OpenRequest } from "../../engine/engine.ts";
import { isRunning, isTask } from "../../engine/subagent.ts";
import type { ContextKeys } from "../context-keys.ts";
import type { DaemonTrouble } from "../daemon-trouble.ts";
import type { Tasks } from "../folders/all-tasks.ts";
import type { Folder } from "../folders/folder.ts";
import { isOnDisk, type Folders } from "../folders/folders.ts";
import { title } from "../plain-text.ts";
import { enumerate, translate } from "../translate.ts";
import { batchMembers, descendants, isAnswered, isFinished, waitsForUser } from "./family.ts";
import { isFiltering, type ListOptions, matches, type TaskFilter } from "./list-options.ts";
import { BatchNode, ChildNode, FolderNode, folderOf, type Node } from "./nodes.ts";
import { TaskDecorations } from "./items.ts";
import { TaskTree } from "./task-tree.ts";
import { stateWord } from "./words.ts";

export const TASK_VIEW = "asyncagents.tasks";

const UPDATE_DELAY_MS = 50;
/** How long rows that were clicked may take to be read anew. */
const SELECTION_MS = 2_000;
/** How many of those who wait the badge names. */
const NAMED_REQUESTS = 5;

/** How many a filter is about, shows, and hides though they wait for a user. */
interface Filtered {
  readonly all: number;
  readonly shown: number;
  readonly waiting: number;
}

/** The view: the tree, its heading and badge, and the facts by which the editor chooses menus and what an empty view says. */
export class TaskView implements vscode.Disposable {
  private readonly tree: TaskTree;
  private readonly view: vscode.TreeView<Node>;
  private readonly subscriptions: vscode.Disposable;
  private pendingUpdate: NodeJS.Timeout | undefined;
  /** Rows that are to be opened once someone can see them. */
  private readonly toOpen = new Set<ChildNode>();
  readonly id = TASK_VIEW;
  /** Tells when the user opens or leaves the view. */
  readonly onDidChangeVisibility: vscode.Event<boolean>;
  /** Tells when the user opens the row of a folder that is not connected. */
  readonly onDidOpenFolder: vscode.Event<Folder>;

  constructor(
    private readonly known: Tasks,
    private readonly folders: Folders,
    private readonly options: ListOptions,
    private readonly keys: ContextKeys,
    private readonly daemon: Pick<DaemonTrouble, "message" | "onDidChange">,
  ) {
    this.tree = new TaskTree(known, folders, options);
    const view = vscode.window.createTreeView(TASK_VIEW, {
      treeDataProvider: this.tree,
      showCollapseAll: false,
      canSelectMany: true,
    });
    this.view = view;
    const visibility = new vscode.EventEmitter<boolean>();
    this.onDidChangeVisibility = visibility.event;
    const opened = new vscode.EventEmitter<Folder>();
    this.onDidOpenFolder = opened.event;
    this.subscriptions = vscode.Disposable.from(
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
      folders.onDidChange(() => this.update()),
      folders.onDidChangeCurrent(() => this.update()),
      folders.follow(({ session }) => session.onDidChange(() => this.update())),
      known.onDidChangeSession((id) => {
        const folder = folders.all.find(({ session }) => session.id === id);
        if (!folder) return;
        this.update();
        this.tree.redrawFolder(folder);
      }),
      known.onDidChange(() => this.updateSoon()),
      known.onDidChangeSubagent(() => this.updateSoon()),
      known.onDidChangeRequests(() => this.updateSoon()),
      options.onDidChange(() => this.update()),
      daemon.onDidChange(() => this.update()),
      view.onDidExpandElement(({ element }) => {
        this.tree.setOpen(element, true);
        const folder = element instanceof FolderNode ? folderOf(folders, element) : undefined;
        if (folder?.connector.state.kind === "disconnected") opened.fire(folder);
      }),
      view.onDidCollapseElement(({ element }) => this.tree.setOpen(element, false)),
      view.onDidChangeSelection(({ selection }) => {
        folders.use(folderOf(folders, selection[0]));
        this.updateSelectionKeys();
      }),
      folders.follow((folder) =>
        folder.connector.onDidChange(() => {
          this.update();
          if (folder.connector.state.kind === "connected") this.tree.refresh(folder);
          else this.tree.redrawFolder(folder);
        }),
      ),
      vscode.workspace.onDidGrantWorkspaceTrust(() => this.update()),
    );
    this.tree.setVisible(view.visible);
    this.update();
  }

  /** The task or subagent whose row was clicked. While rows are read anew the editor does not know which is selected. */
  async clickedID(): Promise<string | undefined> {
    for (let waited = 0; this.view.selection.length === 0 && waited < SELECTION_MS; waited += UPDATE_DELAY_MS)
      await new Promise((resolve) => setTimeout(resolve, UPDATE_DELAY_MS));
    const [node] = this.view.selection;
    return node instanceof ChildNode ? node.id : undefined;
  }

  get visible(): boolean {
    return this.view.visible;
  }

  /** Brings a task into sight, opening the view if need be; without taking the focus unless that is said. */
  reveal(taskID: string, { focus } = { focus: false }): void {
    // The editor finds a row at the top only once it was told of it.
    this.tree.fireMoved();
    // A filter may hide the row, and it may be gone before the editor gets there.
    this.view.reveal(this.tree.node(taskID), { focus, select: true }).then(undefined, () => undefined);
  }

  dispose(): void {
    clearTimeout(this.pendingUpdate);
    this.subscriptions.dispose();
  }

  private openNew(): void {
    // A hidden view would be shown for it.
    if (!this.view.visible) return;
    const options = { focus: false, select: false, expand: true };
    for (const node of this.toOpen) this.view.reveal(node, options).then(undefined, () => undefined);
    this.toOpen.clear();
  }

  /** Many tasks can change within one moment; what is said here is about all of them. */
  private updateSoon(): void {
    this.pendingUpdate ??= setTimeout(() => this.update(), UPDATE_DELAY_MS);
  }

  private update(): void {
    clearTimeout(this.pendingUpdate);
    this.pendingUpdate = undefined;
    const { all, current } = this.folders;
    const state = current?.connector.state ?? { kind: "disconnected" as const };
    const children = this.sessionIDs.flatMap((id) => this.known.children(id));
    const filtered = this.filtered();
    this.keys.set("asyncagents.state", viewState(state));
    this.keys.set("asyncagents.failure", state.kind === "failed" ? state.failure.code : undefined);
    this.keys.set(
      "asyncagents.connected",
      all.some(({ connector }) => connector.state.kind === "connected"),
    );
    this.keys.set("asyncagents.ownServer", state.kind === "connected" && state.own);
    this.keys.set("asyncagents.hasTasks", children.length > 0);
    this.keys.set(
      "asyncagents.hasFinished",
      children.some((child) => isFinished(this.known, child)),
    );
    this.keys.set("asyncagents.filtered", filtered !== undefined);
    this.keys.set("asyncagents.filterHidesAll", filtered?.shown === 0 && filtered.all > 0);
    this.updateSelectionKeys();
    const isGrouped = all.length > 1;
    this.view.description = isGrouped ? "" : title(current?.session.session?.title ?? "");
    this.view.badge = badge(this.known.openRequests());
    this.view.message = [
      this.daemon.message ?? "",
      // Rows of folders say how it is with each.
      isGrouped ? "" : this.message(state, children.length),
      leftOutMessage(vscode.workspace.workspaceFolders ?? []),
      // That every row is hidden an empty view says itself, with the way out.
      filtered && filtered.all > 0 && (filtered.shown > 0 || isGrouped)
        ? filterMessage(this.options.filter, filtered)
        : "",
    ]
      .filter(Boolean)
      .join("\n");
  }

  /** What a filter does; undefined: there is none. */
  private filtered(): Filtered | undefined {
    const { filter } = this.options;
    if (!isFiltering(filter)) return undefined;
    const all = this.sessionIDs.flatMap((id) => descendants(this.known, id));
    const hidden = all.filter((child) => !matches(child, filter));
    const waiting = hidden.filter(waitsForUser).length;
    return { all: all.length, shown: all.length - hidden.length, waiting };
  }

  /** The active sessions of the folders. */
  private get sessionIDs(): readonly string[] {
    return this.folders.all.flatMap(({ session }) => session.id ?? []);
  }

  /** Of several rows a menu offers what can be done with at least one of them. */
  private updateSelectionKeys(): void {
    const tasks = this.view.selection.flatMap((node) => {
      if (node instanceof BatchNode) return batchMembers(this.known, node.parentSessionID, node.batchID);
      return node instanceof ChildNode ? (this.known.child(node.id) ?? []) : [];
    });
    this.keys.set("asyncagents.selectionActive", tasks.some(isRunning));
    this.keys.set("asyncagents.selectionAnswered", tasks.some(isAnswered));
    this.keys.set("asyncagents.selectionTasks", tasks.some(isTask));
    this.keys.set("asyncagents.selectionSubagents", !tasks.every(isTask));
  }

  /** Said above the tasks that were last known; an empty view has its welcome instead, unless there is more to say. */
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

/** Said of folders on which no agent can work. */
function leftOutMessage(folders: readonly vscode.WorkspaceFolder[]): string {
  const names = folders.filter((folder) => !isOnDisk(folder)).map(({ name }) => name);
  if (names.length === 0) return "";
  return names.length === 1
    ? vscode.l10n.t("{0} isn't a folder on disk, so agents can't work there.", names.join(", "))
    : vscode.l10n.t("{0} aren't folders on disk, so agents can't work there.", names.join(", "));
}

/** What waits for a user in any session of the folders. */
function badge(requests: readonly OpenRequest[]): vscode.ViewBadge | undefined {
  const [first, ...others] = requests;
  if (!first) return undefined;
  const heading =
    others.length === 0
      ? vscode.l10n.t("1 request waiting for you:")
      : vscode.l10n.t("{0} requests waiting for you:", requests.length);
  const names = requests.slice(0, NAMED_REQUESTS).map(({ request, child }) => {
    const what =
      request.type === "permission"
        ? vscode.l10n.t("permission {0}", title(request.permission))
        : vscode.l10n.t("a question");
    return `${title(child.description)} (${what})`;
  });
  const more =
    requests.length > names.length ? [vscode.l10n.t("and {0} more", requests.length - names.length)] : [];
  return { value: requests.length, tooltip: [heading, ...names, ...more].join("\n") };
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
