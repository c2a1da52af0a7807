import assert from "node:assert/strict";
import fc from "fast-check";
import {
  describe as describeTask,
  givenDescription,
  nameOf,
  withoutName,
} from "../../../src/engine/task-names.ts";

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

describe("The description of a task", () => {
  it("is the first line of what is given, or else of the prompt, without space around it", () => {
    assert.equal(describeTask({ description: " Fix it \nand more", prompt: "Work." }), "Fix it ");
    assert.equal(describeTask({ description: " \n", prompt: "\n  Work.\r\nThen rest." }), "Work.");
    assert.equal(describeTask({ prompt: "Work.\nThen rest." }), "Work.");
    assert.equal(describeTask({ prompt: "" }), "");
    assert.equal(givenDescription(" Fix it\t"), "Fix it");
    assert.throws(() => givenDescription(" \n "), {
      code: "invalid-argument",
      message: "A task needs a name.",
    });
  });

  it("is cut where it gets too long, between characters", () => {
    assert.equal(givenDescription("é".repeat(200)), "é".repeat(200));
    assert.equal(givenDescription("😀".repeat(201)), `${"😀".repeat(199)}…`);
    assert.equal(describeTask({ prompt: "a".repeat(80) }), "a".repeat(80));
    assert.equal(describeTask({ prompt: `${"a".repeat(78)} bcd` }), `${"a".repeat(78)}…`);
  });

  it("gives a worktree no more than 32 characters of its name", () => {
    assert.equal(
      nameOf(`${"a".repeat(31)} bcd`, () => 0),
      `${"a".repeat(31)}-0000`,
    );
    assert.equal(
      nameOf("b".repeat(40), () => 0),
      `${"b".repeat(32)}-0000`,
    );
  });
});
