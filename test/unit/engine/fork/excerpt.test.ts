import assert from "node:assert/strict";
import { amount, excerpt, head, oneLine, tail } from "../../../../src/engine/fork/excerpt.ts";

describe("A piece of a text", () => {
  it("is all of a short one", () => {
    for (const text of ["", "ab", "abc", "a😀"])
      for (const piece of [head, tail, excerpt]) assert.equal(piece(text, 3), text);
  });

  it("has as many units as are asked for", () => {
    assert.deepEqual([head("abcd", 3), tail("abcd", 3), excerpt("abcd", 3)], ["abc", "bcd", "abc…"]);
    assert.deepEqual([head("abcd", 0), tail("abcd", 0), excerpt("abcd", 0)], ["", "", "…"]);
  });

  it("has one less if it would begin or end with half of a pair", () => {
    // The first and the last character that take two units, and neighbours that take one.
    for (const pair of ["\u{10000}", "\u{10FFFF}", "😀"]) {
      assert.deepEqual([head(`a${pair}b`, 2), head(`a${pair}b`, 3)], ["a", `a${pair}`]);
      assert.deepEqual([tail(`a${pair}b`, 2), tail(`a${pair}b`, 3)], ["b", `${pair}b`]);
    }
    for (const single of ["\uD7FF", "\uE000", "\uFFFF"]) {
      assert.equal(head(`a${single}b`, 2), `a${single}`);
      assert.equal(tail(`a${single}b`, 2), `${single}b`);
    }
  });

  it("keeps half of a pair that stands alone where it isn't at the cut", () => {
    assert.equal(head("\uDC00ab", 2), "\uDC00a");
    assert.equal(tail("ab\uD800", 2), "b\uD800");
    // Only the first half is kept from an end, and only the second one from a beginning.
    assert.equal(head("a\uDC00b", 2), "a\uDC00");
    assert.equal(tail("a\uD800b", 2), "\uD800b");
  });

  it("is on one line if it is to be", () => {
    assert.equal(oneLine(" a\r\n\tb\u0085c \u2028 d\n"), "a b c d");
  });
});

describe("A number of things", () => {
  it("has them in the plural, unless it is one", () => {
    assert.deepEqual(
      [0, 1, 2].map((count) => amount(count, "file")),
      ["0 files", "1 file", "2 files"],
    );
  });
});
