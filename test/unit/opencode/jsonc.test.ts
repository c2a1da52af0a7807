import assert from "node:assert/strict";
import { readJson } from "../../../src/opencode/jsonc.ts";

describe("JSON with comments", () => {
  it("its nodes say where they stand", () => {
    const text = ' { "a": [ 1 , "x" /* c */ ], } ';
    const root = readJson(text);
    const slice = ({ start, end }: { start: number; end: number }): string => text.slice(start, end);
    assert.equal(slice(root), '{ "a": [ 1 , "x" /* c */ ], }');
    const [property] = root.items ?? [];
    assert.ok(property);
    assert.equal(property.key, "a");
    assert.equal(slice(property), '"a": [ 1 , "x" /* c */ ]');
    assert.equal(property.comma, text.lastIndexOf(",") + 1);
    const [one, x] = property.node.items ?? [];
    assert.ok(one && x);
    assert.deepEqual([slice(one), one.comma, slice(x), x.comma], ["1", 13, '"x"', undefined]);
  });

  it("what is wrong is told by its line", () => {
    assert.throws(() => readJson('{\n  "a": 1,\n  oops\n}'), { name: "SyntaxError", message: "line 3" });
    assert.throws(() => readJson('{\n  "a": "x\n}'), { name: "SyntaxError", message: "line 2" });
    assert.throws(() => readJson("[".repeat(200_000)), RangeError);
  });

  it("long texts are no matter", () => {
    const long = "x".repeat(2_000_000);
    assert.deepEqual(readJson(`/*${long}*/ { "a": "${long}" } //${long}`).value, { a: long });
    assert.deepEqual(readJson(" ".repeat(2_000_000) + "[]").value, []);
    assert.throws(() => readJson(`"${long}`), SyntaxError);
    assert.throws(() => readJson(`/*${long}`), SyntaxError);
  });
});
