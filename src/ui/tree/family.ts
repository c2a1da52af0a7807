import type { ReadModel } from "../../engine/read-model.ts";
import { type Child, isCleared, isRunning, isTask } from "../../engine/subagent.ts";
import type { Task } from "../../engine/task.ts";
import type { Tasks } from "../folders/all-tasks.ts";

/** What users want to know first about a row: whether it waits for them or runs, or how it ended. */
export const CHILD_STATES = ["waiting", "running", "error", "cancelled", "completed"] as const;
export type ChildState = (typeof CHILD_STATES)[number];

export function stateOf(child: Child): ChildState {
  if (waitsForUser(child)) return "waiting";
  if (isRunning(child)) return "running";
  // For some idle subagents launched elsewhere, it is unknown how they ended.
  return child.status === "error" || child.status === "cancelled" ? child.status : "completed";
}

export function waitsForUser({ progress }: Child): boolean {
  return progress?.phase === "needs-permission" || progress?.phase === "needs-answer";
}

export function isQueuedChild({ status, progress }: Child): boolean {
  return isRunning({ status }) && progress?.phase === "queued";
}

/** When a child's last turn ended, as far as that is known. */
export function endOf({ endedAt, startedAt }: Pick<Child, "endedAt" | "startedAt">): number {
  return endedAt ?? startedAt;
}

/** Whether there is an answer to read; for a subagent launched elsewhere, any output of its model counts. */
export function isAnswered(child: Child): boolean {
  return isTask(child) ? child.finalMessageID !== undefined : !isRunning(child) && child.tokens.output > 0;
}

/** The number of children in each state. */
export function countStates(children: readonly Child[]): Readonly<Record<ChildState, number>> {
  const counts = { waiting: 0, running: 0, error: 0, cancelled: 0, completed: 0 };
  for (const child of children) counts[stateOf(child)]++;
  return counts;
}

/** Tells which sessions are children of which. */
export type Family = Pick<Tasks, "child" | "children">;

/** All descendants of a session. */
export function descendants(family: Pick<Family, "children">, sessionID: string): readonly Child[] {
  const children = family.children(sessionID);
  // Most rows have no children, and there can be thousands.
  if (children.length === 0) return children;
  const found = new Map<string, Child>();
  const add = (child: Child): void => {
    // Broken metadata can make a session its own ancestor.
    if (found.has(child.id)) return;
    found.set(child.id, child);
    family.children(child.id).forEach(add);
  };
  children.forEach(add);
  return [...found.values()];
}

/** Everything that is running in any session, including agents launched elsewhere. */
export function runningIn(known: Pick<ReadModel, "sessions" | "child">): readonly Child[] {
  return known.sessions().flatMap(({ id }) => {
    const child = known.child(id);
    return child && isRunning(child) ? [child] : [];
  });
}

/** Whether a child has a row if no filter hides it. */
export function isListed(child: Child | undefined): child is Child {
  return child !== undefined && !isCleared(child);
}

/** All descendants of a session, also cleared ones and those below them. */
export function allBelow(family: Pick<Tasks, "children" | "cleared">, sessionID: string): readonly Child[] {
  const children = (id: string): readonly Child[] => [...family.children(id), ...family.cleared(id)];
  return descendants({ children }, sessionID);
}

/** The cleared tasks below a session, at any depth. */
export function clearedBelow(family: Family & Pick<Tasks, "cleared">, sessionID: string): readonly Task[] {
  return [sessionID, ...descendants(family, sessionID).map(({ id }) => id)].flatMap((id) =>
    family.cleared(id),
  );
}

/** The ancestor sessions of a child, nearest first; the last one is a root session. */
export function ancestors(family: Pick<Family, "child">, child: Child): readonly string[] {
  const above = new Set<string>();
  for (let each: Child | undefined = child; each && !above.has(each.parentSessionID);) {
    above.add(each.parentSessionID);
    each = family.child(each.parentSessionID);
  }
  return [...above];
}

/** The tasks of a batch with the same parent session. */
export function batchMembers(family: Family, parentSessionID: string, batchID: string): readonly Task[] {
  return family
    .children(parentSessionID)
    .filter(isTask)
    .filter((task) => task.batchID === batchID);
}

/** The numbers of descendants that need attention. */
export interface DescendantCounts {
  /** Descendants that wait for the user. */
  readonly waiting: number;
  /** Running descendants, including those that wait. */
  readonly running: number;
}

export function countDescendants(family: Family, sessionIDs: readonly string[]): DescendantCounts {
  const all = sessionIDs.flatMap((id) => descendants(family, id));
  return { waiting: all.filter(waitsForUser).length, running: all.filter(isRunning).length };
}

/** The state of a child, or of its descendants if that needs more attention. */
export function stateWithDescendants(family: Family, child: Child): ChildState {
  const own = stateOf(child);
  if (own === "waiting") return own;
  const below = descendants(family, child.id);
  if (below.some(waitsForUser)) return "waiting";
  return below.some(isRunning) ? "running" : own;
}

/** The running descendants of a session. */
export function runningDescendants(family: Family, sessionID: string): readonly Child[] {
  return descendants(family, sessionID).filter(isRunning);
}

/** The tasks of a session that have ended, as have all their descendants. */
export function finishedTasks(family: Family, sessionID: string): readonly Task[] {
  return family
    .children(sessionID)
    .filter((child) => isFinished(family, child))
    .filter(isTask);
}

/** Whether this is a task that has ended, as have all its descendants. */
export function isFinished(family: Family, child: Child): boolean {
  return isTask(child) && !isRunning(child) && runningDescendants(family, child.id).length === 0;
}
