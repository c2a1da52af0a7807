import { oneLine } from "../engine/fork/excerpt.ts";

/*
 * Texts that others wrote: agents, models and servers, and whoever named a folder or a file. Whatever shows one passes it
 * through a function of this file, which lets nothing hidden through: no control character, and none that turns the
 * direction of the text beside it.
 */

/** A character that cannot be seen, or turns the direction; a line break and a tab are seen by what they do. */
const HIDDEN = /(?!\r\n)[^\P{Cc}\n\t]|\p{Cf}/gu;
/** Those that join letters or pictures, or keep them apart, which some languages need. */
const JOINERS = new Set(["\u200c", "\u200d"]);

/** For what a user decides by: hidden characters are shown as their codes, as in `\u{202e}`. */
export function visible(text: string): string {
  return text.replace(HIDDEN, (hidden) => `\\u{${hidden.codePointAt(0)?.toString(16)}}`);
}

/** For a row, a tab or a title: one line without anything hidden. */
export function title(text: string): string {
  return oneLine(withoutHidden(text));
}

/** For notifications, and below the box of a dialog: the editor makes links of Markdown ones there, commands included. */
export function withoutLinks(text: string): string {
  return withoutHidden(text).replaceAll("](", "] (");
}

/** For rows of lists, where `$(…)` becomes an icon. */
export function withoutIcons(text: string): string {
  return withoutHidden(text).replace(/\$\([\w~-]+\)/g, "\\$&");
}

/** For a tooltip: one line that no Markdown, link or icon in it changes. */
export function plainMarkdown(text: string): string {
  return title(text).replace(/[!-/:-@[-`{-~]/g, "\\$&");
}

function withoutHidden(text: string): string {
  return text.replace(HIDDEN, (hidden) => (JOINERS.has(hidden) ? hidden : ""));
}
