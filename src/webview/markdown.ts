import createMarkdownIt, { type MarkdownIt } from "markdown-it";

import { isSafeLink } from "../protocol/output-guard.ts";
import { languageOf } from "./highlight.ts";

/** Extensions by which a name without folder or line counts as a file, unlike `console.log` and `list.length`. */
const FILE_TYPES = new Set(
  (
    "bat c cc cjs clj cpp cs css csv cts cxx dart ex go gradle graphql h hpp htm html hs ini java jl js json jsonc jsx kt " +
    "less lock lua m md mdx mjs mm mts php pl proto ps1 py r rb rs sass scala scss sh sql svelte svg swift tf toml ts " +
    "tsx txt vue xml yaml yml zig"
  ).split(" "),
);

const PATH =
  /^(?<drive>[A-Za-z]:[\\/])?(?<folders>(?:[\w@.+~()[\]-]*[\\/])*)[\w@.+~()[\]-]*\.(?<type>[A-Za-z]\w{0,9})(?<place>:\d{1,7}(?:[:-]\d{1,7})?|#L\d{1,7}(?:-L?\d{1,7})?)?$/;
const LONGEST_PATH = 400;

/**
 * Turns a model's Markdown into HTML: no raw HTML, no images (a link to them instead), and only links to web and mail
 * addresses. Anything refused stays readable as text.
 */
export class MarkdownRenderer {
  private readonly engine: MarkdownIt;

  /** `copyCode` labels the button of a code block. */
  constructor(copyCode: string) {
    const engine = createMarkdownIt({ html: false, linkify: true, typographer: false });
    // Otherwise names such as `README.md` would pass for host names.
    engine.linkify.set({ fuzzyLink: false, fuzzyEmail: false });
    engine.validateLink = isSafeLink;
    engine.core.ruler.push("own_attributes", ({ tokens }) => {
      for (const token of tokens) {
        if (DIRECTED.has(token.type)) token.attrSet("dir", "auto");
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
      return `<a class="image" href="${escapeHtml(source)}">${escapeHtml(label)}</a>`;
    };
    engine.renderer.rules["code_inline"] = (tokens, index) => {
      const { content } = tokens[index]!;
      const code = escapeHtml(content);
      const outer = tokens
        .slice(0, index)
        .findLast(({ type }) => type === "link_open" || type === "link_close");
      return looksLikeFile(content) && outer?.type !== "link_open"
        ? `<button type="button" class="path"><code>${code}</code></button>`
        : `<code>${code}</code>`;
    };
    const code = (text: string, info: string): string => {
      const language = languageOf(info);
      return (
        `<div class="code"><div class="code-bar"><span>${escapeHtml(info)}</span>` +
        `<button type="button" class="code-copy">${escapeHtml(copyCode)}</button></div>` +
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

/** Whether inline code looks like the path of a file, perhaps with a line; doesn't check whether the file exists. */
export function looksLikeFile(code: string): boolean {
  if (code.length > LONGEST_PATH) return false;
  const groups = PATH.exec(code)?.groups;
  if (!groups) return false;
  return (
    Boolean(groups["folders"] || groups["place"]) || FILE_TYPES.has((groups["type"] ?? "").toLowerCase())
  );
}
