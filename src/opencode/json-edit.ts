import type { JsonItem, JsonNode } from "./jsonc.ts";

/*
 * Changes to JSON that a person wrote, comments and trailing commas included: what is not asked for stays as it is, to
 * the letter. The nodes are those of the text given.
 */

/** What belongs to the rest of a line: space and comments. */
const REST_OF_LINE = /[ \t]*(?:\/\*(?:(?!\*\/).)*\*\/[ \t]*)*(?:\/\/[^\r\n]*)?(?=\r?\n)/y;

/** Puts an item last into a list, or a property (`"name": value`) last into an object; formatted as its neighbours. */
export function appendItem(text: string, container: JsonNode, item: string): string {
  const last = container.items?.at(-1);
  if (!last) return fillEmpty(text, container, item);
  const { start, end, comma = end } = last;
  const lineEnd = startsLine(text, start) ? endOfLine(text, comma) : undefined;
  const space = lineEnd === undefined ? " " : lineBreak(text) + indentAt(text, start);
  const [before, after] = last.comma === undefined ? [",", ""] : ["", ","];
  const at = lineEnd ?? comma;
  return text.slice(0, end) + before + text.slice(end, at) + space + item + after + text.slice(at);
}

/** Takes an item out of a list, or a property out of an object, and the comma that it needed. */
export function removeItem(text: string, container: JsonNode, item: JsonItem): string {
  const { start, end, comma } = item;
  const comment = comma === undefined ? "" : unlessBlank(text.slice(end, comma - 1));
  const [from, to] = comment ? [start, comma ?? end] : spaceAround(text, start, comma ?? end);
  const previous = container.items?.[container.items.indexOf(item) - 1];
  const kept = comma === undefined ? withoutComma(text, previous?.comma, from) : text.slice(0, from);
  return kept + comment + text.slice(to);
}

export function replaceNode(text: string, { start, end }: JsonNode, value: string): string {
  return text.slice(0, start) + value + text.slice(end);
}

function fillEmpty(text: string, { start, end, value }: JsonNode, item: string): string {
  const [before, after] = [text.slice(0, start + 1), text.slice(end - 1)];
  const comments = unlessBlank(text.slice(start + 1, end - 1));
  if (Array.isArray(value)) return before + item + comments + after;
  const newLine = lineBreak(text) + indentAt(text, start);
  const closing = comments.includes("\n") ? comments : comments + newLine;
  return before + newLine + indentUnit(text) + item + closing + after;
}

/**
 * What to cut so that an item vanishes: with the space before it where a line ends after it or it shares its line with
 * the item before, else with the space behind it.
 */
function spaceAround(text: string, start: number, end: number): [from: number, to: number] {
  const from = text.slice(0, start).trimEnd().length;
  const space = text.slice(from, start);
  const behind = /^[ \t]*/.exec(text.slice(end))?.[0] ?? "";
  const endsLine = /^\r?\n/.test(text.slice(end + behind.length));
  const isFirst = "[{".includes(text.charAt(from - 1));
  const takesSpaceBefore = space.includes("\n") ? endsLine : !isFirst;
  return takesSpaceBefore ? [from, end] : [start, end + behind.length];
}

/** The text up to an offset, without the comma that ends at another one and the space that it leaves. */
function withoutComma(text: string, comma: number | undefined, to: number): string {
  if (comma === undefined) return text.slice(0, to);
  const before = text.slice(0, comma - 1);
  const behind = text.slice(comma, to);
  return (behind.trim() === "" ? before.replace(/[ \t]+$/, "") : before) + behind;
}

function unlessBlank(text: string): string {
  return text.trim() === "" ? "" : text;
}

/** The offset where the line has nothing more, its comments included; undefined: something else follows. */
function endOfLine(text: string, offset: number): number | undefined {
  REST_OF_LINE.lastIndex = offset;
  const rest = REST_OF_LINE.exec(text)?.[0];
  return rest === undefined ? undefined : offset + rest.trimEnd().length;
}

function startsLine(text: string, offset: number): boolean {
  return /(^|\n)[ \t]*$/.test(text.slice(0, offset));
}

function lineBreak(text: string): string {
  return text.includes("\r\n") ? "\r\n" : "\n";
}

/** The space at the start of the line that the offset is in. */
function indentAt(text: string, offset: number): string {
  const lineStart = text.lastIndexOf("\n", offset - 1) + 1;
  return /^[ \t]*/.exec(text.slice(lineStart, offset))?.[0] ?? "";
}

/** One step of indentation, as the text has it. */
function indentUnit(text: string): string {
  return /^(\t| {2,8})(?=\S)/m.exec(text)?.[0] ?? "  ";
}
