import { oneLine } from "../engine/fork/excerpt.ts";

/*
 * Functions for text written by others: agents, models, servers, and whoever named a folder or a file. Everything that
 * shows such text passes it through one of these. They remove or reveal hidden characters: control characters, and
 * characters that change the text direction.
 */

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

/** For notifications and input prompts, in which the editor renders Markdown links, including command links. */
export function withoutLinks(text: string): string {
  return withoutHidden(text).replaceAll("](", "] (");
}

/** For rows of lists, in which `$(…)` would become an icon. */
export function withoutIcons(text: string): string {
  return withoutHidden(text).replace(/\$\([\w~-]+\)/g, "\\$&");
}

/** For tooltips: a single line in which Markdown, links and icons have no effect. */
export function plainMarkdown(text: string): string {
  return title(text).replace(/[!-/:-@[-`{-~]/g, "\\$&");
}

function withoutHidden(text: string): string {
  return text.replace(HIDDEN, (hidden) => (JOINERS.has(hidden) ? hidden : ""));
}
