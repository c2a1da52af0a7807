import type { ReadModel } from "../../engine/read-model.ts";
import { type Child, isRunning, isTask } from "../../engine/subagent.ts";
import type { Task } from "../../engine/task.ts";
import type { Tasks } from "../folders/all-tasks.ts";

/** What a user wants to know first of a row: whether it waits for them, works, or how it ended. */
export const CHILD_STATES = ["waiting", "running", "error", "cancelled", "completed"] as const;
export type ChildState = (typeof CHILD_STATES)[number];

export function stateOf(child: Child): ChildState {
  if (waitsForUser(child)) return "waiting";
  if (isRunning(child)) return "running";
  // Nothing works in a subagent of others that is idle: how it ended is not known of each.
  return child.status === "error" || child.status === "cancelled" ? child.status : "completed";
}

export function waitsForUser({ progress }: Child): boolean {
  return progress?.phase === "needs-permission" || progress?.phase === "needs-answer";
}

/** Whether there is an answer to read; of a subagent of others it is enough that its model wrote something. */
export function isAnswered(child: Child): boolean {
  return isTask(child) ? child.finalMessageID !== undefined : !isRunning(child) && child.tokens.output > 0;
}

/** How many of the children are in each state. */
export function countStates(children: readonly Child[]): Readonly<Record<ChildState, number>> {
  const counts = { waiting: 0, running: 0, error: 0, cancelled: 0, completed: 0 };
  for (const child of children) counts[stateOf(child)]++;
  return counts;
}

/** What tells who is below whom. */
export type Family = Pick<Tasks, "child" | "children">;

/** Everything below a session, at any depth. */
export function descendants(family: Family, sessionID: string): readonly Child[] {
  const children = family.children(sessionID);
  // Most rows have nothing below them, and there can be thousands.
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

/** All that work now in any session, those too that others launched. */
export function runningIn(known: Pick<ReadModel, "sessions" | "child">): readonly Child[] {
  return known.sessions().flatMap(({ id }) => {
    const child = known.child(id);
    return child && isRunning(child) ? [child] : [];
  });
}

/** The sessions above a child, nearest first; the last one is no child of any. */
export function ancestors(family: Pick<Family, "child">, child: Child): readonly string[] {
  const above = new Set<string>();
  for (let each: Child | undefined = child; each && !above.has(each.parentSessionID);) {
    above.add(each.parentSessionID);
    each = family.child(each.parentSessionID);
  }
  return [...above];
}

/** The tasks of a batch below one session. */
export function batchMembers(family: Family, parentSessionID: string, batchID: string): readonly Task[] {
  return family
    .children(parentSessionID)
    .filter(isTask)
    .filter((task) => task.batchID === batchID);
}

/** How many below something, at any depth, need attention. */
export interface DescendantCounts {
  /** For a user. */
  readonly waiting: number;
  /** Those included that wait. */
  readonly running: number;
}

export function countDescendants(family: Family, sessionIDs: readonly string[]): DescendantCounts {
  const all = sessionIDs.flatMap((id) => descendants(family, id));
  return { waiting: all.filter(waitsForUser).length, running: all.filter(isRunning).length };
}

/** The state of a child, or that of what is below it where that needs more attention. */
export function stateWithDescendants(family: Family, child: Child): ChildState {
  const { waiting, running } = countDescendants(family, [child.id]);
  const own = stateOf(child);
  if (waiting > 0) return "waiting";
  return running > 0 && own !== "waiting" ? "running" : own;
}

/** What works below a session, at any depth. */
export function runningDescendants(family: Family, sessionID: string): readonly Child[] {
  return descendants(family, sessionID).filter(isRunning);
}

/** The tasks of a session that are done, with everything below them. */
export function finishedTasks(family: Family, sessionID: string): readonly Task[] {
  return family
    .children(sessionID)
    .filter((child) => isFinished(family, child))
    .filter(isTask);
}

/** Whether it is a task that is done, with everything below it. */
export function isFinished(family: Family, child: Child): boolean {
  return isTask(child) && !isRunning(child) && runningDescendants(family, child.id).length === 0;
}
