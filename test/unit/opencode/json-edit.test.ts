import assert from "node:assert/strict";
import { getNodeValue } from "jsonc-parser";
import { parseConfig } from "../../../src/opencode/json-edit.ts";

describe("JSON with comments", () => {
  it("an error names its line", () => {
    assert.throws(() => parseConfig('{\n  "a": 1,\n  oops\n}'), { name: "SyntaxError", message: "line 3" });
    assert.throws(() => parseConfig('{\n  "a": "x\n}'), { name: "SyntaxError", message: "line 2" });
    assert.throws(() => parseConfig("[".repeat(200_000)), RangeError);
  });

  it("long texts are parsed", () => {
    const long = "x".repeat(2_000_000);
    const valueOf = (text: string): unknown => structuredClone(getNodeValue(parseConfig(text)));
    assert.deepEqual(valueOf(`/*${long}*/ { "a": "${long}" } //${long}`), { a: long });
    assert.deepEqual(valueOf(" ".repeat(2_000_000) + "[]"), []);
    assert.throws(() => parseConfig(`"${long}`), SyntaxError);
    assert.throws(() => parseConfig(`/*${long}`), SyntaxError);
  });
});
