import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { BringBackPlan, KeptFile } from "../../../src/engine/bring-back.ts";
import type { FileContent } from "../../../src/git/plan-contents.ts";
import { snapshot } from "../../../src/git/snapshot.ts";
import { keptFiles, restoreFiles, writeBack } from "../../../src/git/write-back.ts";
import { ARepository, filesOf } from "./a-repository.ts";

/** No file system takes a link without a target. */
const UNWRITABLE: FileContent = { mode: "symlink", bytes: Buffer.alloc(0) };

function text(content: string): FileContent {
  return { mode: "file", bytes: Buffer.from(content) };
}

async function planFor({ root }: ARepository): Promise<BringBackPlan> {
  const { tree } = await snapshot(root);
  return { root, mine: tree, agents: tree, merged: tree, files: [], commits: { mine: "", agents: "" } };
}

describe("Writing to the folder", () => {
  let repository: ARepository;

  beforeEach(() => {
    repository = new ARepository().commit({ "a.txt": "a\n", "b/c.txt": "c\n", "b/d.txt": "d\n" });
  });

  it("that fails halfway restores what was written and deleted", async () => {
    const before = filesOf(repository.root);
    const files = new Map([
      ["a.txt", text("agent\n")],
      ["b/c.txt", { mode: "file", bytes: undefined } as const],
      ["b/d.txt", { mode: "file", bytes: undefined } as const],
      ["b", text("a file\n")],
      ["new/e.txt", text("new\n")],
      ["link", UNWRITABLE],
      ["z.txt", text("not reached\n")],
    ]);
    await assert.rejects(writeBack(await planFor(repository), files), { code: "ENOENT" });
    assert.deepEqual(filesOf(repository.root), before);
    assert.equal(repository.git("status", "--porcelain"), "");
  });

  it("puts a file where there are only empty folders", async () => {
    for (const folder of ["x/empty/inner", "x/other"])
      mkdirSync(join(repository.root, folder), { recursive: true });
    const { before, after } = await writeBack(await planFor(repository), new Map([["x", text("x\n")]]));
    assert.equal(repository.read("x"), "x\n");
    await restoreFiles(repository.root, before, after);
    assert.equal(repository.git("status", "--porcelain"), "");
  });

  it("can be undone again after an undo that failed halfway", async () => {
    const plan = await planFor(repository);
    const { root } = repository;
    const { before, after } = await writeBack(
      plan,
      new Map([
        ["a.txt", text("agent\n")],
        ["link", text("agent\n")],
      ]),
    );
    const [empty] = await keptFiles(repository.write({ empty: "" }).root, ["empty"]);
    repository.remove("empty");
    const unwritable: KeptFile = { ...(empty ?? assert.fail()), path: "link", mode: "symlink" };
    const [a] = before;
    await assert.rejects(restoreFiles(root, [a ?? assert.fail(), unwritable], after), { code: "ENOENT" });
    assert.deepEqual([repository.read("a.txt"), repository.read("link")], ["a\n", "agent\n"]);
    await restoreFiles(root, before, after);
    assert.equal(repository.git("status", "--porcelain"), "");
    // Another change still keeps it from writing anything.
    repository.write({ "a.txt": "changed\n" });
    await assert.rejects(restoreFiles(root, before, after), /a\.txt has changed .* nothing was restored/);
  });
});
