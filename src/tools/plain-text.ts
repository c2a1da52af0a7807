/** Characters that show nothing and can hide or reorder text: direction marks, tags, … (not what joins emoji), and halves of a pair. */
const INVISIBLE = /(?!\u200d)[\p{Cf}\p{Cs}]/gu;
const BREAKS = /[\s\p{Cc}]+/gu;
/** What Markdown could take for more than a character; an underscore within a word is none of it. */
const MARKUP = /[\\`*|[\]<>~#]|(?<![\p{L}\p{N}])_|_(?![\p{L}\p{N}])/gu;

/** Text of unknown origin as one line of at most `limit` characters. */
export function oneLine(text: string, limit: number): string {
  const characters = [...text.replace(INVISIBLE, "").replace(BREAKS, " ").trim()];
  if (characters.length <= limit) return characters.join("");
  return `${characters
    .slice(0, limit - 1)
    .join("")
    .trimEnd()}…`;
}

/** The same for a cell of a Markdown table: it shows as it was written, whatever is in it. */
export function tableCell(text: string, limit: number): string {
  return oneLine(text, limit).replace(MARKUP, "\\$&");
}
