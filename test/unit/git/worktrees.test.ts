import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import os from "node:os";
import { basename, dirname, join } from "node:path";
import { discard, undoDiscard } from "../../../src/git/discard.ts";
import { includeFiles } from "../../../src/git/include-files.ts";
import { cleanUpUnfinished, makeWorktree, remakeWorktree } from "../../../src/git/make-worktree.ts";
import { ourWorktrees } from "../../../src/git/our-worktrees.ts";
import { forgetWorktree, keep, removeWorktree, work } from "../../../src/git/remove-worktree.ts";
import { refs } from "../../../src/git/refs.ts";
import { findRepository } from "../../../src/git/repository.ts";
import { ARepository, dirtyRepository, filesOf, gitIn, stopInRebase, writeFiles } from "./a-repository.ts";

const whatYouSee = { from: "what-you-see", name: "add-tests" } as const;

function withoutIgnored(files: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(files).filter(([path]) => !/^ignored\/|\.secret$/.test(path)));
}

describe("A worktree", () => {
  it("contains what the user sees, and the folder doesn't change", async () => {
    const repository = dirtyRepository();
    const before = repository.state();
    const made = await makeWorktree({ directory: repository.root, ...whatYouSee });
    assert.equal(made.root, join(`${repository.root}.worktrees`, "add-tests"));
    assert.equal(made.directory, made.root);
    assert.deepEqual(filesOf(made.root), withoutIgnored(filesOf(repository.root)));
    assert.deepEqual(repository.state(), before);
    assert.equal(gitIn(made.root, "rev-parse", "HEAD", `${made.base}^`), `${made.head}\n${made.head}\n`);
    // Everything is as uncommitted as in the folder, except that the index is that of the commit.
    const statusOf = (directory: string): string[] =>
      gitIn(directory, "status", "--porcelain", "--no-renames", "-uall")
        .split("\n")
        .map((line) => line.slice(3))
        .filter((path) => path !== "removed.txt");
    assert.deepEqual(new Set(statusOf(made.root)), new Set(statusOf(repository.root)));
    assert.equal(gitIn(made.root, "diff", "--cached"), "");
  });

  it("is marked as unfinished under one name, though that of the machine changes with its network", () => {
    const { hostname } = os;
    const before = refs.making("add-tests");
    try {
      os.hostname = () => "elsewhere";
      syncBuiltinESMExports();
      assert.equal(refs.making("add-tests"), before);
    } finally {
      os.hostname = hostname;
      syncBuiltinESMExports();
    }
  });

  it("starts from the last commit if so set", async () => {
    const repository = dirtyRepository();
    const { root, base, head } = await makeWorktree({
      directory: repository.root,
      name: "clean",
      from: "head",
    });
    assert.equal(base, head);
    assert.equal(gitIn(root, "status", "--porcelain"), "");
    assert.equal(readFileSync(join(root, "staged.txt"), "utf8"), "before\n");
  });

  it("works before the first commit", async () => {
    const repository = new ARepository().write({ "a.txt": "a\n" });
    const seen = await makeWorktree({ directory: repository.root, ...whatYouSee });
    assert.equal(seen.head, undefined);
    assert.deepEqual(Object.keys(filesOf(seen.root)), ["a.txt"]);
    const empty = await makeWorktree({ directory: repository.root, name: "empty", from: "head" });
    assert.deepEqual(filesOf(empty.root), {});
    assert.equal(repository.git("status", "--porcelain"), "?? a.txt\n");
  });

  it("of a folder inside the repository has that folder as its directory, even if it is untracked", async () => {
    const repository = new ARepository().commit({ ".gitignore": "hidden/\n", "packages/app/a.txt": "a\n" });
    repository.write({ "hidden/x.txt": "x\n" });
    const app = await makeWorktree({ directory: join(repository.root, "packages/app"), ...whatYouSee });
    assert.equal(app.directory, join(app.root, "packages/app"));
    const hidden = await makeWorktree({ directory: join(repository.root, "hidden"), ...whatYouSee });
    assert.ok(existsSync(hidden.directory));
  });

  it("is made at the configured location", async () => {
    const repository = new ARepository().commit({ "a.txt": "a\n" });
    const location = join(dirname(repository.root), "elsewhere");
    const { root } = await makeWorktree({ directory: repository.root, ...whatYouSee, location });
    assert.equal(root, join(location, "add-tests"));
    const second = await makeWorktree({
      directory: repository.root,
      name: "b",
      from: "head",
      location: "../near",
    });
    assert.equal(second.root, join(dirname(repository.root), "near", "b"));
  });

  it("has a real path, even if its location leads through a symbolic link, and can be removed and remade", async () => {
    const repository = new ARepository().commit({ "app/a.txt": "a\n" });
    const real = join(dirname(repository.root), "elsewhere");
    const location = join(dirname(repository.root), "link");
    mkdirSync(real);
    symlinkSync(real, location);
    const folder = join(repository.root, "app");
    const { name, root, directory } = await makeWorktree({ directory: folder, ...whatYouSee, location });
    assert.deepEqual([root, directory], [join(real, name), join(real, name, "app")]);
    assert.equal((await ourWorktrees(await findRepository(folder))).get(name)?.root, root);
    await removeWorktree({ folder, name });
    assert.ok(!existsSync(root));
    await remakeWorktree({ folder, name, root });
    assert.equal(readFileSync(join(directory, "a.txt"), "utf8"), "a\n");
  });

  it("of a worktree is made beside the repository, too, from the worktree's files", async () => {
    const repository = new ARepository().commit({ "a.txt": "a\n" });
    const first = await makeWorktree({ directory: repository.root, ...whatYouSee });
    writeFiles(first.root, { "a.txt": "changed\n" });
    const second = await makeWorktree({ directory: first.root, ...whatYouSee });
    assert.equal(second.root, join(`${repository.root}.worktrees`, "add-tests-2"));
    assert.equal(readFileSync(join(second.root, "a.txt"), "utf8"), "changed\n");
  });

  it("gets a number if its name is taken: by a folder, an earlier worktree, or one whose folder is missing", async () => {
    const repository = new ARepository().commit({ "a.txt": "a\n" });
    const folder = `${repository.root}.worktrees`;
    mkdirSync(join(folder, "add-tests"), { recursive: true });
    repository.git("worktree", "add", "-q", "--detach", join(folder, "add-tests-2"));
    rmSync(join(folder, "add-tests-2"), { recursive: true });
    const names = await Promise.all(
      [1, 2, 3].map(async () => (await makeWorktree({ directory: repository.root, ...whatYouSee })).name),
    );
    assert.deepEqual(names.sort(), ["add-tests-3", "add-tests-4", "add-tests-5"]);
    assert.deepEqual(readdirSync(join(folder, "add-tests")), []);
    const registered = repository.git("worktree", "list");
    assert.match(registered, /add-tests-2 .*prunable/);
    // The name of a worktree that is gone still stands for its kept states.
    await removeWorktree({ folder: repository.root, name: "add-tests-3" });
    const next = await makeWorktree({ directory: repository.root, ...whatYouSee });
    assert.equal(next.name, "add-tests-6");
  });

  it("is made and removed while many others are", async () => {
    const repository = new ARepository().commit({ "a.txt": "a\n" });
    const folder = repository.root;
    const names = await Promise.all(
      Array.from({ length: 24 }, async (_, index) => {
        const { name } = await makeWorktree({ directory: folder, name: `task-${index}`, from: "head" });
        if (index % 2 === 0) await removeWorktree({ folder, name });
        return name;
      }),
    );
    assert.equal(new Set(names).size, 24);
    assert.equal((await ourWorktrees(await findRepository(folder))).size, 12);
  });

  it("leaves nothing if making it is cancelled", async () => {
    const repository = dirtyRepository();
    for (const ms of [1, 10, 20, 30, 40, 60]) {
      const before = repository.state();
      const controller = new AbortController();
      setTimeout(() => controller.abort(new Error("cancelled")), ms);
      try {
        await makeWorktree({ directory: repository.root, ...whatYouSee, signal: controller.signal });
        await removeWorktree({ folder: repository.root, name: "add-tests" });
        await forgetWorktree(repository.root, "add-tests");
      } catch (error) {
        assert.match(String(error), /cancelled/);
      }
      assert.deepEqual(repository.state(), before);
      assert.equal(repository.git("for-each-ref", "refs/asyncagents"), "");
      assert.equal(existsSync(`${repository.root}.worktrees`), false);
      assert.equal(repository.git("worktree", "list").trim().split("\n").length, 1);
    }
  });

  it("knows its work: changed files and commits that no branch has", async () => {
    const repository = dirtyRepository();
    const { root, base } = await makeWorktree({ directory: repository.root, ...whatYouSee });
    assert.deepEqual(await work({ folder: repository.root, directory: root, base }), {
      files: [],
      commits: [],
    });
    writeFiles(root, { "kept.txt": "one\n2\nthree\n", "new.bin": Buffer.from([0, 1]) });
    gitIn(root, "commit", "-qam", "By the agent");
    rmSync(join(root, "sub/deep.txt"));
    const { files, commits } = await work({ folder: repository.root, directory: root, base });
    assert.deepEqual(files, [
      { path: "kept.txt", kind: "modified", added: 1, removed: 1, isBinary: false },
      { path: "new.bin", kind: "added", added: 0, removed: 0, isBinary: true },
      { path: "sub/deep.txt", kind: "deleted", added: 0, removed: 1, isBinary: false },
    ]);
    assert.deepEqual(commits, [{ commit: gitIn(root, "rev-parse", "HEAD").trim(), subject: "By the agent" }]);
    const { commit } = await keep({ folder: repository.root, directory: root });
    assert.deepEqual((await work({ folder: repository.root, directory: root, base: commit })).files, []);
    gitIn(root, "branch", "saved");
    assert.deepEqual((await work({ folder: repository.root, directory: root, base })).commits, []);
  });

  it("knows of changed files whatever their names", async () => {
    const repository = new ARepository().commit({ "\tfirst": "1\n", "a.txt": "a\n" });
    const { root, base } = await makeWorktree({ directory: repository.root, ...whatYouSee });
    const names = ["\tfirst", "a.txt", "b\tc", "b\tc\t", "line\nbreak", ":100644"];
    writeFiles(root, Object.fromEntries(names.map((name) => [name, "changed\n"])));
    const { files } = await work({ folder: repository.root, directory: root, base });
    assert.deepEqual(new Set(files.map(({ path }) => path)), new Set(names));
    assert.ok(files.every(({ added }) => added === 1));
  });

  it("knows of the commits that a rebase in progress is to move, and keeps them", async () => {
    const repository = new ARepository().commit({ "a.txt": "a\n" });
    const { root, name, base } = await makeWorktree({ directory: repository.root, ...whatYouSee });
    const tip = stopInRebase(root);
    const { commits } = await work({ folder: repository.root, directory: root, base });
    assert.deepEqual(commits.map(({ subject }) => subject).sort(), ["First", "Last", "Other", "Second"]);
    const kept = await removeWorktree({ folder: repository.root, name });
    assert.ok(repository.git("rev-list", kept?.ref ?? "").includes(tip));
    await remakeWorktree({ folder: repository.root, name, root });
    assert.equal(gitIn(root, "log", "-1", "--format=%s").trim(), "Other");
    const { ref } = await discard({ folder: repository.root, directory: root });
    assert.ok(!repository.git("rev-list", ref).includes(tip));
  });

  it("is made again from its last kept state, at the same place, with the agent's commits", async () => {
    const repository = dirtyRepository();
    const { root, name } = await makeWorktree({ directory: repository.root, ...whatYouSee });
    writeFiles(root, { "kept.txt": "committed\n" });
    gitIn(root, "commit", "-qam", "By the agent");
    writeFiles(root, { "new.txt": "uncommitted\n" });
    const [head, files] = [gitIn(root, "rev-parse", "HEAD"), filesOf(root)];
    const before = repository.state();
    const kept = await removeWorktree({ folder: repository.root, name });
    assert.match(kept?.ref ?? "", /^refs\/asyncagents\/add-tests\/kept-/);
    assert.equal(existsSync(root), false);
    assert.equal(existsSync(dirname(root)), false);
    assert.equal(existsSync(join(repository.root, ".git/worktrees")), false);
    await remakeWorktree({ folder: repository.root, name, root });
    assert.deepEqual([gitIn(root, "rev-parse", "HEAD"), filesOf(root)], [head, files]);
    assert.match(gitIn(root, "status", "--porcelain"), /\?\? new.txt/);
    // Somebody deletes the folder without Git.
    rmSync(root, { recursive: true });
    await remakeWorktree({ folder: repository.root, name, root });
    assert.deepEqual(filesOf(root), files);
    await assert.rejects(remakeWorktree({ folder: repository.root, name, root }), /already exists/);
    await assert.rejects(
      remakeWorktree({ folder: repository.root, name: "unknown", root: `${root}-x` }),
      /"unknown" can't be recreated because no state of it was saved/,
    );
    assert.deepEqual(repository.state(), before);
  });

  it("is made again from its first state if none was kept", async () => {
    const repository = dirtyRepository();
    const { root, name } = await makeWorktree({ directory: repository.root, ...whatYouSee });
    const files = filesOf(root);
    rmSync(root, { recursive: true });
    await remakeWorktree({ folder: repository.root, name, root });
    assert.deepEqual(filesOf(root), files);
  });

  it("is made again with its task's result if its folder was deleted since", async () => {
    const repository = dirtyRepository();
    const { root, name } = await makeWorktree({ directory: repository.root, ...whatYouSee });
    writeFiles(root, { "new.txt": "by the agent\n" });
    const files = filesOf(root);
    await keep({ folder: repository.root, directory: root, as: "result" });
    rmSync(root, { recursive: true });
    await remakeWorktree({ folder: repository.root, name, root });
    assert.deepEqual(filesOf(root), files);
  });

  it("is made again with the files that Git ignores only since its agent wrote a .gitignore", async () => {
    const repository = new ARepository().commit({ "a.env": "a\n" }).write({ "b.env": "b\n" });
    const { root, name, base } = await makeWorktree({ directory: repository.root, ...whatYouSee });
    writeFiles(root, { ".gitignore": "*.env\n" });
    gitIn(root, "rm", "-q", "--cached", "a.env");
    const files = filesOf(root);
    assert.deepEqual(
      (await work({ folder: repository.root, directory: root, base })).files.map(({ path }) => path),
      [".gitignore"],
    );
    await removeWorktree({ folder: repository.root, name });
    await remakeWorktree({ folder: repository.root, name, root });
    assert.deepEqual(filesOf(root), files);
    const { ref } = await discard({ folder: repository.root, directory: root });
    await undoDiscard({ folder: repository.root, name, root, ref });
    assert.deepEqual(filesOf(root), files);
    const nested = await makeWorktree({ directory: root, base, ...whatYouSee });
    assert.deepEqual(filesOf(nested.root), files);
  });

  it("is whole or gone, even if some of its files can't be deleted", async function () {
    const repository = new ARepository().commit({ "a.txt": "a\n" });
    const { root, name } = await makeWorktree({ directory: repository.root, ...whatYouSee });
    writeFiles(root, { "locked/file.txt": "x\n" });
    const [file, removed] = [join(root, "locked"), join(dirname(root), `.${basename(root)}.removed`)];
    if (spawnSync("chattr", ["+i", file]).status !== 0) this.skip();
    try {
      await removeWorktree({ folder: repository.root, name });
      assert.ok(!existsSync(root));
      assert.equal((await ourWorktrees(await findRepository(repository.root))).size, 0);
      assert.deepEqual(
        repository
          .git("for-each-ref", "--format=%(refname)")
          .split("\n")
          .filter((ref) => ref.includes("changing")),
        [],
      );
    } finally {
      spawnSync("chattr", ["-i", existsSync(file) ? file : join(removed, "locked")]);
    }
    await remakeWorktree({ folder: repository.root, name, root });
    assert.ok(existsSync(join(root, "locked", "file.txt")));
    await removeWorktree({ folder: repository.root, name });
    assert.ok(!existsSync(root) && !existsSync(removed));
  });

  it("of somebody else is never touched, whatever its name", async () => {
    const repository = new ARepository().commit({ "a.txt": "a\n" });
    const root = join(`${repository.root}.worktrees`, "add-tests");
    repository.git("worktree", "add", "-q", "--detach", root);
    writeFiles(root, { "mine.txt": "mine\n" });
    assert.equal(await removeWorktree({ folder: repository.root, name: "add-tests" }), undefined);
    await cleanUpUnfinished(repository.root);
    await assert.rejects(
      keep({ folder: repository.root, directory: root }),
      /isn't a worktree made for a task/,
    );
    await assert.rejects(
      work({ folder: repository.root, directory: root, base: "HEAD" }),
      /isn't a worktree made for a task/,
    );
    await assert.rejects(
      keep({ folder: repository.root, directory: repository.root }),
      /isn't a worktree made for a task/,
    );
    assert.equal(readFileSync(join(root, "mine.txt"), "utf8"), "mine\n");
  });

  it("that was unlocked, or whose folder is used for something else, keeps its files", async () => {
    const repository = new ARepository().commit({ "a.txt": "a\n" });
    const { root, name } = await makeWorktree({ directory: repository.root, ...whatYouSee });
    repository.git("worktree", "unlock", root);
    assert.equal(await removeWorktree({ folder: repository.root, name }), undefined);
    assert.ok(existsSync(join(root, "a.txt")));
    const second = await makeWorktree({ directory: repository.root, ...whatYouSee });
    rmSync(second.root, { recursive: true });
    writeFiles(second.root, { "other.txt": "other\n" });
    assert.equal(await removeWorktree({ folder: repository.root, name: second.name }), undefined);
    assert.deepEqual(Object.keys(filesOf(second.root)), ["other.txt"]);
    assert.equal((await ourWorktrees(await findRepository(repository.root))).size, 0);
  });

  it("of a repository that was moved is removed, with its commits kept, only once it was repaired", async () => {
    const repository = new ARepository().commit({ "a.txt": "a\n" });
    const { root, name } = await makeWorktree({ directory: repository.root, ...whatYouSee });
    gitIn(root, "commit", "--allow-empty", "-qm", "By the agent");
    const head = gitIn(root, "rev-parse", "HEAD").trim();
    const folder = `${repository.root}-moved`;
    renameSync(repository.root, folder);
    await assert.rejects(
      removeWorktree({ folder, name }),
      /repository was moved.* Run "git worktree repair"/,
    );
    assert.equal((await ourWorktrees(await findRepository(folder))).size, 1);
    gitIn(folder, "worktree", "repair");
    const kept = await removeWorktree({ folder, name });
    assert.equal(gitIn(folder, "rev-parse", `${kept?.ref}^`).trim(), head);
    assert.equal(existsSync(root), false);
  });

  it("that was moved isn't made again, but stays as it is", async () => {
    const repository = new ARepository().commit({ "a.txt": "a\n" });
    const { root, name } = await makeWorktree({ directory: repository.root, ...whatYouSee });
    await keep({ folder: repository.root, directory: root, as: "result" });
    const moved = `${root}-moved`;
    renameSync(root, moved);
    gitIn(moved, "worktree", "repair");
    writeFiles(moved, { "later.txt": "later\n" });
    const refs = repository.git("for-each-ref");
    await assert.rejects(remakeWorktree({ folder: repository.root, name, root }), {
      message: `The worktree was moved to ${moved}. Move it back to ${root}, run "git worktree repair" in it, then try again.`,
    });
    assert.deepEqual(Object.keys(filesOf(moved)), ["a.txt", "later.txt"]);
    assert.equal(repository.git("for-each-ref"), refs);
    renameSync(moved, root);
    gitIn(root, "worktree", "repair");
    assert.ok(await removeWorktree({ folder: repository.root, name }));
  });

  it("is protected from the removal of worktrees by other programs", async () => {
    const repository = new ARepository().commit({ "a.txt": "a\n" });
    const { root } = await makeWorktree({ directory: repository.root, ...whatYouSee });
    assert.throws(() => repository.git("worktree", "remove", "--force", root), /locked/);
    assert.ok(existsSync(root));
  });

  it("doesn't run the repository's hooks", async () => {
    const repository = dirtyRepository();
    const marker = join(repository.root, "hook-ran");
    for (const hook of ["post-checkout", "post-index-change", "reference-transaction"])
      writeFileSync(join(repository.root, ".git/hooks", hook), `#!/bin/sh\ntouch "${marker}"\n`, {
        mode: 0o755,
      });
    await makeWorktree({ directory: repository.root, ...whatYouSee });
    assert.equal(existsSync(marker), false);
  });

  it("has the line endings of the repository's attributes and configuration", async () => {
    const repository = new ARepository("core.autocrlf=true").commit({
      ".gitattributes": "*.sh eol=lf\n",
      "a.txt": "a\r\nb\r\n",
      "run.sh": "echo\n",
    });
    repository.write({ "a.txt": "a\r\nchanged\r\n", "new.txt": "new\r\n" });
    const { root } = await makeWorktree({ directory: repository.root, ...whatYouSee });
    const { "a.txt": text, "new.txt": added, "run.sh": script } = filesOf(root);
    assert.deepEqual([text, added, script], ["644 a\r\nchanged\r\n", "644 new\r\n", "644 echo\n"]);
  });
});

describe("Files to include", () => {
  const listed = (): ARepository =>
    new ARepository().commit({ ".gitignore": ".env\ncache/\nlocal/\n", "a.txt": "a\n" }).write({
      ".env": "KEY=1\n",
      "app/.env": "KEY=2\n",
      "cache/big.bin": "big\n",
      "local/keep.json": "{}\n",
      "untracked.txt": "untracked\n",
    });

  async function included(repository: ARepository, patterns?: readonly string[]): Promise<string[]> {
    const { root } = await makeWorktree({ directory: repository.root, name: "inc", from: "head" });
    const copied = await includeFiles({ folder: repository.root, root, ...(patterns && { patterns }) });
    for (const path of copied) assert.equal(filesOf(root)[path], filesOf(repository.root)[path]);
    return copied;
  }

  it("are the ignored ones that .worktreeinclude lists, in any folder", async () => {
    const repository = listed().write({
      ".worktreeinclude": "# needed\n.env\nuntracked.txt\na.txt\n",
      "local/.worktreeinclude": "*.json\n",
    });
    assert.deepEqual(await included(repository, ["cache/"]), [".env", "app/.env", "local/keep.json"]);
  });

  it("are those that match the patterns if there is no such list", async () => {
    assert.deepEqual(await included(listed(), ["**/.env", "cache/"]), [".env", "app/.env", "cache/big.bin"]);
    assert.deepEqual(await included(listed(), []), []);
  });

  it("are never written outside of the worktree, nor over its files", async () => {
    const outside = new ARepository();
    const repository = new ARepository().commit({ "a.txt": "a\n" });
    symlinkSync(outside.root, join(repository.root, "linked"));
    repository.commit({ ".gitignore": "linked/\n.env\n*.lnk\n" }, "Link");
    repository.git("rm", "-q", "--cached", "linked");
    rmSync(join(repository.root, "linked"));
    repository.write({ "linked/x.txt": "x\n", ".env": "mine\n" });
    symlinkSync("/etc/hostname", join(repository.root, "absolute.lnk"));
    symlinkSync("../secret", join(repository.root, "out.lnk"));
    symlinkSync("a.txt", join(repository.root, "in.lnk"));
    const { root } = await makeWorktree({ directory: repository.root, name: "inc", from: "head" });
    writeFiles(root, { ".env": "theirs\n" });
    const copied = await includeFiles({ folder: repository.root, root, patterns: ["*"] });
    assert.deepEqual(copied, ["in.lnk"]);
    assert.equal(readFileSync(join(root, ".env"), "utf8"), "theirs\n");
    assert.deepEqual(filesOf(outside.root), {});
    assert.equal(basename(root), "inc");
  });
});
