import type { Excerpt } from "../../protocol/output.ts";

/** Characters of a text shown in the panel; the whole of it opens as a document. */
const EXCERPT_LENGTH = 20_000;

export function excerpt(text: string): Excerpt {
  return { text: text.slice(0, EXCERPT_LENGTH), total: text.length };
}

/** The same of a text whose lines mean something only as a whole. */
export function excerptOfLines(text: string): Excerpt {
  const cut = text.length > EXCERPT_LENGTH ? text.lastIndexOf("\n", EXCERPT_LENGTH) : -1;
  return cut > 0 ? { text: text.slice(0, cut), total: text.length } : excerpt(text);
}
