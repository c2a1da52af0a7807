import assert from "node:assert/strict";
import fc from "fast-check";
import { uniqueShortIDs } from "../../../src/tools/short-ids.ts";

function shortIDs(...ids: readonly string[]): readonly (string | undefined)[] {
  const found = uniqueShortIDs(ids.map((id) => ({ id })));
  return ids.map((id) => found.get(id));
}

describe("short IDs", () => {
  it("are the last six characters if these distinguish the tasks", () => {
    assert.deepEqual(shortIDs("ses_0001abcdef", "ses_0001abcdeg"), ["abcdef", "abcdeg"]);
    assert.deepEqual(shortIDs("ses_1"), ["ses_1"]);
    assert.deepEqual(shortIDs(), []);
  });

  it("are longer if necessary, only for those tasks", () => {
    assert.deepEqual(shortIDs("ses_12abcdef", "ses_22abcdef", "ses_33ghijkl"), [
      "12abcdef",
      "22abcdef",
      "ghijkl",
    ]);
    assert.deepEqual(shortIDs("abcdef", "xabcdef"), ["abcdef", "xabcdef"]);
    assert.deepEqual(shortIDs("ses_same01", "ses_same01"), ["same01", "same01"]);
  });

  it("are unique, and each is the end of its task's ID", () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.string({ unit: fc.constantFrom("a", "b"), minLength: 1, maxLength: 12 })),
        (ids) => {
          const found = shortIDs(...ids);
          assert.equal(new Set(found).size, ids.length);
          for (const [index, id] of ids.entries()) assert.ok(id.endsWith(found[index] ?? "none"));
        },
      ),
      { seed: 1 },
    );
  });
});
