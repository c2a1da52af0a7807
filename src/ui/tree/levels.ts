import type { Child } from "../../engine/subagent.ts";
import { isTask } from "../../engine/subagent.ts";
import type { Task } from "../../engine/task.ts";
import type { Tasks } from "../folders/all-tasks.ts";
import { arrange, isBatchRow, type TreeRow } from "./arrangement.ts";
import { batchMembers, clearedBelow, descendants } from "./family.ts";
import { groupOf, GROUPS, type Group } from "./groups.ts";
import { batchLabel, BatchNode, ChildNode, GroupNode, type Node } from "./items.ts";
import { rowTitles, shortTitle } from "./titles.ts";
import { isFiltering, type ListOptions, matches } from "./list-options.ts";

/** The rows under one session. */
export interface Level {
  readonly nodes: readonly Node[];
  /** The rows of each group and batch below. */
  readonly members: ReadonlyMap<GroupNode | BatchNode, readonly Node[]>;
}

/** Arranges the rows under each session. The editor knows rows by their nodes, so each row keeps its node. */
export class Levels {
  private readonly childNodes = new Map<string, ChildNode>();
  private readonly batchNodes = new Map<string, BatchNode>();
  private readonly groupNodes = new Map<string, GroupNode>();
  /** The levels as last given to the editor, by the ID of the parent session. */
  private readonly drawn = new Map<string, Level>();

  /** The titles of rows, by the ID of the parent session. */
  private readonly titles = new Map<string, ReadonlyMap<string, string>>();

  constructor(
    private readonly known: Tasks,
    private readonly options: ListOptions,
    /** Whether this is the active session of a folder. */
    private readonly isRoot: (sessionID: string) => boolean,
  ) {}

  clear(): void {
    for (const each of [this.childNodes, this.batchNodes, this.groupNodes, this.drawn, this.titles])
      each.clear();
  }

  /** The node of a task or subagent. */
  node(id: string): ChildNode {
    let node = this.childNodes.get(id);
    if (!node) this.childNodes.set(id, (node = new ChildNode(id)));
    return node;
  }

  /** The node of a task or subagent, if the editor may have its row. */
  knownNode(id: string): ChildNode | undefined {
    return this.childNodes.get(id);
  }

  /** The node of the batch that a child belongs to, if the editor may have its row. */
  knownBatch(child: Child): BatchNode | undefined {
    return isTask(child) ? this.batchNodes.get(batchKey(child)) : undefined;
  }

  /** The batch of a child whose label names its tasks otherwise since the child was renamed. */
  relabelled(before: Child, after: Child): BatchNode | undefined {
    const batch = before.description === after.description ? undefined : this.knownBatch(after);
    if (!batch) return undefined;
    const tasks = batchMembers(this.known, batch.parentSessionID, batch.batchID);
    const { description } = before;
    const former = tasks.map((task) => (task.id === after.id ? { ...task, description } : task));
    return batchLabel(tasks) === batchLabel(former) ? undefined : batch;
  }

  /** The group or batch that directly contains a row. */
  container(parentID: string, node: Node): GroupNode | BatchNode | undefined {
    const { members } = this.arrange(parentID);
    return [...members].find(([, nodes]) => nodes.includes(node))?.[0];
  }

  /** The outermost row that contains that of a child: its group, its batch, or its own. */
  outermost({ id, parentSessionID }: Child): Node | undefined {
    const row = this.knownNode(id);
    const inner = row && this.container(parentSessionID, row);
    return (inner && this.container(parentSessionID, inner)) ?? inner ?? row;
  }

  /** Those of these rows that still exist, be it in a collapsed one. */
  existing(nodes: readonly Node[]): readonly Node[] {
    const levels = new Map<string, ReadonlySet<Node>>();
    return nodes.filter((node) => {
      if (!(node instanceof ChildNode)) return true;
      const parentID = this.known.child(node.id)?.parentSessionID;
      if (parentID === undefined) return false;
      let rows = levels.get(parentID);
      if (!rows) {
        const level = this.arrange(parentID);
        levels.set(parentID, (rows = new Set([level.nodes, ...level.members.values()].flat())));
      }
      return rows.has(this.node(node.id));
    });
  }

  /** The groups that the editor has under a session. */
  groups(parentID: string): readonly GroupNode[] {
    return (this.drawn.get(parentID)?.nodes ?? []).filter((node) => node instanceof GroupNode);
  }

  /** The title of a row, which depends on the rows next to it. */
  titleOf(child: Child): string {
    const { parentSessionID: parentID } = child;
    let titles = this.titles.get(parentID);
    if (!titles) {
      titles = rowTitles(this.shown(parentID), (task) => batchMembers(this.known, parentID, task.batchID));
      this.titles.set(parentID, titles);
    }
    return titles.get(child.id) ?? shortTitle(child.description);
  }

  /** The descriptions of children have changed, or which of them have rows. */
  retitle(parentID: string): void {
    this.titles.delete(parentID);
  }

  /** The rows under a session, as given to the editor now. */
  draw(parentID: string): Level {
    const level = this.arrange(parentID);
    this.drawn.set(parentID, level);
    return level;
  }

  lastDrawn(parentID: string): Level | undefined {
    return this.drawn.get(parentID);
  }

  arrange(parentID: string): Level {
    const members = new Map<GroupNode | BatchNode, readonly Node[]>();
    const rows = arrange(this.known, this.shown(parentID), this.options.sortOrder);
    const nodes = rows.map((row) => this.rowNode(parentID, row, members));
    const cleared = this.clearedRows(parentID, members);
    if (!this.isRoot(parentID) || this.options.sortOrder !== "groups")
      return { nodes: [...nodes, ...cleared], members };
    const now = Date.now();
    const groups = rows.map((row) => groupOf(this.known, row, now));
    const groupNodes = GROUPS.flatMap((group) => {
      const inGroup = nodes.filter((_, index) => groups[index] === group);
      if (inGroup.length === 0) return [];
      const node = this.groupNode(group, parentID);
      members.set(node, inGroup);
      return [node];
    });
    return { nodes: [...groupNodes, ...cleared], members };
  }

  /** The group of the cleared tasks, if it is shown and has rows. */
  private clearedRows(
    parentID: string,
    members: Map<GroupNode | BatchNode, readonly Node[]>,
  ): readonly GroupNode[] {
    const cleared = this.shownCleared(parentID);
    if (cleared.length === 0) return [];
    const group = this.groupNode("cleared", parentID);
    members.set(
      group,
      cleared.map(({ id }) => this.node(id)),
    );
    return [group];
  }

  /** Whether there are rows under a session. */
  hasRows(parentID: string): boolean {
    return this.shown(parentID).length > 0 || this.shownCleared(parentID).length > 0;
  }

  private shownCleared(parentID: string): readonly Task[] {
    const { showsCleared, filter } = this.options;
    return showsCleared ? this.known.cleared(parentID).filter((task) => matches(task, filter)) : [];
  }

  /** The children of a session that match the filter or have a matching descendant. */
  shown(parentID: string): readonly Child[] {
    const { filter, showsCleared } = this.options;
    const children = this.known.children(parentID);
    if (!isFiltering(filter)) return children;
    return children.filter(
      (child) =>
        matches(child, filter) ||
        [
          ...descendants(this.known, child.id),
          ...(showsCleared ? clearedBelow(this.known, child.id) : []),
        ].some((descendant) => matches(descendant, filter)),
    );
  }

  /** The rows in a group or batch. */
  members(container: GroupNode | BatchNode): readonly Node[] {
    return this.arrange(container.parentSessionID).members.get(container) ?? [];
  }

  /**
   * The rows in a group or batch, from the same arrangement as the rows that the editor has next to it. By a newer one, a
   * row that moves would be in two groups until the level above is redrawn.
   */
  drawnMembers(container: GroupNode | BatchNode): readonly Node[] {
    const drawn = this.drawn.get(container.parentSessionID);
    return drawn ? (drawn.members.get(container) ?? []) : this.members(container);
  }

  /** The tasks and subagents in a group, including those in batches. */
  childrenIn(group: GroupNode): readonly Child[] {
    const nodes = this.drawnMembers(group).flatMap((node) =>
      node instanceof BatchNode ? this.drawnMembers(node) : [node],
    );
    return nodes.flatMap((node) => (node instanceof ChildNode ? (this.known.child(node.id) ?? []) : []));
  }

  private rowNode(
    parentID: string,
    row: TreeRow,
    members: Map<GroupNode | BatchNode, readonly Node[]>,
  ): Node {
    if (!isBatchRow(row)) return this.node(row.id);
    const batch = this.batch(parentID, row.batchID);
    members.set(
      batch,
      row.members.map(({ id }) => this.node(id)),
    );
    return batch;
  }

  private batch(parentSessionID: string, batchID: string): BatchNode {
    const key = batchKey({ parentSessionID, batchID });
    let node = this.batchNodes.get(key);
    if (!node) this.batchNodes.set(key, (node = new BatchNode(batchID, parentSessionID)));
    return node;
  }

  private groupNode(group: Group, parentSessionID: string): GroupNode {
    const key = `${parentSessionID}/${group}`;
    let node = this.groupNodes.get(key);
    if (!node) this.groupNodes.set(key, (node = new GroupNode(group, parentSessionID)));
    return node;
  }
}

/** Whether two levels have the same rows in the same groups; their batches may differ. */
export function isSameOutline(before: Level, after: Level): boolean {
  return (
    isSame(before.nodes, after.nodes) &&
    after.nodes.every(
      (node) =>
        !(node instanceof GroupNode) || isSame(before.members.get(node) ?? [], after.members.get(node) ?? []),
    )
  );
}

export function isSame(before: readonly Node[], after: readonly Node[]): boolean {
  return before.length === after.length && before.every((node, index) => node === after[index]);
}

function batchKey({ parentSessionID, batchID }: Pick<BatchNode, "parentSessionID" | "batchID">): string {
  return `${parentSessionID}/${batchID}`;
}
