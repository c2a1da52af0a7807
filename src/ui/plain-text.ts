import { oneLine } from "../engine/fork/excerpt.ts";

/**
 * What agents and models write holds no link where the editor makes links of Markdown ones, commands included: in
 * notifications, and below the box of a dialog.
 */
export function withoutLinks(text: string): string {
  return text.replaceAll("](", "] (");
}

/** `$(…)` in what agents and models write is no icon. */
export function withoutIcons(text: string): string {
  return text.replace(/\$\([\w~-]+\)/g, "\\$&");
}

/** Text that no Markdown, link or icon in it changes, as one line. */
export function plainMarkdown(text: string): string {
  return oneLine(text).replace(/[!-/:-@[-`{-~]/g, "\\$&");
}

/** Characters that cannot be seen, or that turn the direction of what follows, as their codes: `\u{202e}`. */
export function visible(text: string): string {
  return text.replace(/[^\P{Cc}\n\t]|\p{Cf}/gu, (hidden) => `\\u{${hidden.codePointAt(0)?.toString(16)}}`);
}
