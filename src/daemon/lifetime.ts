import type { Disposable } from "../engine/event.ts";
import type { Clock } from "../engine/ports.ts";

/** Ends the daemon once nobody needs it: no window is connected, and no folder is kept. */
export class Lifetime implements Disposable {
  private counts = { windows: 0, folders: 0 };
  /** When the last window left, or the daemon began. */
  private leftAt: number;
  private timer: Disposable | undefined;

  constructor(
    private readonly clock: Clock,
    /** How long the daemon outlives the last window, in milliseconds. */
    private readonly graceMs: number,
    private readonly end: () => void,
  ) {
    this.leftAt = clock.now();
    this.follow({});
  }

  /** How many there are now. */
  follow(counts: { readonly windows?: number; readonly folders?: number }): void {
    const hadWindows = this.counts.windows > 0;
    this.counts = { ...this.counts, ...counts };
    this.timer?.dispose();
    this.timer = undefined;
    const { windows, folders } = this.counts;
    if (hadWindows && windows === 0) this.leftAt = this.clock.now();
    if (windows > 0 || folders > 0) return;
    const remaining = this.leftAt + this.graceMs - this.clock.now();
    // More remains only where the machine's clock was set back.
    this.timer = this.clock.after(Math.min(Math.max(0, remaining), this.graceMs), () => this.end());
  }

  dispose(): void {
    this.timer?.dispose();
  }
}
