import { messageOf, Refusal } from "./errors.ts";
import type { EnginePorts, WorktreeChanges } from "./ports.ts";
import type { Entry, TaskRegistry } from "./registry.ts";
import { sentence } from "./sentence.ts";
import { isRunning } from "./subagent.ts";
import type { Subagents } from "./subagents.ts";
import { isActive, shortID, type Isolation, type TaskRecord, type TaskWorktree } from "./task.ts";
import { nameOf } from "./task-names.ts";

/** What decides where a new task works. */
interface NewTask {
  readonly parentSessionID: string;
  readonly fork?: { readonly sourceSessionID: string } | undefined;
  readonly isolation?: Isolation | undefined;
}

/** Where a new task is going to work. */
export interface Workplace {
  /** Whether it gets a worktree of its own. */
  readonly isIsolated: boolean;
  /** The worktree in which it works or, if it gets its own, whose state that begins with. Undefined for the folder. */
  readonly worktree: TaskWorktree | undefined;
  /** Whether that is where the source of its fork works, if it is one. */
  readonly isInPlace: boolean;
}

/** Decides where tasks work, and looks after the worktrees of isolated ones. */
export class TaskWorktrees {
  /** The changes as of the end of tasks, by task ID. */
  private readonly ends = new Map<string, { readonly endedAt: number; readonly changes: WorktreeChanges }>();

  constructor(
    private readonly ports: Pick<EnginePorts, "worktrees" | "server" | "settings" | "random" | "logger">,
    private readonly registry: TaskRegistry,
    private readonly subagents: Subagents,
  ) {}

  /** The worktree that a session works in: its own, or that of the nearest isolated task above it. */
  of(sessionID: string): TaskWorktree | undefined {
    return this.ownerOf(sessionID)?.record.worktree;
  }

  /** The directories of the worktrees of all tasks. */
  directories(): readonly string[] {
    return this.registry.all().flatMap(({ record }) => record.worktree?.directory ?? []);
  }

  /** Decides where a new task works. Throws a {@link Refusal} if it cannot work there. */
  async placeFor({ parentSessionID, fork, isolation }: NewTask): Promise<Workplace> {
    const { worktrees, settings } = this.ports;
    const around = this.of(parentSessionID);
    const source = fork ? this.of(fork.sourceSessionID) : around;
    const isForkOfIsolated = fork !== undefined && source !== undefined && source !== around;
    const byDefault = isForkOfIsolated ? "worktree" : around ? "folder" : settings().isolation.default;
    const isIsolated = (isolation ?? byDefault) === "worktree";
    const worktree = isIsolated ? source : around;
    if (worktree) await this.requireThere(worktree);
    const { location } = settings().isolation;
    const obstacle = isIsolated ? await worktrees.obstacle({ from: worktree, location }) : undefined;
    if (obstacle !== undefined) throw new Refusal("no-worktree", obstacle);
    return { isIsolated, worktree, isInPlace: !isIsolated && source === around };
  }

  /** Makes the worktree of a new task. Undefined if it gets none. */
  async make(
    { isIsolated, worktree: from }: Workplace,
    description: string,
  ): Promise<TaskWorktree | undefined> {
    if (!isIsolated) return undefined;
    const { worktrees, settings, random } = this.ports;
    const { location, startFrom } = settings().isolation;
    return worktrees.make({ name: nameOf(description, random), from, location, startFrom });
  }

  /** Removes the worktree of a task that could not be created. */
  async removeUnused(worktree: TaskWorktree): Promise<void> {
    const { worktrees, server, logger } = this.ports;
    try {
      await server.releaseDirectory(worktree.directory);
      await worktrees.remove(worktree);
    } catch (error) {
      logger.warn(`Couldn't remove the worktree ${worktree.name}: ${messageOf(error)}`);
    }
  }

  /** Throws a {@link Refusal} if the worktree that a session works in is gone. */
  async requireFor(sessionID: string): Promise<void> {
    const worktree = this.of(sessionID);
    if (worktree) await this.requireThere(worktree);
  }

  /** Whether the worktree that a session works in is gone. */
  async isGoneFor(sessionID: string): Promise<boolean> {
    const worktree = this.of(sessionID);
    return worktree !== undefined && !(await this.ports.worktrees.exists(worktree));
  }

  /**
   * What an ended task has changed in its worktree, as of its end. Undefined if it has none, or if that cannot be read:
   * then its end is told without.
   */
  async changesAtEnd({ id, worktree, endedAt }: TaskRecord): Promise<WorktreeChanges | undefined> {
    if (!worktree || endedAt === undefined) return undefined;
    const known = this.ends.get(id);
    if (known?.endedAt === endedAt) return known.changes;
    try {
      const changes = await this.ports.worktrees.changes(worktree);
      this.ends.set(id, { endedAt, changes });
      return changes;
    } catch (error) {
      this.ports.logger.warn(`Couldn't read the changes of task ${shortID(id)}: ${messageOf(error)}`);
      return undefined;
    }
  }

  /** What a task has changed in its worktree. */
  async changes(entry: Entry): Promise<WorktreeChanges> {
    return this.ports.worktrees.changes(this.requireOwn(entry));
  }

  /** Removes the worktree of a task. Its state is kept, so that it can be made again. */
  async remove(entry: Entry): Promise<void> {
    const { worktrees } = this.ports;
    await worktrees.remove(await this.release(entry));
  }

  /** Makes the server release the worktree of a task. Throws a {@link Refusal} if something is running in it. */
  async release(entry: Entry): Promise<TaskWorktree> {
    const worktree = this.requireOwn(entry);
    const { id } = entry.record;
    const isBusy = [id, ...this.registry.descendantsOf(id).map((session) => session.id)].some(
      (sessionID) => this.ownerOf(sessionID) === entry && this.isRunning(sessionID),
    );
    if (isBusy)
      throw new Refusal(
        "still-running",
        sentence("Task {0} or a subtask is still working in the worktree. Cancel it first.", shortID(id)),
      );
    await this.ports.server.releaseDirectory(worktree.directory);
    return worktree;
  }

  /** Makes the worktree of a task again after it was removed. */
  async remake(entry: Entry): Promise<void> {
    const worktree = this.requireOwn(entry);
    if (!(await this.ports.worktrees.exists(worktree))) await this.ports.worktrees.remake(worktree);
  }

  private ownerOf(sessionID: string): Entry | undefined {
    return [sessionID, ...this.registry.above(sessionID)]
      .map((id) => this.registry.entry(id))
      .find((entry) => entry?.record.worktree !== undefined);
  }

  private isRunning(sessionID: string): boolean {
    const entry = this.registry.entry(sessionID);
    if (entry) return isActive(entry.record);
    const subagent = this.subagents.get(sessionID);
    return subagent !== undefined && isRunning(subagent);
  }

  /** The worktree of a task. Throws a {@link Refusal} if it has none of its own. */
  requireOwn({ record: { id, worktree } }: Entry): TaskWorktree {
    if (worktree) return worktree;
    throw new Refusal("no-worktree", sentence("Task {0} has no worktree of its own.", shortID(id)));
  }

  private async requireThere(worktree: TaskWorktree): Promise<void> {
    if (await this.ports.worktrees.exists(worktree)) return;
    throw new Refusal(
      "worktree-gone",
      sentence(
        "The worktree {0} no longer exists. Make it again, or launch a new task instead.",
        worktree.name,
      ),
    );
  }
}
