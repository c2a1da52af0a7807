import type { Clock } from "../../../src/engine/ports.ts";

/** Time that passes only on demand. */
export class FakeClock implements Clock {
  private time = 1_000_000;
  private readonly timers = new Set<{ at: number; readonly callback: () => void }>();

  now(): number {
    return this.time;
  }

  /** Sets the clock by this much, which no timer notices. */
  set(ms: number): void {
    this.time += ms;
    for (const timer of this.timers) timer.at += ms;
  }

  after(ms: number, callback: () => void) {
    const timer = { at: this.time + ms, callback };
    this.timers.add(timer);
    return { dispose: () => void this.timers.delete(timer) };
  }

  get pending(): number {
    return this.timers.size;
  }

  advance(ms: number): void {
    const end = this.time + ms;
    for (;;) {
      const next = [...this.timers].filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
      if (!next) break;
      this.timers.delete(next);
      this.time = Math.max(this.time, next.at);
      next.callback();
    }
    this.time = end;
  }
}
