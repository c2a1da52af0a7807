import assert from "node:assert/strict";

import fc from "fast-check";

import { languageOf, tokensOf } from "../../../src/webview/highlight.ts";

const LANGUAGES =
  "ts js jsx tsx json python bash html xml css go rust java c c++ yaml sql diff markdown toml".split(" ");

describe("syntax highlighting", () => {
  const kinds = (code: string, language: string): Record<string, string | undefined> =>
    Object.fromEntries(
      tokensOf(code, languageOf(language) ?? "").map(({ text, kind }) => [text.trim(), kind]),
    );

  it("knows common languages by their usual names", () => {
    for (const name of [...LANGUAGES, "TypeScript", "sh", "yml", "py", "cpp"])
      assert.ok(languageOf(name), name);
    for (const name of ["", "constructor", "__proto__", "klingon"])
      assert.equal(languageOf(name), undefined, name);
  });

  it("distinguishes keywords, strings, numbers and comments", () => {
    const found = kinds('const a = "b"; return 42; // why', "ts");
    assert.equal(found["const"], "kwd");
    assert.equal(found['"b"'], "str");
    assert.equal(found["42"], "num");
    assert.equal(found["// why"], "cmnt");
    assert.equal(kinds("def f():", "python")["def"], "kwd");
    assert.equal(kinds("-old\n+new", "diff")["+new"], "insert");
  });

  it("keeps every character of any text", () => {
    const text = fc.oneof(
      fc.string({ maxLength: 300, unit: "grapheme" }),
      fc.array(
        fc.constantFrom(
          "`",
          "${",
          "}",
          '"',
          "'",
          "/*",
          "*/",
          "//",
          "\\",
          "<!--",
          "<a ",
          "\n",
          "```js\n",
          "x",
        ),
      ),
    );
    fc.assert(
      fc.property(text, fc.constantFrom(...LANGUAGES), (code, name) => {
        const source = Array.isArray(code) ? code.join("") : code;
        const whole = tokensOf(source, languageOf(name) ?? "").map(({ text }) => text);
        assert.equal(whole.join(""), source);
      }),
    );
  });

  it("skips code that is too long", () => {
    const line = "const a = 1;\n";
    for (const code of [line.repeat(1_000), line + "x".repeat(300), line + " ".repeat(300)])
      assert.deepEqual(tokensOf(code, "ts"), [{ text: code }]);
  });
});
