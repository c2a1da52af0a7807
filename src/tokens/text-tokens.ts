import { countPieceTokens } from "./byte-pairs.ts";
import type { Vocabulary } from "./vocabulary.ts";

/** Longer pieces rarely recur and, as slices, would keep the whole text in memory. */
const LONGEST_KEPT_PIECE = 12;
const MOST_KEPT_PIECES = 50_000;

/** Counts the tokens of texts. Special tokens such as `<|endoftext|>` count as ordinary text. */
export class TextTokens {
  /** Caches counts, because most pieces of a text are recurring words. */
  private readonly known = new Map<string, number>();

  constructor(private readonly vocabulary: Vocabulary) {}

  count(text: string): number {
    let tokens = 0;
    for (const [piece] of text.matchAll(this.vocabulary.pattern)) tokens += this.countPiece(piece);
    return tokens;
  }

  private countPiece(piece: string): number {
    const known = this.known.get(piece);
    if (known !== undefined) return known;
    const tokens = countPieceTokens(Buffer.from(piece).toString("latin1"), this.vocabulary.ranks);
    if (piece.length <= LONGEST_KEPT_PIECE) this.keep(piece, tokens);
    return tokens;
  }

  private keep(piece: string, tokens: number): void {
    if (this.known.size >= MOST_KEPT_PIECES) this.known.clear();
    this.known.set(piece, tokens);
  }
}
