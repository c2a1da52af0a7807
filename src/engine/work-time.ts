import { Emitter, type Disposable, type Event, logged } from "./event.ts";
import { timeOf } from "./ids.ts";
import type { Clock, Logger } from "./ports.ts";
import type { Entry, TaskRegistry } from "./registry.ts";
import type { Requests } from "./requests.ts";
import type { WorkingTurn } from "./running-turn.ts";
import type { Subagent } from "./subagent.ts";
import { isActive } from "./task.ts";

/**
 * Measures how long tasks have worked: the time of their turns, except while they or their descendants waited for a
 * user or the machine slept. Waits that ended before this process followed the task are taken from its record.
 */
export class WorkTime implements Disposable {
  private readonly disposables: readonly Disposable[];
  private readonly waitEnds: Emitter<{ readonly entry: Entry; readonly waited: number }>;
  /** A wait has ended. `waited` is the total of the current turn, in milliseconds. */
  readonly onDidWait: Event<{ readonly entry: Entry; readonly waited: number }>;

  constructor(
    private readonly registry: TaskRegistry,
    private readonly requests: Requests,
    private readonly clock: Clock,
    logger: Logger,
  ) {
    this.waitEnds = new Emitter(logged(logger, "waiting tasks"));
    this.onDidWait = this.waitEnds.event;
    this.disposables = [
      requests.onDidChange(() => this.noteWaits()),
      registry.onDidChange(({ before, after }) => {
        // What it launched earlier may be waiting already, and so may a subagent that became a task.
        const hasBegun = after && isActive(after) && !(before && isActive(before));
        if (hasBegun && requests.ofWorking().length > 0) this.noteWaits();
      }),
    ];
  }

  /** Milliseconds of work in all turns until `now`. */
  of({ record, turn }: Entry, now = this.clock.now()): number {
    const { startedAt, endedAt = startedAt, worked } = record;
    if (!turn) return worked ?? Math.max(0, endedAt - startedAt);
    if (turn.kind === "queued") return worked ?? 0;
    const { total, since = now, last: [from, to] = [now, now] } = turn.waiting;
    // A turn may have ended during its last wait, or before it.
    const waited = total - Math.max(0, to - Math.max(from, now)) + Math.max(0, now - since);
    return (worked ?? 0) + Math.max(0, now - startedAt - waited);
  }

  /** The same for the turn of a running subagent. Waits that have ended count as work. */
  ofSubagent({ id, startedAt }: Subagent): number {
    const now = this.clock.now();
    return Math.max(0, (this.waitsBegun(now).get(id) ?? now) - startedAt);
  }

  /** Subtracts a period of this many milliseconds until now, in which the machine slept. */
  pause(duration: number): void {
    const now = this.clock.now();
    for (const entry of this.registry.active()) {
      const { turn } = entry;
      // A wait for a user continues and includes this period.
      if (turn?.kind !== "working" || turn.waiting.since !== undefined) continue;
      this.noteWaited(entry, turn, Math.min(duration, now - entry.record.startedAt));
    }
  }

  dispose(): void {
    for (const disposable of this.disposables) disposable.dispose();
    this.waitEnds.dispose();
  }

  private noteWaits(): void {
    const now = this.clock.now();
    const begun = this.waitsBegun(now);
    for (const entry of this.registry.active()) {
      const { turn } = entry;
      if (turn?.kind !== "working") continue;
      const { id, startedAt } = entry.record;
      const { total, since } = turn.waiting;
      const began = begun.get(id);
      if (began !== undefined && since === undefined)
        // A time before the turn: a descendant waited already, or its request's ID holds no valid time.
        turn.waiting = { total, since: began < startedAt ? now : began };
      else if (began === undefined && since !== undefined) this.noteWaited(entry, turn, now - since);
    }
  }

  /** When the waits began that go on, by the session that waits, itself or for one below it. */
  private waitsBegun(now: number): ReadonlyMap<string, number> {
    const begun = new Map<string, number>();
    for (const { id, sessionID } of this.requests.ofWorking())
      for (const above of [sessionID, ...this.registry.above(sessionID)])
        begun.set(above, Math.min(begun.get(above) ?? now, timeOf(id, now)));
    return begun;
  }

  private noteWaited(entry: Entry, turn: WorkingTurn, ms: number): void {
    const waited = turn.waiting.total + ms;
    const now = this.clock.now();
    turn.waiting = { total: waited, since: undefined, last: [now - ms, now] };
    this.waitEnds.fire({ entry, waited });
  }
}
