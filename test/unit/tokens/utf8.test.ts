import assert from "node:assert/strict";
import fc from "fast-check";
import { utf8Length } from "../../../src/engine/utf8.ts";

describe("the length of a text in UTF-8", () => {
  it("is one to four bytes per character, and three for half a surrogate pair", () => {
    const lengths = {
      "": 0,
      a: 1,
      é: 2,
      你: 3,
      "😀": 4,
      "\ud83d": 3,
      "\ude00": 3,
      "\ud83da": 4,
      "\ude00\ud83d": 6,
    };
    for (const [text, length] of Object.entries(lengths)) assert.equal(utf8Length(text), length, text);
  });

  it("equals an encoder's for any text", () => {
    const codes = fc.oneof(
      fc.integer({ min: 0, max: 0xffff }),
      fc.integer({ min: 0xd800, max: 0xdfff }),
      fc.constantFrom(0x7f, 0x80, 0x7ff, 0x800, 0xdbff, 0xdc00, 0xffff),
    );
    fc.assert(
      fc.property(fc.array(codes), (units) => {
        const text = String.fromCharCode(...units);
        assert.equal(utf8Length(text), new TextEncoder().encode(text).length);
      }),
    );
  });
});
