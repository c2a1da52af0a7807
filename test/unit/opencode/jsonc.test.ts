import assert from "node:assert/strict";
import fc from "fast-check";
import { parse, type ParseError } from "jsonc-parser";
import { readJson } from "../../../src/opencode/jsonc.ts";

/** What the reader of VS Code's own settings makes of a text; undefined: it is not valid. */
function reference(text: string): { value: unknown } | undefined {
  const errors: ParseError[] = [];
  const value: unknown = parse(text, errors, { allowTrailingComma: true });
  return errors.length === 0 ? { value } : undefined;
}

function ours(text: string): { value: unknown } | undefined {
  try {
    return { value: readJson(text).value };
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

describe("JSON with comments", () => {
  it("is read as VS Code reads it", () => {
    const texts = [
      "{}",
      ' { "a" : [ 1 , -2.5e+3 , 0.1E-2 , true , false , null , "x" ] } ',
      '// one\n{ /* two */ "a": /* three\n */ 1, // four\n }\n// five',
      '{ "a": [1,], "b": {"c": 1,}, }',
      String.raw`"\u00e9 \" \\ \/ \b\f\n\r\t // no comment /* nor this */"`,
      '{ "a": 1, "a": 2 }',
      "{ /* unfinished",
      "/ / x\n{}",
      "[,]",
      "[1,,2]",
      "[1 2]",
      "{,}",
      "{ a: 1 }",
      "{ 'a': 1 }",
      '{ "a" 1 }',
      '{ "a": }',
      '{ 1: "a" }',
      '{ "a": 1',
      "[1",
      "{]",
      "[}",
      "{} {}",
      "{},",
      '"unfinished',
      '"a\nb"',
      '"a\tb"',
      String.raw`"\x"`,
      String.raw`"\u12"`,
      "01",
      "1.",
      ".5",
      "+1",
      "1e",
      "-",
      "tru",
      "truex",
      "NaN",
      "undefined",
      "",
      " ",
      "// only a comment",
      "\u00a0{}",
      "\u2028{}",
    ];
    for (const text of texts) assert.deepEqual(ours(text), reference(text), JSON.stringify(text));
  });

  it("is read as VS Code reads it, whatever the text", () => {
    const token = fc.constantFrom(
      ...'{}[],:"\\/*-.01\n\r\t xe',
      "//",
      "/*",
      "*/",
      '"a"',
      '"b":',
      "true",
      "null",
      '{"a":1}',
      "[1,2]",
    );
    const texts = fc.array(token, { maxLength: 12 }).map((tokens) => tokens.join(""));
    fc.assert(
      fc.property(fc.oneof(texts, fc.json()), (text) => assert.deepEqual(ours(text), reference(text))),
      { seed: 20_251, numRuns: 5_000 },
    );
  });

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
