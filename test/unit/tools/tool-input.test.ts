import assert from "node:assert/strict";
import fc from "fast-check";
import { Refusal } from "../../../src/engine/errors.ts";
import { ToolInput } from "../../../src/tools/tool-input.ts";

function refuses(read: () => unknown, sentence: string): void {
  assert.throws(read, (error) => {
    assert.ok(error instanceof Refusal);
    assert.equal(error.code, "invalid-argument");
    assert.equal(error.message, sentence);
    return true;
  });
}

describe("the input of a tool", () => {
  for (const sent of [undefined, null, "", "  ", {}, "{}"])
    it(`may be ${JSON.stringify(sent)}, which has no parameters`, () => {
      assert.equal(new ToolInput(sent).text("prompt"), undefined);
    });

  it("may be JSON text", () => {
    const input = new ToolInput('{"task_id": " a1B2c3 ", "block": "TRUE"}');
    assert.equal(input.id("task_id"), "a1B2c3");
    assert.equal(input.flag("block"), true);
  });

  for (const sent of [7, true, [], [{}], "no JSON", "[1]", '"text"', "null", "{"])
    it(`is refused if it is ${JSON.stringify(sent)}`, () => {
      refuses(() => new ToolInput(sent), "The parameters must be one JSON object.");
    });

  for (const absent of [undefined, null, "", " \n"])
    it(`may have the value ${JSON.stringify(absent)}, which counts as omitted, whatever the type`, () => {
      const input = new ToolInput({ it: absent });
      assert.equal(input.text("it"), undefined);
      assert.equal(input.id("it"), undefined);
      assert.equal(input.flag("it"), false);
      assert.equal(input.number("it", "a number"), undefined);
      assert.equal(input.word("it", ["a"]), undefined);
      assert.deepEqual(input.others([]), []);
    });

  it("has texts, which are kept unchanged", () => {
    assert.equal(new ToolInput({ prompt: " a\n" }).text("prompt"), " a\n");
  });

  for (const value of [1, true, {}, ["a"]])
    it(`may not have ${JSON.stringify(value)} as a text`, () => {
      refuses(() => new ToolInput({ prompt: value }).text("prompt"), 'The parameter "prompt" must be text.');
    });

  for (const [sent, id] of [
    [" a1B2c3\n", "a1B2c3"],
    [123456, "123456"],
    ["a1B2c3 (resumed)", "a1B2c3"],
    ["a1B2c3 (resumed) (forked)", "a1B2c3"],
    ["docs  and\ntests", "docs and tests"],
  ] as const)
    it(`may have ${JSON.stringify(sent)} as the ID ${id}`, () => {
      assert.equal(new ToolInput({ id: sent }).id("id"), id);
    });

  for (const value of [true, {}, ["a1B2c3"]])
    it(`may not have ${JSON.stringify(value)} as an ID`, () => {
      refuses(
        () => new ToolInput({ task_id: value }).id("task_id"),
        'The parameter "task_id" must be one ID, written as text.',
      );
    });

  for (const [sent, flag] of [
    [true, true],
    ["true", true],
    [" True ", true],
    [false, false],
    ["FALSE", false],
  ] as const)
    it(`may have ${JSON.stringify(sent)} for ${flag}`, () => {
      assert.equal(new ToolInput({ block: sent }).flag("block"), flag);
    });

  for (const value of ["yes", 1, 0, {}, [true]])
    it(`may not have ${JSON.stringify(value)} for true or false`, () => {
      refuses(
        () => new ToolInput({ block: value }).flag("block"),
        'The parameter "block" must be true or false.',
      );
    });

  for (const [sent, number] of [
    [30, 30],
    ["30", 30],
    [" 1.5 ", 1.5],
    [0, 0],
    ["-1", -1],
  ] as const)
    it(`may have ${JSON.stringify(sent)} for the number ${number}`, () => {
      assert.equal(new ToolInput({ timeout: sent }).number("timeout", "a number"), number);
    });

  for (const value of ["30s", "soon", true, {}, [30], NaN])
    it(`may not have ${JSON.stringify(value)} as a number`, () => {
      refuses(
        () => new ToolInput({ timeout: value }).number("timeout", "a number of seconds"),
        'The parameter "timeout" must be a number of seconds.',
      );
    });

  it("may have a word in any case; an unknown one is refused with the available ones", () => {
    const words = ["running", "completed"] as const;
    assert.equal(new ToolInput({ status: " Completed" }).word("status", words), "completed");
    for (const status of ["done", 1, ["running"], {}])
      refuses(
        () => new ToolInput({ status }).word("status", words),
        'The parameter "status" must be one of running, completed, or left out.',
      );
  });

  it("may have unknown parameters, which can be listed", () => {
    const input = new ToolInput({ task_id: "a", colour: "red", empty: "", ["__proto__"]: 1, toString: 2 });
    assert.equal(input.id("task_id"), "a");
    assert.equal(input.text("constructor"), undefined);
    assert.deepEqual(input.others(["task_id"]), ["colour", "__proto__", "toString"]);
  });

  it("is read or refused with one sentence, whatever it is", () => {
    fc.assert(
      fc.property(fc.anything(), fc.anything(), (whole, value) => {
        for (const sent of [whole, { it: value }, JSON.stringify(whole)])
          for (const read of [
            (input: ToolInput) => input.text("it"),
            (input: ToolInput) => input.id("it"),
            (input: ToolInput) => input.flag("it"),
            (input: ToolInput) => input.number("it", "a number"),
            (input: ToolInput) => input.word("it", ["a"]),
          ])
            try {
              read(new ToolInput(sent));
            } catch (error) {
              assert.ok(error instanceof Refusal, String(error));
              assert.match(error.message, /^The parameter[^\n]+\.$/);
            }
      }),
      { seed: 1 },
    );
  });
});
