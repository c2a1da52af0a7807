import { withTombstone, type Tombstone } from "./find-task.ts";
import type { TaskMemoryStore } from "./ports.ts";
import type { Session } from "./server-model.ts";
import { isActive, type TaskRecord } from "./task.ts";

/** What is remembered about tasks because the server may forget it: tasks without session, and unsettled tasks. */
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

  /** Tasks that are queued or running, or whose parent still has to be notified. */
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

  /** Remembers a task until it has ended and its parent has been notified. */
  remember(record: TaskRecord): void {
    if (isSettled(record)) return this.forget(record.id);
    if (this.records.get(record.id)?.revision === record.revision) return;
    this.records.set(record.id, record);
    this.save();
  }

  /** Forgets a task whose parent no longer has to be notified. */
  forget(id: string): void {
    if (this.records.delete(id)) this.save();
  }

  /** Combines simultaneous changes, as a connect may report thousands of tasks. */
  private save(): void {
    this.saving ??= Promise.resolve().then(() => {
      this.saving = undefined;
      this.store.saveUnsettled(this.unsettled());
    });
  }
}

/** Whether a task has ended and its notice is no longer pending. */
export function isSettled(record: TaskRecord): boolean {
  return !isActive(record) && record.notice.state !== "pending";
}

/** What is known of a session that is gone, from the record of its task. */
export function goneSession(record: TaskRecord): Session {
  const { id, description, parentSessionID, agent, model, createdAt } = record;
  return {
    id,
    title: description,
    directory: "",
    parentID: parentSessionID,
    agent,
    model,
    created: createdAt,
    updated: createdAt,
    cost: 0,
    tokens: { input: 0, output: 0, reasoning: 0, cacheRead: 0, cacheWrite: 0 },
    permission: [],
    task: { kind: "task", record },
  };
}
