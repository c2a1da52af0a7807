import assert from "node:assert/strict";
import fc from "fast-check";
import { nameOf, withoutName } from "../../../src/engine/task-names.ts";

describe("the name of a task's worktree", () => {
  const name = (description: string): string => nameOf(description, () => 0.5);

  it("is made from the description, so that users recognize it", () => {
    assert.equal(name("Add cart tests"), "add-cart-tests-iiii");
    assert.equal(name("  Fix `Über`: 2 bugs! "), "fix-uber-2-bugs-iiii");
    assert.equal(name("购物车"), "task-iiii");
  });

  it("is short, and safe in paths and Git refs, whatever the description is", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), fc.nat(), (text, seed) => {
        const made = nameOf(text, () => (seed % 1_000) / 1_000);
        assert.match(made, /^[a-z0-9]+(-[a-z0-9]+)*$/);
        assert.ok(made.length <= 37, made);
      }),
    );
  });

  it("is shortened to its ending in the log, wherever it is in a text", () => {
    const made = name("Add cart tests");
    assert.equal(
      withoutName(`${made}: EBUSY: rmdir '/shop.worktrees/${made}'`, made),
      "…iiii: EBUSY: rmdir '/shop.worktrees/…iiii'",
    );
  });
});
