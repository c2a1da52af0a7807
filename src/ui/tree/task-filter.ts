import type { Child } from "../../engine/subagent.ts";
import { stateOf, type ChildState } from "./child-state.ts";

/** Which tasks are shown: those that meet every condition that there is. */
export interface TaskFilter {
  /** Empty: any. */
  readonly states: readonly ChildState[];
  /** Empty: any. */
  readonly agents: readonly string[];
  /** A part of the description or the end of the ID, in upper or lower case. */
  readonly text: string;
}

export const NO_FILTER: TaskFilter = { states: [], agents: [], text: "" };

export function isFiltering({ states, agents, text }: TaskFilter): boolean {
  return states.length > 0 || agents.length > 0 || text.trim() !== "";
}

export function matches(child: Child, { states, agents, text }: TaskFilter): boolean {
  const wanted = text.trim().toLowerCase();
  return (
    (states.length === 0 || states.includes(stateOf(child))) &&
    (agents.length === 0 || (child.agent !== undefined && agents.includes(child.agent))) &&
    (child.description.toLowerCase().includes(wanted) || child.id.toLowerCase().endsWith(wanted))
  );
}
