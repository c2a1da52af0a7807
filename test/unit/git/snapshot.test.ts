import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, renameSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { snapshot } from "../../../src/git/snapshot.ts";
import { ARepository, dirtyRepository } from "./a-repository.ts";

/** The files of a tree, with modes and contents. */
function treeOf(repository: ARepository, tree: string): Record<string, string> {
  const entries = repository.git("ls-tree", "-r", "-z", tree).split("\0").slice(0, -1);
  return Object.fromEntries(
    entries.map((entry) => {
      const [info = "", path = ""] = entry.split("\t");
      const [mode, , blob = ""] = info.split(" ");
      return [path, `${mode} ${repository.git("cat-file", "blob", blob)}`];
    }),
  );
}

describe("A snapshot", () => {
  it("contains what the user sees: staged, unstaged and untracked, without ignored files", async () => {
    const repository = dirtyRepository();
    const before = repository.state();
    const { head, tree, commit } = await snapshot(repository.root);
    assert.equal(head, repository.git("rev-parse", "HEAD").trim());
    assert.equal(repository.git("rev-parse", `${commit}^`, `${commit}^{tree}`), `${head}\n${tree}\n`);
    const { "picture.bin": picture, ...files } = treeOf(repository, tree);
    assert.ok(picture?.includes("\t\t"));
    assert.deepEqual(files, {
      ".gitignore": "100644 ignored/\n*.secret\n",
      "both.txt": "100644 unstaged\n",
      "kept.txt": "100644 one\ntwo\nthree\n",
      link: "120000 kept.txt",
      "new-name.txt": "100644 a text\nthat is long\nenough to be\nrecognized\n",
      "removed.txt": "100644 gone from the index\n",
      "run.sh": "100755 echo\n",
      "staged.txt": "100644 staged\n",
      "sub/deep.txt": "100644 deep\n",
      "sub/untracked ünï.txt": "100644 untracked\n",
      "unstaged.txt": "100644 unstaged\n",
    });
    assert.deepEqual(repository.state(), before);
  });

  it("is the same for each folder of the repository", async () => {
    const repository = dirtyRepository();
    const [top, sub] = [await snapshot(repository.root), await snapshot(join(repository.root, "sub"))];
    assert.equal(sub.tree, top.tree);
  });

  it("works before the first commit, with and without an index", async () => {
    const repository = new ARepository().write({ "a.txt": "a\n" });
    const { head, tree, commit } = await snapshot(repository.root);
    assert.equal(head, undefined);
    assert.deepEqual(treeOf(repository, tree), { "a.txt": "100644 a\n" });
    assert.equal(repository.git("rev-list", "--count", commit), "1\n");
    repository.git("add", "-A");
    assert.equal((await snapshot(repository.root)).tree, tree);
  });

  it("contains unsaved texts, with the line endings that Git would store, but not those of ignored files", async () => {
    const repository = new ARepository().commit({
      ".gitattributes": "*.txt text\n",
      ".gitignore": "*.log\n",
      "sub/a.txt": "saved\n",
      "run.sh": "echo\n",
    });
    repository.git("update-index", "--chmod=+x", "run.sh");
    repository.git("commit", "-qm", "Mode");
    repository.git("checkout", "-q", ".");
    const unsaved = new Map([
      ["sub/a.txt", "unsaved\r\n"],
      ["run.sh", "echo unsaved\n"],
      ["new.txt", "new\n"],
      ["x.log", "log\n"],
      ["../outside.txt", "outside\n"],
      // As the path of a file on another drive.
      ["/elsewhere/outside.txt", "outside\n"],
    ]);
    const files = treeOf(repository, (await snapshot(repository.root, { unsaved })).tree);
    assert.deepEqual(files, {
      ".gitattributes": "100644 *.txt text\n",
      ".gitignore": "100644 *.log\n",
      "new.txt": "100644 new\n",
      "run.sh": "100755 echo unsaved\n",
      "sub/a.txt": "100644 unsaved\n",
    });
    const below = await snapshot(join(repository.root, "sub"), { unsaved: new Map([["a.txt", "below\n"]]) });
    assert.equal(treeOf(repository, below.tree)["sub/a.txt"], "100644 below\n");
  });

  it("contains changes of files that Git was told not to look at", async () => {
    const repository = new ARepository().commit({ "a.txt": "a\n", "b.txt": "b\n" });
    repository.git("update-index", "--assume-unchanged", "a.txt");
    repository.git("update-index", "--skip-worktree", "b.txt");
    repository.write({ "a.txt": "mine\n", "b.txt": "mine\n" });
    const before = repository.state();
    const { tree } = await snapshot(repository.root);
    assert.deepEqual(treeOf(repository, tree), { "a.txt": "100644 mine\n", "b.txt": "100644 mine\n" });
    assert.deepEqual(repository.state(), before);
  });

  it("contains a change of the same length in the same moment as the index", async () => {
    const repository = new ARepository().commit({ "a.txt": "before\n" });
    const time = new Date(Date.now() - 5_000);
    utimesSync(join(repository.root, "a.txt"), time, time);
    repository.git("update-index", "--refresh");
    utimesSync(join(repository.root, ".git/index"), time, time);
    // As if both happened within the resolution of the file system's clock.
    writeFileSync(join(repository.root, "a.txt"), "behind\n");
    utimesSync(join(repository.root, "a.txt"), time, time);
    repository.git("config", "core.trustctime", "false");
    const { tree } = await snapshot(repository.root);
    assert.deepEqual(treeOf(repository, tree), { "a.txt": "100644 behind\n" });
  });

  it("leaves out repositories inside the repository", async () => {
    const repository = new ARepository().commit({ "a.txt": "a\n" });
    mkdirSync(join(repository.root, "inner"));
    execFileSync("git", ["init", "-q"], { cwd: join(repository.root, "inner") });
    repository.write({ "inner/b.txt": "b\n" });
    const { tree } = await snapshot(repository.root);
    assert.deepEqual(Object.keys(treeOf(repository, tree)), ["a.txt"]);
  });

  it("contains the files of its base that are still there, though Git ignores them by now", async () => {
    const repository = new ARepository().commit({ "a.env": "a\n", "b.env": "b\n", "c.env": "c\n" });
    writeFileSync(Buffer.from(join(repository.root, "caf\u00e9.env"), "latin1"), "latin\n");
    repository.write({ "inner/a.txt": "a\n" });
    const { commit: base } = await snapshot(repository.root);
    repository.git("rm", "-q", "--cached", "a.env", "b.env", "c.env");
    repository.write({ ".gitignore": "*.env\n", "b.env": "changed\n", "new.env": "new\n" }).remove("c.env");
    const inner = new ARepository().commit({ "a.txt": "a\n" });
    renameSync(join(inner.root, ".git"), join(repository.root, "inner/.git"));
    repository.git("add", "inner");
    const before = repository.git("status", "--porcelain");
    const { tree } = await snapshot(repository.root, { base });
    assert.deepEqual(treeOf(repository, tree), {
      ".gitignore": "100644 *.env\n",
      "a.env": "100644 a\n",
      "b.env": "100644 changed\n",
      "caf\ufffd.env": "100644 latin\n",
      "inner/a.txt": "100644 a\n",
    });
    assert.equal(repository.git("status", "--porcelain"), before);
  });

  it("contains files whose names are special", async () => {
    const repository = new ARepository().commit({ "a.txt": "a\n" });
    const odd = [":(top)x", "-n", "tab\there", "line\nbreak", '"quoted"', "*.txt"];
    repository.write(Object.fromEntries(odd.map((name) => [name, "odd\n"])));
    writeFileSync(Buffer.concat([Buffer.from(`${repository.root}/`), Buffer.from([0xe9])]), "latin\n");
    const { tree } = await snapshot(repository.root);
    assert.deepEqual(
      new Set(repository.git("ls-tree", "--name-only", "-z", tree).split("\0").slice(0, -1)),
      new Set(["a.txt", "\ufffd", ...odd]),
    );
  });

  it("belongs to the folder, whatever Git variables this process has inherited", async () => {
    const [repository, other] = [new ARepository(), new ARepository()];
    repository.commit({ "a.txt": "a\n" });
    other.commit({ "b.txt": "b\n" });
    process.env["GIT_DIR"] = join(other.root, ".git");
    process.env["GIT_INDEX_FILE"] = join(other.root, ".git/index");
    try {
      const { tree } = await snapshot(repository.root);
      delete process.env["GIT_DIR"];
      delete process.env["GIT_INDEX_FILE"];
      assert.deepEqual(Object.keys(treeOf(repository, tree)), ["a.txt"]);
    } finally {
      delete process.env["GIT_DIR"];
      delete process.env["GIT_INDEX_FILE"];
    }
  });

  it("is cancelled by its signal", async () => {
    const repository = dirtyRepository();
    const before = repository.state();
    const controller = new AbortController();
    const taken = snapshot(repository.root, { signal: controller.signal });
    controller.abort(new Error("cancelled"));
    await assert.rejects(taken, /cancelled/);
    assert.deepEqual(repository.state(), before);
  });
});
