/** A part of a text that is counted separately. */
export interface Chunk {
  /** The index of the text that the chunk belongs to. */
  readonly owner: number;
  readonly text: string;
  /** Tokens to add to the count, because the chunk may end within a token. */
  readonly extra: number;
}

/** In UTF-16 units, as all lengths here. */
const CHUNK_LENGTH = 64 * 1024;
/** How far back from the end of a chunk to search for a token boundary. */
const SEARCHED_LENGTH = 1024;
const BATCH_LENGTH = 2 * CHUNK_LENGTH;
/** The cost of a chunk besides its text, which limits batches of short texts too. */
const CHUNK_OVERHEAD = 64;
/** When a run was cut at any place, the sum for the parts was up to three tokens less than the count for the whole. */
const EXTRA_AT_CUT = 4;

/** Matches up to the last place that no token crosses: after a word or number that the next character ends. */
const TO_LAST_BOUNDARY = /^[^]*(?:\p{L}(?=[^\p{L}\p{M}\p{Cs}'])|\p{N}(?=[^\p{N}\p{Cs}]))/u;

/** Splits texts lazily into batches of chunks, each of which is quick to send and to count. */
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
