import { countPieceTokens } from "./byte-pairs.ts";
import type { Vocabulary } from "./vocabulary.ts";

/** Longer pieces rarely come again, and as parts of a larger string they would keep all of it in memory. */
const LONGEST_KEPT_PIECE = 12;
const MOST_KEPT_PIECES = 50_000;

/** Counts the tokens of texts. What stands for a special token, such as `<|endoftext|>`, counts as the text it is. */
export class TextTokens {
  /** Most pieces of a text are words that come again and again. */
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
