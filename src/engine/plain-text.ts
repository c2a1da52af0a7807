import { oneLine } from "./fork/excerpt.ts";

/**
 * An invisible or direction-changing character. Line breaks and tabs aren't hidden, because their effect is visible.
 */
const HIDDEN = /(?!\r\n)[^\P{Cc}\n\t]|\p{Cf}/gu;
/** Characters that join or separate letters or emoji; some languages need them. */
const JOINERS = new Set(["\u200c", "\u200d"]);

/** For text on which users base decisions: shows hidden characters as codes such as `\u{202e}`. */
export function visible(text: string): string {
  return text.replace(HIDDEN, (hidden) => `\\u{${hidden.codePointAt(0)?.toString(16)}}`);
}

/** For rows, tabs and titles: a single line without hidden characters. */
export function title(text: string): string {
  return oneLine(withoutHidden(text));
}

export function withoutHidden(text: string): string {
  return text.replace(HIDDEN, (hidden) => (JOINERS.has(hidden) ? hidden : ""));
}
