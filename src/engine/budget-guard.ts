import {
  batchIsFull,
  exceeded,
  hasMinutes,
  hasNoRoom,
  isOverAlready,
  isNearlyUsed,
  isUsedUp,
  mostUsed,
  mostUsedOf,
  requireCeilings,
  tokenSum,
  type Taken,
} from "./budget.ts";
import { percentOf, type Budget, type CeilingUse } from "./ceiling.ts";
import { messageOf } from "./errors.ts";
import type { Disposable } from "./event.ts";
import type { Clock, Logger } from "./ports.ts";
import type { Entry, TaskRegistry } from "./registry.ts";
import type { Subagent } from "./subagent.ts";
import { isActive, shortID, type TaskError } from "./task.ts";
import { totals } from "./totals.ts";
import type { WorkTime } from "./work-time.ts";

/** How often it is looked whether time is up, in milliseconds. */
const LOOK_MS = 1_000;
/** After a stop that failed, in milliseconds. */
const RETRY_MS = 2_000;
/** A look that comes this much late, in milliseconds, says that the machine slept. */
const SLEPT_MS = 30_000;

/** Sees to it that tasks and batches stay below their ceilings: warns when one is nearly used, and stops what used it up. */
export class BudgetGuard implements Disposable {
  /** The ceilings near which a task or batch was found before. */
  private readonly found = new Set<string>();
  private readonly stopping = new WeakSet<Entry>();
  private readonly subscription: Disposable;
  private timer: Disposable | undefined;
  /** When the timer is to fire. */
  private due: number | undefined;
  private connected = false;
  private looksSoon = false;

  constructor(
    private readonly registry: TaskRegistry,
    private readonly work: WorkTime,
    private readonly clock: Clock,
    private readonly logger: Logger,
    private readonly budget: () => Budget,
    private readonly isConnected: () => boolean,
    /** Called with a task whose ceiling is nearly used: once for each ceiling, of a batch with one of its tasks. */
    private readonly warn: (entry: Entry) => void,
    private readonly stop: (entry: Entry, error: TaskError) => Promise<unknown>,
  ) {
    this.subscription = registry.onDidChangeSession(() => this.lookSoon());
  }

  /**
   * The connection is there and the registry up to date, or the ceilings are others.
   * @param isNews whether to warn of what is near a ceiling already: an engine that was just started did so before
   */
  connect(isNews: boolean): void {
    this.connected = true;
    this.look(isNews);
  }

  disconnect(): void {
    this.connected = false;
    this.noteSleep();
    this.rest();
  }

  /** Throws a {@link Refusal} where nothing more may begin in a batch, or no ceiling can be read. */
  requireRoom(parentSessionID: string, batchID: string): void {
    const budget = this.budget();
    requireCeilings(budget);
    const use = this.useOfBatch(budget, parentSessionID, batchID);
    if (use && isUsedUp(use)) throw batchIsFull(batchID, use);
  }

  /** Throws a {@link Refusal} where a task has no room for another turn. */
  requireRoomFor(entry: Entry): void {
    requireCeilings(this.budget());
    const use = this.useOf(entry);
    if (use && isUsedUp(use)) throw hasNoRoom(entry.record.id, use);
  }

  /** Throws a {@link Refusal} where a subagent at work would be stopped as soon as it is a task, in a batch of its own. */
  requireRoomToAdopt({ id, startedAt }: Subagent): void {
    const budget = this.budget();
    const now = this.clock.now();
    const { cost, tokens } = totals(this.registry, [id], now);
    const taken = { cost, tokens: tokenSum(tokens), minutes: (now - startedAt) / 60_000 };
    const use = mostUsedOf([mostUsed(budget, "task", () => taken), mostUsed(budget, "batch", () => taken)]);
    if (use && isUsedUp(use)) throw isOverAlready(id, use);
  }

  /** How a task ends whose turn was aborted at that time (milliseconds since 1970); undefined: no ceiling was used up. */
  reachedBy(entry: Entry, at: number): TaskError | undefined {
    const use = this.useOf(entry, at);
    return use && isUsedUp(use) ? exceeded(use) : undefined;
  }

  dispose(): void {
    this.disconnect();
    this.subscription.dispose();
  }

  /** Compares what is at work with the ceilings as they are now. */
  private look(isNews = true): void {
    this.looksSoon = false;
    if (!this.connected) return;
    this.noteSleep();
    this.rest();
    const active = this.registry.active();
    if (active.length === 0) return;
    const budget = this.budget();
    if (hasMinutes(budget)) this.lookIn(LOOK_MS);
    const batches = new Map<string, CeilingUse | undefined>();
    for (const entry of active) {
      const { parentSessionID, batchID } = entry.record;
      const key = `${parentSessionID}/${batchID}`;
      if (!batches.has(key)) batches.set(key, this.useOfBatch(budget, parentSessionID, batchID));
      this.compare(entry, mostUsedOf([this.useOfTask(budget, entry), batches.get(key)]), isNews);
    }
  }

  /** Many sessions can change in one moment. */
  private lookSoon(): void {
    if (this.looksSoon || !this.connected) return;
    this.looksSoon = true;
    void Promise.resolve().then(() => this.look());
  }

  private lookIn(delay: number): void {
    this.rest();
    this.due = this.clock.now() + delay;
    this.timer = this.clock.after(delay, () => this.look());
  }

  private rest(): void {
    this.timer?.dispose();
    this.timer = undefined;
    this.due = undefined;
  }

  /** Timers stand still while the machine sleeps, and so does what works on it. */
  private noteSleep(): void {
    const late = this.clock.now() - (this.due ?? Infinity);
    if (late > SLEPT_MS) this.work.pause(late);
  }

  private compare(entry: Entry, use: CeilingUse | undefined, isNews: boolean): void {
    const near = use && isNearlyUsed(use) ? use : undefined;
    const { ceiling: before } = entry;
    entry.ceiling = near;
    if (!isShownAlike(before, near)) this.registry.progressed(entry);
    if (!near) return;
    if (isUsedUp(near)) return this.end(entry, near);
    const { id, parentSessionID, batchID } = entry.record;
    const whose = near.scope === "task" ? id : `${parentSessionID}/${batchID}`;
    const key = `${whose} ${near.ceiling} ${near.limit}`;
    if (this.found.has(key)) return;
    this.found.add(key);
    if (isNews) this.warn(entry);
  }

  private end(entry: Entry, use: CeilingUse): void {
    if (!this.isConnected() || this.stopping.has(entry)) return;
    this.stopping.add(entry);
    this.stop(entry, exceeded(use))
      .catch((error: unknown) => {
        this.logger.warn(
          `Task ${shortID(entry.record.id)} could not be stopped at its ceiling: ${messageOf(error)}`,
        );
      })
      .finally(() => {
        this.stopping.delete(entry);
        if (this.connected && isActive(entry.record)) this.lookIn(RETRY_MS);
      });
  }

  private useOf(entry: Entry, at?: number): CeilingUse | undefined {
    const budget = this.budget();
    const { parentSessionID, batchID } = entry.record;
    return mostUsedOf([
      this.useOfTask(budget, entry, at),
      this.useOfBatch(budget, parentSessionID, batchID, at),
    ]);
  }

  private useOfTask(budget: Budget, entry: Entry, at?: number): CeilingUse | undefined {
    return mostUsed(budget, "task", () => this.taken([entry], at));
  }

  private useOfBatch(
    budget: Budget,
    parentSessionID: string,
    batchID: string,
    at?: number,
  ): CeilingUse | undefined {
    const tasks = (): readonly Entry[] => this.registry.allOfBatch(parentSessionID, batchID);
    return mostUsed(budget, "batch", () => this.taken(tasks(), at));
  }

  /** What is below the tasks costs for them; how long it worked is not added to their own time. */
  private taken(entries: readonly Entry[], at = this.clock.now()): Taken {
    const ids = entries.map(({ record }) => record.id);
    const { cost, tokens } = totals(this.registry, ids, at);
    const worked = entries.reduce((sum, entry) => sum + this.work.of(entry, at), 0);
    return { cost, tokens: tokenSum(tokens), minutes: worked / 60_000 };
  }
}

function isShownAlike(before: CeilingUse | undefined, after: CeilingUse | undefined): boolean {
  if (!before || !after) return before === after;
  return (
    before.ceiling === after.ceiling && before.limit === after.limit && percentOf(before) === percentOf(after)
  );
}
