/** Lets in so many at a time; the others wait for their turn, in the order in which they came. */
export class Limit {
  private inside = 0;
  private readonly waiting = new Set<() => void>();

  constructor(private readonly most: number) {}

  /** Whether whoever comes now has to wait. */
  get isReached(): boolean {
    return this.inside >= this.most;
  }

  /** Resolves, when it is its turn, to what leaves again. Rejects if aborted while it waits. */
  async enter(signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    if (this.isReached) await this.turn(signal);
    else this.inside++;
    return () => {
      const [next] = this.waiting;
      // Who leaves hands the place on, so that nobody who comes in this moment takes it.
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
