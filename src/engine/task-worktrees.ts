import { messageOf, Refusal, UserFacingError } from "./errors.ts";
import { Emitter, type Disposable, type Event, logged } from "./event.ts";
import type { EnginePorts, WorktreeChanges } from "./ports.ts";
import type { Entry, TaskChange, TaskRegistry } from "./registry.ts";
import { sentence } from "./sentence.ts";
import { isRunning } from "./subagent.ts";
import type { Subagents } from "./subagents.ts";
import {
  hasOpenWork,
  isActive,
  shortID,
  type Isolation,
  type TaskRecord,
  type TaskWorktree,
} from "./task.ts";
import { nameOf, withoutName } from "./task-names.ts";
import type { WorktreeSetups } from "./worktree-setups.ts";

/** What decides where a new task works. */
interface NewTask {
  readonly parentSessionID: string;
  readonly launchedBy: TaskRecord["launchedBy"];
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
  /** Whether a command has to run in its own worktree before the prompt. */
  readonly setsUp: boolean;
}

/** What a task changed as of an end, while it is being read too. */
interface EndChanges {
  readonly endedAt: number;
  readonly changes: Promise<WorktreeChanges | undefined>;
}

type Facts = Pick<Partial<TaskWorktree>, "outcome" | "base" | "setup">;

export interface Remake {
  /** The ref under which the work is kept, if it was discarded. */
  readonly discarded?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Decides where tasks work, and looks after the worktrees of isolated ones. */
export class TaskWorktrees implements Disposable {
  /** The changes as of the end of tasks, by task ID. */
  private readonly ends = new Map<string, EndChanges>();
  private readonly changed: Emitter<void>;
  /** A worktree was removed or made again. */
  readonly onDidChange: Event<void>;

  constructor(
    private readonly ports: Pick<EnginePorts, "worktrees" | "server" | "settings" | "random" | "logger">,
    private readonly registry: TaskRegistry,
    private readonly subagents: Subagents,
    private readonly setups: WorktreeSetups,
  ) {
    this.changed = new Emitter(logged(ports.logger, "worktrees"));
    this.onDidChange = this.changed.event;
  }

  /** The worktree that a session works in: its own, or that of the nearest isolated task above it. */
  of(sessionID: string): TaskWorktree | undefined {
    return this.ownerOf(sessionID)?.record.worktree;
  }

  /** The directories of the worktrees of all tasks. */
  directories(): readonly string[] {
    return this.registry.all().flatMap(({ record }) => record.worktree?.directory ?? []);
  }

  /** Decides where a new task works. Throws a {@link Refusal} if it cannot work there. */
  async placeFor({ parentSessionID, launchedBy, fork, isolation }: NewTask): Promise<Workplace> {
    const { worktrees, settings } = this.ports;
    const around = this.of(parentSessionID);
    const source = fork ? this.of(fork.sourceSessionID) : around;
    const isForkOfIsolated = fork !== undefined && source !== undefined && source !== around;
    const byDefault = isForkOfIsolated ? "worktree" : around ? "folder" : settings().isolation.default;
    const isIsolated = (isolation ?? byDefault) === "worktree";
    const worktree = isIsolated ? source : around;
    if (worktree) await this.requireThere(worktree);
    if (!isIsolated) this.requireSetUp(parentSessionID);
    const { location } = settings().isolation;
    const obstacle = isIsolated ? await worktrees.obstacle({ from: worktree, location }) : undefined;
    if (obstacle !== undefined) throw new Refusal("no-worktree", obstacle);
    const calling = launchedBy === "agent" ? parentSessionID : undefined;
    const setsUp = isIsolated && this.setups.command(calling) !== undefined;
    return { isIsolated, worktree, isInPlace: !isIsolated && source === around, setsUp };
  }

  /** Makes the worktree of a new task. Undefined if it gets none. */
  async make(
    { isIsolated, worktree: from, setsUp }: Workplace,
    description: string,
  ): Promise<TaskWorktree | undefined> {
    if (!isIsolated) return undefined;
    const { worktrees, settings, random } = this.ports;
    const { location, startFrom, include } = settings().isolation;
    const name = nameOf(description, random);
    const made = await worktrees
      .make({ name, from, location, startFrom, include })
      .catch((error: unknown) => {
        // What stands in the way only here, such as a file that can't be read, does so as any other obstacle.
        if (!(error instanceof UserFacingError) || error instanceof Refusal) throw error;
        throw new Refusal("no-worktree", error.text);
      });
    return setsUp ? { ...made, setup: "pending" } : made;
  }

  /** Notes that the task of a worktree that was just made exists. */
  async claim(worktree: TaskWorktree): Promise<void> {
    await this.ports.worktrees.claim(worktree).catch((error: unknown) => {
      this.warn(`Couldn't claim the worktree ${worktree.name}`, worktree, error);
    });
  }

  /** Completes what was left unfinished when this process or the server was killed, at each connect. */
  async takeUp(): Promise<void> {
    const own = this.registry
      .all()
      .flatMap((entry) => (entry.record.worktree ? [{ entry, worktree: entry.record.worktree }] : []));
    try {
      const bases = await this.ports.worktrees.takeUp(own.map(({ worktree }) => worktree));
      for (const { entry, worktree } of own) {
        const base = bases.get(worktree.name) ?? worktree.base;
        const isStill = entry.record.worktree?.base === worktree.base;
        if (isStill && base !== worktree.base) await this.note(entry, { base });
        await this.completeOutcome(entry).catch((error: unknown) => {
          const id = shortID(entry.record.id);
          this.warn(`Couldn't remove the worktree of task ${id}`, worktree, error);
        });
      }
      this.changed.fire();
    } catch (error) {
      // Folders without a repository are among these.
      this.ports.logger.debug(`Couldn't look for unfinished worktrees: ${messageOf(error)}`);
    }
  }

  /** Notes facts about the worktree of a task. If the server can't store them now, it gets them at the next connect. */
  note(entry: Entry, facts: Facts): Promise<void> {
    return entry.serial.run(() => this.noteNow(entry, facts));
  }

  /** Like {@link note}, from within the task's queue. */
  async noteNow(entry: Entry, facts: Facts): Promise<void> {
    const worktree = { ...this.requireOwn(entry), ...facts };
    try {
      await this.registry.showThenStore(entry, { ...entry.record, worktree });
    } catch (error) {
      const id = shortID(entry.record.id);
      this.ports.logger.warn(`Couldn't store what became of the worktree of ${id}: ${messageOf(error)}`);
    }
  }

  /**
   * Reads the changes of a task when it ends, which keeps its result even if nobody is notified. Forgets them when the
   * task is resumed, was decided on, or is gone.
   */
  taskChanged({ id, before, after }: TaskChange): void {
    if (!after || isActive(after) || !hasOpenWork(after)) this.ends.delete(id);
    else if (before && isActive(before)) void this.changesAtEnd(after);
  }

  /** The end of what the setup command of a task printed. Undefined if there was none. */
  async setupOutput(entry: Entry): Promise<string | undefined> {
    return this.ports.worktrees.setupOutput(this.requireOwn(entry));
  }

  dispose(): void {
    this.changed.dispose();
  }

  /** Removes the worktree of a task that could not be created. */
  async removeUnused(worktree: TaskWorktree): Promise<void> {
    const { worktrees, server } = this.ports;
    try {
      // Without an answer, the server is gone and holds nothing.
      await server.releaseDirectory(worktree.directory).catch(() => undefined);
      await worktrees.removeUnused(worktree);
    } catch (error) {
      this.warn(`Couldn't remove the worktree ${worktree.name}`, worktree, error);
    }
  }

  /** Throws a {@link Refusal} if the worktree that a session works in is gone. */
  async requireFor(sessionID: string): Promise<void> {
    const worktree = this.of(sessionID);
    if (worktree) await this.requireThere(worktree);
  }

  /** Throws a {@link Refusal} while the worktree that a session works in is being set up. */
  requireSetUp(sessionID: string): void {
    const owner = this.ownerOf(sessionID);
    if (owner) this.setups.requireDone(owner.record);
  }

  /** Whether the worktree that a session works in is gone. */
  async isGoneFor(sessionID: string): Promise<boolean> {
    const worktree = this.of(sessionID);
    return worktree !== undefined && !(await this.ports.worktrees.exists(worktree));
  }

  /**
   * What an ended task has changed in its worktree, as of its end. Undefined if it has none, or if that cannot be
   * read, which doesn't keep its parent from being notified.
   */
  async changesAtEnd({ id, worktree, endedAt }: TaskRecord): Promise<WorktreeChanges | undefined> {
    if (!worktree || endedAt === undefined) return undefined;
    let end = this.ends.get(id);
    if (end?.endedAt !== endedAt) {
      const changes = this.ports.worktrees.changes(worktree).catch((error: unknown) => {
        this.warn(`Couldn't read the changes of task ${shortID(id)}`, worktree, error);
        return undefined;
      });
      end = { endedAt, changes };
      this.ends.set(id, end);
    }
    const changes = await end.changes;
    // The next caller tries again.
    if (!changes && this.ends.get(id) === end) this.ends.delete(id);
    return changes;
  }

  /** What a task has changed in its worktree. */
  async changes(entry: Entry): Promise<WorktreeChanges> {
    return this.ports.worktrees.changes(this.requireOwn(entry));
  }

  /**
   * Removes the worktree of a task. Its state is kept, so that it can be made again.
   * @param isWanted whether it is still to be removed once nothing else is done with it
   */
  async remove(entry: Entry, isWanted = (): boolean => true): Promise<void> {
    await this.released(entry, async (worktree) => {
      if (isWanted()) await this.ports.worktrees.remove(worktree);
    });
    this.changed.fire();
  }

  /**
   * Has the server release the worktree of a task, and uses it, while the task can't be resumed. Throws a
   * {@link Refusal} if something is running in it.
   */
  released<T>(entry: Entry, use: (worktree: TaskWorktree) => Promise<T>): Promise<T> {
    const worktree = this.requireOwn(entry);
    return entry.serial.run(async () => {
      const { id } = entry.record;
      const isBusy = [id, ...this.registry.descendantsOf(id).map((session) => session.id)].some(
        (sessionID) => this.ownerOf(sessionID) === entry && this.isRunning(sessionID),
      );
      if (isBusy || (await this.ports.server.isWorkingIn(worktree.directory)))
        throw new Refusal(
          "still-running",
          sentence("Task {0} or a subtask is still working in the worktree. Cancel it first.", shortID(id)),
        );
      this.setups.requireDone(entry.record);
      await this.ports.server.releaseDirectory(worktree.directory);
      return use(worktree);
    });
  }

  /**
   * Makes the worktree of a task again after it was removed, and sets it up: from its last kept state, or from that
   * under the ref with which it was discarded. Rejects if the setup command fails or is cancelled; then it is there.
   */
  async remake(entry: Entry, { discarded, signal }: Remake = {}): Promise<void> {
    const { worktrees, settings } = this.ports;
    const worktree = this.requireOwn(entry);
    const { isolation } = settings();
    const setsUp = await entry.serial.run(async () => {
      const isThere = await worktrees.exists(worktree);
      if (isThere && discarded !== undefined)
        throw new Refusal(
          "wrong-status",
          sentence(
            "The worktree {0} exists again, so what was discarded wasn't restored over it.",
            worktree.name,
          ),
        );
      // What was discarded comes back in any case.
      if (!isThere && discarded === undefined) this.setups.command();
      const { setup: before, outcome } = this.requireOwn(entry);
      // The setup of a task that hasn't begun is left to its start.
      const isToSetUp = before !== "pending" && (!isThere || before === "again");
      const setup = isToSetUp ? (isolation.setup?.isAllowed ? "again" : undefined) : before;
      // If this process ends before the command, the next one runs it.
      if (setup !== before) await this.noteNow(entry, { setup });
      if (!isThere) {
        try {
          await worktrees.remake(worktree, { ...isolation, discarded });
        } catch (error) {
          if (setup !== before) await this.noteNow(entry, { setup: before });
          throw error;
        }
        this.changed.fire();
      }
      if (outcome) await this.noteNow(entry, { outcome: undefined });
      return setup === "again";
    });
    if (setsUp)
      await this.setups.runAgain(entry.record.id, worktree, signal, () =>
        this.note(entry, { setup: undefined }),
      );
  }

  /** Completes or takes back a decision on the work of a task that a process was killed with. */
  private async completeOutcome(entry: Entry): Promise<void> {
    const worktree = this.requireOwn(entry);
    if (isActive(entry.record) || !worktree.outcome || !(await this.ports.worktrees.exists(worktree))) return;
    // Before work is noted as discarded, its worktree is removed; so it was made again.
    if (worktree.outcome === "discarded") await this.note(entry, { outcome: undefined });
    else await this.remove(entry, () => entry.record.worktree?.outcome !== undefined);
  }

  /** The task in whose worktree a session works. Undefined if it works in the folder. */
  ownerOf(sessionID: string): Entry | undefined {
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

  private warn(what: string, { name }: TaskWorktree, error: unknown): void {
    this.ports.logger.warn(withoutName(`${what}: ${messageOf(error)}`, name));
  }
}
