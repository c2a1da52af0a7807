import assert from "node:assert/strict";
import fc from "fast-check";
import { takeBack } from "../../../src/daemon/take-back.ts";

const lines = fc
  .array(fc.constantFrom("a", "b", "c", "{", "}", ""), { maxLength: 30 })
  .chain((found) => fc.boolean().map((ends) => found.join("\n") + (ends && found.length > 0 ? "\n" : "")));

describe("taking a change back", () => {
  it("restores the former text if nobody changed it since", () => {
    fc.assert(
      fc.property(lines, lines, (before, after) => assert.equal(takeBack(before, after, after), before)),
    );
  });

  it("removes nothing that the task did not add", () => {
    fc.assert(
      fc.property(lines, lines, (text, present) => assert.equal(takeBack(text, text, present), present)),
    );
  });

  it("keeps others' changes in other places, and refuses those in the same place", () => {
    type By = "nobody" | "task" | "other" | "both";
    const places = fc.array(fc.constantFrom<By>("nobody", "task", "other", "both"), {
      minLength: 1,
      maxLength: 12,
    });
    fc.assert(
      fc.property(places, (found) => {
        const text = (line: (by: By, at: number) => string): string =>
          found.map((by, at) => `fixed ${at}\n${line(by, at)}fixed too ${at}\n`).join("");
        const old = (at: number): string => `old ${at}\n`;
        const before = text((_, at) => old(at));
        const after = text((by, at) => (by === "task" || by === "both" ? `task's ${at}\n` : old(at)));
        const present = text((by, at) =>
          by === "task" ? `task's ${at}\n` : by === "nobody" ? old(at) : `other's ${at}\nand more ${at}\n`,
        );
        const wanted = text((by, at) => (by === "other" ? `other's ${at}\nand more ${at}\n` : old(at)));
        assert.equal(takeBack(before, after, present), found.includes("both") ? undefined : wanted);
      }),
    );
  });

  it("refuses two insertions in the same place", () => {
    assert.equal(takeBack("a\nb\n", "a\ntask's\nb\n", "a\ntask's\nother's\nb\n"), undefined);
  });

  it("keeps line endings, and a last line without one", () => {
    assert.equal(
      takeBack("1\r\n2\r\n3\r\n4", "1\r\nTWO\r\n3\r\n4", "1\r\nTWO\r\n3\r\n4 more"),
      "1\r\n2\r\n3\r\n4 more",
    );
  });

  it("takes back a change after 200,000 lines", () => {
    const lines = "line\n".repeat(200_000);
    assert.equal(
      takeBack(`${lines}old\n`, `${lines}task's\n`, `other's\n${lines}task's\n`),
      `other's\n${lines}old\n`,
    );
  });

  it("refuses texts that differ too much for a fast comparison", () => {
    const text = (word: string): string =>
      Array.from({ length: 6_000 }, (_, at) => `${word} ${at}\n`).join("");
    assert.equal(takeBack("a\n", text("task's"), text("other's")), undefined);
  });
});
