import createMarkdownIt, { type MarkdownIt, type Token } from "markdown-it";

import { isSafeLink } from "../protocol/output-guard.ts";
import { isImage, linkedFile, linkFiles, looksLikeFile } from "./file-links.ts";
import { languageOf } from "./highlight.ts";

/**
 * Turns a model's Markdown into HTML: no raw HTML, no images (a link to them instead, which {@link Images}
 * fills if they are in the workspace), and only links to web and mail
 * addresses and to files. Anything refused stays readable as text.
 */
export class MarkdownRenderer {
  private readonly engine: MarkdownIt;

  /** `copyCode` labels the button of a code block. */
  constructor(copyCode: string) {
    const engine = createMarkdownIt({ html: false, linkify: true, typographer: false });
    // Otherwise names such as `README.md` would pass for host names.
    engine.linkify.set({ fuzzyLink: false, fuzzyEmail: false });
    engine.validateLink = (url) => isSafeLink(url) || linkedFile(url) !== undefined;
    linkFiles(engine);
    engine.core.ruler.push("own_attributes", ({ tokens }) => {
      for (const [index, token] of tokens.entries()) {
        if (DIRECTED.has(token.type)) token.attrSet("dir", "auto");
        if (token.type === "inline") markTask(token, tokens[index - 2]);
        for (const child of token.children ?? [])
          if (child.type === "link_open") child.attrSet("tabindex", "-1");
        if (token.type === "heading_open" || token.type === "heading_close") token.tag = demoted(token.tag);
        const align = /text-align:(\w+)/.exec(String(token.attrGet("style") ?? ""))?.[1];
        if (align === undefined) continue;
        token.attrs = token.attrs?.filter(([name]) => name !== "style") ?? null;
        token.attrJoin("class", `align-${align}`);
      }
    });
    const { escapeHtml } = engine.utils;
    engine.renderer.rules["image"] = (tokens, index) => {
      const { content, attrs } = tokens[index]!;
      const source = String(attrs?.find(([name]) => name === "src")?.[1] ?? "");
      const label = content === "" ? source : `${content} (${source})`;
      const path = linkedFile(source);
      return path === undefined
        ? `<a class="image" tabindex="-1" href="${escapeHtml(source)}">${escapeHtml(label)}</a>`
        : `<button type="button" class="${isImage(path) ? "path image" : "path"}" tabindex="-1" title="${escapeHtml(path)}">${escapeHtml(label)}</button>`;
    };
    engine.renderer.rules["code_inline"] = (tokens, index) => {
      const { content } = tokens[index]!;
      const code = escapeHtml(content);
      const outer = tokens
        .slice(0, index)
        .findLast(({ type }) => type === "link_open" || type === "link_close");
      return looksLikeFile(content) && outer?.type !== "link_open"
        ? `<button type="button" class="path" tabindex="-1"><code dir="ltr">${code}</code></button>`
        : `<code dir="ltr">${code}</code>`;
    };
    const code = (text: string, info: string): string => {
      const language = languageOf(info);
      return (
        `<div class="code"><div class="code-bar"><span>${escapeHtml(info)}</span>` +
        `<button type="button" class="code-copy" tabindex="-1">${escapeHtml(copyCode)}</button></div>` +
        `<pre dir="ltr" tabindex="0"><code${language === undefined ? "" : ` class="language-${language}"`}>` +
        `${escapeHtml(text)}</code></pre></div>`
      );
    };
    engine.renderer.rules["fence"] = (tokens, index) => {
      const { content, info } = tokens[index]!;
      return code(content, info.trim().split(/\s+/, 1)[0] ?? "");
    };
    engine.renderer.rules["code_block"] = (tokens, index) => code(tokens[index]!.content, "");
    engine.renderer.rules["table_open"] = () => `<div class="table" tabindex="0"><table>`;
    engine.renderer.rules["table_close"] = () => `</table></div>`;
    this.engine = engine;
  }

  /** `breaks`: single line breaks are kept, as in text that users type. */
  toHtml(markdown: string, { breaks = false }: { breaks?: boolean } = {}): string {
    this.engine.set({ breaks });
    return this.engine.render(markdown);
  }
}

/** Blocks whose first strong character decides their text direction. */
const DIRECTED: ReadonlySet<string> = new Set([
  "paragraph_open",
  "heading_open",
  "bullet_list_open",
  "ordered_list_open",
  "blockquote_open",
  "th_open",
  "td_open",
]);

/** The page itself has the only first-level heading. */
function demoted(tag: string): string {
  return `h${Math.min(6, Number(tag.slice(1)) + 1)}`;
}

/** Shows the box of a task list's item, such as `- [x] Test it`. */
function markTask(inline: Token, item: Token | undefined): void {
  const [text] = inline.children ?? [];
  if (item?.type !== "list_item_open" || text?.type !== "text") return;
  const box = /^\[([ xX])\](?=\s)/.exec(text.content);
  if (!box) return;
  item.attrJoin("class", "task");
  text.content = `${box[1] === " " ? "☐" : "☑"}${text.content.slice(box[0].length)}`;
}
