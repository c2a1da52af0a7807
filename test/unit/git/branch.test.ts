import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { createBranch } from "../../../src/git/branch.ts";
import { FolderWorktrees } from "../../../src/git/folder-worktrees.ts";
import { makeWorktree, type MadeWorktree } from "../../../src/git/make-worktree.ts";
import { tempDir } from "../../support/temp.ts";
import { silentLogger } from "../rpc/fake-host.ts";
import { ARepository, gitIn, stopInRebase, writeFiles } from "./a-repository.ts";

const LINES = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", ""].join("\n");

/** The folder for which a worktree was made. */
const folderOf = (worktree: string): string => dirname(worktree).replace(/\.worktrees$/, "");

function create({ root: worktree, base }: MadeWorktree, name = "agent/work"): Promise<string> {
  return createBranch({ folder: folderOf(worktree), worktree, base, name, message: "Add tests" });
}

/** The commits of a branch after the first, oldest first, each with the files that it changed. */
function history(repository: ARepository, branch = "agent/work"): string[][] {
  const log = repository.git("log", "--reverse", "--name-status", "--format=%x00%an: %s", `main..${branch}`);
  return log
    .split("\0")
    .slice(1)
    .map((commit) => commit.split("\n").filter((line) => line !== ""));
}

async function worktreeOf(repository: ARepository): Promise<MadeWorktree> {
  const made = await makeWorktree({ directory: repository.root, name: "work", from: "what-you-see" });
  gitIn(made.root, "config", "user.name", "A User");
  return made;
}

function textIn(paths: readonly string[], text: string): Record<string, string> {
  return Object.fromEntries(paths.map((path) => [path, text]));
}

describe("A branch of a worktree's work", () => {
  it("has one commit of what is uncommitted, on the commit from which the work began", async () => {
    const repository = new ARepository().commit({ "a.txt": LINES });
    const made = await worktreeOf(repository);
    writeFiles(made.root, { "a.txt": LINES.replace("five", "AGENT"), "new.txt": "new\n" });
    repository.write({ "mine.txt": "mine\n" });
    const before = repository.state() as { branches: string };
    const commit = await create(made);
    assert.deepEqual(history(repository), [["A User: Add tests", "M\ta.txt", "A\tnew.txt"]]);
    assert.equal(repository.git("rev-parse", "agent/work").trim(), commit);
    const after = repository.state() as { branches: string };
    assert.deepEqual({ ...after, branches: "" }, { ...before, branches: "" });
  });

  it("keeps the agent's own commits as they are, and adds none if everything is committed", async () => {
    const repository = new ARepository().commit({ "a.txt": LINES });
    const made = await worktreeOf(repository);
    writeFiles(made.root, { "a.txt": LINES.replace("five", "AGENT") });
    gitIn(made.root, "-c", "user.name=The Agent", "commit", "-qam", "First");
    const head = gitIn(made.root, "rev-parse", "HEAD").trim();
    assert.equal(await create(made), head);
    writeFiles(made.root, { "b.txt": "b\n" });
    await create(made, "second");
    assert.deepEqual(history(repository, "second"), [
      ["The Agent: First", "M\ta.txt"],
      ["A User: Add tests", "A\tb.txt"],
    ]);
  });

  it("holds nothing of what was uncommitted in the folder, even if the agent committed that", async () => {
    const repository = new ARepository().commit({ "a.txt": LINES, "b.txt": "b\n", "c.txt": "c\n" });
    repository.write({ "a.txt": LINES.replace("two", "MINE"), "mine.txt": "mine\n" }).remove("c.txt");
    const made = await worktreeOf(repository);
    writeFiles(made.root, { "b.txt": "first\n" });
    gitIn(made.root, "-c", "user.name=The Agent", "commit", "-qm", "Only b", "b.txt");
    writeFiles(made.root, { "a.txt": LINES.replace("two", "MINE").replace("eight", "AGENT") });
    gitIn(made.root, "add", "-A");
    const when = "2020-02-02T02:02:02+0100";
    gitIn(
      made.root,
      "-c",
      "user.name=The Agent",
      "commit",
      "-qm",
      "All of it\n\nIn two parts.",
      "--date",
      when,
    );
    writeFiles(made.root, { "d.txt": "d\n" });
    await create(made);
    assert.deepEqual(history(repository), [
      ["The Agent: Only b", "M\tb.txt"],
      ["The Agent: All of it", "M\ta.txt"],
      ["A User: Add tests", "A\td.txt"],
    ]);
    assert.equal(repository.git("show", "agent/work:a.txt"), LINES.replace("eight", "AGENT"));
    // The first commit contains nothing of the user's, so it is the very same.
    assert.equal(repository.git("rev-parse", "agent/work~2"), gitIn(made.root, "rev-parse", "HEAD~1"));
    const described = repository
      .git("log", "-1", "--format=%ad %B", "--date=iso-strict", "agent/work~1")
      .trim();
    assert.equal(described, "2020-02-02T02:02:02+01:00 All of it\n\nIn two parts.");
  });

  it("names the authors of commits that are remade, also if Git is set to show signatures", async () => {
    const program = join(tempDir("gpg"), "gpg");
    writeFileSync(
      program,
      '#!/bin/sh\ncat >/dev/null\ncase "$*" in *--verify*) echo "[GNUPG:] GOODSIG 1 A"; echo "gpg: Good signature" >&2;; *) echo "[GNUPG:] SIG_CREATED " >&2; echo "-----BEGIN PGP SIGNATURE-----"; echo; echo "-----END PGP SIGNATURE-----";; esac\n',
      { mode: 0o755 },
    );
    const repository = new ARepository("log.showSignature=true", `gpg.program=${program}`).commit({
      "a.txt": LINES,
    });
    repository.write({ "mine.txt": "mine\n" });
    const made = await makeWorktree({ directory: repository.root, name: "work", from: "what-you-see" });
    writeFiles(made.root, { "new.txt": "new\n" });
    gitIn(made.root, "add", "-A");
    gitIn(made.root, "-c", "user.name=Agent", "commit", "-q", "-S", "-m", "By the agent");
    await create(made);
    assert.equal(
      repository.git("log", "-1", "--no-show-signature", "--format=%an", "agent/work").trim(),
      "Agent",
    );
  });

  it("no longer has a file that the agent removed from Git, though it is still there", async () => {
    const repository = new ARepository().commit({ ".env": "a\n" }).write({ "mine.env": "mine\n" });
    const made = await makeWorktree({ directory: repository.root, name: "work", from: "what-you-see" });
    writeFiles(made.root, { ".gitignore": "*.env\n" });
    gitIn(made.root, "rm", "-q", "--cached", ".env");
    await createBranch({
      folder: repository.root,
      worktree: made.root,
      base: made.base,
      name: "agent/work",
      message: "Rest",
    });
    assert.equal(repository.git("ls-tree", "-r", "--name-only", "agent/work"), ".gitignore\n");
  });

  it("says so if the agent's changes cannot be told from those of the user", async () => {
    const repository = new ARepository().commit({ "a.txt": LINES });
    repository.write({ "a.txt": LINES.replace("five", "MINE") });
    const made = await worktreeOf(repository);
    writeFiles(made.root, { "a.txt": LINES.replace("five", "AGENT") });
    await assert.rejects(
      create(made),
      /can't hold the agent's changes alone: a\.txt\. Bring the work back instead/,
    );
    assert.doesNotMatch(repository.git("branch"), /agent/);
  });

  it("isn't created while the agent has left markers of conflicts with the folder", async () => {
    const files = ["a.txt", "b.txt", "c.txt"];
    const marked = "<<<<<<< Your changes\nmine\n=======\nagent\n>>>>>>> Changes by the agent\n";
    const repository = new ARepository().commit({ ...textIn(files, LINES), "docs.txt": marked });
    repository.write(textIn(files, LINES.replace("five", "MINE")));
    const { name, directory, root, base } = await worktreeOf(repository);
    const worktrees = new FolderWorktrees(repository.root, () => process.env, silentLogger);
    writeFiles(root, textIn(files, LINES.replace("five", "AGENT")));
    repository.write(textIn(files, LINES));
    const plan = await worktrees.planBringBack({ name, directory, base }, new Map());
    const worktree = { name, directory, base: await worktrees.takeIn({ name, directory, base }, plan) };
    const createIt = (): Promise<void> =>
      worktrees.createBranch(worktree, { name: "agent/work", message: "x" });
    writeFiles(root, { "a.txt": "resolved\n", "docs.txt": `${marked}More\n` });
    await assert.rejects(createIt(), /conflict markers in b\.txt, c\.txt\. /);
    assert.doesNotMatch(repository.git("branch"), /agent/);
    writeFiles(root, textIn(["b.txt", "c.txt"], "resolved\n"));
    await createIt();
    assert.equal(repository.git("show", "agent/work:b.txt"), "resolved\n");
  });

  it("isn't created while a rebase is in progress", async () => {
    const repository = new ARepository().commit({ "a.txt": LINES });
    const made = await worktreeOf(repository);
    stopInRebase(made.root);
    await assert.rejects(create(made), {
      message:
        "A rebase is in progress in the worktree, so commits are missing from it. Have the agent complete or abort the rebase, then try again.",
    });
    assert.doesNotMatch(repository.git("branch"), /agent/);
    gitIn(made.root, "rebase", "--abort");
    await create(made);
    assert.deepEqual(
      history(repository).map(([subject]) => subject),
      ["A User: First", "A User: Second", "A User: Last"],
    );
  });

  it("is made of one commit if the agent's commits don't follow one by one", async () => {
    const repository = new ARepository().commit({ "a.txt": LINES });
    repository.write({ "mine.txt": "mine\n" });
    const made = await worktreeOf(repository);
    gitIn(made.root, "checkout", "-q", "--orphan", "fresh");
    writeFiles(made.root, { "a.txt": LINES.replace("five", "AGENT") });
    gitIn(made.root, "add", "-A");
    gitIn(made.root, "commit", "-qm", "From scratch");
    await create(made);
    assert.deepEqual(history(repository), [["A User: Add tests", "M\ta.txt"]]);
  });

  it("works before the first commit, without the user's files", async () => {
    const repository = new ARepository().write({ "a.txt": LINES });
    const made = await worktreeOf(repository);
    writeFiles(made.root, { "new.txt": "new\n" });
    await create(made);
    assert.equal(repository.git("ls-tree", "-r", "--name-only", "agent/work"), "new.txt\n");
    assert.equal(repository.git("rev-list", "--count", "agent/work"), "1\n");
  });

  it("isn't created without changes, without a user's name, or over another branch", async () => {
    const repository = new ARepository().commit({ "a.txt": LINES });
    const made = await worktreeOf(repository);
    await assert.rejects(create(made), /There are no changes for a branch/);
    writeFiles(made.root, { "a.txt": "agent\n" });
    await assert.rejects(create(made, "main"), /A branch named "main" already exists/);
    await assert.rejects(create(made, "main/sub"), /A branch named "main" already exists/);
    for (const name of ["", "-x", "a..b", "a b", "@{-1}", "x.lock"])
      await assert.rejects(create(made, name), /isn't a valid name for a branch/, name);
    for (const setting of ["user.name", "user.email"]) repository.git("config", "--unset", setting);
    repository.git("config", "user.useConfigOnly", "true");
    process.env["GIT_CONFIG_GLOBAL"] = process.env["GIT_CONFIG_SYSTEM"] = "/dev/null";
    try {
      await assert.rejects(create(made), /Set user\.name and user\.email/);
    } finally {
      delete process.env["GIT_CONFIG_GLOBAL"];
      delete process.env["GIT_CONFIG_SYSTEM"];
    }
    assert.equal(repository.git("branch", "--format=%(refname:short)", "--list", "[!(]*").trim(), "main");
  });
});
