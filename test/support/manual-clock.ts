import type { Disposable } from "../../src/engine/event.ts";
import type { Clock } from "../../src/engine/ports.ts";

interface Timer {
  due: number;
  readonly callback: () => void;
}

/** Time that passes only when told to. */
export class ManualClock implements Clock {
  private readonly timers = new Set<Timer>();

  constructor(private time = 1_700_000_000_000) {}

  now(): number {
    return this.time;
  }

  after(ms: number, callback: () => void): Disposable {
    const timer = { due: this.time + Math.max(0, ms), callback };
    this.timers.add(timer);
    return { dispose: () => void this.timers.delete(timer) };
  }

  /** How many timers wait. */
  get pending(): number {
    return this.timers.size;
  }

  /** Lets `ms` milliseconds pass: runs what falls due in its order, and lets all that follows from each come to rest. */
  async advance(ms: number): Promise<void> {
    const end = this.time + ms;
    await settled();
    for (let timer = this.next(end); timer; timer = this.next(end)) {
      this.timers.delete(timer);
      this.time = timer.due;
      timer.callback();
      await settled();
    }
    this.time = end;
  }

  /** Time passes while the machine sleeps: timers stand still. */
  sleep(ms: number): void {
    this.time += ms;
    for (const timer of this.timers) timer.due += ms;
  }

  /** Of timers due at the same time the one that was set first. */
  private next(end: number): Timer | undefined {
    let first: Timer | undefined;
    for (const timer of this.timers) if (timer.due <= end && (!first || timer.due < first.due)) first = timer;
    return first;
  }
}

/** Resolves once every promise that could settle without time, input or output has. */
export function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
