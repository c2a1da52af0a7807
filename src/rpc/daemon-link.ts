import type { Disposable } from "../engine/event.ts";
import type { Clock } from "../engine/ports.ts";
import type { DaemonRequests, WindowNotifications } from "./contract.ts";
import { Wire } from "./wire.ts";

const PING_EVERY_MS = 2_500;
const ANSWER_WITHIN_MS = 7_500;

/** A window's connection to the daemon. */
export class DaemonLink extends Wire<DaemonRequests, WindowNotifications> {
  /** The ID of the daemon's process. Undefined before the greeting. */
  pid: number | undefined;

  /** Monitors whether the daemon responds. Called after the greeting. */
  follow(pid: number, clock: Clock, onAnswer: (isSilent: boolean) => void): void {
    this.pid = pid;
    const pulse = new Pulse(clock, () => this.request("ping", []), onAnswer);
    void this.closed.then(() => pulse.dispose());
  }
}

/** Monitors whether the other end responds, even while there are no other requests. */
class Pulse implements Disposable {
  /** The timer for the next ping, or for the answer to the current one. */
  private timer: Disposable | undefined;
  private isDisposed = false;

  constructor(
    private readonly clock: Clock,
    private readonly ping: () => Promise<void>,
    /** Called with true if there was no answer for ten seconds, with false at each answer. */
    private readonly onAnswer: (isSilent: boolean) => void,
  ) {
    this.waitForNext();
  }

  dispose(): void {
    this.isDisposed = true;
    this.timer?.dispose();
  }

  private waitForNext(): void {
    this.timer = this.clock.after(PING_EVERY_MS, () => void this.beat());
  }

  private async beat(): Promise<void> {
    this.timer = this.clock.after(ANSWER_WITHIN_MS, () => this.onAnswer(true));
    try {
      await this.ping();
    } catch {
      // The connection closed, which its owner notices too.
      return this.dispose();
    }
    if (this.isDisposed) return;
    this.timer.dispose();
    this.onAnswer(false);
    this.waitForNext();
  }
}
