import type { CancelSignal } from "./event.ts";

/** Counts tokens as one widely used vocabulary has them: for the models of other vendors the counts are estimates. */
export interface TokenCounter {
  /**
   * The number of tokens of each text, in order; never too few, and of ordinary text at most a percent or two too many.
   * A text of N UTF-8 bytes (see `utf8Length`) has at most N tokens, so what is short enough need not be counted.
   * Rejects at once when the caller cancels, with a `Refusal` whose code is `cancelled-by-caller`.
   */
  count(texts: readonly string[], signal?: CancelSignal): Promise<readonly number[]>;
}
