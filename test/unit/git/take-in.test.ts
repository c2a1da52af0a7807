import assert from "node:assert/strict";
import { mkdirSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import type { BringBackPlan } from "../../../src/engine/bring-back.ts";
import { FolderWorktrees } from "../../../src/git/folder-worktrees.ts";
import { silentLogger } from "../rpc/fake-host.ts";
import { ARepository, filesOf, gitIn, writeFiles } from "./a-repository.ts";

const LINES = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", ""].join("\n");

/** Similar to others of the same name only. */
function picture(name: string, end = ""): Buffer {
  return Buffer.concat([Buffer.alloc(500, `\0${name}`), Buffer.from(end)]);
}

function conflictsOf({ files }: BringBackPlan): object {
  return Object.fromEntries(files.flatMap(({ path, conflict }) => (conflict ? [[path, conflict]] : [])));
}

describe("The folder's state that a worktree gets for its agent to merge", () => {
  it("leaves a file as it is that Git ignores in the worktree, and that the user has added since", async () => {
    const repository = new ARepository().commit({ "text.txt": LINES, ".gitignore": "lock.json\n" });
    const worktrees = new FolderWorktrees(repository.root, () => process.env, silentLogger);
    const made = await worktrees.make({ name: "work", startFrom: "whatYouSee" });
    writeFiles(made.directory, { "text.txt": LINES.replace("five", "AGENT"), "lock.json": "built\n" });
    repository.write({ "text.txt": LINES.replace("five", "MINE"), "lock.json": "mine\n" });
    repository.git("add", "-f", "lock.json");
    const plan = await worktrees.planBringBack(made, new Map());
    const base = await worktrees.takeIn(made, plan);
    const { "text.txt": merged = "", "lock.json": kept } = filesOf(made.directory);
    assert.match(merged, /<<<<<<< Your changes/);
    assert.equal(kept, "644 built\n");
    writeFiles(made.directory, { "text.txt": LINES.replace("five", "BOTH") });
    const next = await worktrees.planBringBack({ ...made, base }, new Map());
    assert.deepEqual(
      next.files.map(({ path, conflict }) => [path, conflict]),
      [["text.txt", undefined]],
    );
  });

  it("leaves files that can't be merged as text as they are, and in conflict", async () => {
    const repository = new ARepository().commit({
      "text.txt": LINES,
      "bóth.bin": picture("both"),
      "renamed.bin": picture("renamed"),
      "now-folder": "a file\n",
      link: "a file\n",
      "own.lock": LINES,
      ".gitattributes": "*.lock -merge\n",
    });
    const worktrees = new FolderWorktrees(repository.root, () => process.env, silentLogger);
    const made = await worktrees.make({ name: "work", startFrom: "whatYouSee" });
    const { directory } = made;
    writeFiles(directory, {
      "text.txt": LINES.replace("five", "AGENT"),
      "bóth.bin": picture("both", "agent"),
      "new.bin": picture("new", "agent"),
      "renamed.bin": picture("renamed", "agent"),
      "now-folder": "agent\n",
      "own.lock": LINES.replace("five", "AGENT"),
      "new.lock": "AGENT\n",
    });
    renameSync(join(directory, "renamed.bin"), join(directory, "moved.bin"));
    rmSync(join(directory, "link"));
    symlinkSync("text.txt", join(directory, "link"));
    repository.remove("now-folder");
    mkdirSync(join(repository.root, "now-folder"));
    repository.write({
      "text.txt": LINES.replace("five", "MINE"),
      "mine.txt": "mine\n",
      "bóth.bin": picture("both", "mine"),
      "new.bin": picture("new", "mine"),
      "renamed.bin": picture("renamed", "mine"),
      "now-folder/inside.txt": "mine\n",
      link: "mine\n",
      "own.lock": LINES.replace("five", "MINE"),
      "new.lock": "MINE\n",
    });
    const plan = await worktrees.planBringBack(made, new Map());
    const before = filesOf(directory);
    const base = await worktrees.takeIn(made, plan);
    const { "text.txt": merged = "", ...others } = filesOf(directory);
    assert.match(merged, /<<<<<<< Your changes\nMINE\n=======\nAGENT\n>>>>>>> Changes by the agent\n/);
    assert.deepEqual({ ...others, "text.txt": before["text.txt"] }, { ...before, "mine.txt": "644 mine\n" });
    writeFiles(directory, { "text.txt": LINES.replace("five", "BOTH") });
    const { "text.txt": text, ...stillInConflict } = conflictsOf(plan) as Record<string, string>;
    assert.equal(text, "content");
    assert.deepEqual(Object.keys(stillInConflict).sort(), [
      "bóth.bin",
      "link",
      "moved.bin",
      "new.bin",
      "new.lock",
      "now-folder",
      "own.lock",
    ]);
    assert.deepEqual(
      plan.files.filter(({ hasMarkers }) => hasMarkers).map(({ path }) => path),
      ["text.txt"],
    );
    const again = await worktrees.planBringBack({ ...made, base }, new Map());
    assert.deepEqual(conflictsOf(again), stillInConflict);
    assert.equal(again.files.find(({ path }) => path === "text.txt")?.added, 1);
    assert.equal(gitIn(directory, "show", `${base}:mine.txt`), "mine\n");
  });

  it("is all of the folder if everything can be merged, with what the user renamed and deleted", async () => {
    const repository = new ARepository().commit({
      "text.txt": LINES,
      "old.txt": LINES,
      "gone.txt": "gone\n",
    });
    const worktrees = new FolderWorktrees(repository.root, () => process.env, silentLogger);
    const made = await worktrees.make({ name: "work", startFrom: "whatYouSee" });
    writeFiles(made.directory, { "text.txt": LINES.replace("five", "AGENT") });
    repository.write({ "text.txt": LINES.replace("five", "MINE") }).remove("gone.txt");
    renameSync(join(repository.root, "old.txt"), join(repository.root, "new.txt"));
    const plan = await worktrees.planBringBack(made, new Map());
    const base = await worktrees.takeIn(made, plan);
    assert.deepEqual(Object.keys(filesOf(made.directory)), ["new.txt", "text.txt"]);
    const revisions = [`${base}^{tree}`, `${base}^`, "refs/asyncagents/work/base"];
    assert.deepEqual(
      revisions.map((revision) => repository.git("rev-parse", revision).trim()),
      [plan.mine, made.base, base],
    );
  });

  it("keeps a folder of the user's in conflict with a file of the agent's in its place", async () => {
    const repository = new ARepository().commit({ "text.txt": LINES });
    const worktrees = new FolderWorktrees(repository.root, () => process.env, silentLogger);
    const made = await worktrees.make({ name: "work", startFrom: "whatYouSee" });
    writeFiles(made.directory, { "text.txt": LINES.replace("five", "AGENT"), place: "agent\n" });
    repository.write({ "text.txt": LINES.replace("five", "MINE"), "place/inside.txt": "mine\n" });
    const plan = await worktrees.planBringBack(made, new Map());
    const base = await worktrees.takeIn(made, plan);
    writeFiles(made.directory, { "text.txt": LINES.replace("five", "BOTH") });
    const again = await worktrees.planBringBack({ ...made, base }, new Map());
    assert.deepEqual(Object.keys(conflictsOf(again)), ["place"]);
    assert.deepEqual(
      again.files.map(({ path }) => path),
      ["place", "text.txt"],
    );
  });

  it("is given also if the user added a repository to the index", async () => {
    const repository = new ARepository().commit({ "text.txt": LINES });
    const worktrees = new FolderWorktrees(repository.root, () => process.env, silentLogger);
    const made = await worktrees.make({ name: "work", startFrom: "whatYouSee" });
    writeFiles(made.directory, { "text.txt": LINES.replace("five", "AGENT") });
    repository.write({ "text.txt": LINES.replace("five", "MINE"), "inner/file.txt": "mine\n" });
    const inner = join(repository.root, "inner");
    gitIn(inner, "init", "--quiet");
    gitIn(inner, "add", ".");
    gitIn(inner, "commit", "--quiet", "--message=Inner");
    gitIn(repository.root, "add", "inner");
    const plan = await worktrees.planBringBack(made, new Map());
    const base = await worktrees.takeIn(made, plan);
    writeFiles(made.directory, { "text.txt": LINES.replace("five", "BOTH") });
    const again = await worktrees.planBringBack({ ...made, base }, new Map());
    assert.deepEqual(
      again.files.map(({ path }) => path),
      ["text.txt"],
    );
  });
});
