import type { Message, Part, TextPart } from "../server-model.ts";
import { head, tail } from "./excerpt.ts";
import type { TokenScales } from "./token-scales.ts";

/** What the note takes at most, in tokens: it has no more characters. */
const NOTE_TOKENS = 90;
/** How often a piece of text is tried before it is made so short that it is sure to fit. */
const ATTEMPTS = 4;

/**
 * The message with its middle left out, so that it has at most `maxTokens`: beginning and end stay, about half each, and
 * a note says what is missing (unless there is no room even for that). Texts are cut; a call stays whole or goes whole.
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

/** The longest beginning or end, about, of a part's text that has at most `room` tokens; a part that is no text has none. */
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
  // A token is at least one byte, and one UTF-16 unit at most three.
  return end(part.text, counted > room ? Math.floor(room / 3) : length);
}

function describeMissing(parts: readonly Part[], keptChars: number): string {
  const count = (type: Part["type"]): number => parts.filter((part) => part.type === type).length;
  const chars =
    parts.reduce((sum, part) => sum + (part.type === "text" ? part.text.length : 0), 0) - keptChars;
  const missing = [
    [chars, "characters"],
    [count("tool"), "tool calls"],
    [count("file"), "files"],
  ] as const;
  const listed = missing.flatMap(([amount, what]) => (amount > 0 ? [`${amount} ${what}`] : []));
  return `[… left out here: ${listed.join(", ")} …]`;
}

/** One text in the place of the parts that it stands for. */
function asText(first: Part | undefined, text: string): readonly TextPart[] {
  if (!first || text === "") return [];
  if (first.type === "text") return [{ ...first, text }];
  const { id, sessionID, messageID } = first;
  return [{ id, sessionID, messageID, type: "text", text, synthetic: true }];
}
