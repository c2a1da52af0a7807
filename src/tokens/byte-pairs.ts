/**
 * The rank of each token: the merge that produces the token with the lowest rank comes first. Bytes are represented as
 * strings with one character per byte.
 */
export type Ranks = ReadonlyMap<string, number>;

/**
 * Merging takes quadratic time, so long pieces are merged window by window. Bytes after a window can affect how its
 * last bytes are merged, so those are left to the next window. They are more than the longest token (128 bytes).
 */
const WINDOW_BYTES = 512;
const LEFT_TO_NEXT_BYTES = 192;

/** The number of tokens of one piece of text according to byte pair encoding. Takes linear time. */
export function countPieceTokens(bytes: string, ranks: Ranks): number {
  if (ranks.has(bytes)) return 1;
  let tokens = 0;
  let rest = bytes;
  while (rest.length > WINDOW_BYTES) {
    const bounds = merge(rest.slice(0, WINDOW_BYTES), ranks);
    const kept = bounds.findLastIndex((bound) => bound <= WINDOW_BYTES - LEFT_TO_NEXT_BYTES);
    tokens += kept;
    rest = rest.slice(bounds[kept]);
  }
  return tokens + merge(rest, ranks).length - 1;
}

/** Marks pairs that are no token. Not Infinity, because it would turn the arrays into slower arrays of doubles. */
const NO_RANK = 2 ** 30 - 1;

/** The offsets at which the tokens begin, followed by the end of the last one. */
function merge(bytes: string, ranks: Ranks): readonly number[] {
  const bounds: number[] = [];
  const pairs: number[] = [];
  /** The rank of the token that would result from merging the token at this place with the next one. */
  const rankAt = (place: number): number =>
    place + 2 < bounds.length
      ? (ranks.get(bytes.slice(bounds[place], bounds[place + 2])) ?? NO_RANK)
      : NO_RANK;
  // Arrays filled by push have no holes, which makes the scan below twice as fast as with Array.from.
  for (let index = 0; index <= bytes.length; index++) bounds.push(index);
  for (let place = 0; place <= bytes.length; place++) pairs.push(rankAt(place));
  for (;;) {
    const place = indexOfLowest(pairs);
    if (pairs[place] === NO_RANK) return bounds;
    bounds.splice(place + 1, 1);
    pairs.splice(place + 1, 1);
    pairs[place] = rankAt(place);
    if (place > 0) pairs[place - 1] = rankAt(place - 1);
  }
}

/** The index of the lowest rank. Of equal ranks the first, because the leftmost pair is merged first. */
function indexOfLowest(ranks: readonly number[]): number {
  let lowest = NO_RANK;
  let found = 0;
  for (let index = 0; index < ranks.length; index++) {
    const rank = ranks[index] ?? NO_RANK;
    if (rank >= lowest) continue;
    lowest = rank;
    found = index;
  }
  return found;
}
