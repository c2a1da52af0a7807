import * as vscode from "vscode";
import type { TaskChange } from "../../engine/registry.ts";
import { isRunning, type Child, type SubagentChange } from "../../engine/subagent.ts";
import type { Tasks } from "../folders/all-tasks.ts";
import type { Folder, Folders } from "../folders/folders.ts";
import { compareChildren } from "./arrangement.ts";
import { ancestors, batchMembers, countDescendants, isQueuedChild, stateOf, isListed } from "./family.ts";
import { EditorReads } from "./editor-reads.ts";
import { groupItem, startOfDay } from "./groups.ts";
import { isSame, isSameOutline, Levels } from "./levels.ts";
import { goneItem, launchingItem, LaunchingRows, unreadableItem } from "./other-rows.ts";
import type { Unread } from "./unread.ts";
import { isFiltering, type ListOptions, matches } from "./list-options.ts";
import {
  batchItem,
  childItem,
  folderItem,
  BatchNode,
  ChildNode,
  FolderNode,
  folderOf,
  GroupNode,
  LaunchingNode,
  rowID,
  UnreadableNode,
  type Node,
} from "./items.ts";
import { inConflict, rowTime } from "./words.ts";
import { loadLater } from "../load-later.ts";

/** How often the times of running rows are checked, in milliseconds. The day is checked every 60 of these. */
const TICK_MS = 1_000;
/** How long moved rows are collected, in milliseconds: the tasks of a batch appear almost together. */
const GATHER_MS = 50;

/**
 * The descendants of each folder's active session; if there are several folders, each has its own row. A change of one
 * task redraws its row, and the rows above it only if their content changes as well.
 */
export class TaskTree implements vscode.TreeDataProvider<Node>, vscode.Disposable {
  private readonly folderNodes = new Map<string, FolderNode>();
  private readonly levels: Levels;
  /** The place of each queued task, by its ID; undefined if the queue has changed since. */
  private places: ReadonlyMap<string, number> | undefined;
  private tomorrow: NodeJS.Timeout | undefined;
  /** By row ID, whether the user expanded the row; kept because a filter may remove a row and bring it back. */
  private readonly opened = new Map<string, boolean>();
  readonly launching: LaunchingRows;
  /** The sessions of the unreadable tasks that have had rows. */
  private readonly unreadable = new Set<string>();
  /** Sessions whose child rows were added, removed or moved since the last notification to the editor. */
  private readonly moved = new Set<string>();
  private gathering: NodeJS.Timeout | undefined;
  /** The running rows, with the time that each shows. */
  private readonly running = new Map<ChildNode, string | undefined>();
  private ticking: NodeJS.Timeout | undefined;
  private visible = false;
  /** For each drawn row, whether it has been expanded since it got child rows. */
  private readonly wereOpen = new Map<ChildNode, boolean>();
  private readonly changes = new vscode.EventEmitter<Node | undefined>();
  readonly reads = new EditorReads(() => this.changes.fire(undefined));
  private readonly parents = new vscode.EventEmitter<ChildNode>();
  private readonly disposables: vscode.Disposable;
  readonly onDidChangeTreeData = this.changes.event;
  /** Fires for a row that should be expanded because it got child rows; the editor would keep it collapsed. */
  readonly onDidBecomeParent = this.parents.event;

  constructor(
    private readonly known: Tasks,
    private readonly folders: Folders,
    private readonly options: ListOptions,
    private readonly unread: Unread,
  ) {
    this.levels = new Levels(known, options, (id) => this.rootFolder(id) !== undefined);
    this.launching = new LaunchingRows(known, folders, (folder) =>
      this.changes.fire(this.folderNode(folder)),
    );
    this.disposables = vscode.Disposable.from(
      this.launching,
      this.reads,
      this.parents,
      this.changes,
      this.changes.event(() => this.reads.changed()),
      folders.onDidChange(() => this.refresh()),
      folders.follow((folder) => folder.session.onDidChange(() => this.refresh(folder))),
      options.onDidChange(() => this.refresh()),
      known.onDidChangeSession((id) => {
        const changed = known.session(id);
        if (!changed && this.unreadable.delete(id)) this.refresh();
        if (changed?.task.kind !== "unreadable") return;
        const folder = this.rootFolder(changed.parentID);
        if (folder) this.changes.fire(this.folderNode(folder));
      }),
      known.onDidChange((change) => this.follow(change)),
      known.onDidChangeSubagent((change) => this.follow(change)),
      unread.onDidChange((ids) => this.redrawRead(ids)),
    );
    this.refreshTomorrow();
  }

  /** The node of a task or subagent, so that it can be revealed. */
  node(id: string): ChildNode {
    return this.levels.node(id);
  }

  /** Those of these rows that still exist, be it in a collapsed one. */
  existing(nodes: readonly Node[]): readonly Node[] {
    return this.levels.existing(nodes);
  }

  /** Redraws the row of a folder; a single folder has no row. */
  redrawFolder(folder: Folder): void {
    const node = this.folderNode(folder);
    if (node) this.changes.fire(node);
  }

  /** Rebuilds the tree, or the part under a folder. */
  refresh(folder?: Folder): void {
    if (folder && this.isGrouped) return this.redrawFolder(folder);
    this.folderNodes.clear();
    this.levels.clear();
    this.places = undefined;
    this.moved.clear();
    this.running.clear();
    this.wereOpen.clear();
    this.changes.fire(undefined);
  }

  /** Remembers whether the user expanded or collapsed a row. */
  setOpen(element: Node, isOpen: boolean): void {
    // The editor also reports a row as collapsed that just got child rows, which isn't the user's doing.
    if (!isOpen && element instanceof ChildNode && this.wereOpen.get(element) === false) return;
    this.opened.set(rowID(element), isOpen);
    if (element instanceof ChildNode) this.wereOpen.set(element, isOpen);
  }

  /** Times are updated only while the view is visible. */
  setVisible(visible: boolean): void {
    this.visible = visible;
    this.tick();
  }

  getChildren(element?: Node): Node[] {
    this.reads.asked();
    if (element instanceof UnreadableNode || element instanceof LaunchingNode) return [];
    // The editor asks for the children of rows that are expanded, or will be to reveal one of them. While it redraws the
    // tree, it doesn't report that the user expands one.
    if (element && !(element instanceof FolderNode) && this.visible) this.setOpen(element, true);
    // Of a hidden view, the editor asks only for rows to reveal, which may be newer than what it has.
    if (element instanceof BatchNode || element instanceof GroupNode)
      return [...(this.visible ? this.levels.drawnMembers(element) : this.levels.members(element))];
    if (element instanceof ChildNode) return [...this.levels.draw(element.id).nodes];
    if (!element && this.isGrouped) return this.folders.all.flatMap((each) => this.folderNode(each) ?? []);
    const folder = element ? folderOf(this.folders, element) : this.folders.all[0];
    const launching = this.launching.in(folder);
    const parent = folder?.session.id;
    if (parent === undefined) return launching;
    const level = this.levels.draw(parent);
    // Nothing that a filter could match is known about unreadable tasks.
    const unreadable = isFiltering(this.options.filter) ? [] : this.known.unreadable(parent);
    for (const { sessionID } of unreadable) this.unreadable.add(sessionID);
    return [...launching, ...unreadable.map((task) => new UnreadableNode(task)), ...level.nodes];
  }

  getParent(element: Node): Node | undefined {
    if (element instanceof LaunchingNode) return this.folderNode(element.folder);
    if (element instanceof UnreadableNode || element instanceof FolderNode) return undefined;
    const parentID =
      element instanceof ChildNode ? this.known.child(element.id)?.parentSessionID : element.parentSessionID;
    if (parentID === undefined) return undefined;
    const container = element instanceof GroupNode ? undefined : this.levels.container(parentID, element);
    return container ?? this.above(parentID);
  }

  getTreeItem(element: Node): vscode.TreeItem {
    const item = this.item(element);
    const { None, Collapsed, Expanded } = vscode.TreeItemCollapsibleState;
    const isOpen = this.opened.get(rowID(element));
    if (isOpen !== undefined && item.collapsibleState !== None)
      item.collapsibleState = isOpen ? Expanded : Collapsed;
    // The editor forgets that a row was expanded when it moves to another group.
    if (item.collapsibleState === Expanded && !(element instanceof FolderNode))
      this.opened.set(rowID(element), true);
    if (element instanceof ChildNode) this.followChildren(element, item);
    return item;
  }

  async resolveTreeItem(item: vscode.TreeItem, element: Node): Promise<vscode.TreeItem> {
    if (!(element instanceof BatchNode || element instanceof ChildNode)) return item;
    const { batchTooltip, childTooltip } = await loadLater();
    if (element instanceof BatchNode) item.tooltip = batchTooltip(this.known, element);
    else item.tooltip = childTooltip(this.known, element.id, Date.now());
    return item;
  }

  dispose(): void {
    clearInterval(this.ticking);
    clearTimeout(this.gathering);
    clearTimeout(this.tomorrow);
    this.disposables.dispose();
  }

  private item(element: Node): vscode.TreeItem {
    if (element instanceof UnreadableNode) return unreadableItem(element);
    if (element instanceof LaunchingNode) return launchingItem(element);
    if (element instanceof FolderNode) {
      const folder = folderOf(this.folders, element);
      if (!folder) return goneItem();
      return folderItem(folder, this.known, this.options, this.launching.in(folder).length > 0);
    }
    if (element instanceof GroupNode) {
      const children = this.levels.childrenIn(element);
      const item = groupItem(element.group, children.length, this.countUnread(children));
      item.id = rowID(element);
      return item;
    }
    if (element instanceof BatchNode) {
      const tasks = batchMembers(this.known, element.parentSessionID, element.batchID);
      const descendant = countDescendants(
        this.known,
        tasks.map(({ id }) => id),
      );
      return batchItem(element, tasks, descendant, this.countUnread(tasks));
    }
    const child = this.known.child(element.id);
    if (!child) return goneItem();
    this.followTime(element, child);
    return childItem(child, {
      now: Date.now(),
      isParent: this.levels.hasRows(child.id),
      descendants: countDescendants(this.known, [child.id]),
      title: this.levels.titleOf(child),
      isUnread: this.unread.has(child),
      place: this.placeOf(child),
    });
  }

  /** Redraws the nearest row above rows that were added, removed or moved. */
  fireMoved(): void {
    clearTimeout(this.gathering);
    this.gathering = undefined;
    for (const parentID of this.moved) {
      const [drawn, now] = [this.levels.lastDrawn(parentID), this.levels.arrange(parentID)];
      // A row that changes its group is removed from one and added to the other, so both have to be redrawn at once.
      if (!drawn || !isSameOutline(drawn, now)) {
        this.changes.fire(this.above(parentID));
        continue;
      }
      this.levels.draw(parentID);
      for (const [row, members] of now.members)
        if (!isSame(drawn.members.get(row) ?? [], members))
          this.changes.fire(this.levels.container(parentID, row) ?? row);
    }
    this.moved.clear();
  }

  /** Redraws what the change of a child affects. */
  private follow({ before, after }: TaskChange | SubagentChange): void {
    const child = after ?? before;
    if (!child) return;
    if ([before, after].filter((each) => each && isQueuedChild(each)).length === 1) this.redrawQueue();
    const above = ancestors(this.known, child);
    if (!this.rootFolder(above.at(-1))) return;
    const { sortOrder, filter } = this.options;
    if (before?.description !== after?.description || isListed(before) !== isListed(after))
      this.levels.retitle(child.parentSessionID);
    const isChanged = !before || !after || stateOf(before) !== stateOf(after);
    const [wasShown, isShown] = [before, after].map((each) => isListed(each) && matches(each, filter));
    // Rows above are shown because of matching descendants, and sorted by the state of their descendants.
    if (isChanged || wasShown !== isShown || isListed(before) !== isListed(after))
      for (const id of above) this.move(id);
    else if (compareChildren(before, after, sortOrder) !== 0) this.move(child.parentSessionID);
    this.redraw(child.id);
    const relabelled = before && after && this.levels.relabelled(before, after);
    if (relabelled) this.changes.fire(relabelled);
    const isCounted = isChanged || inConflict([before]) !== inConflict([after]);
    if (isCounted || (before.cost !== after.cost && !isRunning(after))) this.redrawAbove(child, above);
  }

  private redraw(id: string): void {
    const node = this.levels.knownNode(id);
    if (node) this.changes.fire(node);
  }

  /** Redraws the rows of queued tasks, whose places have changed: the queue is that of all sessions. */
  private redrawQueue(): void {
    const before = this.places;
    this.places = undefined;
    for (const id of before?.keys() ?? []) this.redraw(id);
  }

  /** Redraws tasks that were read, and the rows above that count them. */
  private redrawRead(ids: readonly string[]): void {
    if (ids.length === 0) return this.refresh();
    for (const child of ids.flatMap((id) => this.known.child(id) ?? [])) {
      const row = this.levels.outermost(child);
      if (row) this.changes.fire(row);
    }
  }

  private redrawAbove(child: Child, above: readonly string[]): void {
    for (const each of [child, ...above.flatMap((id) => this.known.child(id) ?? [])]) {
      const batch = this.levels.knownBatch(each);
      if (batch) this.changes.fire(batch);
      if (each !== child) this.redraw(each.id);
    }
    const folder = this.rootFolder(above.at(-1));
    if (folder) this.redrawFolder(folder);
  }

  private move(parentID: string): void {
    this.moved.add(parentID);
    this.gathering ??= setTimeout(() => this.fireMoved(), GATHER_MS);
  }

  /** The row that contains the child rows of a session; undefined at the top level. */
  private above(sessionID: string): ChildNode | FolderNode | undefined {
    const folder = this.rootFolder(sessionID);
    return folder ? this.folderNode(folder) : this.node(sessionID);
  }

  /** Whether each folder has its own row. */
  private get isGrouped(): boolean {
    return this.folders.all.length > 1;
  }

  /** The folder whose active session this is. */
  private rootFolder(sessionID: string | undefined): Folder | undefined {
    return sessionID === undefined
      ? undefined
      : this.folders.all.find(({ session }) => session.id === sessionID);
  }

  /** Undefined for a single folder, which has no row. */
  private folderNode({ uri }: Folder): FolderNode | undefined {
    if (!this.isGrouped) return undefined;
    const key = uri.toString();
    let node = this.folderNodes.get(key);
    if (!node) this.folderNodes.set(key, (node = new FolderNode(key)));
    return node;
  }

  private countUnread(children: readonly Child[]): number {
    return children.filter((child) => this.unread.has(child)).length;
  }

  /** The place of a queued task; each folder has its own queue, in the order of the launches. */
  private placeOf(child: Child): number | undefined {
    if (!isQueuedChild(child)) return undefined;
    this.places ??= new Map(
      this.folders.all.flatMap(({ known }) =>
        known
          .active()
          .filter(isQueuedChild)
          .sort((a, b) => a.createdAt - b.createdAt)
          .map(({ id }, index) => [id, index + 1] as const),
      ),
    );
    return this.places.get(child.id);
  }

  /** On another day, rows of today become rows of earlier days. A timer until then would stop while the machine sleeps. */
  private refreshTomorrow(): void {
    const today = startOfDay(Date.now());
    this.tomorrow = setTimeout(() => {
      if (startOfDay(Date.now()) !== today) this.refresh();
      this.refreshTomorrow();
    }, 60 * TICK_MS).unref();
  }

  private followTime(node: ChildNode, child: Child): void {
    if (isRunning(child)) this.running.set(node, rowTime(child, Date.now()));
    else this.running.delete(node);
    this.tick();
  }

  private followChildren(node: ChildNode, { collapsibleState }: vscode.TreeItem): void {
    const isOpen = collapsibleState === vscode.TreeItemCollapsibleState.Expanded;
    const wasOpen = this.wereOpen.get(node);
    const hasChildren = collapsibleState !== vscode.TreeItemCollapsibleState.None;
    this.wereOpen.set(node, isOpen || (wasOpen === true && hasChildren));
    if (isOpen && wasOpen === false) this.parents.fire(node);
  }

  private tick(): void {
    const wanted = this.visible && this.running.size > 0;
    if (wanted === (this.ticking !== undefined)) return;
    clearInterval(this.ticking);
    this.ticking = wanted ? setInterval(() => this.moveTimes(), TICK_MS) : undefined;
  }

  private moveTimes(): void {
    for (const [node, shown] of this.running) {
      const child = this.known.child(node.id);
      if (!child) this.running.delete(node);
      else if (rowTime(child, Date.now()) !== shown) this.changes.fire(node);
    }
    this.tick();
  }
}
