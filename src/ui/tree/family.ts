import type { TaskEngine } from "../../engine/engine.ts";
import { isAtWork, isTask, type Child } from "../../engine/subagent.ts";
import type { Task } from "../../engine/task.ts";

/** What tells who is below whom. */
export type Family = Pick<TaskEngine, "child" | "children">;

/** Everything below a session, at any depth. */
export function descendants(family: Family, sessionID: string): readonly Child[] {
  const found = new Map<string, Child>();
  const visit = (id: string): void => {
    for (const child of family.children(id)) {
      // Broken metadata can make a session its own ancestor.
      if (found.has(child.id)) continue;
      found.set(child.id, child);
      visit(child.id);
    }
  };
  visit(sessionID);
  return [...found.values()];
}

/** The sessions above a child, nearest first; the last one is no child of any. */
export function ancestors(family: Family, child: Child): readonly string[] {
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

/** What works below a session, at any depth. */
export function atWorkBelow(family: Family, sessionID: string): readonly Child[] {
  return descendants(family, sessionID).filter(isAtWork);
}

/** The tasks of a session that are done, with everything below them. */
export function finishedTasks(family: Family, sessionID: string): readonly Task[] {
  return family
    .children(sessionID)
    .filter(isTask)
    .filter((task) => !isAtWork(task) && atWorkBelow(family, task.id).length === 0);
}
