import assert from "node:assert/strict";
import { firstRoot, isRoot, rootsOf, type MaybeRoot } from "../../../src/engine/root-sessions.ts";

describe("Sessions in which users can work", () => {
  const root = (id: string, updated: number, changed: Partial<MaybeRoot> = {}): MaybeRoot => ({
    ...{ id, updated, task: { kind: "none" } },
    ...changed,
  });
  const sessions = [
    root("a", 1),
    root("b", 3),
    root("child", 9, { parentID: "a" }),
    root("archived", 8, { archived: 1 }),
    root("task", 7, { task: { kind: "task" } }),
    root("c", 2, { task: { kind: "unreadable" } }),
  ];
  const get = (id: string): MaybeRoot | undefined => sessions.find((session) => session.id === id);

  it("are no children, no tasks and not archived; the one that was updated last is first", () => {
    assert.deepEqual(
      rootsOf(sessions).map(({ id }) => id),
      ["b", "c", "a"],
    );
    assert.ok(!isRoot(undefined));
  });

  it("are taken in the order that is wanted, if one is there", () => {
    const first = (...wanted: readonly (string | undefined)[]): string | undefined =>
      firstRoot(wanted, get, () => sessions);
    assert.equal(first(undefined, "gone", "child", "a", "b"), "a");
    assert.equal(first("archived"), "b");
    assert.equal(
      firstRoot(
        ["a"],
        () => undefined,
        () => [],
      ),
      undefined,
    );
  });
});
