import { createScanner, parseTree, type Node, type ParseError } from "jsonc-parser";

/*
 * Changes to JSON that a user wrote, comments and trailing commas included: what is not asked for stays as it is, to
 * the letter, and comments stay where they are, which the library's own changes do not care for. The nodes are those of
 * the text given. An item is a value in a list, or a property of an object.
 */

/**
 * Reads JSON as users write it in configurations: with comments and trailing commas.
 * @throws SyntaxError if it is not that; the message names the line
 * @throws RangeError if it is nested too deeply
 */
export function parseConfig(text: string): Node {
  const errors: ParseError[] = [];
  const root = parseTree(text, errors, { allowTrailingComma: true });
  const [error] = errors;
  if (!root || error) throw new SyntaxError(`line ${text.slice(0, error?.offset).split("\n").length}`);
  return root;
}

/** What belongs to the rest of a line: space and comments. */
const REST_OF_LINE = /[ \t]*(?:\/\*(?:(?!\*\/).)*\*\/[ \t]*)*(?:\/\/[^\r\n]*)?(?=\r?\n)/y;

/** Puts an item last into a list, or a property (`"name": value`) last into an object; formatted as its neighbours. */
export function appendItem(text: string, container: Node, item: string): string {
  const last = container.children?.at(-1);
  if (!last) return fillEmpty(text, container, item);
  const [start, end] = placeOf(last);
  const comma = commaBehind(text, end);
  const lineEnd = startsLine(text, start) ? endOfLine(text, comma ?? end) : undefined;
  const space = lineEnd === undefined ? " " : lineBreak(text) + indentAt(text, start);
  const [before, after] = comma === undefined ? [",", ""] : ["", ","];
  const at = lineEnd ?? comma ?? end;
  return text.slice(0, end) + before + text.slice(end, at) + space + item + after + text.slice(at);
}

/** Takes an item out of a list, or a property out of an object, and the comma that it needed. */
export function removeItem(text: string, item: Node): string {
  const [start, end] = placeOf(item);
  const comma = commaBehind(text, end);
  const comment = comma === undefined ? "" : unlessBlank(text.slice(end, comma - 1));
  const [from, to] = comment ? [start, comma ?? end] : spaceAround(text, start, comma ?? end);
  const { children: items = [] } = item.parent ?? {};
  const previous = items[items.indexOf(item) - 1];
  const previousComma = previous && commaBehind(text, placeOf(previous)[1]);
  const kept = comma === undefined ? withoutComma(text, previousComma, from) : text.slice(0, from);
  return kept + comment + text.slice(to);
}

export function replaceNode(text: string, node: Node, value: string): string {
  const [start, end] = placeOf(node);
  return text.slice(0, start) + value + text.slice(end);
}

/** The offsets of its start and behind its end. */
export function placeOf({ offset, length }: Node): [start: number, end: number] {
  return [offset, offset + length];
}

/** The offset behind the comma that follows, past space and comments; undefined if none does. */
function commaBehind(text: string, offset: number): number | undefined {
  const scanner = createScanner(text, true);
  scanner.setPosition(offset);
  scanner.scan();
  const at = scanner.getTokenOffset();
  return text[at] === "," ? at + 1 : undefined;
}

function fillEmpty(text: string, container: Node, item: string): string {
  const [start, end] = placeOf(container);
  const [before, after] = [text.slice(0, start + 1), text.slice(end - 1)];
  const comments = unlessBlank(text.slice(start + 1, end - 1));
  if (container.type === "array") return before + item + comments + after;
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
