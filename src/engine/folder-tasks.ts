import type { Event } from "./event.ts";
import { findTask, noSuchBatch, type Tombstone } from "./find-task.ts";
import type { MirroredSession } from "./folder-changes.ts";
import type { Clock } from "./ports.ts";
import type { TaskChange, UnreadableTask } from "./registry.ts";
import type { OpenRequest, RequestRef } from "./requests.ts";
import { isRunning, type Child, type Subagent } from "./subagent.ts";
import type { Task } from "./task.ts";
import { totals, type Totals } from "./totals.ts";
import { descendants, type Family } from "./tree.ts";
import { waitForEnd, waitingTime, type WaitOptions } from "./waiting.ts";

/** Read access to the tasks of a folder, shared by the engine and its mirror in windows. */
export abstract class FolderTasks<S extends MirroredSession, R extends RequestRef> {
  constructor(protected readonly clock: Clock) {}

  abstract readonly onDidChange: Event<TaskChange>;
  protected abstract readonly sessionTree: Family<S>;
  /** Includes cleared tasks. Their parents are those that their records name. */
  protected abstract readonly tasks: Family<Task>;
  protected abstract readonly subagents: Family<Subagent>;
  protected abstract readonly requests: readonly R[];
  protected abstract readonly tombstones: readonly Tombstone[];

  session(sessionID: string): S | undefined {
    return this.sessionTree.get(sessionID);
  }

  sessions(): readonly S[] {
    return this.sessionTree.all();
  }

  /** Undefined if there is no such task. */
  get(taskID: string): Task | undefined {
    return this.tasks.get(taskID);
  }

  /** Every task of the folder, including cleared tasks. */
  allTasks(): readonly Task[] {
    return this.tasks.all();
  }

  /**
   * The tasks of a session, the oldest first. Leaves out cleared tasks.
   * @param evenArchived whether an archived session has any, too, as its agent may still be working
   */
  list(parentSessionID: string, evenArchived = false): readonly Task[] {
    const tasks = this.tasks.childrenOf(parentSessionID).filter(isListed);
    return tasks.length === 0 || (!evenArchived && this.isArchived(parentSessionID))
      ? []
      : oldestFirst(tasks);
  }

  /** The cleared tasks of a session, the last cleared first. See {@link list}. */
  cleared(parentSessionID: string, evenArchived = false): readonly Task[] {
    if (!evenArchived && this.isArchived(parentSessionID)) return [];
    const cleared = oldestFirst(this.tasks.childrenOf(parentSessionID).filter((task) => !isListed(task)));
    // Of those that were cleared together, the last launched is first.
    return [...cleared].reverse().sort((a, b) => (b.clearedAt ?? 0) - (a.clearedAt ?? 0));
  }

  /** The children of a session, the oldest first: its tasks except cleared ones, and subagents that are not tasks. */
  children(sessionID: string): readonly Child[] {
    const tasks = this.list(sessionID);
    const subagents = this.subagents.childrenOf(sessionID);
    if (subagents.length === 0 || this.isArchived(sessionID)) return tasks;
    return oldestFirst<Child>([...tasks, ...subagents]);
  }

  /** The task or subagent with this session ID. */
  child(sessionID: string): Child | undefined {
    return this.get(sessionID) ?? this.subagents.get(sessionID);
  }

  /** Finds a task by ID or unique prefix or suffix, among those of a session if given. Throws a `Refusal`. */
  find(reference: string, parentSessionID?: string): Task {
    return findTask(this.tasks, this.tombstones, reference, parentSessionID);
  }

  /** All requests that wait for a user, in any session of the folder, the oldest first. */
  openRequests(): readonly OpenRequest<R>[] {
    return this.requests.flatMap((request) => {
      const child = this.child(request.sessionID);
      return child && isRunning(child) ? [{ request, child }] : [];
    });
  }

  /** The permissions and questions for which a task or subagent waits, or what runs below it; the oldest first. */
  pendingRequests(id: string): readonly R[] {
    const top = this.childNamed(id).id;
    const isUnder = (child: Child): boolean => {
      // Broken metadata can make a session its own ancestor.
      const seen = new Set<string>();
      let at: Child | undefined = child;
      for (; at && at.id !== top && !seen.has(at.id); at = this.child(at.parentSessionID)) seen.add(at.id);
      return at?.id === top;
    };
    return this.openRequests().flatMap(({ request, child }) => (isUnder(child) ? request : []));
  }

  /** The sessions of a parent whose task record cannot be used. */
  unreadable(parentSessionID: string): readonly UnreadableTask[] {
    return this.sessionTree
      .childrenOf(parentSessionID)
      .flatMap(({ id, title, task }) =>
        task.kind === "unreadable" ? [{ sessionID: id, title, reason: task.reason }] : [],
      );
  }

  /** The tasks of a batch, the oldest first, of one parent if given. Throws a `Refusal` if there are none. */
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

  /** All descendants of a session, nearest first. Some forks are linked to their parent only by their task record. */
  descendantsOf(sessionID: string): readonly S[] {
    const tasksOf = (id: string): readonly S[] =>
      this.tasks.childrenOf(id).flatMap((task) => this.session(task.id) ?? []);
    return descendants(sessionID, (id) => [...this.sessionTree.childrenOf(id), ...tasksOf(id)]);
  }

  /** The combined usage of tasks and their descendants. */
  totals(taskIDs: readonly string[]): Totals {
    return totals(this, taskIDs, this.clock.now());
  }

  /** Waits for tasks to end. Resolves to their state at that time, without tasks that are gone. */
  async wait(taskIDs: readonly string[], options: WaitOptions = {}): Promise<readonly Task[]> {
    const ids = taskIDs.map((id) => this.find(id).id);
    await waitForEnd(this, this.clock, ids, { ...options, timeoutMs: waitingTime(options.timeoutMs) });
    return ids.flatMap((id) => this.get(id) ?? []);
  }

  /** The task that a reference names, or the subagent with this ID. */
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
