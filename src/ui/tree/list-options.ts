import * as vscode from "vscode";
import { SORT_ORDERS, type SortOrder } from "./arrangement.ts";
import { NO_FILTER, type TaskFilter } from "./task-filter.ts";

const SORT_ORDER = "asyncagents.sortOrder";

/** How the person wants the tasks listed: the order is kept for the folder, the filter until the window closes. */
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
