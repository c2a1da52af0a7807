import assert from "node:assert/strict";
import { descendants, Tree } from "../../../src/engine/tree.ts";

describe("A tree", () => {
  interface Value {
    readonly id: string;
    readonly in?: string;
  }
  const ids = (values: readonly Value[]): readonly string[] => values.map(({ id }) => id);

  it("has each value below its present parent, in the order in which they were added", () => {
    const tree = new Tree<Value>((value) => value.in);
    for (const value of [{ id: "b", in: "root" }, { id: "a", in: "root" }, { id: "root" }]) tree.keep(value);
    assert.deepEqual(ids(tree.childrenOf("root")), ["b", "a"]);
    tree.keep({ id: "b", in: "root" });
    assert.deepEqual(ids(tree.childrenOf("root")), ["b", "a"]);
    tree.keep({ id: "b", in: "a" });
    assert.deepEqual([ids(tree.childrenOf("root")), ids(tree.childrenOf("a"))], [["a"], ["b"]]);
    tree.keep({ id: "b" });
    assert.deepEqual(ids(tree.childrenOf("a")), []);
    tree.keep({ id: "b", in: "root" });
    tree.forget("a");
    tree.forget("unknown");
    assert.deepEqual(ids(tree.childrenOf("root")), ["b"]);
    assert.deepEqual(ids(tree.all()), ["b", "root"]);
    assert.equal(tree.get("a"), undefined);
    assert.deepEqual(tree.get("b"), { id: "b", in: "root" });
    // One that comes back is the last.
    tree.keep({ id: "c", in: "root" });
    tree.forget("b");
    tree.keep({ id: "b", in: "root" });
    assert.deepEqual(ids(tree.childrenOf("root")), ["c", "b"]);
  });

  it("has descendants, the nearest first, each once, even if it is its own ancestor", () => {
    const below: Record<string, readonly string[]> = { a: ["b", "c"], b: ["d"], c: ["d", "a"], d: ["b"] };
    const childrenOf = (id: string): readonly Value[] => (below[id] ?? []).map((each) => ({ id: each }));
    assert.deepEqual(ids(descendants("a", childrenOf)), ["b", "c", "d"]);
    assert.deepEqual(ids(descendants("x", childrenOf)), []);
  });
});
