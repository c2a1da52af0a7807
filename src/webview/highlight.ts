import bash from "@speed-highlight/core/languages/bash.js";
import c from "@speed-highlight/core/languages/c.js";
import css from "@speed-highlight/core/languages/css.js";
import diff from "@speed-highlight/core/languages/diff.js";
import go from "@speed-highlight/core/languages/go.js";
import html from "@speed-highlight/core/languages/html.js";
import java from "@speed-highlight/core/languages/java.js";
import js from "@speed-highlight/core/languages/js.js";
import json from "@speed-highlight/core/languages/json.js";
import md from "@speed-highlight/core/languages/md.js";
import py from "@speed-highlight/core/languages/py.js";
import rs from "@speed-highlight/core/languages/rs.js";
import sql from "@speed-highlight/core/languages/sql.js";
import toml from "@speed-highlight/core/languages/toml.js";
import ts from "@speed-highlight/core/languages/ts.js";
import xml from "@speed-highlight/core/languages/xml.js";
import yaml from "@speed-highlight/core/languages/yaml.js";
import { tokenizeWith, type ShjLanguageData, type ShjToken } from "@speed-highlight/core/tokenize";
import { h } from "./dom.ts";

// The declared types don't allow `undefined` for optional properties.
const ALL = { bash, c, css, diff, go, html, java, js, json, md, py, rs, sql, toml, ts, xml, yaml };
const LANGUAGES = ALL as unknown as Readonly<Record<string, ShjLanguageData>>;

/** Other names that code fences use for a language, or for one similar enough. */
const OTHER_NAMES: Readonly<Record<string, string>> = {
  bash: "sh shell zsh console shellscript",
  c: "c++ cpp cc h hpp",
  css: "scss less",
  diff: "patch",
  go: "golang",
  html: "htm vue svelte",
  java: "cs csharp kotlin kt",
  js: "javascript jsx mjs cjs",
  json: "jsonc json5",
  md: "markdown mdx",
  py: "python python3",
  rs: "rust",
  ts: "typescript tsx mts cts",
  xml: "svg",
  yaml: "yml",
};

const NAMES: ReadonlyMap<string, string> = new Map(
  Object.keys(LANGUAGES).flatMap((language) =>
    [language, ...(OTHER_NAMES[language]?.split(" ") ?? [])].map((name) => [name, language]),
  ),
);

/** Longer code blocks, in characters, aren't highlighted, because that would block the page. */
const LONGEST = 8_000;
/** Runs for which the tokenizer's expressions take too long; no one reads such code by its colors. */
const ENDLESS_RUN = /\w{200}|\s{200}/;

/** Tokens that keep the text color. */
const PLAIN: ReadonlySet<ShjToken> = new Set(["oper", "esc", "err"]);

/** The language that a code fence names; undefined if unknown. */
export function languageOf(info: string): string | undefined {
  return NAMES.get(info.toLowerCase());
}

/** A piece of code; `kind` is missing if it has the text color. */
export interface Token {
  readonly text: string;
  readonly kind?: ShjToken | undefined;
}

/** Splits code into tokens; joined, their texts give the code again. */
export function tokensOf(code: string, language: string): readonly Token[] {
  const grammar = LANGUAGES[language];
  if (!grammar || code.length > LONGEST || ENDLESS_RUN.test(code)) return [{ text: code }];
  const tokens: Token[] = [];
  const add = (text: string, kind?: ShjToken): void => {
    if (text !== "") tokens.push(kind === undefined || PLAIN.has(kind) ? { text } : { text, kind });
  };
  tokenizeWith(code, grammar, add, { languages: LANGUAGES });
  return tokens;
}

/** The tokens as nodes; the class of each span names its kind. */
export function highlighted(code: string, language: string): readonly (Node | string)[] {
  return tokensOf(code, language).map(({ text, kind }) =>
    kind === undefined ? text : h("span", { class: `tok-${kind}` }, text),
  );
}
