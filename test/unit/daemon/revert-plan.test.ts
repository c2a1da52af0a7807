import assert from "node:assert/strict";
import fc from "fast-check";
import { planOf, planRevert } from "../../../src/daemon/revert-plan.ts";
import type { FileChange, FileContent } from "../../../src/engine/server-model.ts";
import { english } from "../../../src/engine/sentence.ts";
import type { PresentText } from "../../../src/rpc/revert-plan.ts";

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
/** @param text undefined if the file isn't UTF-8 */
const file = (text: string | undefined, isUnsaved = false): PresentText => ({
  kind: "file",
  text,
  isUnsaved,
});
const gone: PresentText = { kind: "absent" };
const edited = change(text("one\ntwo\nthree\n"), text("one\nTWO\nthree\n"));

/** The plan in a word or two, with the text of a file that is written. */
function plan(
  of: FileChange,
  present: PresentText,
  isTaskAtWork = false,
): string | readonly [string, string] {
  const planned = planOf(of, present, isTaskAtWork);
  if (typeof planned === "string") return planned;
  return planned.kind === "write" ? [planned.isMerged ? "merge" : "write", planned.text] : planned.kind;
}

describe("the plan for reverting a file", () => {
  it("restores the former text if the file is as the task left it", () => {
    assert.deepEqual(plan(edited, file("one\nTWO\nthree\n")), ["write", "one\ntwo\nthree\n"]);
    assert.deepEqual(plan(change(text("gone\n"), absent), gone), ["write", "gone\n"]);
    assert.equal(plan(change(absent, text("new\n")), file("new\n")), "delete");
  });

  it("does nothing if the file is as before the task", () => {
    assert.equal(plan(edited, file("one\ntwo\nthree\n")), "nothing");
    assert.equal(plan(change(absent, text("new\n")), gone), "nothing");
    assert.equal(plan(change(text("gone\n"), absent), file("gone\n")), "nothing");
    assert.equal(plan(edited, file("one\ntwo\nthree\nfour\n")), "nothing");
    // Even if others are working on the file.
    assert.equal(plan({ ...edited, workedOnBy: ["ses_1"] }, file("one\ntwo\nthree\n"), true), "nothing");
  });

  it("keeps later changes in other places, and refuses those in the same place", () => {
    assert.equal(plan(edited, file("one\nTWO and more\nthree\n")), "changed-since");
    assert.deepEqual(plan(change(text("1\n2\n3\n4\n"), text("one\n2\n3\n4\n")), file("one\n2\n3\nfour\n")), [
      "merge",
      "1\n2\n3\nfour\n",
    ]);
    assert.equal(plan(edited, gone), "changed-since");
    assert.equal(plan(change(absent, text("new\n")), file("new\nand more\n")), "changed-since");
    assert.equal(plan(change(text("gone\n"), absent), file("another one\n")), "changed-since");
  });

  it("refuses while the task or someone else is working on the file", () => {
    assert.equal(plan(edited, file("one\nTWO\nthree\n"), true), "at-work");
    assert.equal(plan({ ...edited, workedOnBy: ["ses_1"] }, file("one\nTWO\nthree\n")), "worked-on");
  });

  it("refuses changes that someone else may have made", () => {
    assert.equal(plan({ ...edited, isDoubtful: true }, file("one\nTWO\nthree\n")), "doubtful");
    assert.equal(plan({ ...edited, isMixed: true }, file("one\nTWO\nthree\n")), "mixed");
  });

  it("refuses files with unsaved changes, outside the workspace, or unreadable", () => {
    assert.equal(plan(edited, file("one\nTWO\nthree\n", true)), "unsaved");
    assert.equal(plan(edited, { kind: "outside" }), "outside");
    assert.equal(plan(edited, { kind: "unreadable" }), "unreadable");
  });

  it("refuses contents that are not known exactly", () => {
    const unknown: FileContent = { kind: "unknown" };
    const binary: FileContent = { kind: "binary" };
    const excerpt: FileContent = { kind: "excerpt", text: "x\n" };
    assert.equal(plan(change(unknown, text("x\n")), file("x\n")), "no-snapshot");
    assert.equal(plan(change(excerpt, excerpt), file("x\n")), "no-snapshot");
    for (const [before, after] of [
      [binary, binary],
      [binary, text("x\n")],
      [text("x\n"), binary],
    ] as const)
      assert.equal(plan(change(before, after), file("y\n")), "binary");
    assert.equal(plan(change(text("caf\u{fffd}\n"), text("tea\n")), file("tea\n")), "encoding");
    assert.equal(plan(change(text("x\n"), text("caf\u{fffd}\n")), file(undefined)), "changed-since");
  });

  it("never drops a line that someone else wrote, whatever the texts", () => {
    const own = fc.array(fc.constantFrom("a", "b", "c", "d"), { maxLength: 12 });
    const since = fc.array(fc.tuple(fc.nat(12), fc.boolean()), { minLength: 1, maxLength: 4 });
    const joined = (found: readonly string[]): string => found.map((line) => `${line}\n`).join("");
    fc.assert(
      fc.property(own, own, fc.boolean(), fc.boolean(), since, (old, left, wasThere, isThere, edits) => {
        const present: string[] = isThere ? [...left] : [];
        edits.forEach(([at, isReplacing], n) => present.splice(at, isReplacing ? 1 : 0, `other's ${n}`));
        const of = change(wasThere ? text(joined(old)) : absent, isThere ? text(joined(left)) : absent);
        const planned = planOf(of, file(joined(present)), false);
        if (typeof planned === "string") return;
        assert.notEqual(planned.kind, "delete");
        if (planned.kind !== "write") return;
        const after = planned.text.split("\n");
        for (const line of present.filter((one) => one.startsWith("other's")))
          assert.ok(after.includes(line));
      }),
    );
  });

  /** As Git would with line endings of Windows, and with one file in Git LFS that can be had. */
  const checkedOut = async (_path: string, stored: string): Promise<FileContent> => {
    if (!stored.startsWith("version")) return text(stored.replaceAll("\n", "\r\n"));
    // The third is one that isn't downloaded.
    if (stored.includes("oid 3")) return text(stored);
    return stored.includes("oid 1") ? { kind: "binary" } : { kind: "unknown" };
  };

  describe("of a file that is other than Git stores it", () => {
    const write = async (of: FileChange, present: PresentText): Promise<string> => {
      const engine = { child: () => undefined, session: () => undefined, descendantsOf: () => [] };
      const parts = { formerMode: async () => undefined, checkedOut };
      const plan = await planRevert(engine, "top", of, { name: "file.txt", present }, parts);
      return plan.kind === "write" ? plan.text : plan.kind === "refused" ? plan.reason : plan.kind;
    };

    it("keeps the line endings that Git checks out, also of lines that the user changed since", async () => {
      const of = change(text("one\ntwo\nthree\nfour\n"), text("one\r\nTWO\r\nthree\r\nfour\r\n"));
      assert.equal(
        await write(of, file("one\r\nTWO\r\nthree\r\nfour\r\n")),
        "one\r\ntwo\r\nthree\r\nfour\r\n",
      );
      assert.equal(await write(of, file("one\r\nTWO\r\nthree\r\n4\r\n")), "one\r\ntwo\r\nthree\r\n4\r\n");
      assert.equal(await write(edited, file("one\nTWO\nthree\n")), "one\ntwo\nthree\n");
      // Unless they are what the task changed.
      assert.equal(await write(change(text("a\nb\n"), text("a\r\nb\r\n")), file("a\r\nb\r\n")), "a\nb\n");
    });

    it("keeps the byte order mark, which snapshots leave out", async () => {
      assert.equal(await write(edited, file("\u{feff}one\nTWO\nthree\n")), "\u{feff}one\ntwo\nthree\n");
      assert.equal(await write(change(absent, text("new\n")), file("\u{feff}new\n")), "delete");
    });

    it("writes no pointer of Git LFS in place of a deleted file", async () => {
      const pointer = (oid: number) => text(`version https://git-lfs.github.com/spec/v1\noid ${oid}\n`);
      assert.equal(await write(change(pointer(1), absent), gone), "binary");
      assert.equal(await write(change(pointer(2), absent), gone), "no-snapshot");
      assert.equal(await write(change(pointer(3), absent), gone), "no-snapshot");
      assert.equal(await write(change(pointer(1), pointer(2)), file("a,b\n")), "no-snapshot");
    });
  });

  /** The plan for a task with a subtask, or the reason and the sentence of a refusal. */
  async function planned(
    of: FileChange,
    running: readonly string[],
    present = file("one\nTWO\nthree\n"),
    mode?: string,
  ): Promise<string> {
    const child = (id: string) =>
      ["top", "a", "b"].includes(id) || running.includes(id)
        ? { status: running.includes(id) ? "running" : "completed", description: `Task ${id}` }
        : undefined;
    const session = (id: string) => (id === "ses_user" ? { title: "A session" } : undefined);
    const descendantsOf = () => [{ id: "sub" }];
    const engine = { child, session, descendantsOf } as unknown as Parameters<typeof planRevert>[0];
    const formerMode = async (): Promise<string | undefined> => mode;
    const found = { name: "src/file.txt", present };
    const plan = await planRevert(engine, "top", of, found, { formerMode, checkedOut });
    if (plan.kind === "refused") return `${plan.reason} ${english(plan.why)}`;
    return plan.kind === "write" && plan.mode !== undefined ? `write ${plan.mode.toString(8)}` : plan.kind;
  }

  it("looks for a running task or subtask, and names the file and who else works on it", async () => {
    assert.equal(await planned(edited, []), "write");
    assert.match(await planned(edited, ["top"]), /^at-work src\/file.txt: the task is still running/);
    assert.match(await planned(edited, ["sub"]), /^at-work /);
    assert.match(
      await planned({ ...edited, workedOnBy: ["a", "ses_user", "ses_gone"] }, []),
      /^worked-on src\/file.txt: also changed by "Task a", "A session", "ses_gone", which/,
    );
  });

  it("restores a deleted file with its executable bit, and no link", async () => {
    const deleted = change(text("gone\n"), absent);
    assert.equal(
      await planned(deleted, [], gone, "100755"),
      `write ${(0o777 & ~process.umask()).toString(8)}`,
    );
    for (const mode of ["100644", undefined]) assert.equal(await planned(deleted, [], gone, mode), "write");
    assert.match(await planned(deleted, [], gone, "120000"), /^outside src\/file.txt: .* link\.$/);
  });

  it("says why a change isn't reverted", async () => {
    const binary: FileContent = { kind: "binary" };
    const unknown: FileContent = { kind: "unknown" };
    const asLeft = file("one\nTWO\nthree\n");
    const cases: readonly (readonly [FileChange, PresentText, RegExp])[] = [
      [edited, { kind: "outside" }, /^outside .*: outside this workspace/],
      [edited, { kind: "unreadable" }, /^unreadable .*: can't be read as a file\.$/],
      [edited, file("one\nTWO\nthree\n", true), /^unsaved .*: has unsaved changes in an editor\./],
      [change(unknown, text("x\n")), file("x\n"), /^no-snapshot .* OpenCode took no snapshot of it\.$/],
      [change(binary, binary), file("x\n"), /^binary .*: a binary file/],
      [change(text("caf\u{fffd}\n"), text("tea\n")), file("tea\n"), /^encoding .*: not written in UTF-8/],
      [{ ...edited, isDoubtful: true }, asLeft, /^doubtful .*: other agents ran commands/],
      [{ ...edited, isMixed: true }, asLeft, /^mixed .*: also changed by something else/],
      [edited, gone, /^changed-since .*: has since changed in the same places\./],
    ];
    for (const [of, present, why] of cases) assert.match(await planned(of, [], present), why);
  });
});
