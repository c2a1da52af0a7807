import o200k from "js-tiktoken/ranks/o200k_base";
import type { Ranks } from "./byte-pairs.ts";

export interface Vocabulary {
  /** Splits a text before its bytes are merged: no token crosses the end of a match. */
  readonly pattern: RegExp;
  readonly ranks: Ranks;
}

/** Loads the vocabulary o200k_base. Takes 200 ms and 60 MB. */
export function loadVocabulary(): Vocabulary {
  const ranks = new Map<string, number>();
  // Each line contains a name, the rank of its first token, and its tokens in base64 by ascending rank.
  for (const line of o200k.bpe_ranks.split("\n")) {
    const [, first, ...tokens] = line.split(" ");
    for (const [index, token] of tokens.entries())
      ranks.set(Buffer.from(token, "base64").toString("latin1"), Number(first) + index);
  }
  return { pattern: new RegExp(o200k.pat_str, "gu"), ranks };
}
