import type { Disposable } from "../engine/event.ts";
import type { Clock } from "../engine/ports.ts";

const PING_AFTER_MS = 2_500;
const ANSWER_WITHIN_MS = 7_500;

/** Finds out whether the other end still answers, as long as something waits for its answer. */
export class Pulse implements Disposable {
  private waiting = 0;
  private next: Disposable | undefined;
  /** Set while a ping is out. */
  private limit: Disposable | undefined;
  private isDisposed = false;

  constructor(
    private readonly clock: Clock,
    private readonly ping: () => Promise<void>,
    /** True: it has not answered for ten seconds. False: it answers. */
    private readonly onAnswer: (isSilent: boolean) => void,
  ) {}

  async during<T>(call: () => Promise<T>): Promise<T> {
    this.waiting++;
    this.schedule();
    try {
      return await call();
    } finally {
      if (--this.waiting === 0) this.rest();
    }
  }

  dispose(): void {
    this.isDisposed = true;
    this.rest();
    this.limit?.dispose();
  }

  private schedule(): void {
    if (this.next || this.limit || this.waiting === 0 || this.isDisposed) return;
    this.next = this.clock.after(PING_AFTER_MS, () => {
      this.next = undefined;
      void this.beat();
    });
  }

  private rest(): void {
    this.next?.dispose();
    this.next = undefined;
  }

  private async beat(): Promise<void> {
    this.limit = this.clock.after(ANSWER_WITHIN_MS, () => this.onAnswer(true));
    try {
      await this.ping();
    } catch {
      // The connection closed, which its owner sees for itself.
      return this.dispose();
    }
    this.limit.dispose();
    this.limit = undefined;
    if (this.isDisposed) return;
    this.onAnswer(false);
    this.schedule();
  }
}
