import { head } from "../engine/fork/excerpt.ts";
import type { Excerpt } from "./output.ts";

/** Characters of a tool call's texts that the output panel shows; the rest can't be found there. */
const SHOWN_LENGTH = 20_000;

export function excerpt(text: string): Excerpt {
  return { text: head(text, SHOWN_LENGTH), total: text.length };
}

/** Like {@link excerpt}, but cuts only between lines. */
export function excerptOfLines(text: string): Excerpt {
  const cut = text.length > SHOWN_LENGTH ? text.lastIndexOf("\n", SHOWN_LENGTH) : -1;
  return cut > 0 ? { text: text.slice(0, cut), total: text.length } : excerpt(text);
}
