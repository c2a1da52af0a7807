import assert from "node:assert/strict";
import { modelText, parseModel, requireModel } from "../../../src/engine/model-ref.ts";

describe("The name of a model", () => {
  it("has a provider before its first slash, and no spaces", () => {
    assert.deepEqual(parseModel("acme/small"), { providerID: "acme", modelID: "small" });
    assert.deepEqual(parseModel("acme/org/small"), { providerID: "acme", modelID: "org/small" });
    for (const text of [
      undefined,
      "",
      "acme",
      "acme/",
      "/small",
      " acme/small",
      "acme/small ",
      "a b/c",
      "a/b c",
    ])
      assert.equal(parseModel(text), undefined, text);
  });

  it("that is no name is refused with what to enter, unless none is given", () => {
    assert.equal(requireModel(undefined), undefined);
    assert.deepEqual(requireModel("acme/small"), { providerID: "acme", modelID: "small" });
    assert.throws(() => requireModel("small"), {
      code: "unknown-model",
      message: '"small" isn\'t a model. Enter it as provider/model.',
    });
  });

  it("is shown as it is entered, as far as it is known", () => {
    assert.equal(modelText({ providerID: "acme", modelID: "org/small" }), "acme/org/small");
    assert.equal(modelText({ providerID: "", modelID: "small" }), "small");
    assert.equal(modelText(undefined), "");
  });
});
