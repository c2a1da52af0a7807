import type { Disposable } from "../../src/engine/event.ts";
import type { Clock } from "../../src/engine/ports.ts";

interface Timer {
  due: number;
  readonly callback: () => void;
}

/** Time that passes only on demand. */
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

  /** The number of pending timers. */
  get pending(): number {
    return this.timers.size;
  }

  /** Lets `ms` milliseconds pass: runs due timers in order, and lets all consequences of each settle. */
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

  /** Simulates sleep of the machine: time passes, but timers stand still. */
  sleep(ms: number): void {
    this.time += ms;
    for (const timer of this.timers) timer.due += ms;
  }

  /** The next due timer; among those due at the same time, the one set first. */
  private next(end: number): Timer | undefined {
    let first: Timer | undefined;
    for (const timer of this.timers) if (timer.due <= end && (!first || timer.due < first.due)) first = timer;
    return first;
  }
}

/** Resolves when all promises that don't depend on time or I/O have settled. */
export function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
