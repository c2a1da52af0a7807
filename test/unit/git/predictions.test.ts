import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { english } from "../../../src/engine/sentence.ts";
import type { WorktreeState } from "../../../src/engine/ports.ts";
import type { TaskWorktree } from "../../../src/engine/task.ts";
import { FolderWorktrees } from "../../../src/git/folder-worktrees.ts";
import { makeWorktree } from "../../../src/git/make-worktree.ts";
import { lockReason } from "../../../src/git/our-worktrees.ts";
import { isThere, Predictions } from "../../../src/git/predictions.ts";
import { tempDir } from "../../support/temp.ts";
import { silentLogger } from "../rpc/fake-host.ts";
import { ARepository, filesOf, gitIn, writeFiles } from "./a-repository.ts";

describe("The predictions of a folder", function () {
  this.timeout(60_000);
  let repository: ARepository;
  let predictions: Predictions;
  let trees: TaskWorktree[];

  beforeEach(() => {
    repository = new ARepository().commit({
      "list.txt": "one\ntwo\nthree\n",
      "old.txt": "1\n2\n3\n4\n5\n",
      ".gitignore": "ignored.txt\n",
    });
    predictions = new Predictions(repository.root);
    trees = [];
  });

  async function tree(name: string, files: Readonly<Record<string, string | Buffer>>): Promise<TaskWorktree> {
    const made = await makeWorktree({ directory: repository.root, name, from: "what-you-see" });
    writeFiles(made.root, files);
    trees.push(made);
    return made;
  }

  function read(
    changed: readonly string[] = trees.map(({ name }) => name),
    signal = new AbortController().signal,
  ): Promise<ReadonlyMap<string, WorktreeState>> {
    return predictions.of(trees, new Set(changed), signal);
  }

  async function conflicts(changed?: readonly string[]): Promise<unknown> {
    const states = await read(changed);
    return Object.fromEntries(
      [...states].map(([name, state]) => [
        name,
        state.conflicts.map(({ worktree = "folder", paths }) => `${worktree}: ${paths.join(" ")}`),
      ]),
    );
  }

  it("run no command of a repository that an agent has put into its worktree", async () => {
    const { directory } = await tree("a", { "new.txt": "1\n" });
    const ran = join(tempDir(), "ran");
    const link = join(directory, ".git");
    // A repository inside the worktree, whose own configuration names a filter.
    execFileSync("git", ["init", "-q", "--separate-git-dir", join(directory, "e"), tempDir()]);
    execFileSync("git", ["--git-dir", join(directory, "e"), "config", "filter.x.clean", `touch ${ran}; cat`]);
    writeFiles(directory, { ".gitattributes": "* filter=x\n", "e/locked": `${lockReason("a")}\n` });
    const own = readFileSync(link, "utf8");
    writeFileSync(link, `gitdir: ${join(directory, "e")}\n`);
    assert.equal((await read()).size, 0);
    const folder = new FolderWorktrees(repository.root, () => process.env, silentLogger);
    const made = trees[0] ?? assert.fail();
    await assert.rejects(folder.planBringBack(made, new Map()), /isn't a worktree made for a task/);
    await assert.rejects(folder.changes(made), /isn't a worktree made for a task/);
    assert.ok(!existsSync(ran));
    writeFileSync(link, own);
    assert.equal((await read()).size, 1);
  });

  it("nor of one beside the folder's equivalent, however it passes itself off as a worktree", async () => {
    repository.commit({ "pkg/a.txt": "a\n" });
    const folder = new FolderWorktrees(join(repository.root, "pkg"), () => process.env, silentLogger);
    const made = await folder.make({ name: "a", from: undefined, location: "", startFrom: "whatYouSee" });
    const ran = join(tempDir(), "ran");
    const root = dirname(made.directory);
    writeFiles(root, {
      "g/HEAD": "ref: refs/heads/main\n",
      "g/config": `[filter "x"]\n\tclean = touch ${ran}; cat\n`,
      "g/objects/keep": "",
      "g/refs/keep": "",
      "g/worktrees/x/HEAD": "ref: refs/heads/main\n",
      "g/worktrees/x/commondir": "../..\n",
      "g/worktrees/x/locked": `${lockReason("a")}\n`,
      "pkg/.gitattributes": "* filter=x\n",
      "pkg/.git": "gitdir: ../g/worktrees/x\n",
    });
    assert.equal((await folder.predict([made], new Set(["a"]), new AbortController().signal)).size, 0);
    await assert.rejects(folder.changes(made), /isn't a worktree made for a task/);
    // What a task launches begins with its files.
    const next = { name: "b", from: made, location: "", startFrom: "whatYouSee" } as const;
    await assert.rejects(folder.make(next), /isn't a worktree made for a task/);
    const obstacle = await folder.obstacle(next);
    assert.match(obstacle === undefined ? "" : english(obstacle), /isn't a worktree made for a task/);
    assert.ok(!existsSync(ran));
  });

  it("count files and lines against the first state, commits included", async () => {
    repository.write({ "list.txt": "ONE\ntwo\nthree\n" });
    const { directory } = await tree("a", { "new.txt": "1\n2\n", "picture.bin": Buffer.from([0, 1]) });
    gitIn(directory, "add", "-A");
    gitIn(directory, "-c", "user.name=a", "-c", "user.email=a", "commit", "-qm", "Work");
    rmSync(join(directory, "list.txt"));
    const before = [repository.state(), filesOf(directory), gitIn(directory, "status", "--porcelain")];
    assert.deepEqual([...(await read())], [["a", { files: 3, added: 2, removed: 3, conflicts: [] }]]);
    assert.deepEqual(
      [repository.state(), filesOf(directory), gitIn(directory, "status", "--porcelain")],
      before,
    );
  });

  it("count no file as deleted that is still there and only ignored by now", async () => {
    repository.write({ ".env": "mine\n" });
    await tree("a", { ".gitignore": "ignored.txt\n.env\n" });
    assert.deepEqual([...(await read())], [["a", { files: 1, added: 1, removed: 0, conflicts: [] }]]);
  });

  it("name files of the folder that the user ignores since the worktree was made, or that were renamed there", async () => {
    repository.write({ ".env": "a\n" });
    const { directory } = await tree("a", { ".env": "by the agent\n" });
    gitIn(directory, "mv", "old.txt", "ignored.txt");
    repository.write({ ".gitignore": "ignored.txt\n.env\n", ".env": "mine\n", "ignored.txt": "mine\n" });
    assert.deepEqual(await conflicts(), { a: ["folder: .env ignored.txt"] });
  });

  it("name the folder first, then other worktrees, for changed, renamed and ignored files", async () => {
    const a = await tree("a", { "list.txt": "a\n", "ignored.txt": "a\n", "new/file.txt": "a\n" });
    const b = await tree("b", { "list.txt": "b\n", new: "b\n" });
    await tree("c", { "other.txt": "c\n" });
    gitIn(a.directory, "mv", "old.txt", "moved.txt");
    writeFiles(a.directory, { "moved.txt": "1\n2\n3\n4\n55\n", ".gitignore": "" });
    gitIn(b.directory, "rm", "-q", "old.txt");
    repository.write({ "list.txt": "mine\n", "ignored.txt": "mine\n" });
    assert.deepEqual(await conflicts(), {
      a: ["folder: ignored.txt list.txt", "b: list.txt moved.txt new"],
      b: ["folder: list.txt", "a: list.txt moved.txt new"],
      c: [],
    });
  });

  it("name what one worktree renamed and another changed, and a folder where another has a file", async () => {
    const renamed = await tree("renamed", {});
    gitIn(renamed.directory, "mv", "old.txt", "moved.txt");
    writeFiles(renamed.directory, { "moved.txt": "1\n2\nRENAMED\n4\n5\n" });
    await tree("changed", { "old.txt": "1\n2\nCHANGED\n4\n5\n" });
    await tree("folder", { "deep/place/inner/a.txt": "a\n" });
    await tree("file", { "deep/place": "a\n" });
    await tree("beside", { "deep/place.txt": "a\n" });
    assert.deepEqual(await conflicts(), {
      renamed: ["changed: moved.txt"],
      changed: ["renamed: moved.txt"],
      folder: ["file: deep/place"],
      file: ["folder: deep/place"],
      beside: [],
    });
  });

  it("leave out a worktree that can't be read, such as one whose first commit is gone", async () => {
    await tree("a", { "list.txt": "a\n" });
    trees = [{ ...(trees[0] ?? assert.fail()), name: "lost", base: "0".repeat(40) }, ...trees];
    assert.deepEqual(await conflicts(), { a: [] });
  });

  it("read a worktree again only if it may have changed, and the folder each time", async () => {
    const { directory } = await tree("a", { "list.txt": "a\n" });
    assert.deepEqual(await conflicts(), { a: [] });
    writeFiles(directory, { "list.txt": "one\ntwo\nthree\n" });
    repository.write({ "list.txt": "mine\n" });
    assert.deepEqual(await conflicts([]), { a: ["folder: list.txt"] });
    assert.deepEqual(await conflicts(["a"]), { a: [] });
  });

  it("leave out a worktree that is gone", async () => {
    const { directory } = await tree("a", { "list.txt": "a\n" });
    await tree("b", { "list.txt": "b\n" });
    assert.deepEqual(await conflicts(), { a: ["b: list.txt"], b: ["a: list.txt"] });
    rmSync(directory, { recursive: true });
    assert.deepEqual(await conflicts([]), { b: [] });
  });

  it("are made without what was read before if another repository has taken the folder's place", async () => {
    await tree("old", { "list.txt": "a\n" });
    assert.deepEqual(await conflicts(), { old: [] });
    rmSync(join(repository.root, ".git"), { recursive: true });
    gitIn(repository.root, "init", "--quiet");
    repository.commit({ "list.txt": "one\n" });
    await tree("new", { "list.txt": "two\n" });
    repository.write({ "list.txt": "three\n" });
    assert.deepEqual(await conflicts(["new"]), { new: ["folder: list.txt"] });
  });

  it("are cancelled", async () => {
    await tree("a", { "list.txt": "a\n" });
    const abort = new AbortController();
    const reading = read(["a"], abort.signal);
    abort.abort();
    await assert.rejects(reading, { name: "AbortError" });
    assert.deepEqual(await conflicts([]), { a: [] });
  });
});

describe("A worktree for a folder below the top", () => {
  it("isn't there if another folder or file is in its place, which stays as it is", async () => {
    const repository = new ARepository().commit({ "packages/app/a.txt": "a\n" });
    const folder = join(repository.root, "packages/app");
    const { root, ...made } = await makeWorktree({ directory: folder, name: "work", from: "head" });
    const worktree = { ...made, directory: join(root, "packages/app") };
    assert.equal(await isThere(worktree, folder), true);
    rmSync(join(root, "packages"), { recursive: true });
    writeFiles(root, { packages: "a file\n" });
    assert.equal(await isThere(worktree, folder), false);
    assert.deepEqual(filesOf(root), { packages: "644 a file\n" });
    rmSync(root, { recursive: true });
    mkdirSync(root);
    assert.equal(await isThere(worktree, folder), false);
    assert.deepEqual(filesOf(root), {});
  });
});
