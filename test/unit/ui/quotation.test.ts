import assert from "node:assert/strict";
import { codeSpan, fenced } from "../../../src/protocol/quotation.ts";

describe("quotations", () => {
  it("have a longer fence than any in the text", () => {
    assert.equal(fenced("a\n", "ts"), "```ts\na\n```");
    assert.equal(fenced("```\na\n```", ""), "````\n```\na\n```\n````");
  });

  it("can be of 5 MB with a million runs of backticks", () => {
    const text = "``aaa".repeat(1_000_000);
    assert.equal(fenced(text, "").length, text.length + 8);
  });

  it("have, within a line, more backticks than the text, and a space beside its own", () => {
    assert.equal(codeSpan("a"), "`a`");
    assert.equal(codeSpan("a `b` c"), "``a `b` c``");
    assert.equal(codeSpan("`a"), "`` `a ``");
  });
});
