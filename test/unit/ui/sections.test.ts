import assert from "node:assert/strict";
import { splitSections } from "../../../src/ui/launch-plan.ts";

describe("the sections of a prompt editor", () => {
  const cases: readonly (readonly [string, string, readonly string[]])[] = [
    ["are none in an empty text", " \n\n", []],
    ["are one without a line of dashes", "one\ntwo", ["one\ntwo"]],
    [
      "are divided by a line of three or more dashes, also with trailing spaces",
      "a\n---\nb\n-----  \nc",
      ["a", "b", "c"],
    ],
    ["are the same with Windows line endings", "a\r\n---\r\nb", ["a", "b"]],
    ["leave out empty ones", "---\na\n---\n\n---", ["a"]],
    [
      "are not divided by dashes within a line, a list or a table",
      "a --- b\n- - -\n| --- |\n--",
      ["a --- b\n- - -\n| --- |\n--"],
    ],
  ];
  for (const [title, text, sections] of cases)
    it(title, () => assert.deepEqual(splitSections(text), sections));
});
