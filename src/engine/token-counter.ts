/** Counts tokens with one widely used vocabulary. For models of other vendors the counts are estimates. */
export interface TokenCounter {
  /**
   * The number of tokens of each text, in order; never too low, and for ordinary text at most 1 or 2% too high. A text
   * of N UTF-8 bytes (see `utf8Length`) has at most N tokens, so texts that are short enough need no counting. Rejects
   * immediately when the caller cancels, with a `Refusal` with the code `cancelled-by-caller`.
   */
  count(texts: readonly string[], signal?: AbortSignal): Promise<readonly number[]>;
}
