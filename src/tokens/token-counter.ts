import { Refusal } from "../engine/errors.ts";
import { unlessCancelled, type Disposable } from "../engine/event.ts";
import type { Clock } from "../engine/ports.ts";
import { sentence } from "../engine/sentence.ts";
import type { TokenCounter } from "../engine/token-counter.ts";
import { batchesOf } from "./chunks.ts";
import { TokenizerThread } from "./tokenizer-thread.ts";

/** After how many milliseconds an idle thread is ended, as it uses about 100 MB. */
const DEFAULT_IDLE_MS = 60_000;

export interface TokenCounterOptions {
  /** The absolute path of the bundle of `worker.ts`. */
  readonly script: string;
  readonly clock: Clock;
  readonly idleMs?: number | undefined;
}

/**
 * Counts in a separate thread, which is started when needed and ended when idle. The caller's thread is never blocked
 * for long, whatever the texts.
 */
export class ThreadTokenCounter implements TokenCounter, Disposable {
  private thread: TokenizerThread | undefined;
  private openCalls = 0;
  private idleTimer: Disposable | undefined;
  private isDisposed = false;

  constructor(private readonly options: TokenCounterOptions) {}

  /** Rejects with an `Error` if the tokenizer cannot be started or crashes. The next call starts a new one. */
  async count(texts: readonly string[], signal?: AbortSignal): Promise<readonly number[]> {
    this.begin();
    const counting = this.countInBatches(texts, signal).finally(() => this.finish());
    return unlessCancelled(counting, signal, cancelled);
  }

  /** Pending calls reject. */
  dispose(): void {
    this.isDisposed = true;
    this.endThread();
  }

  /** Counts one batch at a time, so that concurrent calls take turns and a cancelled one ends soon. */
  private async countInBatches(
    texts: readonly string[],
    signal: AbortSignal | undefined,
  ): Promise<readonly number[]> {
    const counts = texts.map(() => 0);
    for (const batch of batchesOf(texts)) {
      if (signal?.aborted) throw cancelled();
      const found = await this.runningThread().count(batch.map(({ text }) => text));
      for (const [index, { owner, extra }] of batch.entries())
        counts[owner] = (counts[owner] ?? 0) + (found[index] ?? 0) + extra;
    }
    return counts;
  }

  private runningThread(): TokenizerThread {
    if (this.isDisposed) throw new Error("Tokens are no longer counted: the extension is being shut down.");
    if (!this.thread || this.thread.hasEnded) this.thread = new TokenizerThread(this.options.script);
    return this.thread;
  }

  private begin(): void {
    this.openCalls++;
    this.idleTimer?.dispose();
    this.idleTimer = undefined;
  }

  private finish(): void {
    if (--this.openCalls > 0 || !this.thread) return;
    const { clock, idleMs = DEFAULT_IDLE_MS } = this.options;
    this.idleTimer = clock.after(idleMs, () => this.endThread());
  }

  private endThread(): void {
    this.idleTimer?.dispose();
    this.idleTimer = undefined;
    this.thread?.dispose();
    this.thread = undefined;
  }
}

function cancelled(): Refusal {
  return new Refusal("cancelled-by-caller", sentence("Token counting was cancelled."));
}
