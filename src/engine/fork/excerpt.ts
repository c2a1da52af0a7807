/*
 * Texts that models read: pieces of them, and small forms. Lengths are in UTF-16 units, like string lengths. No piece
 * begins or ends with half of a surrogate pair.
 */

/** At most the first `length` units. */
export function head(text: string, length: number): string {
  if (text.length <= length) return text;
  return text.slice(0, isHighSurrogate(text.charCodeAt(length - 1)) ? length - 1 : length);
}

/** At most the last `length` units. */
export function tail(text: string, length: number): string {
  if (text.length <= length) return text;
  const start = text.length - length;
  return text.slice(isLowSurrogate(text.charCodeAt(start)) ? start + 1 : start);
}

/** The text, or its first `length` units and an ellipsis. */
export function excerpt(text: string, length: number): string {
  return text.length > length ? `${head(text, length)}…` : text;
}

/** A number of things, such as "2 files". */
export function amount(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}

/** The text on one line: each run of whitespace becomes a space. */
export function oneLine(text: string): string {
  return text.replace(/[\s\u0085]+/g, " ").trim();
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}

function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}
