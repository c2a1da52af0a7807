import assert from "node:assert/strict";
import { Refusal, textOf } from "../../../src/engine/errors.ts";
import { english, isText, sentence } from "../../../src/engine/sentence.ts";

describe("a sentence", () => {
  it("gives its English text with its values, including other sentences and literal braces", () => {
    const inner = sentence("there is no such file");
    assert.equal(
      english(sentence('"{0}" is not usable: {1}. ({2})', "{1}", inner, 3)),
      '"{1}" is not usable: there is no such file. (3)',
    );
    assert.equal(english("as {0} came"), "as {0} came");
  });

  it("is unchanged after JSON, and nothing else counts as one", () => {
    const text = sentence("Task {0} has the status {1}.", "a1", sentence("running"));
    const received: unknown = JSON.parse(JSON.stringify(text));
    assert.ok(isText(received));
    assert.deepEqual(received, text);
    for (const other of [
      undefined,
      null,
      1,
      {},
      { template: "a" },
      { template: "a", values: [{}] },
      { template: 1, values: [] },
    ])
      assert.ok(!isText(other), JSON.stringify(other));
  });

  it("is kept by the error that contains it", () => {
    const text = sentence("There is no batch {0}.", "b1");
    const refusal = new Refusal("unknown-batch", text);
    assert.equal(refusal.message, "There is no batch b1.");
    assert.equal(textOf(refusal), text);
    assert.equal(textOf(new Error("as it came")), "as it came");
  });
});
