import type { Event } from "./event.ts";
import { findTask, noSuchBatch, type Tombstone } from "./find-task.ts";
import type { MirroredSession } from "./folder-changes.ts";
import type { Clock } from "./ports.ts";
import type { TaskChange, UnreadableTask } from "./registry.ts";
import type { OpenRequest } from "./requests.ts";
import type { PendingRequest } from "./server-model.ts";
import { isRunning, type Child, type Subagent } from "./subagent.ts";
import type { Task } from "./task.ts";
import { totals, type Totals } from "./totals.ts";
import { descendants, type Family } from "./tree.ts";
import { waitForEnd, waitingTime, type WaitOptions } from "./waiting.ts";

/** The tasks of a folder, to be read: the engine and a window's mirror of it answer alike. */
export abstract class FolderTasks<S extends MirroredSession> {
  constructor(protected readonly clock: Clock) {}

  abstract readonly onDidChange: Event<TaskChange>;
  protected abstract readonly sessionTree: Family<S>;
  /** Cleared ones too; below the parents that their records name. */
  protected abstract readonly tasks: Family<Task>;
  protected abstract readonly subagents: Family<Subagent>;
  protected abstract readonly requests: readonly PendingRequest[];
  protected abstract readonly tombstones: readonly Tombstone[];

  session(sessionID: string): S | undefined {
    return this.sessionTree.get(sessionID);
  }

  sessions(): readonly S[] {
    return this.sessionTree.all();
  }

  /** Undefined: no such task. */
  get(taskID: string): Task | undefined {
    return this.tasks.get(taskID);
  }

  /** Every task of the folder, cleared ones too. */
  allTasks(): readonly Task[] {
    return this.tasks.all();
  }

  /** The tasks of a session, oldest first, without those cleared or whose parent was archived. */
  list(parentSessionID: string): readonly Task[] {
    if (this.isArchived(parentSessionID)) return [];
    return oldestFirst(this.tasks.childrenOf(parentSessionID).filter(isListed));
  }

  /** What is directly below a session, oldest first: its tasks without those cleared, and the subagents of others. */
  children(sessionID: string): readonly Child[] {
    const tasks = this.list(sessionID);
    if (this.isArchived(sessionID)) return tasks;
    const subagents = this.subagents.childrenOf(sessionID);
    return subagents.length === 0 ? tasks : oldestFirst<Child>([...tasks, ...subagents]);
  }

  /** The task or subagent that this session is; undefined: neither. */
  child(sessionID: string): Child | undefined {
    return this.get(sessionID) ?? this.subagents.get(sessionID);
  }

  /** The task of this ID, or of a unique prefix or suffix of one, among those of a session if given. */
  find(reference: string, parentSessionID?: string): Task {
    return findTask(this.tasks.all(), this.tombstones, reference, parentSessionID);
  }

  /** Everything that waits for a user now, in any session of the folder, the oldest first. */
  openRequests(): readonly OpenRequest[] {
    return this.requests.flatMap((request) => {
      const child = this.child(request.sessionID);
      return child && isRunning(child) ? [{ request, child }] : [];
    });
  }

  /** The permissions and questions that a task or subagent waits for, the oldest first. */
  pendingRequests(id: string): readonly PendingRequest[] {
    const child = this.childNamed(id);
    return isRunning(child) ? this.requests.filter(({ sessionID }) => sessionID === child.id) : [];
  }

  /** Sessions of a parent whose task record cannot be used. */
  unreadable(parentSessionID: string): readonly UnreadableTask[] {
    return this.sessionTree
      .childrenOf(parentSessionID)
      .flatMap(({ id, title, task }) =>
        task.kind === "unreadable" ? [{ sessionID: id, title, reason: task.reason }] : [],
      );
  }

  /** The tasks of a batch, oldest first, of one parent if given. Throws a `Refusal` where there are none. */
  batch(batchID: string, parentSessionID?: string): readonly Task[] {
    const wanted = batchID.trim();
    const tasks = this.tasks
      .all()
      .filter(
        (task) =>
          task.batchID === wanted &&
          isListed(task) &&
          (parentSessionID === undefined || task.parentSessionID === parentSessionID),
      );
    if (tasks.length === 0) throw noSuchBatch(batchID);
    return oldestFirst(tasks);
  }

  /** Every session below another one, nearest first. A fork that the server could not link is so in its record alone. */
  descendantsOf(sessionID: string): readonly S[] {
    const tasksOf = (id: string): readonly S[] =>
      this.tasks.childrenOf(id).flatMap((task) => this.session(task.id) ?? []);
    return descendants(sessionID, (id) => [...this.sessionTree.childrenOf(id), ...tasksOf(id)]);
  }

  /** What the tasks and everything below them took together. */
  totals(taskIDs: readonly string[]): Totals {
    return totals(this, taskIDs, this.clock.now());
  }

  /** Waits for tasks to end; resolves to them as they then are, without those that are gone. */
  async wait(taskIDs: readonly string[], options: WaitOptions = {}): Promise<readonly Task[]> {
    const ids = taskIDs.map((id) => this.find(id).id);
    await waitForEnd(this, this.clock, ids, { ...options, timeout: waitingTime(options.timeout) });
    return ids.flatMap((id) => this.get(id) ?? []);
  }

  /** The task that a reference names, or the subagent of this ID. */
  protected childNamed(reference: string): Child {
    return this.subagents.get(reference) ?? this.find(reference);
  }

  private isArchived(sessionID: string): boolean {
    return this.session(sessionID)?.archived !== undefined;
  }
}

function isListed({ clearedAt }: Task): boolean {
  return clearedAt === undefined;
}

function oldestFirst<T extends { readonly createdAt: number }>(children: readonly T[]): readonly T[] {
  return [...children].sort((a, b) => a.createdAt - b.createdAt);
}
