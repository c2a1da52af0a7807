import assert from "node:assert/strict";
import { splitSections } from "../../../src/ui/prompt-editor/sections.ts";

describe("the sections of a prompt editor", () => {
  const cases: readonly (readonly [string, string, readonly string[]])[] = [
    ["an empty text has none", " \n\n", []],
    ["a text without a line of dashes is one", "one\ntwo", ["one\ntwo"]],
    [
      "a line of three dashes or more divides, also with spaces after it",
      "a\n---\nb\n-----  \nc",
      ["a", "b", "c"],
    ],
    ["lines may end as on Windows", "a\r\n---\r\nb", ["a", "b"]],
    ["sections that say nothing are left out", "---\na\n---\n\n---", ["a"]],
    [
      "dashes within a line, a list or a table divide nothing",
      "a --- b\n- - -\n| --- |\n--",
      ["a --- b\n- - -\n| --- |\n--"],
    ],
  ];
  for (const [title, text, sections] of cases)
    it(title, () => assert.deepEqual(splitSections(text), sections));
});
