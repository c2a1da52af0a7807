import { createScanner, parseTree, type Node, type ParseError } from "jsonc-parser";

/*
 * Edits JSON written by users, with comments and trailing commas. Unlike the library's own edits, these preserve all
 * other text exactly and keep comments in place. The nodes passed in must belong to the given text. An item is a value
 * in a list, or a property of an object.
 */

/**
 * Parses JSON with comments and trailing commas, as users write it in configurations.
 * @throws SyntaxError if the text is invalid; the message names the line
 * @throws RangeError if it is nested too deeply
 */
export function parseConfig(text: string): Node {
  const errors: ParseError[] = [];
  const root = parseTree(text, errors, { allowTrailingComma: true });
  const [error] = errors;
  if (!root || error) throw new SyntaxError(`line ${text.slice(0, error?.offset).split("\n").length}`);
  return root;
}

/** Space and comments up to the end of a line. */
const REST_OF_LINE = /[ \t]*(?:\/\*(?:(?!\*\/).)*\*\/[ \t]*)*(?:\/\/[^\r\n]*)?(?=\r?\n)/y;

/** Appends an item to a list, or a property (`"name": value`) to an object, formatted like its neighbors. */
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

/** Removes an item from a list, or a property from an object, together with its comma. */
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

/** The offsets of a node's start and end (exclusive). */
export function placeOf({ offset, length }: Node): [start: number, end: number] {
  return [offset, offset + length];
}

/** The offset after the next comma, if only space and comments precede it. */
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
 * The range to cut to remove an item. Includes the space before it if a line ends after it or if it follows another
 * item on its line, otherwise the space after it.
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

/** The text up to `to`, without the comma that ends at `comma` and the space around it. */
function withoutComma(text: string, comma: number | undefined, to: number): string {
  if (comma === undefined) return text.slice(0, to);
  const before = text.slice(0, comma - 1);
  const behind = text.slice(comma, to);
  return (behind.trim() === "" ? before.replace(/[ \t]+$/, "") : before) + behind;
}

function unlessBlank(text: string): string {
  return text.trim() === "" ? "" : text;
}

/** The offset at which the line ends, apart from space. Undefined if more than space and comments follow. */
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

/** The indentation of the line that contains the offset. */
function indentAt(text: string, offset: number): string {
  const lineStart = text.lastIndexOf("\n", offset - 1) + 1;
  return /^[ \t]*/.exec(text.slice(lineStart, offset))?.[0] ?? "";
}

/** One level of indentation, as used in the text. */
function indentUnit(text: string): string {
  return /^(\t| {2,8})(?=\S)/m.exec(text)?.[0] ?? "  ";
}
