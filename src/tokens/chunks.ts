/** A part of a text that is counted on its own. */
export interface Chunk {
  /** The index of the text that it is of. */
  readonly owner: number;
  readonly text: string;
  /** Tokens to add to those of the text, because it ends in the middle of what may be one token. */
  readonly extra: number;
}

/** In UTF-16 units, as all lengths here. */
const CHUNK_LENGTH = 64 * 1024;
/** How far back from the end of a chunk a better place to cut is looked for. */
const SEARCHED_LENGTH = 1024;
const BATCH_LENGTH = 2 * CHUNK_LENGTH;
/** What a chunk costs besides its text, so that a batch of short texts is bounded too. */
const CHUNK_OVERHEAD = 64;
/** Where a run is cut anywhere, the sum of its halves was up to three tokens below the count of the whole. */
const EXTRA_AT_CUT = 4;

/** Up to and with the last place that no token crosses: behind a word or a number, and before what cannot continue it. */
const TO_LAST_BOUNDARY = /^[^]*(?:\p{L}(?=[^\p{L}\p{M}\p{Cs}'])|\p{N}(?=[^\p{N}\p{Cs}]))/u;

/** The texts in batches of chunks, made as they are asked for: each is short work, for who sends and for who counts. */
export function* batchesOf(texts: readonly string[]): Generator<readonly Chunk[]> {
  let batch: Chunk[] = [];
  let room = BATCH_LENGTH;
  for (const chunk of chunksOf(texts)) {
    batch.push(chunk);
    room -= chunk.text.length + CHUNK_OVERHEAD;
    if (room > 0) continue;
    yield batch;
    batch = [];
    room = BATCH_LENGTH;
  }
  if (batch.length > 0) yield batch;
}

function* chunksOf(texts: readonly string[]): Generator<Chunk> {
  for (const [owner, text] of texts.entries())
    for (let start = 0; start < text.length;) {
      const { end, extra } = cut(text, start);
      yield { owner, text: text.slice(start, end), extra };
      start = end;
    }
}

function cut(text: string, start: number): { end: number; extra: number } {
  const limit = start + CHUNK_LENGTH;
  if (limit >= text.length) return { end: text.length, extra: 0 };
  const searchStart = limit - SEARCHED_LENGTH;
  const searched = TO_LAST_BOUNDARY.exec(text.slice(searchStart, limit + 1));
  if (searched) return { end: searchStart + searched[0].length, extra: 0 };
  const isInPair = (text.codePointAt(limit - 1) ?? 0) > 0xffff;
  return { end: isInPair ? limit - 1 : limit, extra: EXTRA_AT_CUT };
}
