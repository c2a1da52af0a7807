import type { TokenCounter } from "../../src/engine/token-counter.ts";

/** Counts one token per four characters, immediately. */
export const roughTokens: TokenCounter = {
  count: (texts) => Promise.resolve(texts.map((text) => Math.ceil(text.length / 4))),
};
