interface Read {
  readonly answer: Promise<unknown>;
  hasBegun: boolean;
}

/**
 * Combines equal reads that are requested at the same time. A read in progress is waited for instead of joined, because
 * its answer may be older than the request. So every answer is as fresh as if it had been read for one caller alone.
 */
export class SharedReads {
  private readonly latest = new Map<string, Read>();

  /** @param patienceMs how long a read waits for the one before it, whose answer may never come */
  constructor(private readonly patienceMs = 2_000) {}

  /** @param key what is read. With the same key, `read` must do the same. */
  run<T>(key: string, read: () => Promise<T>): Promise<T> {
    const latest = this.latest.get(key);
    if (latest && !latest.hasBegun) return latest.answer as Promise<T>;
    const answer = this.ended(latest?.answer).then(() => {
      mine.hasBegun = true;
      return read();
    });
    const mine: Read = { answer, hasBegun: false };
    this.latest.set(key, mine);
    const leave = () => {
      if (this.latest.get(key) === mine) this.latest.delete(key);
    };
    answer.then(leave, leave);
    return answer;
  }

  /** Resolves when this read has ended, however it did, or has taken too long. */
  private async ended(answer: Promise<unknown> | undefined): Promise<void> {
    if (!answer) return;
    let timer: NodeJS.Timeout | undefined;
    const tooLong = new Promise((resolve) => (timer = setTimeout(resolve, this.patienceMs)));
    await Promise.race([answer.catch(() => undefined), tooLong]);
    clearTimeout(timer);
  }
}
