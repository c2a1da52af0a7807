import type { MarkdownIt, StateCore, Token } from "markdown-it";

/** Extensions by which a name without folder or line counts as a file, unlike `console.log` and `list.length`. */
const TYPES =
  "bat c cc cjs clj cpp cs css csv cts cxx dart ex gif go gradle graphql h hpp hs htm html ini java jl jpeg jpg js " +
  "json jsonc jsx kt less lock lua m md mdx mjs mm mts php pl png proto ps1 py r rb rs sass scala scss sh sql " +
  "svelte svg swift tf toml ts tsx txt vue webp xml yaml yml zig";
const FILE_TYPES = new Set(TYPES.split(" "));
const PLACE = /(?::\d{1,7}(?:[:-]\d{1,7})?|#L\d{1,7}(?:-L?\d{1,7})?)/.source;
const PATH = new RegExp(
  /^(?<drive>[A-Za-z]:[\\/])?(?<folders>(?:[\w@.+~()[\]-]*[\\/])*)[\w@.+~()[\]-]*\.(?<type>[A-Za-z]\w{0,9})/
    .source + `(?<place>${PLACE})?$`,
);
/** A path in running text: in a folder or with a line, and of a type that is known, because names of hosts look alike. */
const BARE = new RegExp(
  `(?<![\\w/\\\\:.@#%~-])(?:[A-Za-z]:[\\\\/]|/)?(?:[\\w@.+~-]+[\\\\/])*[\\w@.+~-]+\\.(?:${TYPES.replaceAll(" ", "|")})(?:${PLACE})?(?![\\w/\\\\@-]|\\.\\w)`,
  "g",
);
const LONGEST_PATH = 400;
/** Longer texts aren't searched for paths. */
const LONGEST_TEXT = 20_000;

/** Whether text looks like the path of a file, perhaps with a line; doesn't check whether the file exists. */
export function looksLikeFile(text: string): boolean {
  if (text.length > LONGEST_PATH) return false;
  const groups = PATH.exec(text)?.groups;
  if (!groups) return false;
  return (
    Boolean(groups["folders"] || groups["place"]) || FILE_TYPES.has((groups["type"] ?? "").toLowerCase())
  );
}

/** The path that a link leads to; undefined if it leads elsewhere. Unlike other text, links may name any letters. */
export function linkedFile(url: string): string | undefined {
  try {
    const path = decodeURI(url);
    return looksLikeFile(path.replace(/ |(?![A-Za-z])\p{L}/gu, "_")) ? path : undefined;
  } catch {
    return undefined;
  }
}

/** Whether it is the path of an image that the page can show. */
export function isImage(path: string): boolean {
  return /\.(?:gif|jpe?g|png|webp)$/i.test(path);
}

/**
 * Turns links to files, and paths in running text, into buttons that open the file. Their `title` is the path: the
 * page's sanitizer keeps that attribute.
 */
export function linkFiles(engine: MarkdownIt): void {
  engine.core.ruler.push("file_links", ({ tokens, Token }) => {
    for (const { children } of tokens) {
      if (!children) continue;
      let outer: "none" | "link" | "file" = "none";
      for (let index = 0; index < children.length; index++) {
        const token = children[index]!;
        if (token.type === "link_open") {
          const path = linkedFile(String(token.attrGet("href") ?? ""));
          outer = path === undefined ? "link" : "file";
          if (path === undefined) continue;
          token.tag = "button";
          token.attrs = fileAttributes(path);
        } else if (token.type === "link_close") {
          if (outer === "file") token.tag = "button";
          outer = "none";
        } else if (token.type === "text" && outer === "none") {
          const parts = split(token.content, Token);
          if (parts.length > 1) children.splice(index, 1, ...parts);
          index += parts.length - 1;
        }
      }
    }
  });
}

function fileAttributes(path: string): [string, string][] {
  return [
    ["type", "button"],
    ["class", "path"],
    ["tabindex", "-1"],
    ["title", path],
  ];
}

/** The text as tokens, paths among them as links; only one if there is no path. */
function split(text: string, TokenType: StateCore["Token"]): Token[] {
  const parts: Token[] = [];
  const add = (type: string, tag: string, nesting: -1 | 0 | 1, content = ""): Token => {
    const token = new TokenType(type, tag, nesting);
    token.content = content;
    parts.push(token);
    return token;
  };
  let end = 0;
  for (const { 0: path, index } of text.length > LONGEST_TEXT ? [] : text.matchAll(BARE)) {
    if (!looksLikeFile(path) || !/[\\/]|[:#]/.test(path)) continue;
    add("text", "", 0, text.slice(end, index));
    add("link_open", "button", 1).attrs = [...fileAttributes(path), ["dir", "ltr"]];
    add("text", "", 0, path);
    add("link_close", "button", -1);
    end = index + path.length;
  }
  add("text", "", 0, text.slice(end));
  return parts;
}
