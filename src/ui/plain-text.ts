import { title, visible, withoutHidden } from "../engine/plain-text.ts";

/*
 * Functions for text written by others: agents, models, servers, and whoever named a folder or a file. Everything that
 * shows such text passes it through one of these. They remove or reveal hidden characters: control characters, and
 * characters that change the text direction.
 */

export { title, visible };

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
