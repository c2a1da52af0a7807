import * as vscode from "vscode";
import type { Child } from "../../engine/subagent.ts";
import { SORT_ORDERS, type SortOrder } from "./arrangement.ts";
import { stateOf, type ChildState } from "./family.ts";

/** Which tasks are shown: those that meet all of the given conditions. */
export interface TaskFilter {
  /** Empty matches all. */
  readonly states: readonly ChildState[];
  /** Empty matches all. */
  readonly agents: readonly string[];
  /** A part of the description or the end of the ID; case-insensitive. */
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

const SORT_ORDER = "asyncagents.sortOrder";
const SHOW_CLEARED = "asyncagents.showCleared";

/** How the tree lists tasks. All but the filter, which lasts until the window closes, is stored with the workspace. */
export class ListOptions implements vscode.Disposable {
  private currentFilter = NO_FILTER;
  private readonly changes = new vscode.EventEmitter<void>();
  readonly onDidChange = this.changes.event;

  constructor(private readonly memento: vscode.Memento) {}

  get sortOrder(): SortOrder {
    const kept = this.memento.get<SortOrder>(SORT_ORDER);
    return kept !== undefined && SORT_ORDERS.includes(kept) ? kept : SORT_ORDERS[0];
  }

  async sortBy(order: SortOrder): Promise<void> {
    await this.memento.update(SORT_ORDER, order);
    this.changes.fire();
  }

  /** Whether cleared tasks are listed, in a group of their own. */
  get showsCleared(): boolean {
    return this.memento.get(SHOW_CLEARED) === true;
  }

  set showsCleared(shows: boolean) {
    if (shows === this.showsCleared) return;
    // The value is there at once, the file a moment later.
    void this.memento.update(SHOW_CLEARED, shows);
    this.changes.fire();
  }

  get filter(): TaskFilter {
    return this.currentFilter;
  }

  set filter(filter: TaskFilter) {
    this.currentFilter = filter;
    this.changes.fire();
  }

  dispose(): void {
    this.changes.dispose();
  }
}
