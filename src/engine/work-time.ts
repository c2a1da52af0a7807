import { Emitter, type Disposable, type Event } from "./event.ts";
import { timeOf } from "./ids.ts";
import type { Clock, Logger } from "./ports.ts";
import type { Entry, TaskRegistry } from "./registry.ts";
import type { Requests } from "./requests.ts";
import { isActive, isQueued } from "./task.ts";

/** The waiting of one turn, for a person or for a machine that slept, in milliseconds. */
interface Waiting {
  /** When the turn began. */
  readonly turn: number;
  readonly total: number;
  /** When the wait began that still goes on. */
  readonly since: number | undefined;
}

/**
 * How long tasks were at work: the time of their turns, without that in which something of them waited for a person or
 * the machine slept.
 * Of waits that were over before this process followed the task it knows what the record says.
 */
export class WorkTime implements Disposable {
  private readonly waits = new WeakMap<Entry, Waiting>();
  private readonly subscription: Disposable;
  private readonly waitEnds: Emitter<{ readonly entry: Entry; readonly waited: number }>;
  /** A wait is over; with all that the present turn waited, in milliseconds. */
  readonly onDidWait: Event<{ readonly entry: Entry; readonly waited: number }>;

  constructor(
    private readonly registry: TaskRegistry,
    private readonly requests: Requests,
    private readonly clock: Clock,
    logger: Logger,
  ) {
    this.waitEnds = new Emitter((error) => logger.error("A listener to waiting tasks failed.", error));
    this.onDidWait = this.waitEnds.event;
    this.subscription = requests.onDidChange(() => this.noteWaits());
  }

  /** Milliseconds of work in all turns until `now`. */
  of(entry: Entry, now = this.clock.now()): number {
    const { record } = entry;
    const { startedAt, endedAt = startedAt, worked } = record;
    if (!isActive(record)) return worked ?? Math.max(0, endedAt - startedAt);
    if (isQueued(record)) return worked ?? 0;
    const { total, since = now } = this.waiting(entry);
    return (worked ?? 0) + Math.max(0, now - startedAt - total - Math.max(0, now - since));
  }

  /** For so many milliseconds until now nothing could work. */
  pause(duration: number): void {
    const now = this.clock.now();
    for (const entry of this.registry.active()) {
      const { turn, total, since } = this.waiting(entry);
      // A wait for a person goes on, and has this time in it.
      if (isQueued(entry.record) || since !== undefined) continue;
      this.noteWaited(entry, turn, total + Math.min(duration, now - turn));
    }
  }

  dispose(): void {
    this.subscription.dispose();
    this.waitEnds.dispose();
  }

  private noteWaits(): void {
    const now = this.clock.now();
    const begun = new Map<string, number>();
    for (const { id, sessionID } of this.requests.ofWorking())
      for (const above of [sessionID, ...this.registry.above(sessionID)])
        begun.set(above, Math.min(begun.get(above) ?? now, timeOf(id, now)));
    for (const entry of this.registry.active()) {
      const { turn, total, since } = this.waiting(entry);
      const began = begun.get(entry.record.id);
      if (began !== undefined && since === undefined)
        // A time before the turn was read from an ID that holds none.
        this.waits.set(entry, { turn, total, since: began < turn ? now : began });
      else if (began === undefined && since !== undefined) this.noteWaited(entry, turn, total + now - since);
    }
  }

  private noteWaited(entry: Entry, turn: number, waited: number): void {
    this.waits.set(entry, { turn, total: waited, since: undefined });
    this.waitEnds.fire({ entry, waited });
  }

  private waiting(entry: Entry): Waiting {
    const { startedAt: turn, waited = 0 } = entry.record;
    const known = this.waits.get(entry);
    return known?.turn === turn ? known : { turn, total: waited, since: undefined };
  }
}
