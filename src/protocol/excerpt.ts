import { head } from "../engine/fork/excerpt.ts";
import { SHOWN_LENGTH } from "../engine/search.ts";
import type { Excerpt } from "./output.ts";

export function excerpt(text: string): Excerpt {
  return { text: head(text, SHOWN_LENGTH), total: text.length };
}

/** Like {@link excerpt}, but cuts only between lines. */
export function excerptOfLines(text: string): Excerpt {
  const cut = text.length > SHOWN_LENGTH ? text.lastIndexOf("\n", SHOWN_LENGTH) : -1;
  return cut > 0 ? { text: text.slice(0, cut), total: text.length } : excerpt(text);
}
