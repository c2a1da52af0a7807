import type { Message, Part, TextPart } from "../server-model.ts";
import { amount, head, tail } from "./excerpt.ts";
import type { TokenScales } from "./token-scales.ts";

/** The maximum tokens of the note, which never has more characters than this. */
const NOTE_TOKENS = 90;
/** How often a length is tried before the piece is cut to a length that always fits. */
const ATTEMPTS = 4;

/**
 * Leaves out the middle of a message so that it has at most `maxTokens`. The beginning and the end keep about half
 * each, and a note says what is missing, if there is room for it. Texts are cut; a call is kept whole or removed.
 */
export async function shortenMessage(
  message: Message,
  maxTokens: number,
  scales: TokenScales,
): Promise<Message> {
  const { info, parts } = message;
  const tokens = await scales.countParts(parts);
  const tokensAt = (index: number): number => tokens[index] ?? 0;
  const hasNote = maxTokens > 2 * NOTE_TOKENS;
  const room = hasNote ? maxTokens - NOTE_TOKENS : maxTokens;

  let back = Math.floor(room / 2);
  let front = room - back;
  let first = 0;
  let last = parts.length - 1;
  while (first < last && tokensAt(first) <= front) front -= tokensAt(first++);
  while (last > first && tokensAt(last) <= back) back -= tokensAt(last--);

  const pieceOf = (index: number, tokens: number, end: typeof head): Promise<string> =>
    fittingPiece(parts[index], tokensAt(index), tokens, end, scales);
  const beginning = await pieceOf(first, front, head);
  const ending = await pieceOf(last, back, tail);
  const middle = parts.slice(first, last + 1);
  const text = hasNote
    ? [beginning, describeMissing(middle, beginning.length + ending.length), ending]
        .filter(Boolean)
        .join("\n")
    : beginning + ending;
  return {
    info,
    parts: [...parts.slice(0, first), ...asText(middle[0], text), ...parts.slice(last + 1)],
  };
}

/** Approximately the longest beginning or end of a text part that has at most `room` tokens. Empty for other parts. */
async function fittingPiece(
  part: Part | undefined,
  tokens: number,
  room: number,
  end: typeof head,
  scales: TokenScales,
): Promise<string> {
  if (part?.type !== "text") return "";
  let length = part.text.length;
  let counted = tokens;
  for (let attempt = 0; attempt < ATTEMPTS && counted > room; attempt++) {
    length = Math.floor((length * room) / (attempt === 0 ? counted : counted * 1.1));
    [counted = 0] = await scales.countTexts([end(part.text, length)]);
  }
  // A token has at least one byte, and a UTF-16 unit at most three bytes.
  return end(part.text, counted > room ? Math.floor(room / 3) : length);
}

function describeMissing(parts: readonly Part[], keptChars: number): string {
  const count = (type: Part["type"]): number => parts.filter((part) => part.type === type).length;
  const chars =
    parts.reduce((sum, part) => sum + (part.type === "text" ? part.text.length : 0), 0) - keptChars;
  const missing = [
    [chars, "character"],
    [count("tool"), "tool call"],
    [count("file"), "file"],
  ] as const;
  const listed = missing.flatMap(([count, what]) => (count > 0 ? [amount(count, what)] : []));
  return `[… left out here: ${listed.join(", ")} …]`;
}

/** One text that replaces the given parts. */
function asText(first: Part | undefined, text: string): readonly TextPart[] {
  if (!first || text === "") return [];
  if (first.type === "text") return [{ ...first, text }];
  const { id, sessionID, messageID } = first;
  return [{ id, sessionID, messageID, type: "text", text, synthetic: true }];
}
