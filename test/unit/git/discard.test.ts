import assert from "node:assert/strict";
import { copyFileSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { discard, expireDiscarded, KEEP_DISCARDED_MS, undoDiscard } from "../../../src/git/discard.ts";
import { FolderWorktrees } from "../../../src/git/folder-worktrees.ts";
import { listWorktrees } from "../../../src/git/list-worktrees.ts";
import { makeWorktree, remakeWorktree } from "../../../src/git/make-worktree.ts";
import { predict, worktreeState, type TreeState } from "../../../src/git/predict.ts";
import { removeWorktree } from "../../../src/git/remove-worktree.ts";
import { snapshot } from "../../../src/git/snapshot.ts";
import { tempDir } from "../../support/temp.ts";
import { silentLogger } from "../rpc/fake-host.ts";
import { ARepository, dirtyRepository, filesOf, gitIn, stopInMerge, writeFiles } from "./a-repository.ts";

const LINES = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", ""].join("\n");
const from = "what-you-see";

function references(repository: ARepository): string[] {
  return repository.git("for-each-ref", "--format=%(refname)", "refs/asyncagents").split("\n").slice(0, -1);
}

describe("A discarded worktree", () => {
  it("is gone, and can be made again with everything but ignored files", async () => {
    const repository = dirtyRepository();
    const before = repository.state();
    const { root, name } = await makeWorktree({ directory: repository.root, name: "work", from });
    writeFiles(root, { "kept.txt": "agent\n" });
    gitIn(root, "commit", "-qam", "By the agent");
    writeFiles(root, { "new.txt": "new\n" });
    const [head, files] = [gitIn(root, "rev-parse", "HEAD"), filesOf(root)];
    const { ref } = await discard({ folder: repository.root, directory: root });
    assert.match(ref, /^refs\/asyncagents\/discarded\/work-\d{8}T\d{9}Z$/);
    assert.equal(existsSync(root), false);
    assert.deepEqual(await listWorktrees(repository.root), []);
    await undoDiscard({ folder: repository.root, name, root, ref });
    assert.deepEqual([gitIn(root, "rev-parse", "HEAD"), filesOf(root)], [head, files]);
    assert.deepEqual(references(repository), ["refs/asyncagents/work/base", "refs/asyncagents/work/head"]);
    assert.deepEqual(repository.state(), before);
  });

  it("is gone also where the user has Git refuse commands in the repository itself", async () => {
    const repository = new ARepository().commit({ "a.txt": LINES });
    const made = (name: string) => makeWorktree({ directory: repository.root, name, from });
    const [discarded, removed] = [await made("first"), await made("second")];
    const settings = join(tempDir("settings"), "gitconfig");
    writeFileSync(settings, "[safe]\n\tbareRepository = explicit\n");
    const { GIT_CONFIG_GLOBAL } = process.env;
    process.env.GIT_CONFIG_GLOBAL = settings;
    try {
      await discard({ folder: repository.root, directory: discarded.root });
      await removeWorktree({ folder: repository.root, name: removed.name });
    } finally {
      if (GIT_CONFIG_GLOBAL === undefined) delete process.env.GIT_CONFIG_GLOBAL;
      else process.env.GIT_CONFIG_GLOBAL = GIT_CONFIG_GLOBAL;
    }
    assert.deepEqual(await listWorktrees(repository.root), []);
  });

  it("is left alone, with any other, if it leads to that of another task", async () => {
    const repository = new ARepository().commit({ "a.txt": LINES });
    const worktrees = new FolderWorktrees(repository.root, () => process.env, silentLogger);
    const [a, b] = [
      await worktrees.make({ name: "a", startFrom: "whatYouSee" }),
      await worktrees.make({ name: "b", startFrom: "whatYouSee" }),
    ];
    writeFiles(b.directory, { "b.txt": "by the other agent\n" });
    copyFileSync(join(b.directory, ".git"), join(a.directory, ".git"));
    for (const wrong of [worktrees.discard(a), worktrees.changes(a), worktrees.planBringBack(a, new Map())])
      await assert.rejects(wrong, /isn't a worktree made for a task/);
    // Git takes the file that it finds for the truth after a day.
    const link = join(repository.root, ".git", "worktrees", "b", "gitdir");
    writeFileSync(link, `${join(a.directory, ".git")}\n`);
    await assert.rejects(worktrees.discard(a), /isn't a worktree made for a task/);
    assert.equal(readFileSync(join(b.directory, "b.txt"), "utf8"), "by the other agent\n");
  });

  it("keeps what Git has put aside for a merge in progress", async () => {
    const repository = new ARepository().commit({ "a.txt": LINES, "b.txt": "b\n" });
    const { root } = await makeWorktree({ directory: repository.root, name: "work", from });
    stopInMerge(root);
    const { ref } = await discard({ folder: repository.root, directory: root });
    const kept = repository.git("rev-list", "--all", ref).trim().split("\n");
    const texts = kept.map((commit) => repository.git("show", `${commit}:b.txt`));
    assert.ok(texts.includes("not committed\n"), texts.join());
  });

  it("is forgotten after 30 days, and not before", async () => {
    const repository = dirtyRepository();
    const make = async (): Promise<string> =>
      (await makeWorktree({ directory: repository.root, name: "work", from })).root;
    const [first, second] = [await make(), await make()];
    await discard({ folder: repository.root, directory: first });
    const { ref } = await discard({ folder: repository.root, directory: second });
    const discarded = references(repository);
    const now = Date.now();
    await expireDiscarded(repository.root, new Date(now + KEEP_DISCARDED_MS - 60_000));
    assert.deepEqual(references(repository), discarded);
    await undoDiscard({ folder: repository.root, name: "work-2", root: second, ref });
    await expireDiscarded(repository.root, new Date(now + KEEP_DISCARDED_MS + 60_000));
    assert.deepEqual(references(repository), [
      "refs/asyncagents/work-2/base",
      "refs/asyncagents/work-2/head",
    ]);
  });

  it("is not forgotten if it was made again meanwhile, and other work in it was kept", async () => {
    const repository = dirtyRepository();
    const { root, name } = await makeWorktree({ directory: repository.root, name: "work", from });
    await discard({ folder: repository.root, directory: root });
    const now = Date.now();
    await remakeWorktree({ folder: repository.root, name, root });
    writeFiles(root, { "new.txt": "new\n" });
    const files = filesOf(root);
    await removeWorktree({ folder: repository.root, name });
    await expireDiscarded(repository.root, new Date(now + KEEP_DISCARDED_MS + 60_000));
    await remakeWorktree({ folder: repository.root, name, root });
    assert.deepEqual(filesOf(root), files);
  });

  it("that was discarded once more is kept from then on", async () => {
    const repository = dirtyRepository();
    const { root, name } = await makeWorktree({ directory: repository.root, name: "work", from });
    const old = "refs/asyncagents/discarded/work-20200101T000000000Z";
    repository.git("update-ref", old, "HEAD");
    const { ref } = await discard({ folder: repository.root, directory: root });
    await expireDiscarded(repository.root, new Date());
    assert.equal(references(repository).includes(old), false);
    await undoDiscard({ folder: repository.root, name, root, ref });
    assert.ok(existsSync(root));
  });
});

describe("The list of worktrees", () => {
  it("has those of tasks only, with age, size and work", async () => {
    const repository = new ARepository().commit({ "sub/a.txt": LINES });
    repository.git("worktree", "add", "-q", "--detach", `${repository.root}.worktrees/mine`);
    const start = Date.now() - 1_000;
    const folder = join(repository.root, "sub");
    const made = await makeWorktree({ directory: folder, name: "work", from });
    const gone = await makeWorktree({ directory: folder, name: "gone", from });
    rmSync(gone.root, { recursive: true });
    writeFiles(made.root, { "big.bin": Buffer.alloc(1_000_000, "x") });
    const [first, second, ...others] = await listWorktrees(folder);
    assert.deepEqual(others, []);
    assert.deepEqual([first?.name, first?.work, first?.size], ["gone", undefined, 0]);
    assert.deepEqual(
      [second?.name, second?.root, second?.directory],
      ["work", made.root, join(made.root, "sub")],
    );
    assert.ok((second?.size ?? 0) > 1_000_000 && (second?.size ?? 0) < 1_200_000, `${second?.size}`);
    assert.ok((second?.made.getTime() ?? 0) >= start);
    assert.deepEqual(
      second?.work?.files.map(({ path }) => path),
      ["big.bin"],
    );
  });
});

describe("The worktrees of a folder that shares its repository", () => {
  it("are listed there alone, as long as the folder exists", async () => {
    const repository = new ARepository().commit({ "one/a.txt": LINES, "two/b.txt": LINES });
    const [one, two] = [join(repository.root, "one"), join(repository.root, "two")];
    const listed = async (folder: string): Promise<readonly string[]> =>
      (await listWorktrees(folder)).map(({ name }) => name);
    const own = new FolderWorktrees(one, () => process.env, silentLogger);
    const made = await own.make({ name: "work", startFrom: "head" });
    assert.deepEqual([await listed(one), await listed(two)], [["work"], []]);
    await own.claim(made);
    assert.deepEqual([await listed(one), await listed(two)], [["work"], []]);
    // Only what no task has is removed when the folder is taken up again.
    await new FolderWorktrees(one, () => process.env, silentLogger).takeUp([]);
    await own.remove(made);
    await own.remake(made, {});
    assert.deepEqual([await listed(one), await listed(two)], [["work"], []]);
    rmSync(one, { recursive: true });
    assert.deepEqual(await listed(two), ["work"]);
  });
});

describe("A worktree whose task deleted or renamed the folder for which it was made", () => {
  it("is there with its work, which can be predicted, brought back and discarded", async () => {
    const repository = new ARepository().commit({ "packages/app/a.txt": LINES });
    const folder = join(repository.root, "packages", "app");
    const worktrees = new FolderWorktrees(folder, () => process.env, silentLogger);
    const made = await worktrees.make({ name: "work", startFrom: "head" });
    const root = join(made.directory, "..", "..");
    const predicted = async (): Promise<number | undefined> =>
      (await worktrees.predict([made], new Set(["work"]), new AbortController().signal)).get("work")?.files;
    rmSync(join(root, "packages"), { recursive: true });
    assert.equal(await predicted(), 1);
    rmSync(join(root, "packages"), { recursive: true });
    assert.equal(await worktrees.exists(made), true);
    writeFiles(root, { "renamed/a.txt": LINES });
    const { files } = await worktrees.planBringBack(made, new Map());
    assert.deepEqual(
      files.map(({ kind, path }) => `${kind} ${path}`),
      ["renamed renamed/a.txt"],
    );
    await worktrees.discard(made);
    assert.deepEqual(
      [existsSync(root), await worktrees.exists(made), await predicted()],
      [false, false, undefined],
    );
    await worktrees.remake(made, {});
    assert.deepEqual([await worktrees.exists(made), Object.keys(filesOf(root))], [true, ["renamed/a.txt"]]);
  });
});

describe("A predicted conflict", () => {
  it("is in the files that the worktree and the folder changed in different ways", async () => {
    const repository = new ARepository().commit({ "a.txt": LINES, "b.txt": LINES, "c.txt": LINES });
    const { root, base } = await makeWorktree({ directory: repository.root, name: "work", from });
    writeFiles(root, {
      "a.txt": LINES.replace("five", "AGENT"),
      "b.txt": LINES.replace("two", "AGENT"),
      "c.txt": "same\n",
    });
    repository.write({
      "a.txt": LINES.replace("five", "MINE"),
      "b.txt": LINES.replace("eight", "MINE"),
      "c.txt": "same\n",
    });
    const folder = await snapshot(repository.root);
    assert.deepEqual(await predict(repository.root, await worktreeState(root, base), folder), ["a.txt"]);
  });

  it("between worktrees leaves out what the user changed between making them", async () => {
    const repository = new ARepository().commit({ "a.txt": LINES, "b.txt": LINES, "c.txt": LINES });
    const first = await makeWorktree({ directory: repository.root, name: "first", from });
    repository.write({ "b.txt": LINES.replace("two", "MINE").replace("three", "MINE") });
    repository.commit({ "c.txt": LINES.replace("two", "MINE") });
    const second = await makeWorktree({ directory: repository.root, name: "second", from });
    const states = (): Promise<[Required<TreeState>, Required<TreeState>]> =>
      Promise.all([worktreeState(first.root, first.base), worktreeState(second.root, second.base)]);
    assert.deepEqual(await predict(repository.root, ...(await states())), []);
    writeFiles(first.root, {
      "a.txt": LINES.replace("five", "FIRST"),
      "b.txt": LINES.replace("eight", "FIRST"),
    });
    writeFiles(second.root, {
      "a.txt": LINES.replace("five", "SECOND"),
      "b.txt": LINES.replace("two", "MINE").replace("three", "SECOND"),
    });
    const [a, b] = await states();
    assert.deepEqual(await predict(repository.root, a, b), ["a.txt"]);
    assert.deepEqual(await predict(repository.root, b, a), ["a.txt"]);
  });
});

describe("The folder of a task's worktree", () => {
  it("is there again after all its files were renamed away, so that this can be undone", async () => {
    const repository = new ARepository().commit({ "package/a.txt": LINES });
    const folder = join(repository.root, "package");
    const worktrees = new FolderWorktrees(folder, () => process.env, silentLogger);
    const made = await worktrees.make({ name: "work", startFrom: "head" });
    const root = join(made.directory, "..");
    rmSync(join(root, "package"), { recursive: true });
    writeFiles(root, { "library/a.txt": LINES });
    assert.ok(await worktrees.exists(made));
    const plan = await worktrees.planBringBack(made, new Map());
    const choices = plan.files.map(({ path }) => ({ path, take: "agents" as const }));
    const brought = await worktrees.bringBack(plan, choices, []);
    assert.deepEqual(readdirSync(folder), []);
    await worktrees.undoBringBack(brought);
    assert.deepEqual(readdirSync(folder), ["a.txt"]);
    await worktrees.remove(made);
  });

  it("doesn't matter to what a task launches or continues: that begins with the work of the task", async () => {
    const repository = new ARepository().commit({ "a.txt": LINES });
    const worktrees = new FolderWorktrees(repository.root, () => process.env, silentLogger);
    const first = await worktrees.make({ name: "first", startFrom: "head" });
    writeFiles(first.directory, { "a.txt": "edited\n", "new.txt": "new\n" });
    const next = await worktrees.make({ name: "next", startFrom: "head", from: first });
    assert.equal(readFileSync(join(next.directory, "a.txt"), "utf8"), "edited\n");
    assert.equal(readFileSync(join(next.directory, "new.txt"), "utf8"), "new\n");
  });
});
