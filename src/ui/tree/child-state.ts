import { isAtWork, isTask, type Child } from "../../engine/subagent.ts";

/** What a person wants to know first of a row: whether it waits for them, works, or how it ended. */
export const CHILD_STATES = ["waiting", "running", "error", "cancelled", "completed"] as const;
export type ChildState = (typeof CHILD_STATES)[number];

export function stateOf(child: Child): ChildState {
  if (waitsForPerson(child)) return "waiting";
  if (isAtWork(child)) return "running";
  // Nothing works in a subagent of others that is idle: how it ended is not known of each.
  return child.status === "error" || child.status === "cancelled" ? child.status : "completed";
}

export function waitsForPerson({ progress }: Child): boolean {
  return progress?.phase === "needs-permission" || progress?.phase === "needs-answer";
}

/** Whether there is an answer to read; of a subagent of others it is enough that its model wrote something. */
export function isAnswered(child: Child): boolean {
  return isTask(child) ? child.finalMessageID !== undefined : !isAtWork(child) && child.tokens.output > 0;
}

/** How many of the children are in each state. */
export function countStates(children: readonly Child[]): Readonly<Record<ChildState, number>> {
  const counts = { waiting: 0, running: 0, error: 0, cancelled: 0, completed: 0 };
  for (const child of children) counts[stateOf(child)]++;
  return counts;
}
