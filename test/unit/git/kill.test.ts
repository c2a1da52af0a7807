import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, rmSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { planBringBack } from "../../../src/git/bring-back.ts";
import { undoDiscard } from "../../../src/git/discard.ts";
import { changesOf } from "../../../src/git/plan-contents.ts";
import { writeBack } from "../../../src/git/write-back.ts";
import { FolderWorktrees } from "../../../src/git/folder-worktrees.ts";
import { cleanUpUnfinished, makeWorktree, remakeWorktree } from "../../../src/git/make-worktree.ts";
import { removeWorktree } from "../../../src/git/remove-worktree.ts";
import { dirtyRepository, filesOf, gitIn, writeFiles, type ARepository } from "./a-repository.ts";
import { KillAtGitCall } from "./kill-at-git-call.ts";

const kill = new KillAtGitCall();

const MAKE = { from: "what-you-see", name: "add-tests" } as const;

function worktreesOf(repository: ARepository): string[] {
  return repository
    .git("worktree", "list", "--porcelain")
    .split("\n")
    .filter((line) => line.startsWith("worktree "))
    .slice(1);
}

describe("A process that is killed at each call of Git", function () {
  this.timeout(300_000);
  before(() => kill.prepare());

  it("while it makes a worktree leaves nothing, or all of it, and nothing of others is touched", async () => {
    const repository = dirtyRepository();
    const mine = join(`${repository.root}.worktrees`, "mine");
    repository.git("worktree", "add", "-q", "--detach", mine);
    writeFiles(mine, { "mine.txt": "mine\n" });
    const before = { folder: repository.state(), mine: filesOf(mine), all: worktreesOf(repository) };
    const options = { directory: repository.root, ...MAKE };
    const moments = kill.moments("makeWorktree", options);
    assert.ok(moments.length > 20);
    await removeAll(repository);
    for (const moment of moments) {
      assert.ok(kill.kill("makeWorktree", options, moment), JSON.stringify(moment));
      await cleanUpUnfinished(repository.root);
      const isMade = existsSync(join(`${repository.root}.worktrees`, "add-tests"));
      if (isMade)
        assert.deepEqual(moment, moments.at(-1), "Only the last call, which removes the mark, completes it");
      else {
        assert.deepEqual(worktreesOf(repository), before.all, JSON.stringify(moment));
        assert.equal(repository.git("for-each-ref", "refs/asyncagents"), "", JSON.stringify(moment));
      }
      assert.deepEqual(repository.state(), before.folder);
      assert.deepEqual(filesOf(mine), before.mine);
    }
    const { name } = await makeWorktree(options);
    assert.equal(name, "add-tests-2");
  });

  it("while it removes a worktree loses nothing, and removes it at last", async () => {
    const repository = dirtyRepository();
    const { root, name } = await makeWorktree({ directory: repository.root, ...MAKE });
    writeFiles(root, { "new.txt": "by the agent\n" });
    const files = filesOf(root);
    const options = { folder: repository.root, name };
    const moments = kill.moments("removeWorktree", options);
    for (const moment of moments) {
      if (!existsSync(root)) await remakeWorktree({ ...options, root });
      assert.deepEqual(filesOf(root), files);
      assert.ok(kill.kill("removeWorktree", options, moment), JSON.stringify(moment));
      await cleanUpUnfinished(repository.root);
      if (existsSync(root)) assert.deepEqual(filesOf(root), files, JSON.stringify(moment));
      else assert.deepEqual(worktreesOf(repository), []);
      assert.doesNotMatch(repository.git("for-each-ref", "refs/asyncagents"), /changing|making/);
    }
    if (!existsSync(root)) await remakeWorktree({ ...options, root });
    assert.deepEqual(filesOf(root), files);
  });

  it("while it makes a worktree again loses no kept state", async () => {
    const repository = dirtyRepository();
    const { root, name } = await makeWorktree({ directory: repository.root, ...MAKE });
    writeFiles(root, { "new.txt": "by the agent\n" });
    const files = filesOf(root);
    await removeWorktree({ folder: repository.root, name });
    const options = { folder: repository.root, name, root };
    const moments = kill.moments("remakeWorktree", options);
    await removeWorktree(options);
    for (const moment of moments) {
      assert.ok(kill.kill("remakeWorktree", options, moment), JSON.stringify(moment));
      await cleanUpUnfinished(repository.root);
      if (existsSync(root)) assert.deepEqual(moment, moments.at(-1));
      else assert.deepEqual(worktreesOf(repository), []);
    }
    if (!existsSync(root)) await remakeWorktree(options);
    assert.deepEqual(filesOf(root), files);
  });

  it("while it discards a worktree loses nothing, and removes it at last", async () => {
    const repository = dirtyRepository();
    const { root, name } = await makeWorktree({ directory: repository.root, ...MAKE });
    writeFiles(root, { "new.txt": "by the agent\n" });
    const files = filesOf(root);
    const lastDiscarded = (): string =>
      repository
        .git("for-each-ref", "--format=%(refname)", "refs/asyncagents/discarded")
        .trim()
        .split("\n")
        .at(-1) ?? "";
    const undo = (): Promise<void> =>
      undoDiscard({ folder: repository.root, name, root, ref: lastDiscarded() });
    const moments = kill.moments("discard", { folder: repository.root, directory: root });
    for (const moment of moments) {
      if (!existsSync(root)) await undo();
      assert.deepEqual(filesOf(root), files);
      assert.ok(
        kill.kill("discard", { folder: repository.root, directory: root }, moment),
        JSON.stringify(moment),
      );
      await cleanUpUnfinished(repository.root);
      if (!existsSync(root)) assert.deepEqual(worktreesOf(repository), []);
    }
    assert.equal(existsSync(root), false);
    await undo();
    assert.deepEqual(filesOf(root), files);
  });

  it("while it brings work back writes each file in full or not at all, and can do it again", async () => {
    const repository = dirtyRepository();
    const { root, base } = await makeWorktree({ directory: repository.root, ...MAKE });
    writeFiles(root, { "picture.bin": Buffer.from([0, 8, 8]) });
    rmSync(join(root, "both.txt"));
    const options = { folder: repository.root, worktree: root, base };
    const paths = ["both.txt", "picture.bin"];
    const [before, state] = [filesOf(repository.root), indexOf(repository)];
    // Git itself only reads here, so it makes no difference whether the next call still runs, and planning writes nothing.
    const planned = kill.moments("planBringBack", options).at(-1)?.call ?? assert.fail();
    const moments = kill
      .moments("bringBack", options)
      .filter(({ when, call }) => when === "after" && call >= planned);
    assert.ok(moments.length > 10);
    const after = filesOf(repository.root);
    const reset = (): void => {
      for (const path of paths) rmSync(join(repository.root, path), { force: true });
      for (const path of paths)
        if (before[path] !== undefined)
          writeFiles(repository.root, { [path]: Buffer.from(before[path].slice("644 ".length), "latin1") });
    };
    for (const moment of moments) {
      reset();
      assert.deepEqual(filesOf(repository.root), before);
      assert.ok(kill.kill("bringBack", options, moment), JSON.stringify(moment));
      for (const [path, text] of Object.entries(filesOf(repository.root)))
        assert.ok(text === before[path] || text === after[path], `${path} ${JSON.stringify(moment)}`);
      assert.deepEqual(indexOf(repository), state);
    }
    const plan = await planBringBack(options);
    for (const file of plan.files) await writeBack(plan, await changesOf(plan, file, "merged"));
    assert.deepEqual(filesOf(repository.root), after);
  });

  it("in the middle of deleting files is made up for", async () => {
    const repository = dirtyRepository();
    const { root, name, base } = await makeWorktree({ directory: repository.root, ...MAKE });
    const { pid } = spawnSync("git", ["version"]);
    repository.git("update-ref", `refs/asyncagents/${name}/changing-${pid}-00000000@${machine}`, base);
    rmSync(join(root, "sub"), { recursive: true });
    rmSync(join(root, "kept.txt"));
    await cleanUpUnfinished(repository.root);
    assert.equal(existsSync(root), false);
    assert.deepEqual(worktreesOf(repository), []);
    await remakeWorktree({ folder: repository.root, name, root });
    assert.ok(existsSync(join(root, "sub/deep.txt")));
  });

  it("that can't be made up for now is logged, and doesn't keep others from being made", async () => {
    const repository = dirtyRepository();
    const { name, base } = await makeWorktree({ directory: repository.root, ...MAKE });
    const { pid } = spawnSync("git", ["version"]);
    const ref = `refs/asyncagents/${name}/changing-${pid}-00000000@${machine}`;
    repository.git("update-ref", ref, base);
    // Another Git holds the reference.
    writeFiles(join(repository.root, ".git"), { [`${ref}.lock`]: "" });
    const warnings: string[] = [];
    const logger = { warn: (message: string) => void warnings.push(message) };
    const worktrees = new FolderWorktrees(repository.root, () => process.env, logger);
    await worktrees.takeUp([]);
    assert.equal(warnings.length, 1);
    assert.match(warnings[0] ?? "", /^Couldn't remove the unfinished worktree …ests: [^]*\.lock/);
    assert.notEqual((await worktrees.make({ name, startFrom: "head" })).name, name);
  });

  it("differs from one that is still at work, whose worktree stays", async () => {
    const repository = dirtyRepository();
    const { root, name, base } = await makeWorktree({ directory: repository.root, ...MAKE });
    for (const alive of [`${process.ppid}-00000000@${machine}`, "999999999-00000000@another-machine"])
      repository.git("update-ref", `refs/asyncagents/${name}/making-${alive}`, base);
    await cleanUpUnfinished(repository.root);
    assert.ok(existsSync(root));
  });
});

const machine = hostname().replace(/[^A-Za-z0-9-]/g, "-");

function indexOf(repository: ARepository): string {
  return repository.git("ls-files", "--stage");
}

async function removeAll(repository: ARepository): Promise<void> {
  await removeWorktree({ folder: repository.root, name: "add-tests" });
  for (const ref of repository
    .git("for-each-ref", "--format=%(refname)", "refs/asyncagents")
    .trim()
    .split("\n"))
    gitIn(repository.root, "update-ref", "-d", ref);
}
