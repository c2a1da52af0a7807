import type { Disposable } from "../engine/event.ts";
import type { Clock } from "../engine/ports.ts";

/** Tells when something that should show signs of life has not for a while. Holds a timer only while watched. */
export class SilenceTimer implements Disposable {
  private lastSign = 0;
  private running = false;
  private watched = false;
  private timer: Disposable | undefined;

  constructor(
    private readonly clock: Clock,
    private readonly limitMs: number,
    private readonly onSilence: () => void,
  ) {}

  /** From now on signs of life are due. */
  start(): void {
    this.running = true;
    this.touch();
    this.arm();
  }

  touch(): void {
    this.lastSign = this.clock.now();
  }

  stop(): void {
    this.running = false;
    this.disarm();
  }

  setWatched(watched: boolean): void {
    this.watched = watched;
    if (watched) this.arm();
    else this.disarm();
  }

  dispose(): void {
    this.stop();
    this.watched = false;
  }

  private arm(): void {
    this.disarm();
    if (!this.running || !this.watched) return;
    const left = this.lastSign + this.limitMs - this.clock.now();
    if (left <= 0) this.onSilence();
    // More is left only where the machine's clock was set back.
    else this.timer = this.clock.after(Math.min(left, this.limitMs), () => this.arm());
  }

  private disarm(): void {
    this.timer?.dispose();
    this.timer = undefined;
  }
}
