import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import type { FileContent } from "../../../../src/engine/server-model.ts";
import { AcceptedChanges, type PlacedChange } from "../../../../src/ui/changes/accepted-changes.ts";

const placed = (path: string, after: FileContent, now = ""): PlacedChange => ({
  change: {
    path,
    before: { kind: "text", text: "before\n" },
    after,
    isDoubtful: false,
    isMixed: false,
    mixedWith: [],
    workedOnBy: [],
  },
  present: { kind: "file", bytes: Buffer.from(now), isUnsaved: false },
});
const edit = (path: string, text: string): PlacedChange => placed(path, { kind: "text", text });

describe("the changes that the user accepted", () => {
  let values: Map<string, unknown>;
  const open = (): AcceptedChanges =>
    new AcceptedChanges({
      keys: () => [...values.keys()],
      get: <T>(key: string, otherwise?: T) => (values.has(key) ? (values.get(key) as T) : otherwise) as T,
      update: async (key, value) => void values.set(key, value),
    });
  beforeEach(() => void (values = new Map()));

  it("are remembered by task, file and content", () => {
    open().add("ses_1", [edit("/a.txt", "one\n"), edit("/b.txt", "two\n")]);
    const accepted = open();
    assert.ok(accepted.has("ses_1", edit("/a.txt", "one\n")));
    assert.ok(!accepted.has("ses_1", edit("/a.txt", "one, and more by a follow-up\n")));
    assert.ok(!accepted.has("ses_2", edit("/a.txt", "one\n")));
    accepted.drop("ses_1", ["/a.txt"]);
    assert.ok(!accepted.has("ses_1", edit("/a.txt", "one\n")));
    assert.ok(accepted.has("ses_1", edit("/b.txt", "two\n")));
  });

  it("are distinguished by the file's content if the task's own text is unknown", () => {
    const accepted = open();
    accepted.add("ses_1", [placed("/a.bin", { kind: "binary" }, "one")]);
    assert.ok(accepted.has("ses_1", placed("/a.bin", { kind: "binary" }, "one")));
    assert.ok(!accepted.has("ses_1", placed("/a.bin", { kind: "binary" }, "two")));
  });

  it("stay so if the file is changed further, as long as the task's own text is the same", () => {
    const accepted = open();
    const text = { kind: "text", text: "one\n" } as const;
    accepted.add("ses_1", [placed("/a.txt", text, "one\n")]);
    assert.ok(accepted.has("ses_1", placed("/a.txt", text, "one\ntwo\n")));
  });

  it("leave nothing behind once all of a task are dropped", () => {
    open().add("ses_1", [edit("/a.txt", "one\n")]);
    open().drop("ses_1", ["/a.txt"]);
    assert.deepEqual([...values.values()], [{}]);
  });

  it("are kept for the newest 200 tasks, by their last change", () => {
    const accepted = open();
    for (let n = 0; n < 200; n++) accepted.add(`ses_${n}`, [edit("/a.txt", "one\n")]);
    accepted.add("ses_0", [edit("/b.txt", "two\n")]);
    accepted.add("ses_200", [edit("/a.txt", "one\n")]);
    assert.ok(accepted.has("ses_0", edit("/a.txt", "one\n")));
    assert.ok(!accepted.has("ses_1", edit("/a.txt", "one\n")));
    assert.ok(accepted.has("ses_2", edit("/a.txt", "one\n")));
  });
});
