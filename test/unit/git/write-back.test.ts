import assert from "node:assert/strict";
import {
  chmodSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  promises,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import type { BringBackPlan, KeptFile } from "../../../src/engine/bring-back.ts";
import type { FileContent } from "../../../src/git/plan-contents.ts";
import { snapshot } from "../../../src/git/snapshot.ts";
import { keptFiles, restoreFiles, writeBack } from "../../../src/git/write-back.ts";
import { mountIgnoringCase, unmount } from "../../support/small-disk.ts";
import { ARepository, filesOf } from "./a-repository.ts";

/** No file system takes a link without a target. */
const UNWRITABLE: FileContent = { mode: "symlink", bytes: Buffer.alloc(0) };

const DELETED: FileContent = { mode: "file", bytes: undefined };

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
      ["b/c.txt", DELETED],
      ["b/d.txt", DELETED],
      ["b", text("a file\n")],
      ["new/e.txt", text("new\n")],
      ["link", UNWRITABLE],
      ["z.txt", text("not reached\n")],
    ]);
    await assert.rejects(writeBack(await planFor(repository), files), { code: "ENOENT" });
    assert.deepEqual(filesOf(repository.root), before);
    assert.equal(repository.git("status", "--porcelain"), "");
  });

  it("deletes a renamed file only once it is written under its new name, whatever ends the process", async () => {
    const there: boolean[] = [];
    const { unlink } = promises;
    promises.unlink = (path) => {
      if (String(path).endsWith("a.txt")) there.push(existsSync(join(repository.root, "new.txt")));
      return unlink(path);
    };
    syncBuiltinESMExports();
    try {
      const files = new Map([
        ["a.txt", DELETED],
        ["new.txt", text("a\n")],
      ]);
      await writeBack(await planFor(repository), files);
    } finally {
      promises.unlink = unlink;
      syncBuiltinESMExports();
    }
    assert.deepEqual(there, [true]);
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
    // Also once everything is restored.
    for (let times = 0; times < 2; times++) await restoreFiles(root, before, after);
    assert.equal(repository.git("status", "--porcelain"), "");
    // Another change still keeps it from writing anything.
    repository.write({ "a.txt": "changed\n" });
    await assert.rejects(restoreFiles(root, before, after), /a\.txt has changed .* nothing was restored/);
  });

  it("names what couldn't be restored after it failed, and leaves no temporary file", async () => {
    const { root } = repository;
    const inTheWay = (): void => {
      if (lstatSync(join(root, "a.txt")).isDirectory() || repository.read("a.txt") !== "agent\n") return;
      repository.remove("a.txt").write({ "a.txt/inside.txt": "mine\n" });
    };
    const files = new Map<string, FileContent>([
      ["a.txt", text("agent\n")],
      [
        "link",
        {
          mode: "symlink",
          get bytes() {
            inTheWay();
            return Buffer.alloc(0);
          },
        },
      ],
      ["z.txt", text("not reached\n")],
    ]);
    await assert.rejects(
      writeBack(await planFor(repository), files),
      /^Error: Not all files could be written, and these couldn't be restored: a\.txt\. /,
    );
    assert.equal(repository.read("a.txt/inside.txt"), "mine\n");
    assert.deepEqual(
      readdirSync(join(root, ".git")).filter((name) => name.startsWith("asyncagents-")),
      [],
    );
  });

  it("deletes the folders that are empty then, and no other", async () => {
    repository.commit({ "x/y/only.txt": "only\n" });
    const paths = ["b/c.txt", "x/y/only.txt"];
    await writeBack(await planFor(repository), new Map(paths.map((path) => [path, DELETED])));
    assert.deepEqual(Object.keys(filesOf(repository.root)), ["a.txt", "b/d.txt"]);
    assert.equal(existsSync(join(repository.root, "x")), false);
  });

  it("puts a folder in the place of a file that is deleted at the same time, but not in another's", async () => {
    const plan = await planFor(repository);
    await assert.rejects(
      writeBack(plan, new Map([["a.txt/inside.txt", text("inside\n")]])),
      /^Error: a\.txt isn't a folder, so a\.txt\/inside\.txt wasn't written/,
    );
    const files = new Map([
      ["a.txt", DELETED],
      ["a.txt/inside.txt", text("inside\n")],
    ]);
    await writeBack(plan, files);
    assert.equal(repository.read("a.txt/inside.txt"), "inside\n");
  });

  it("replaces no folder with a file somewhere below it", async () => {
    repository.write({ ".gitignore": "deep/\n", "x/deep/mine.txt": "mine\n" });
    const plan = await planFor(repository);
    await assert.rejects(writeBack(plan, new Map([["x", text("x\n")]])), /^Error: x is a folder/);
    assert.equal(repository.read("x/deep/mine.txt"), "mine\n");
  });

  it("keeps what a file was: its text, a link, the right to execute it, or nothing", async () => {
    const { root } = repository.write({ run: "echo\n" });
    chmodSync(join(root, "run"), 0o755);
    symlinkSync("a.txt", join(root, "link"));
    const blob = (content: string): string => {
      writeFileSync(join(root, ".git", "content"), content);
      return repository.git("hash-object", ".git/content").trim();
    };
    assert.deepEqual(await keptFiles(root, ["a.txt", "run", "link", "b", "none"]), [
      { path: "a.txt", mode: "file", blob: blob("a\n") },
      { path: "run", mode: "executable", blob: blob("echo\n") },
      { path: "link", mode: "symlink", blob: blob("a.txt") },
      { path: "b", mode: "file" },
      { path: "none", mode: "file" },
    ]);
  });

  it("isn't undone if since then a file can be executed or not", async () => {
    const plan = await planFor(repository);
    const { before, after } = await writeBack(plan, new Map([["a.txt", text("agent\n")]]));
    chmodSync(join(repository.root, "a.txt"), 0o755);
    await assert.rejects(restoreFiles(repository.root, before, after), /^Error: a\.txt has changed/);
    assert.equal(repository.read("a.txt"), "agent\n");
  });

  it("leaves the modes of files as they are where Git doesn't know them", async () => {
    repository.git("config", "core.fileMode", "false");
    chmodSync(join(repository.root, "a.txt"), 0o755);
    const plan = await planFor(repository);
    const { before, after } = await writeBack(plan, new Map([["a.txt", text("agent\n")]]));
    assert.equal(statSync(join(repository.root, "a.txt")).mode & 0o777, 0o755);
    await restoreFiles(repository.root, before, after);
    assert.equal(repository.read("a.txt"), "a\n");
    assert.equal(statSync(join(repository.root, "a.txt")).mode & 0o777, 0o755);
  });

  it("replaces no file whose name differs only in case, on a disk that ignores case", async function () {
    const disk = mountIgnoringCase();
    if (disk === undefined) return this.skip();
    try {
      // It says of all files that they can be executed.
      for (const setting of ["core.fileMode=false", "core.ignoreCase=true"])
        repository.git("config", ...setting.split("="));
      cpSync(repository.root, disk, { recursive: true });
      const plan = { ...(await planFor(repository)), root: disk };
      writeFileSync(join(disk, "readme.md"), "mine\n");
      const files = new Map([
        ["README.md", text("agent\n")],
        ["a.txt", text("agent\n")],
      ]);
      await assert.rejects(writeBack(plan, files), /README\.md wasn't written, .* differs only in case/);
      assert.equal(readFileSync(join(disk, "readme.md"), "utf8"), "mine\n");
      assert.equal(readFileSync(join(disk, "a.txt"), "utf8"), "a\n");
      // A file that is renamed takes the other name.
      const renamed = new Map([
        ["a.txt", DELETED],
        ["A.txt", text("agent\n")],
      ]);
      const { before, after } = await writeBack(plan, renamed);
      assert.equal(readFileSync(join(disk, "A.txt"), "utf8"), "agent\n");
      await restoreFiles(disk, before, after);
      assert.equal(readFileSync(join(disk, "a.txt"), "utf8"), "a\n");
    } finally {
      unmount(disk);
    }
  });

  it("works where Git's own files are on another disk", async function () {
    const device = (path: string): number => statSync(path).dev;
    const here = device(repository.root);
    const other = ["/dev/shm", "/tmp"].find((path) => existsSync(path) && device(path) !== here);
    if (!other) return this.skip();
    const gitDirectory = join(other, `asyncagents-test-${process.pid}`);
    try {
      cpSync(join(repository.root, ".git"), gitDirectory, { recursive: true });
      repository.remove(".git").write({ ".git": `gitdir: ${gitDirectory}\n` });
      await writeBack(await planFor(repository), new Map([["a.txt", text("agent\n")]]));
      assert.deepEqual(Object.keys(filesOf(repository.root)), ["a.txt", "b/c.txt", "b/d.txt"]);
      assert.equal(repository.read("a.txt"), "agent\n");
    } finally {
      rmSync(gitDirectory, { recursive: true, force: true });
    }
  });
});
