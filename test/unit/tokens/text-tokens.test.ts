import assert from "node:assert/strict";
import fc from "fast-check";
import { Tiktoken } from "js-tiktoken/lite";
import o200k from "js-tiktoken/ranks/o200k_base";
import { utf8Length } from "../../../src/engine/utf8.ts";
import { TextTokens } from "../../../src/tokens/text-tokens.ts";
import { loadVocabulary } from "../../../src/tokens/vocabulary.ts";
import { base64, letters, ordinary } from "./samples.ts";

describe("the tokens of a text", function () {
  this.timeout(120_000);
  let tokens: TextTokens;
  let reference: Tiktoken;

  before(() => {
    tokens = new TextTokens(loadVocabulary());
    reference = new Tiktoken(o200k);
  });

  const exact = (text: string): number => reference.encode(text, [], []).length;
  const assertExact = (text: string, what = JSON.stringify(text)): void =>
    assert.equal(tokens.count(text), exact(text), what);

  for (const [name, text] of Object.entries(ordinary))
    it(`are those of js-tiktoken: ${name}`, () => {
      assert.ok(text.length > 1_000);
      assertExact(text, name);
    });

  it("are none for an empty text", () => assert.equal(tokens.count(""), 0));

  it("treat the text of a special token as plain text", () => {
    for (const text of ["<|endoftext|>", "<|endofprompt|> and <|endoftext|>.", "<|endoftext|>".repeat(300)])
      assertExact(text);
    assert.ok(tokens.count("<|endoftext|>") > 1);
  });

  it("are exact for emoji, right-to-left scripts and combining characters", () => {
    for (const text of [
      "👩‍👩‍👧‍👦🏳️‍🌈 ok 👍🏽".repeat(20),
      "שלום עולם، مرحبا بالعالم! ".repeat(20),
      "e\u0301\u0302\u0303 naïve Å\u200f\u202eabc\u202c".repeat(20),
      "𝒜𝒷𝒸𠮷野家",
    ])
      assertExact(text);
  });

  it("are exact for half surrogate pairs", () => {
    for (const text of ["\ud800", "\udfff", "a\ud83d b", "\udc00\ud83d", "\ud83d".repeat(50)])
      assertExact(text);
  });

  it("are exact for long runs without a word boundary", () => {
    const runs = {
      "one letter": "a".repeat(2_500),
      letters: letters(2_000),
      "two letters": letters(1_500).replaceAll(/[a-m]/g, "a").replaceAll(/[n-z]/g, "b"),
      "upper case": letters(1_200).toUpperCase(),
      words: "configurationserverwindow".repeat(60),
      spaces: " ".repeat(1_700),
      "spaces before a word": `${" ".repeat(900)}word`,
      "line ends": "\r\n".repeat(700),
      "punctuation marks": "-=*#.!".repeat(200),
      "Chinese characters": [...ordinary.chinese]
        .filter((each) => !/\p{P}/u.test(each))
        .slice(0, 500)
        .join(""),
      emoji: "😀🚀🧪".repeat(100),
    };
    for (const [name, run] of Object.entries(runs)) assertExact(run, name);
  });

  it("of any text are as many as js-tiktoken's, and at most as many as its bytes", () => {
    const unit = fc.oneof(
      fc.constantFrom(..."aeintsAZ09 \t\r\n'/.-_{}<|>你好的是ก็ไéß😀"),
      fc.constantFrom("'s", "'ll", "  ", "\n\n", "the", "ing", "function", "服务", "<|endoftext|>"),
      fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code)),
    );
    const text = fc.array(unit, { maxLength: 120, size: "max" }).map((units) => units.join(""));
    fc.assert(
      fc.property(text, (given) => {
        const count = tokens.count(given);
        assert.equal(count, exact(given));
        assert.ok(count <= utf8Length(given));
      }),
      { numRuns: 500 },
    );
  });

  it("of a text are the same, whatever was counted before", () => {
    const fresh = tokens.count(ordinary.code);
    for (let index = 0; index < 60_000; index++) tokens.count(`x${index.toString(36)}`);
    assert.equal(tokens.count(ordinary.code), fresh);
  });

  describe("are counted completely for a megabyte of unusual text:", () => {
    const megabyte = 2 ** 20;
    const filled = (text: string): string => text.repeat(Math.ceil(megabyte / utf8Length(text)));
    const odd: Record<string, { text: string; charactersPerToken: readonly [number, number] }> = {
      "one letter": { text: filled("a"), charactersPerToken: [7.9, 8.1] },
      letters: { text: letters(megabyte), charactersPerToken: [1.5, 3] },
      spaces: { text: filled(" "), charactersPerToken: [100, 140] },
      "Chinese characters": {
        text: filled("服务器读取配置文件没有保存缓存的内容"),
        charactersPerToken: [1, 3],
      },
      base64: { text: base64(megabyte), charactersPerToken: [1, 3] },
      "minified code": { text: filled(ordinary.minified), charactersPerToken: [2, 4] },
      "special tokens": { text: filled("<|endoftext|>"), charactersPerToken: [1, 4] },
      emoji: { text: filled("👩‍👩‍👧‍👦"), charactersPerToken: [0.5, 3] },
      "right to left": { text: filled("שלום עולם "), charactersPerToken: [2, 6] },
      "halves of surrogate pairs": { text: filled("\ud83d"), charactersPerToken: [0.3, 8] },
    };
    for (const [name, { text, charactersPerToken }] of Object.entries(odd))
      it(name, () => {
        const found = text.length / tokens.count(text);
        const [least, most] = charactersPerToken;
        assert.ok(found >= least && found <= most, `${found} characters per token`);
      });
  });
});
