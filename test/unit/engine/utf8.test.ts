import assert from "node:assert/strict";
import fc from "fast-check";
import { utf8Length } from "../../../src/engine/utf8.ts";

describe("The length of a text in UTF-8", () => {
  const assertLength = (text: string): void =>
    assert.equal(utf8Length(text), new TextEncoder().encode(text).length, JSON.stringify(text));

  it("is what an encoder gives at every limit", () => {
    const units = [0, 0x7f, 0x80, 0x7ff, 0x800, 0xd7ff, 0xd800, 0xdbff, 0xdc00, 0xdfff, 0xe000, 0xffff];
    const texts = units.map((unit) => String.fromCharCode(unit));
    for (const one of texts)
      for (const other of texts) for (const text of [one, one + other, `${one}${other}a`]) assertLength(text);
    assertLength("");
  });

  it("is what an encoder gives for any text, also with halves of pairs", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 0xffff })), (units) =>
        assertLength(String.fromCharCode(...units)),
      ),
    );
    fc.assert(fc.property(fc.string({ unit: "grapheme" }), assertLength));
  });
});
