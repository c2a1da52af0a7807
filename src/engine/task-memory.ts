import { withTombstone, type Tombstone } from "./find-task.ts";
import type { TaskMemoryStore } from "./ports.ts";
import { isActive, type TaskRecord } from "./task.ts";

/** What is kept of tasks beyond the process, as the server may forget it: those whose session is gone, and the unsettled. */
export class TaskMemory {
  private buried: readonly Tombstone[];
  private readonly records: Map<string, TaskRecord>;
  private saving: Promise<void> | undefined;

  constructor(private readonly store: TaskMemoryStore) {
    this.buried = [...store.load()];
    this.records = new Map(store.loadUnsettled().map((record) => [record.id, record]));
  }

  get tombstones(): readonly Tombstone[] {
    return this.buried;
  }

  /** Tasks that are queued or at work, or of which a parent is still to be notified. */
  unsettled(): readonly TaskRecord[] {
    return [...this.records.values()];
  }

  isUnsettled(id: string): boolean {
    return this.records.has(id);
  }

  bury(record: TaskRecord): void {
    this.buried = withTombstone(this.buried, record);
    this.store.save(this.buried);
  }

  /** Keeps every task that is queued or at work, or whose parent has not been notified yet. */
  remember(record: TaskRecord): void {
    if (isSettled(record)) return this.forget(record.id);
    if (this.records.get(record.id)?.revision === record.revision) return;
    this.records.set(record.id, record);
    this.save();
  }

  /** Nobody is to be notified of this task any more. */
  forget(id: string): void {
    if (this.records.delete(id)) this.save();
  }

  /** Once for all that changes at a time: a connect tells of thousands of tasks. */
  private save(): void {
    this.saving ??= Promise.resolve().then(() => {
      this.saving = undefined;
      this.store.saveUnsettled(this.unsettled());
    });
  }
}

/** Whether a task has ended, and there is nothing of it to notify its parent of. */
export function isSettled(record: TaskRecord): boolean {
  return !isActive(record) && record.notice.state !== "pending";
}
