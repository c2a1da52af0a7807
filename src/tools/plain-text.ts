/** Invisible characters that can hide or reorder text (but not the joiner in emoji), and halves of surrogate pairs. */
const INVISIBLE = /(?!\u200d)[\p{Cf}\p{Cs}]/gu;
const BREAKS = /[\s\p{Cc}]+/gu;
/** Characters with a meaning in Markdown. An underscore within a word has none. */
const MARKUP = /[\\`*|[\]<>~#]|(?<![\p{L}\p{N}])_|_(?![\p{L}\p{N}])/gu;
const ESCAPED = /\\([\\`*|[\]<>~#_])/g;

/** Text of unknown origin as one line of at most `limit` characters. */
export function oneLine(text: string, limit: number): string {
  const characters = [...text.replace(INVISIBLE, "").replace(BREAKS, " ").trim()];
  if (characters.length <= limit) return characters.join("");
  return `${characters
    .slice(0, limit - 1)
    .join("")
    .trimEnd()}…`;
}

/** Like {@link oneLine}, but escaped for a cell of a Markdown table. */
export function tableCell(text: string, limit: number): string {
  return oneLine(text, limit).replace(MARKUP, "\\$&");
}

/** Text that a model may have copied from a {@link tableCell}, as it was before it was escaped. */
export function cellText(text: string): string {
  return oneLine(text.replace(ESCAPED, "$1"), Infinity);
}
