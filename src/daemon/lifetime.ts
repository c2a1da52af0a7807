import type { Disposable } from "../engine/event.ts";
import type { Clock } from "../engine/ports.ts";

/**
 * Ends the daemon once nobody needs it: no window is connected, and no folder is open. The first grace period begins when
 * it is first told of them.
 */
export class Lifetime implements Disposable {
  private counts = { windows: 0, folders: 0 };
  /** When the last window disconnected, or the first grace period began. */
  private leftAt: number | undefined;
  private timer: Disposable | undefined;

  constructor(
    private readonly clock: Clock,
    /** How long the daemon outlives the last window, in milliseconds. */
    private readonly graceMs: number,
    private readonly end: () => void,
  ) {}

  /** Updates how many windows and folders there are. */
  follow(counts: { readonly windows?: number; readonly folders?: number }): void {
    const hadWindows = this.counts.windows > 0;
    this.counts = { ...this.counts, ...counts };
    this.timer?.dispose();
    this.timer = undefined;
    const { windows, folders } = this.counts;
    if (this.leftAt === undefined || (hadWindows && windows === 0)) this.leftAt = this.clock.now();
    if (windows > 0 || folders > 0) return;
    const remaining = this.leftAt + this.graceMs - this.clock.now();
    // More than the grace period can remain only if the system clock was set back.
    this.timer = this.clock.after(Math.min(Math.max(0, remaining), this.graceMs), () => this.end());
  }

  dispose(): void {
    this.timer?.dispose();
  }
}
