/** Admits a limited number of callers at a time. The others wait for their turn, in the order of their arrival. */
export class Semaphore {
  private inside = 0;
  private readonly waiting = new Set<() => void>();

  constructor(private readonly most: number) {}

  /** Whether the next caller has to wait. */
  get isReached(): boolean {
    return this.inside >= this.most;
  }

  /** Resolves, when it is the caller's turn, to a function that frees the place. Rejects if aborted while waiting. */
  async enter(signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    if (this.isReached) await this.turn(signal);
    else this.inside++;
    return () => {
      const [next] = this.waiting;
      // The place goes directly to the next in line, so that a caller arriving at this moment cannot take it.
      if (next) next();
      else this.inside--;
    };
  }

  private turn(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const begin = (): void => {
        stopWaiting();
        resolve();
      };
      const giveUp = (): void => {
        stopWaiting();
        reject(signal.reason as Error);
      };
      const stopWaiting = (): void => {
        this.waiting.delete(begin);
        signal.removeEventListener("abort", giveUp);
      };
      this.waiting.add(begin);
      signal.addEventListener("abort", giveUp);
    });
  }
}
