import assert from "node:assert/strict";
import fc from "fast-check";
import { derivedID, freshID, partID, timeOf } from "../../../src/engine/ids.ts";

const NOW = 1_795_305_411_957;
/** After this many milliseconds, the times in IDs repeat: a little more than two years. */
const SPAN = 2 ** 36;

describe("IDs", () => {
  it("have the time, the order within a millisecond, and a random rest", () => {
    const id = (rank?: number): string => freshID("msg", NOW, () => 0.5, rank);
    assert.match(id(), /^msg_2008a9575000V{14}$/);
    assert.match(id(1), /^msg_2008a9575001/);
    assert.match(id(4_095), /^msg_2008a9575fff/);
    assert.equal(id(5_000), id(4_095));
    assert.match(
      freshID("prt", 0, () => 0),
      /^prt_0{12}0{14}$/,
    );
  });

  it("tell when they were made, in the two years before now", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: SPAN - 1 }), fc.integer({ min: 0, max: 4_095 }), (ago, rank) => {
        assert.equal(timeOf(freshID("msg", NOW - ago, Math.random, rank), NOW), NOW - ago);
      }),
    );
    assert.equal(timeOf(derivedID("msg", NOW - 5, "a"), NOW), NOW - 5);
    assert.equal(timeOf("msg_short", NOW), NOW);
    assert.equal(timeOf("", NOW), NOW);
  });

  it("that are derived depend on each word and on where it ends", () => {
    const words = [["a"], ["a", ""], ["", "a"], ["a", "b"], ["ab"], ["b", "a"], ["a", "b", ""]];
    const ids = words.map((each) => derivedID("msg", NOW, ...each));
    assert.equal(new Set(ids).size, words.length);
    for (const id of ids) assert.match(id, /^msg_2008a9575000[0-9A-Za-z]{14}$/);
    // Other processes derive them too, so they never change.
    assert.equal(derivedID("msg", NOW, "a", "b"), "msg_2008a95750002Ge7Tmnm4sykM7");
  });

  it("of parts follow that of their message, in their order", () => {
    const message = derivedID("msg", NOW, "a");
    const tail = message.slice(-14);
    assert.equal(partID(message, 0), `prt_2008a9575000${tail}`);
    assert.equal(partID(message, 18), `prt_2008a9575012${tail}`);
    const ids = Array.from({ length: 300 }, (_, index) => partID(message, index));
    assert.deepEqual(ids.toSorted(), ids);
    assert.equal(partID(`msg_${"f".repeat(12)}x`, 1), `prt_${"0".repeat(12)}x`);
    assert.equal(partID("msg_00000000000fx", 1), "prt_000000000010x");
  });

  it("of parts of messages with other IDs have only the order", () => {
    for (const id of ["message", `x${derivedID("msg", NOW, "a")}`, "msg_123"])
      assert.equal(partID(id, 10), "prt_00000000000a");
  });
});
