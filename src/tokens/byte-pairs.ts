/**
 * The rank of each token: of two merges the one that makes the token of the lower rank comes first. Bytes are written
 * as strings here, one character each.
 */
export type Ranks = ReadonlyMap<string, number>;

/**
 * The time that merging takes grows with the square of the length, so long pieces are merged window by window. What
 * follows a window can change how its last bytes are merged; those are left to the next window. They are more than the
 * longest token has (128).
 */
const WINDOW_BYTES = 512;
const LEFT_TO_NEXT_BYTES = 192;

/** The number of tokens of one piece of a text, as byte pair encoding makes them, in linear time. */
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

/** The rank of what is no token: more than any. Infinity would make the arrays hold floats, which are slower to scan. */
const NO_RANK = 2 ** 30 - 1;

/** Where the tokens begin, and, as the last one, where they end. */
function merge(bytes: string, ranks: Ranks): readonly number[] {
  const bounds: number[] = [];
  const pairs: number[] = [];
  /** The rank of what the token at this place would be together with the next one. */
  const rankAt = (place: number): number =>
    place + 2 < bounds.length
      ? (ranks.get(bytes.slice(bounds[place], bounds[place + 2])) ?? NO_RANK)
      : NO_RANK;
  // Arrays that grow by push have no holes, which makes the scan below twice as fast as with those of Array.from.
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

/** The first of the lowest ranks, as of equal pairs the leftmost is merged first. */
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
