import type { Disposable } from "../engine/event.ts";
import type { Clock } from "../engine/ports.ts";
import type { DaemonRequests, WindowNotifications } from "./contract.ts";
import { Wire } from "./wire.ts";

const PING_EVERY_MS = 2_500;
const ANSWER_WITHIN_MS = 7_500;

/** The connection of a window to the daemon. */
export class DaemonLink extends Wire<DaemonRequests, WindowNotifications> {
  /** The daemon's process, as long as the connection is open; undefined before the greeting. */
  pid: number | undefined;

  /** Once it has greeted: tells from now on whether it answers. */
  follow(pid: number, clock: Clock, onAnswer: (isSilent: boolean) => void): void {
    this.pid = pid;
    const pulse = new Pulse(clock, () => this.request("ping", []), onAnswer);
    void this.closed.then(() => pulse.dispose());
  }
}

/** Finds out whether the other end still answers, also while nothing else is asked of it. */
class Pulse implements Disposable {
  /** For the next ping, or for the answer to the present one. */
  private timer: Disposable | undefined;
  private isDisposed = false;

  constructor(
    private readonly clock: Clock,
    private readonly ping: () => Promise<void>,
    /** True: it has not answered for ten seconds. False: it answers. */
    private readonly onAnswer: (isSilent: boolean) => void,
  ) {
    this.stopTimer();
  }

  dispose(): void {
    this.isDisposed = true;
    this.timer?.dispose();
  }

  private stopTimer(): void {
    this.timer = this.clock.after(PING_EVERY_MS, () => void this.beat());
  }

  private async beat(): Promise<void> {
    this.timer = this.clock.after(ANSWER_WITHIN_MS, () => this.onAnswer(true));
    try {
      await this.ping();
    } catch {
      // The connection closed, which its owner sees for itself.
      return this.dispose();
    }
    if (this.isDisposed) return;
    this.timer.dispose();
    this.onAnswer(false);
    this.stopTimer();
  }
}
