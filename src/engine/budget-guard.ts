import type { BudgetUse } from "./budget-use.ts";
import { exceeded, exceededAbove, hasMinutes, isNearlyUsed, isUsedUp, mostUsedOf } from "./budget.ts";
import { percentOf, type LimitUse } from "./limit.ts";
import type { Ending } from "./ending.ts";
import { messageOf } from "./errors.ts";
import { Emitter, type Disposable, type Event, logged } from "./event.ts";
import type { EnginePorts } from "./ports.ts";
import type { Entry, TaskRegistry } from "./registry.ts";
import type { RunningTurn } from "./running-turn.ts";
import { isActive, isStopped, shortID, type Task, type TaskError } from "./task.ts";
import type { WorkTime } from "./work-time.ts";

/** How often limits of time are checked, in milliseconds. */
const LOOK_MS = 1_000;
/** The delay after a stop that failed, in milliseconds. */
const RETRY_MS = 2_000;
/** A check that is this late, in milliseconds, shows that the machine slept. */
const SLEPT_MS = 30_000;

/** Keeps tasks and batches within their limits: warns when a limit is nearly used, and stops tasks that used it up. */
export class BudgetGuard implements Disposable {
  /** The limits that a task or batch has already been found to be near. */
  private readonly found = new Set<string>();
  /** Tasks below which something still runs, though they were stopped. */
  private readonly unstopped = new Set<Entry>();
  private readonly disposables: readonly Disposable[];
  private readonly warnings: Emitter<Task>;
  /** A task nears a limit (`nearLimit`). Fires once per limit; for a batch, with one of its tasks. */
  readonly onDidWarn: Event<Task>;
  private timer: Disposable | undefined;
  /** When the timer is due. */
  private due: number | undefined;
  private connected = false;
  private looksSoon = false;

  constructor(
    private readonly ports: Pick<EnginePorts, "clock" | "logger" | "settings">,
    private readonly registry: TaskRegistry,
    private readonly work: WorkTime,
    private readonly use: BudgetUse,
    private readonly ending: Ending,
  ) {
    this.warnings = new Emitter(logged(ports.logger, "warnings"));
    this.onDidWarn = this.warnings.event;
    this.disposables = [
      registry.onDidChangeSession(() => this.lookSoon()),
      work.onDidWait(({ entry, waited }) => void this.noteWaited(entry, waited)),
    ];
  }

  /**
   * Starts checking. Called once the registry is up to date, and whenever the limits change.
   * @param isNews whether to warn about limits that are already near: an engine that ran before has warned about them
   */
  connect(isNews: boolean): void {
    this.connected = true;
    for (const entry of [...this.unstopped]) this.stopBelow(entry);
    for (const entry of this.registry.active()) {
      const { record, turn } = entry;
      const total = turn?.kind === "working" ? turn.waiting.total : 0;
      // A wait ended, or the machine slept, while nothing could be stored.
      if (total > (record.waited ?? 0)) void this.noteWaited(entry, total);
    }
    this.look(isNews);
  }

  disconnect(): void {
    this.connected = false;
    this.noteSleep();
    this.stopTimer();
  }

  dispose(): void {
    this.disconnect();
    for (const subscription of this.disposables) subscription.dispose();
    this.warnings.dispose();
  }

  /** Compares running tasks with the current limits. */
  private look(isNews = true): void {
    this.looksSoon = false;
    if (!this.connected) return;
    this.noteSleep();
    this.stopTimer();
    const active = this.registry.active();
    if (active.length === 0) return;
    const { budget } = this.ports.settings();
    if (hasMinutes(budget)) this.lookIn(LOOK_MS);
    const batches = new Map<string, LimitUse | undefined>();
    const parents = new Map<string, LimitUse | undefined>();
    for (const entry of active) {
      const { parentSessionID, batchID } = entry.record;
      const key = `${parentSessionID}/${batchID}`;
      if (!batches.has(key)) batches.set(key, this.use.ofBatch(budget, parentSessionID, batchID));
      this.compare(entry, mostUsedOf([this.use.ofTask(budget, entry), batches.get(key)]), isNews);
      if (!parents.has(parentSessionID))
        parents.set(parentSessionID, this.use.usedUpAbove(budget, parentSessionID));
      const above = parents.get(parentSessionID);
      if (above && entry.turn) this.end(entry, entry.turn, exceededAbove(above));
    }
  }

  /** Combines checks, as many sessions can change at the same moment. */
  private lookSoon(): void {
    if (this.looksSoon || !this.connected) return;
    this.looksSoon = true;
    void Promise.resolve().then(() => this.look());
  }

  private lookIn(delay: number): void {
    this.stopTimer();
    const { clock } = this.ports;
    this.due = clock.now() + delay;
    this.timer = clock.after(delay, () => this.look());
  }

  private stopTimer(): void {
    this.timer?.dispose();
    this.timer = undefined;
    this.due = undefined;
  }

  /** Timers stop while the machine sleeps, and so do the tasks on it. */
  private noteSleep(): void {
    const late = this.ports.clock.now() - (this.due ?? Infinity);
    if (late > SLEPT_MS) this.work.pause(late);
  }

  private compare(entry: Entry, use: LimitUse | undefined, isNews: boolean): void {
    const near = use && isNearlyUsed(use) ? use : undefined;
    const { turn } = entry;
    if (!turn) return;
    const { nearLimit: before } = turn;
    turn.nearLimit = near;
    if (!isShownAlike(before, near)) this.registry.progressed(entry);
    if (!near) return;
    if (isUsedUp(near)) return this.end(entry, turn, exceeded(near));
    const { id, parentSessionID, batchID } = entry.record;
    const whose = near.scope === "task" ? id : `${parentSessionID}/${batchID}`;
    const key = `${whose} ${near.limit} ${near.amount}`;
    if (this.found.has(key)) return;
    this.found.add(key);
    if (isNews) this.warnings.fire(this.registry.snapshot(entry));
  }

  private end(entry: Entry, turn: RunningTurn, error: TaskError): void {
    if (!this.connected || turn.isBeingStopped) return;
    turn.isBeingStopped = true;
    this.ending
      .stopAtLimit(entry, error)
      .catch((error: unknown) => {
        this.ports.logger.warn(
          `Couldn't stop task ${shortID(entry.record.id)} at its limit: ${messageOf(error)}`,
        );
        if (!isActive(entry.record)) this.stopBelowSoon(entry);
      })
      .finally(() => {
        turn.isBeingStopped = false;
        if (this.connected && isActive(entry.record)) this.lookIn(RETRY_MS);
      });
  }

  /** Tries again to stop what runs below a task that was stopped. */
  private stopBelow(entry: Entry): void {
    this.unstopped.delete(entry);
    if (!isStopped(entry.record)) return;
    const { id } = entry.record;
    this.ending.stopDescendants(id).catch((error: unknown) => {
      this.ports.logger.warn(`Couldn't stop what runs below task ${shortID(id)}: ${messageOf(error)}`);
      this.stopBelowSoon(entry);
    });
  }

  /** Does so once there is a connection again. */
  private stopBelowSoon(entry: Entry): void {
    this.unstopped.add(entry);
    this.ports.clock.after(RETRY_MS, () => {
      if (this.connected && this.unstopped.has(entry)) this.stopBelow(entry);
    });
  }

  /** Stores the waiting time, so that an engine started later does not count it as work: limits can be set meanwhile. */
  private async noteWaited(entry: Entry, waited: number): Promise<void> {
    if (!this.connected) return;
    const { id, startedAt } = entry.record;
    try {
      await entry.serial.run(async () => {
        const { record } = entry;
        if (isActive(record) && record.startedAt === startedAt)
          await this.registry.storeThenShow(entry, { ...record, waited });
      });
    } catch (error) {
      this.ports.logger.warn(`Couldn't store how long task ${shortID(id)} waited: ${messageOf(error)}`);
    }
  }
}

function isShownAlike(before: LimitUse | undefined, after: LimitUse | undefined): boolean {
  if (!before || !after) return before === after;
  return (
    before.limit === after.limit && before.amount === after.amount && percentOf(before) === percentOf(after)
  );
}
