import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { english } from "../../../src/engine/sentence.ts";
import { obstacle } from "../../../src/git/obstacles.ts";
import { tempDir } from "../../support/temp.ts";
import { ARepository, dirtyRepository, gitIn } from "./a-repository.ts";

async function toldOf(directory: string, location?: string): Promise<string> {
  const text = await obstacle(directory, { location });
  return text === undefined ? "" : english(text);
}

/** A repository whose two branches changed the same line. */
function withConflict(): ARepository {
  const repository = new ARepository().commit({ "a.txt": "a\n" });
  repository.git("checkout", "-qb", "other");
  repository.commit({ "a.txt": "other\n" });
  repository.git("checkout", "-q", "main");
  return repository.commit({ "a.txt": "main\n" });
}

async function withPath(path: string, job: () => Promise<void>): Promise<void> {
  const before = process.env["PATH"];
  process.env["PATH"] = path;
  try {
    await job();
  } finally {
    process.env["PATH"] = before;
  }
}

describe("An obstacle to making a worktree", () => {
  it("is none in a dirty repository, one without commits, and a worktree", async () => {
    const repository = dirtyRepository();
    assert.equal(await toldOf(repository.root), "");
    assert.equal(await toldOf(join(repository.root, "sub")), "");
    assert.equal(await toldOf(new ARepository().root), "");
    repository.git("worktree", "add", "-q", "--detach", `${repository.root}-2`);
    assert.equal(await toldOf(`${repository.root}-2`), "");
  });

  it("is that Git isn't installed or is too old", async () => {
    const { root } = new ARepository();
    const bin = tempDir("bin");
    await withPath(bin, async () => {
      assert.match(await toldOf(root), /^Git isn't installed .* Or run the task in the folder instead\.$/);
    });
    writeFileSync(join(bin, "git"), '#!/bin/sh\necho "git version 2.37.4"\n');
    chmodSync(join(bin, "git"), 0o755);
    await withPath(`${bin}${delimiter}${process.env["PATH"]}`, async () => {
      assert.match(
        await toldOf(root),
        /^Worktrees require Git 2\.38 or later, but 2\.37 is installed\. Update Git, or/,
      );
    });
  });

  it("is that there is no repository, or one without files", async () => {
    assert.match(
      await toldOf(tempDir("none")),
      /^The folder isn't in a Git repository\. .* in the folder instead/,
    );
    const bare = tempDir("bare");
    gitIn(bare, "init", "-q", "--bare");
    assert.match(await toldOf(bare), /it is bare/);
  });

  it("is that the repository is broken", async () => {
    const { root } = new ARepository().commit({ "a.txt": "a\n" });
    writeFileSync(join(root, ".git/index"), "no index");
    assert.match(
      await toldOf(root),
      /^Git can't read the repository: .* Repair it, or run the task in the folder/,
    );
    const lost = tempDir("lost");
    writeFileSync(join(lost, ".git"), "gitdir: /nowhere/.git/worktrees/lost\n");
    assert.match(await toldOf(lost), /^The file "\.git" leads to a repository that doesn't exist/);
  });

  for (const [operation, start] of [
    ["merge", (repository) => repository.git("merge", "other")],
    ["rebase", (repository) => repository.git("rebase", "other")],
    ["cherry-pick", (repository) => repository.git("cherry-pick", "other")],
    ["revert", (repository) => repository.git("revert", "HEAD~1", "HEAD")],
  ] satisfies [string, (repository: ARepository) => string][])
    it(`is that a ${operation} is in progress`, async () => {
      const repository = withConflict();
      assert.throws(() => start(repository));
      assert.match(
        await toldOf(repository.root),
        new RegExp(`^A ${operation} is in progress .* or abort it`),
      );
    });

  it("is that there are submodules, with or without a description", async () => {
    const [repository, inner] = [new ARepository(), new ARepository().commit({ "a.txt": "a\n" })];
    execFileSync("git", ["clone", "-q", inner.root, join(repository.root, "inner")]);
    repository.git("-c", "advice.addEmbeddedRepo=false", "add", "inner");
    assert.match(await toldOf(repository.root), /^The repository contains submodules/);
  });

  it("is that files are in Git LFS", async () => {
    const repository = new ARepository().commit({
      "assets/.gitattributes": "# none\n*.psd filter=lfs -text\n",
    });
    assert.match(await toldOf(repository.root), /^The repository uses Git LFS/);
    const unused = new ARepository().commit({ ".gitattributes": "# *.psd filter=lfs\n" });
    assert.equal(await toldOf(unused.root), "");
  });

  it("is a sparse checkout", async () => {
    const repository = new ARepository().commit({ "a/a.txt": "a\n", "b/b.txt": "b\n" });
    repository.git("sparse-checkout", "set", "a");
    assert.match(await toldOf(repository.root), /^The repository uses sparse checkout/);
    repository.git("sparse-checkout", "disable");
    assert.equal(await toldOf(repository.root), "");
  });

  it("is that paths would be too long", async () => {
    const { root } = new ARepository().commit({ "a.txt": "a\n" });
    assert.match(
      await toldOf(root, `/${"long/".repeat(810)}`),
      /^Paths in the worktree would be too long: up to \d+/,
    );
  });

  const unusable = (location: string, at: string) =>
    `Worktrees would be made in "${location}", but "${at}" isn't a folder that you can write to. Choose another ` +
    "location in the settings (asyncagents.isolation.location), or run the task in the folder instead.";

  it("is that the location is in a file, but not that it doesn't exist yet", async () => {
    const { root } = new ARepository().commit({ "a.txt": "a\n" });
    const [file, below] = [join(root, "a.txt"), join(root, "a.txt", "of", "worktrees")];
    assert.equal(await toldOf(root, below), unusable(below, file));
    assert.equal(await toldOf(root, "../new/of/worktrees"), "");
  });

  it("is that the location can't be written to", async function () {
    // Nothing keeps root from writing.
    if (process.platform === "win32" || process.getuid?.() === 0) return this.skip();
    const { root } = new ARepository();
    const locked = tempDir("locked");
    chmodSync(locked, 0o555);
    assert.equal(await toldOf(root, join(locked, "x")), unusable(join(locked, "x"), locked));
  });

  it("is that Git doesn't run", async () => {
    const { root } = new ARepository();
    const bin = tempDir("bin");
    const printed = "xcode-select: note: No developer tools were found.\\nInstall them first.";
    writeFileSync(join(bin, "git"), `#!/bin/sh\nprintf '${printed}\\n' >&2\nexit 1\n`);
    chmodSync(join(bin, "git"), 0o755);
    await withPath(`${bin}${delimiter}${process.env["PATH"]}`, async () => {
      assert.equal(
        await toldOf(root),
        "Git doesn't run: xcode-select: note: No developer tools were found. Install them first. " +
          "Install Git 2.38 or later, or run the task in the folder instead.",
      );
      writeFileSync(
        join(bin, "git"),
        "#!/bin/sh\necho 'fatal: bad config line 1 in .gitconfig' >&2\nexit 128\n",
      );
      assert.match(await toldOf(root), /bad config line 1 in \.gitconfig\. Repair it, or/);
    });
  });

  it("is told of a repository that another user owns", async function () {
    if (process.getuid?.() !== 0) this.skip();
    const { root } = new ARepository().commit({ "a.txt": "a\n" });
    execFileSync("chown", ["-R", "12345", root]);
    assert.match(await toldOf(root), /safe\.directory/);
    rmSync(root, { recursive: true });
    mkdirSync(root);
  });
});
