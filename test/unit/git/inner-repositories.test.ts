import assert from "node:assert/strict";
import { existsSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { createBranch } from "../../../src/git/branch.ts";
import { planBringBack } from "../../../src/git/bring-back.ts";
import { discard } from "../../../src/git/discard.ts";
import { FolderWorktrees } from "../../../src/git/folder-worktrees.ts";
import { makeWorktree, type MadeWorktree } from "../../../src/git/make-worktree.ts";
import { removeWorktree } from "../../../src/git/remove-worktree.ts";
import { silentLogger } from "../rpc/fake-host.ts";
import { ARepository, gitIn, writeFiles } from "./a-repository.ts";

describe("A repository inside a worktree", () => {
  let repository: ARepository;
  let made: MadeWorktree;

  beforeEach(async () => {
    repository = new ARepository().commit({ ".gitignore": "cache/\n", "a.txt": "a\n" });
    made = await makeWorktree({ directory: repository.root, name: "work", from: "what-you-see" });
  });

  /** Makes a repository with a commit and a file that is in none. */
  function makeInner(path: string): void {
    const inner = join(made.root, path);
    mkdirSync(inner, { recursive: true });
    gitIn(inner, "init", "-q");
    writeFiles(inner, { "b.txt": "b\n" });
    gitIn(inner, "add", "-A");
    gitIn(inner, "-c", "user.name=A", "-c", "user.email=a@example.com", "commit", "-qm", "Inner");
    writeFiles(inner, { "c.txt": "c\n" });
  }

  /** Each way in which the worktree, and with it the repository, would be gone or forgotten. */
  function ways(): Readonly<Record<string, () => Promise<unknown>>> {
    const { root, base, name } = made;
    return {
      discard: () => discard({ folder: repository.root, directory: root }),
      remove: () => removeWorktree({ folder: repository.root, name }),
      branch: () =>
        createBranch({ folder: repository.root, worktree: root, base, name: "agent/work", message: "Work" }),
    };
  }

  async function assertKept(named: string): Promise<void> {
    const refs = repository.git("for-each-ref");
    for (const [way, run] of Object.entries(ways())) {
      await assert.rejects(
        run(),
        {
          message: `The worktree contains other repositories, which Git can't keep with it: ${named}. Move them out of the worktree or delete them, then try again.`,
        },
        way,
      );
      assert.ok(existsSync(join(made.root, "a.txt")), way);
      assert.equal(repository.git("for-each-ref"), refs, way);
    }
  }

  it("keeps the worktree from being removed, discarded or made a branch of, until it is moved away", async () => {
    makeInner("app");
    makeInner("sub/lib ünï");
    writeFiles(made.root, { "a.txt": "agent\n" });
    await assertKept("app, sub/lib ünï");
    for (const path of ["app", "sub"]) rmSync(join(made.root, path), { recursive: true });
    for (const run of [ways()["branch"], ways()["discard"]]) await run?.();
    assert.equal(existsSync(made.root), false);
  });

  it("does so, too, if it was made in a folder that has files of the worktree", async () => {
    repository.commit({ "sub/app/old.txt": "old\n" });
    made = await makeWorktree({ directory: repository.root, name: "work", from: "what-you-see" });
    makeInner("sub/app");
    await assertKept("sub/app");
    rmSync(join(made.root, "sub/app/.git"), { recursive: true });
    await discard({ folder: repository.root, directory: made.root });
    assert.equal(existsSync(made.root), false);
  });

  it("does so, too, if the agent has committed the link to it", async () => {
    makeInner("app");
    gitIn(made.root, "-c", "advice.addEmbeddedRepo=false", "add", "-A");
    gitIn(made.root, "-c", "user.name=A", "-c", "user.email=a@example.com", "commit", "-qm", "All");
    await assertKept("app");
    rmSync(join(made.root, "app"), { recursive: true });
    await discard({ folder: repository.root, directory: made.root });
    assert.equal(existsSync(made.root), false);
  });

  it("keeps the worktree after the other files were brought back", async () => {
    const worktrees = new FolderWorktrees(repository.root, () => process.env, silentLogger);
    const { root: worktree, name, base } = made;
    writeFiles(worktree, { "a.txt": "agent\n" });
    const plan = await planBringBack({ folder: repository.root, worktree, base });
    assert.equal(await worktrees.isAsPlanned({ name, directory: worktree, base }, plan), true);
    makeInner("app");
    assert.equal(await worktrees.isAsPlanned({ name, directory: worktree, base }, plan), false);
  });

  it("is removed with the worktree if Git ignores it", async () => {
    makeInner("cache/app");
    await ways()["remove"]?.();
    assert.equal(existsSync(made.root), false);
  });
});
