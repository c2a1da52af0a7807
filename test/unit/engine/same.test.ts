import assert from "node:assert/strict";
import { isSame } from "../../../src/engine/same.ts";

describe("Equal values", () => {
  it("have the same properties, in any order; undefined ones count as missing", () => {
    assert.ok(isSame({ a: 1, b: [1, { c: null }] }, { b: [1, { c: null }], a: 1, d: undefined }));
    assert.ok(isSame("a", "a") && isSame(undefined, undefined) && isSame([], []));
  });

  it("differ in one value, one property or their kind", () => {
    for (const [a, b] of [
      [{ a: 1 }, { a: 2 }],
      [{ a: 1 }, { a: 1, b: 1 }],
      [{ a: 1, b: 1 }, { a: 1 }],
      [[1], [1, 2]],
      [[], {}],
      [{}, []],
      [null, {}],
      [{}, null],
      [1, "1"],
      [{}, 1],
      ["a", {}],
    ])
      assert.ok(!isSame(a, b), JSON.stringify([a, b]));
  });
});
