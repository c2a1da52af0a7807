import { isTask, type Child } from "../../engine/subagent.ts";
import type { Task } from "../../engine/task.ts";
import {
  CHILD_STATES,
  endOf,
  isQueuedChild,
  stateOf,
  stateWithDescendants,
  type ChildState,
  type Family,
} from "./family.ts";

/**
 * The sort orders of rows; the first one is the default. Of equal rows, the newer one comes first. `groups` is the order
 * of the groups and within them: working tasks in the order of their start, ended ones with the last end first.
 */
export const SORT_ORDERS = ["groups", "active", "newest", "oldest", "status", "name", "cost"] as const;
export type SortOrder = (typeof SORT_ORDERS)[number];

/** Tasks of one batch with the same parent, at least two. */
export interface BatchRow {
  readonly batchID: string;
  /** In the order of the rows. */
  readonly members: readonly Task[];
}

export type TreeRow = Child | BatchRow;

export function isBatchRow(row: TreeRow): row is BatchRow {
  return "members" in row;
}

/** The rows for the children of one session, sorted; a batch is placed where its first member would be. */
export function arrange(family: Family, children: readonly Child[], order: SortOrder): readonly TreeRow[] {
  const sorted = children
    .map((child) => ({ child, state: stateWithDescendants(family, child) }))
    .sort((a, b) => compareChildren(a.child, b.child, order, [a.state, b.state]));
  const rows: (Child | { readonly batchID: string; readonly members: Task[] })[] = [];
  const places = new Map<string, number>();
  for (const { child } of sorted) {
    if (!isTask(child)) {
      rows.push(child);
      continue;
    }
    const place = places.get(child.batchID) ?? rows.length;
    const row = rows[place];
    if (!row) {
      places.set(child.batchID, place);
      rows.push(child);
    } else if ("members" in row) row.members.push(child);
    else if (isTask(row)) rows[place] = { batchID: child.batchID, members: [row, child] };
  }
  return rows;
}

/** Negative if `a` comes first. 0 only for two versions of one child whose place is the same. */
export function compareChildren(
  a: Child,
  b: Child,
  order: SortOrder,
  [stateA, stateB]: readonly [ChildState, ChildState] = [stateOf(a), stateOf(b)],
): number {
  const age = b.createdAt - a.createdAt || compareText(b.id, a.id);
  switch (order) {
    case "groups": {
      const [rankA, rankB] = [groupRank(a, stateA), groupRank(b, stateB)];
      if (rankA !== rankB) return rankA - rankB;
      if (rankA === ENDED_RANK) return endOf(b) - endOf(a) || age;
      return (rankA === QUEUED_RANK ? a.createdAt - b.createdAt : a.startedAt - b.startedAt) || age;
    }
    case "active":
      return ACTIVE_RANK[stateA] - ACTIVE_RANK[stateB] || age;
    case "newest":
      return age;
    case "oldest":
      return -age;
    case "status":
      return CHILD_STATES.indexOf(stateA) - CHILD_STATES.indexOf(stateB) || age;
    case "name":
      return compareNames(a.description, b.description) || age;
    case "cost":
      return b.cost - a.cost || age;
  }
}

const QUEUED_RANK = 2;
const ENDED_RANK = 3;

/** Queued tasks come after those that work, in the order in which they start. */
function groupRank(child: Child, state: ChildState): number {
  if (state === "waiting") return 0;
  if (state === "running") return isQueuedChild(child) ? QUEUED_RANK : 1;
  return ENDED_RANK;
}

/** All ended tasks rank equally, so that they keep their place however they ended. */
const ACTIVE_RANK = { waiting: 0, running: 1, error: 2, cancelled: 2, completed: 2 } as const;

let names: Intl.Collator | undefined;

function compareNames(a: string, b: string): number {
  // Made at the first use: the first one of a process loads the data of its language, which takes milliseconds.
  names ??= new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });
  return names.compare(a, b);
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
