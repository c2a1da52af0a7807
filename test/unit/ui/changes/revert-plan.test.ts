import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import fc from "fast-check";
import { takeBack } from "../../../../src/daemon/take-back.ts";
import type { FileChange, FileContent } from "../../../../src/engine/server-model.ts";
import { planRevert, type Present, type RevertPlan } from "../../../../src/ui/changes/revert-plan.ts";

const text = (content: string): FileContent => ({ kind: "text", text: content });
const absent: FileContent = { kind: "absent" };
const change = (before: FileContent, after: FileContent, facts: Partial<FileChange> = {}): FileChange => ({
  path: "/work/file.txt",
  before,
  after,
  isDoubtful: false,
  isMixed: false,
  mixedWith: [],
  workedOnBy: [],
  ...facts,
});
const file = (content: string | Uint8Array, isUnsaved = false): Present => ({
  kind: "file",
  bytes: Buffer.from(content as string),
  isUnsaved,
});
const gone: Present = { kind: "absent" };
const edited = change(text("one\ntwo\nthree\n"), text("one\nTWO\nthree\n"));

function revertPlan(of: FileChange, present: Present, isTaskAtWork: boolean): Promise<RevertPlan> {
  return planRevert(of, present, isTaskAtWork, async (...texts) => takeBack(...texts));
}

/** The plan in a word or two, with the text of a file that is written. */
async function plan(
  of: FileChange,
  present: Present,
  isTaskAtWork = false,
): Promise<string | readonly [string, string]> {
  const planned = await revertPlan(of, present, isTaskAtWork);
  switch (planned.kind) {
    case "refused":
      return planned.reason;
    case "write":
      return [planned.isMerged ? "merge" : "write", Buffer.from(planned.bytes).toString()];
    default:
      return planned.kind;
  }
}

describe("the plan for reverting a file", () => {
  it("restores the former text if the file is as the task left it", async () => {
    assert.deepEqual(await plan(edited, file("one\nTWO\nthree\n")), ["write", "one\ntwo\nthree\n"]);
    assert.deepEqual(await plan(change(text("gone\n"), absent), gone), ["write", "gone\n"]);
    assert.equal(await plan(change(absent, text("new\n")), file("new\n")), "delete");
  });

  it("does nothing if the file is as before the task", async () => {
    assert.equal(await plan(edited, file("one\ntwo\nthree\n")), "nothing");
    assert.equal(await plan(change(absent, text("new\n")), gone), "nothing");
    assert.equal(await plan(edited, file("one\ntwo\nthree\nfour\n")), "nothing");
    // Even if others are working on the file.
    assert.equal(
      await plan({ ...edited, workedOnBy: ["ses_1"] }, file("one\ntwo\nthree\n"), true),
      "nothing",
    );
  });

  it("keeps later changes in other places, and refuses those in the same place", async () => {
    assert.equal(await plan(edited, file("one\nTWO and more\nthree\n")), "changed-since");
    assert.deepEqual(
      await plan(change(text("1\n2\n3\n4\n"), text("one\n2\n3\n4\n")), file("one\n2\n3\nfour\n")),
      ["merge", "1\n2\n3\nfour\n"],
    );
    assert.equal(await plan(edited, gone), "changed-since");
    assert.equal(await plan(change(absent, text("new\n")), file("new\nand more\n")), "changed-since");
    assert.equal(await plan(change(text("gone\n"), absent), file("another one\n")), "changed-since");
  });

  it("refuses while the task or someone else is working on the file", async () => {
    assert.equal(await plan(edited, file("one\nTWO\nthree\n"), true), "at-work");
    assert.equal(await plan({ ...edited, workedOnBy: ["ses_1"] }, file("one\nTWO\nthree\n")), "worked-on");
  });

  it("refuses changes that someone else may have made", async () => {
    assert.equal(await plan({ ...edited, isDoubtful: true }, file("one\nTWO\nthree\n")), "doubtful");
    assert.equal(await plan({ ...edited, isMixed: true }, file("one\nTWO\nthree\n")), "mixed");
  });

  it("refuses files with unsaved changes, outside the workspace, or unreadable", async () => {
    assert.equal(await plan(edited, file("one\nTWO\nthree\n", true)), "unsaved");
    assert.equal(await plan(edited, { kind: "outside" }), "outside");
    assert.equal(await plan(edited, { kind: "unreadable" }), "unreadable");
  });

  it("refuses contents that are not known exactly", async () => {
    const unknown: FileContent = { kind: "unknown" };
    const binary: FileContent = { kind: "binary" };
    const excerpt: FileContent = { kind: "excerpt", text: "x\n" };
    assert.equal(await plan(change(unknown, text("x\n")), file("x\n")), "no-snapshot");
    assert.equal(await plan(change(excerpt, excerpt), file("x\n")), "no-snapshot");
    assert.equal(await plan(change(binary, binary), file("x\n")), "binary");
    assert.equal(await plan(change(text("caf\u{fffd}\n"), text("tea\n")), file("tea\n")), "encoding");
    const latin1 = Buffer.from([0x63, 0x61, 0x66, 0xe9, 0x0a]);
    assert.equal(await plan(change(text("x\n"), text("caf\u{fffd}\n")), file(latin1)), "changed-since");
  });

  it("never drops a line that someone else wrote, whatever the texts", async () => {
    const own = fc.array(fc.constantFrom("a", "b", "c", "d"), { maxLength: 12 });
    const since = fc.array(fc.tuple(fc.nat(12), fc.boolean()), { minLength: 1, maxLength: 4 });
    const joined = (found: readonly string[]): string => found.map((line) => `${line}\n`).join("");
    await fc.assert(
      fc.asyncProperty(
        own,
        own,
        fc.boolean(),
        fc.boolean(),
        since,
        async (old, left, wasThere, isThere, edits) => {
          const present: string[] = isThere ? [...left] : [];
          edits.forEach(([at, isReplacing], n) => present.splice(at, isReplacing ? 1 : 0, `other's ${n}`));
          const of = change(wasThere ? text(joined(old)) : absent, isThere ? text(joined(left)) : absent);
          const planned = await revertPlan(of, file(joined(present)), false);
          assert.notEqual(planned.kind, "delete");
          if (planned.kind !== "write") return;
          const after = Buffer.from(planned.bytes).toString().split("\n");
          for (const line of present.filter((one) => one.startsWith("other's")))
            assert.ok(after.includes(line));
        },
      ),
    );
  });
});
