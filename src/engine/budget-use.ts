import {
  batchIsFull,
  exceeded,
  exceededAbove,
  hasNoRoom,
  isOverAlready,
  isUsedUp,
  mostUsed,
  mostUsedOf,
  noRoomAbove,
  requireLimits,
  tokenSum,
  type Taken,
} from "./budget.ts";
import type { Budget, LimitUse } from "./limit.ts";
import type { Clock } from "./ports.ts";
import type { Entry, TaskRegistry } from "./registry.ts";
import type { Subagent } from "./subagent.ts";
import type { TaskError } from "./task.ts";
import { totals } from "./totals.ts";
import type { WorkTime } from "./work-time.ts";

/** How much of their limits tasks and batches have used, and whether there is room for more. */
export class BudgetUse {
  constructor(
    private readonly registry: TaskRegistry,
    private readonly work: WorkTime,
    private readonly clock: Clock,
    private readonly settings: () => { readonly budget: Budget },
  ) {}

  /** Throws a {@link Refusal} if the batch or a task above has no room for another task, or a limit is invalid. */
  requireRoom(parentSessionID: string, batchID: string): void {
    const { budget } = this.settings();
    requireLimits(budget);
    const use = this.ofBatch(budget, parentSessionID, batchID);
    if (use && isUsedUp(use)) throw batchIsFull(batchID, use);
    this.requireRoomAbove(budget, parentSessionID);
  }

  /** Throws a {@link Refusal} if a task has no room for another turn. */
  requireRoomFor(entry: Entry): void {
    const { budget } = this.settings();
    requireLimits(budget);
    const use = this.of(entry);
    if (use && isUsedUp(use)) throw hasNoRoom(entry.record.id, use);
    this.requireRoomAbove(budget, entry.record.parentSessionID);
  }

  /** Whether a task has room for another turn. */
  hasRoomFor(entry: Entry): boolean {
    const use = this.of(entry);
    return !(use && isUsedUp(use)) && !this.usedUpAbove(this.settings().budget, entry.record.parentSessionID);
  }

  /** Throws a {@link Refusal} if a running subagent would be stopped immediately as a task in a batch of its own. */
  requireRoomToAdopt(subagent: Subagent): void {
    const { id, parentSessionID } = subagent;
    const { budget } = this.settings();
    const { cost, tokens } = totals(this.registry, [id], this.clock.now());
    const taken = { cost, tokens: tokenSum(tokens), minutes: this.work.ofSubagent(subagent) / 60_000 };
    const use = mostUsedOf([mostUsed(budget, "task", () => taken), mostUsed(budget, "batch", () => taken)]);
    if (use && isUsedUp(use)) throw isOverAlready(id, use);
    this.requireRoomAbove(budget, parentSessionID);
  }

  /** The error of a task whose turn was aborted then (milliseconds since 1970). Undefined if no limit was used up. */
  reachedBy(entry: Entry, at: number): TaskError | undefined {
    const use = this.of(entry, at);
    if (use && isUsedUp(use)) return exceeded(use);
    const above = this.usedUpAbove(this.settings().budget, entry.record.parentSessionID);
    return above && exceededAbove(above);
  }

  ofTask(budget: Budget, entry: Entry, at?: number): LimitUse | undefined {
    return mostUsed(budget, "task", () => this.taken([entry], at));
  }

  ofBatch(budget: Budget, parentSessionID: string, batchID: string, at?: number): LimitUse | undefined {
    return mostUsed(budget, "batch", () => {
      const tasks = this.registry.tasksOf(parentSessionID);
      return this.taken(
        tasks.filter(({ record }) => record.batchID === batchID),
        at,
      );
    });
  }

  /**
   * The limit that a completed task, or its batch, has used up, of the tasks from this session upwards. Those at work are
   * stopped with all below them. The minutes of descendants do not count above.
   */
  usedUpAbove(budget: Budget, parentSessionID: string): LimitUse | undefined {
    const spending = { ...budget, taskMinutes: undefined, batchMinutes: undefined };
    for (const id of [parentSessionID, ...this.registry.above(parentSessionID)]) {
      const above = this.registry.entry(id);
      if (above?.record.status !== "completed") continue;
      const { parentSessionID: parentID, batchID } = above.record;
      const use = mostUsedOf([this.ofTask(spending, above), this.ofBatch(spending, parentID, batchID)]);
      if (use && isUsedUp(use)) return use;
    }
    return undefined;
  }

  private requireRoomAbove(budget: Budget, parentSessionID: string): void {
    const use = this.usedUpAbove(budget, parentSessionID);
    if (use) throw noRoomAbove(use);
  }

  private of(entry: Entry, at?: number): LimitUse | undefined {
    const { budget } = this.settings();
    const { parentSessionID, batchID } = entry.record;
    return mostUsedOf([this.ofTask(budget, entry, at), this.ofBatch(budget, parentSessionID, batchID, at)]);
  }

  /** The cost and tokens include the descendants of the tasks; the minutes do not. */
  private taken(entries: readonly Entry[], at = this.clock.now()): Taken {
    const ids = entries.map(({ record }) => record.id);
    const { cost, tokens } = totals(this.registry, ids, at);
    const worked = entries.reduce((sum, entry) => sum + this.work.of(entry, at), 0);
    return { cost, tokens: tokenSum(tokens), minutes: worked / 60_000 };
  }
}
