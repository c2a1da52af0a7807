import assert from "node:assert/strict";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join, relative } from "node:path";
import type { BringBackPlan, PlannedFile } from "../../../src/engine/bring-back.ts";
import { planBringBack } from "../../../src/git/bring-back.ts";
import { FolderWorktrees } from "../../../src/git/folder-worktrees.ts";
import { makeWorktree } from "../../../src/git/make-worktree.ts";
import { changesOf, contents, type Which } from "../../../src/git/plan-contents.ts";
import { writeBack } from "../../../src/git/write-back.ts";
import { tempDir } from "../../support/temp.ts";
import { silentLogger } from "../rpc/fake-host.ts";
import {
  ARepository,
  dirtyRepository,
  filesOf,
  gitIn,
  stopInMerge,
  stopInRebase,
  writeFiles,
} from "./a-repository.ts";

/** A folder and a worktree that was made from it. */
interface Work {
  readonly repository: ARepository;
  readonly worktree: string;
  readonly base: string;
  plan(unsaved?: ReadonlyMap<string, string>): Promise<BringBackPlan>;
}

async function workOn(
  repository: ARepository,
  from: "what-you-see" | "head" = "what-you-see",
): Promise<Work> {
  const { root, base } = await makeWorktree({ directory: repository.root, name: "work", from });
  return {
    repository,
    worktree: root,
    base,
    plan: (unsaved) => planBringBack({ folder: repository.root, worktree: root, base, unsaved }),
  };
}

/** Takes the files in one state, as the folder's own where nothing else is named. */
async function take(plan: BringBackPlan, which: Which | Readonly<Record<string, Which>>): Promise<void> {
  for (const file of plan.files)
    await writeBack(
      plan,
      await changesOf(plan, file, typeof which === "string" ? which : (which[file.path] ?? "mine")),
    );
}

function brief({ files }: BringBackPlan): Record<string, string> {
  const text = ({ kind, from, conflict, added, removed, isBinary }: PlannedFile): string =>
    [
      kind,
      from && `from ${from}`,
      `+${added} -${removed}`,
      isBinary && "binary",
      conflict && `conflict: ${conflict}`,
    ]
      .filter(Boolean)
      .join(", ");
  return Object.fromEntries(files.map((file) => [file.path, text(file)]));
}

/** The state of a repository without the files, and with the status of only those that were not brought back. */
function unchanged(repository: ARepository, brought: readonly string[]): object {
  const { status, ...rest } = repository.state() as { status: string; files?: object };
  delete rest.files;
  return {
    ...rest,
    status: status.split("\n").filter((line) => !brought.some((path) => line.includes(path))),
  };
}

const LINES = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", ""].join("\n");

describe("Bringing back", () => {
  it("asks about a file in which an agent that was to merge has left our conflict markers", async () => {
    const repository = new ARepository("color.ui=always", "color.grep=always").commit({
      "a.txt": LINES,
      "b.txt": LINES,
      "c.txt": "<<<<<<< HEAD\n",
    });
    repository.write({
      "resolved.txt": "<<<<<<< Your changes\nfive\n=======\nFIVE\n>>>>>>> Changes by the agent\n",
    });
    const { worktree, plan } = await workOn(repository);
    const renamed = "<<<<<<< Your changes:a.txt\nfive\n=======\nFIVE\n>>>>>>> Changes by the agent:moved.txt";
    const marked = "<<<<<<< Your changes\nfive\n=======\nFIVE\n>>>>>>> Changes by the agent";
    writeFiles(worktree, {
      "a.txt": LINES.replace("five", marked),
      "b.txt": LINES.replace("five", "FIVE"),
      "c.txt": "<<<<<<< HEAD\nmore\n",
      "new.txt": `${marked}\n`,
      "moved.txt": `${renamed}\n`,
      "resolved.txt": "FIVE\n",
    });
    const planned = await plan();
    assert.deepEqual(brief(planned), {
      "a.txt": "modified, +4 -0, conflict: content",
      "b.txt": "modified, +1 -1",
      "c.txt": "modified, +1 -0",
      "moved.txt": "added, +5 -0, conflict: content",
      "new.txt": "added, +5 -0, conflict: content",
      "resolved.txt": "modified, +0 -4",
    });
    const sides = Object.fromEntries(planned.files.map(({ path, versions }) => [path, versions]));
    const blob = (root: string, path: string): object => ({
      mode: "100644",
      blob: gitIn(root, "hash-object", path).trim(),
    });
    assert.deepEqual(sides, {
      "a.txt": { mine: blob(repository.root, "a.txt"), agents: blob(worktree, "a.txt") },
      "b.txt": undefined,
      "c.txt": undefined,
      "moved.txt": { agents: blob(worktree, "moved.txt") },
      "new.txt": { agents: blob(worktree, "new.txt") },
      "resolved.txt": undefined,
    });
  });

  it("also asks about those of another length", async () => {
    const repository = new ARepository().commit({
      ".gitattributes": "*.rst conflict-marker-size=20\n",
      "a.rst": LINES,
    });
    const worktrees = new FolderWorktrees(repository.root, () => process.env, silentLogger);
    const made = await worktrees.make({ name: "work", startFrom: "whatYouSee" });
    writeFiles(made.directory, { "a.rst": LINES.replace("five", "AGENT") });
    repository.write({ "a.rst": LINES.replace("five", "MINE") });
    const base = await worktrees.takeIn(made, await worktrees.planBringBack(made, new Map()));
    const { files } = await worktrees.planBringBack({ ...made, base }, new Map());
    assert.deepEqual(
      files.map(({ path, conflict }) => [path, conflict]),
      [["a.rst", "content"]],
    );
  });

  it("is refused while a merge is in progress for which Git has put changes aside", async () => {
    const repository = new ARepository().commit({ "a.txt": LINES, "b.txt": "b\n" });
    const { worktree, plan } = await workOn(repository);
    stopInMerge(worktree);
    await assert.rejects(plan(), /A merge is in progress in the worktree/);
  });

  it("asks about none of the conflict markers that were there before, or that the agent has resolved", async () => {
    const marked = "<<<<<<< Your changes\nfive\n=======\nFIVE\n>>>>>>> Changes by the agent\n";
    const { worktree, plan } = await workOn(
      new ARepository().commit({ "documented.txt": `${marked}${LINES}`, "resolved.txt": marked }),
    );
    writeFiles(worktree, { "documented.txt": `${marked}${LINES}ten\n` });
    assert.deepEqual(brief(await plan()), { "documented.txt": "modified, +1 -0" });
    writeFiles(worktree, { "resolved.txt": "FIVE\n" });
    assert.deepEqual(brief(await plan()), {
      "documented.txt": "modified, +1 -0",
      "resolved.txt": "modified, +0 -4",
    });
  });

  it("takes changes of all kinds into a dirty folder, whose index and other files stay as they are", async () => {
    const { repository, worktree, plan } = await workOn(dirtyRepository());
    writeFiles(worktree, {
      "kept.txt": "one\nTWO\nthree\n",
      "staged.txt": "staged\nby the agent\n",
      "added/new.txt": "new\n",
      "picture.bin": Buffer.from([0, 7, 7]),
    });
    chmodSync(join(worktree, "unstaged.txt"), 0o755);
    chmodSync(join(worktree, "run.sh"), 0o644);
    renameSync(join(worktree, "new-name.txt"), join(worktree, "newer-name.txt"));
    rmSync(join(worktree, "link"));
    symlinkSync("staged.txt", join(worktree, "link"));
    rmSync(join(worktree, "sub/deep.txt"));
    gitIn(worktree, "add", "-A");
    gitIn(worktree, "commit", "-qm", "By the agent");
    writeFiles(worktree, { "both.txt": "uncommitted\n" });
    // What the user does meanwhile.
    repository.write({ "mine.txt": "mine\n", "sub/untracked ünï.txt": "mine\n" });

    const before = repository.state();
    const planned = await plan();
    assert.deepEqual(repository.state(), before);
    assert.deepEqual(brief(planned), {
      "added/new.txt": "added, +1 -0",
      "both.txt": "modified, +1 -1",
      "kept.txt": "modified, +1 -1",
      link: "modified, +1 -1",
      "newer-name.txt": "renamed, from new-name.txt, +0 -0",
      "picture.bin": "modified, +0 -0, binary",
      "run.sh": "mode, +0 -0",
      "staged.txt": "modified, +1 -0",
      "sub/deep.txt": "deleted, +0 -1",
      "unstaged.txt": "mode, +0 -0",
    });
    const brought = [...planned.files.map(({ path }) => path), "new-name.txt"];
    const rest = unchanged(repository, brought);
    await take(planned, "merged");
    assert.deepEqual(unchanged(repository, brought), rest);
    const expected = {
      ...filesOf(worktree),
      "mine.txt": "644 mine\n",
      "sub/untracked ünï.txt": "644 mine\n",
    };
    const ignored = { "key.secret": "644 secret\n", "ignored/build.js": "644 built\n" };
    assert.deepEqual(filesOf(repository.root), { ...expected, ...ignored });
    assert.deepEqual((await plan()).files, []);
  });

  it("merges both sides' changes in one file", async () => {
    const { repository, worktree, plan } = await workOn(new ARepository().commit({ "a.txt": LINES }));
    repository.write({ "a.txt": LINES.replace("two", "MINE") });
    writeFiles(worktree, { "a.txt": LINES.replace("eight", "AGENT") });
    const planned = await plan();
    assert.deepEqual(brief(planned), { "a.txt": "modified, +1 -1" });
    for (const [which, text] of [
      ["mine", LINES.replace("two", "MINE")],
      ["agents", LINES.replace("eight", "AGENT")],
    ] as const)
      assert.equal(String((await contents(planned, "a.txt", which)).bytes), text);
    await take(planned, "merged");
    assert.equal(repository.read("a.txt"), LINES.replace("two", "MINE").replace("eight", "AGENT"));
  });

  it("takes part of the unsaved texts of editors", async () => {
    const { worktree, plan } = await workOn(new ARepository().commit({ "a.txt": LINES }));
    writeFiles(worktree, { "a.txt": LINES.replace("eight", "AGENT") });
    const planned = await plan(new Map([["a.txt", LINES.replace("two", "UNSAVED")]]));
    const { bytes } = await contents(planned, "a.txt", "merged");
    assert.equal(String(bytes), LINES.replace("two", "UNSAVED").replace("eight", "AGENT"));
    // What is on disk differs from that, so only the editor can apply it.
    await assert.rejects(take(planned, "merged"), /a\.txt has changed in the meantime/);
  });

  it("is refused while a file of the worktree has unsaved changes, which would be lost with it", async () => {
    const { repository, worktree, plan } = await workOn(new ARepository().commit({ "sub/a.txt": LINES }));
    writeFiles(worktree, { "sub/a.txt": LINES.replace("eight", "AGENT") });
    const path = relative(repository.root, join(worktree, "sub/a.txt"));
    await assert.rejects(
      plan(new Map([[path, "MINE"]])),
      /^[^:]*: sub\/a\.txt has unsaved changes in an editor\./,
    );
    assert.deepEqual(Object.keys(brief(await plan(new Map([["../elsewhere.txt", "MINE"]])))), ["sub/a.txt"]);
  });

  it("follows a file that one side renamed and the other changed", async () => {
    const { repository, worktree, plan } = await workOn(
      new ARepository().commit({ "a.txt": LINES, "b.txt": LINES.replaceAll("e", "3") }),
    );
    renameSync(join(worktree, "a.txt"), join(worktree, "a2.txt"));
    repository.write({ "a.txt": LINES.replace("two", "MINE") });
    renameSync(join(repository.root, "b.txt"), join(repository.root, "b2.txt"));
    writeFiles(worktree, { "b.txt": LINES.replaceAll("e", "3").replace("two", "AGENT") });
    const planned = await plan();
    assert.deepEqual(brief(planned), {
      "a2.txt": "renamed, from a.txt, +0 -0",
      "b2.txt": "modified, +1 -1",
    });
    await take(planned, "merged");
    assert.deepEqual(filesOf(repository.root), {
      "a2.txt": `644 ${LINES.replace("two", "MINE")}`,
      "b2.txt": `644 ${LINES.replaceAll("e", "3").replace("two", "AGENT")}`,
    });
  });

  it("writes the text of a link as a file where Git has no links", async () => {
    const repository = new ARepository("core.symlinks=false").commit({ "a.txt": "a\n" });
    const blob = repository.git("hash-object", "-w", "a.txt").trim();
    repository.git("update-index", "--add", "--cacheinfo", `120000,${blob},link`);
    repository.write({ link: "a\n" }).git("commit", "-qm", "Link");
    const { worktree, plan } = await workOn(repository);
    writeFiles(worktree, { link: "b.txt" });
    const planned = await plan();
    assert.deepEqual(brief(planned), { link: "modified, +1 -1" });
    await take(planned, "agents");
    assert.ok(lstatSync(join(repository.root, "link")).isFile());
    assert.equal(filesOf(repository.root)["link"], "644 b.txt");
  });

  it("names each conflict, and lets the user take either side", async () => {
    const repository = new ARepository().commit({
      "content.txt": LINES,
      "deleted-by-me.txt": "one\n",
      "deleted-by-agent.txt": "two\n",
      "deleted-by-both.txt": "three\n",
      "picture.bin": Buffer.from([0, 1]),
      "renamed.txt": LINES.toUpperCase(),
      "clean.txt": "clean\n",
      "folder-by-agent": "a file\n",
      "twice.txt": "a\nfile\nwith\ntwo\nnew\nnames\n",
    });
    symlinkSync("clean.txt", join(repository.root, "link"));
    repository.commit({}, "Link");
    const { worktree, plan } = await workOn(repository);
    repository
      .write({
        "content.txt": LINES.replace("five", "MINE"),
        "deleted-by-agent.txt": "mine\n",
        "new.txt": "mine\n",
        "picture.bin": Buffer.from([0, 2]),
        "renamed.txt": LINES.toUpperCase().replace("FIVE", "mine"),
        "folder-by-agent": "mine\n",
      })
      .remove("deleted-by-me.txt", "deleted-by-both.txt", "link")
      .write({ link: "a file of mine\n" });
    renameSync(join(repository.root, "twice.txt"), join(repository.root, "twice-mine.txt"));
    writeFiles(worktree, {
      "content.txt": LINES.replace("five", "AGENT"),
      "deleted-by-me.txt": "agent\n",
      "new.txt": "agent\n",
      "picture.bin": Buffer.from([0, 3]),
      "renamed.txt": LINES.toUpperCase().replace("FIVE", "agent"),
      "clean.txt": "agent\n",
    });
    for (const path of ["deleted-by-agent.txt", "deleted-by-both.txt", "link", "folder-by-agent"])
      rmSync(join(worktree, path));
    renameSync(join(worktree, "renamed.txt"), join(worktree, "moved.txt"));
    renameSync(join(worktree, "twice.txt"), join(worktree, "twice-agent.txt"));
    symlinkSync("new.txt", join(worktree, "link"));
    writeFiles(worktree, { "folder-by-agent/inside.txt": "agent\n" });

    const before = repository.state();
    const planned = await plan();
    assert.deepEqual(repository.state(), before);
    assert.deepEqual(brief(planned), {
      "clean.txt": "modified, +1 -1",
      "content.txt": "modified, +1 -1, conflict: content",
      "deleted-by-agent.txt": "deleted, +0 -1, conflict: deleted-by-agent",
      "deleted-by-me.txt": "added, +1 -0, conflict: deleted-by-you",
      "folder-by-agent": "deleted, +0 -1, conflict: kind",
      "folder-by-agent/inside.txt": "added, +1 -0, conflict: kind",
      link: "modified, +1 -1, conflict: kind",
      "moved.txt": "renamed, from renamed.txt, +9 -0, conflict: content",
      "new.txt": "modified, +1 -1, conflict: both-added",
      "picture.bin": "modified, +0 -0, binary, conflict: content",
      "twice-agent.txt": "added, +6 -0, conflict: kind",
      "twice-mine.txt": "deleted, +0 -6, conflict: kind",
    });
    const { bytes } = await contents(planned, "moved.txt", "mine");
    assert.equal(String(bytes), LINES.toUpperCase().replace("FIVE", "mine"));
    await take(planned, "mine");
    assert.deepEqual(repository.state(), before);
    await take(planned, "agents");
    assert.deepEqual(filesOf(repository.root), filesOf(worktree));
  });

  it("knows of conflict markers also where attributes exclude a file from what is shown as a difference", async () => {
    const { repository, worktree, plan } = await workOn(
      new ARepository().commit({ ".gitattributes": "*.json -diff\n", "lock.json": LINES }),
    );
    writeFiles(worktree, { "lock.json": LINES.replace("two", "AGENT") });
    repository.write({ "lock.json": LINES.replace("two", "MINE") });
    const { files } = await plan();
    assert.deepEqual(
      files.map(({ path, conflict, hasMarkers }) => [path, conflict, hasMarkers]),
      [["lock.json", "content", true]],
    );
  });

  it("names more conflicts than a command line has room for", async () => {
    const folder = Array.from({ length: 5 }, () => "f".repeat(200)).join("/");
    const all = (text: string) =>
      Object.fromEntries(Array.from({ length: 2_200 }, (_, index) => [`${folder}/${index}.txt`, text]));
    const { repository, worktree, plan } = await workOn(new ARepository().commit(all("one\n")));
    writeFiles(worktree, all("AGENT\n"));
    repository.write(all("MINE\n"));
    const { files } = await plan();
    assert.equal(files.length, 2_200);
    assert.ok(files.every(({ conflict, hasMarkers }) => conflict === "content" && hasMarkers));
  });

  it("joins a renamed file in conflict with the file that it was, and with no other of the same text", async () => {
    const mine = LINES.toUpperCase().replace("FIVE", "mine");
    const { repository, worktree, plan } = await workOn(
      new ARepository().commit({
        "renamed.txt": LINES.toUpperCase(),
        "a-copy.txt": mine,
        "both.txt": LINES,
        "gone.txt": LINES.replace("five", "MINE"),
      }),
    );
    repository.write({ "renamed.txt": mine, "both.txt": LINES.replace("five", "MINE") });
    renameSync(join(worktree, "renamed.txt"), join(worktree, "moved.txt"));
    rmSync(join(worktree, "gone.txt"));
    writeFiles(worktree, {
      "moved.txt": LINES.toUpperCase().replace("FIVE", "agent"),
      "a-copy.txt": mine.replace("ONE", "agent"),
      "both.txt": LINES.replace("five", "AGENT"),
    });
    assert.deepEqual(brief(await plan()), {
      "a-copy.txt": "modified, +1 -1",
      "both.txt": "modified, +1 -1, conflict: content",
      "gone.txt": "deleted, +0 -9",
      "moved.txt": "renamed, from renamed.txt, +9 -0, conflict: content",
    });
  });

  it("says that a link is in conflict if both sides let it point elsewhere", async () => {
    const repository = new ARepository().commit({ "a.txt": "a\n" });
    symlinkSync("a.txt", join(repository.root, "link"));
    repository.commit({}, "Link");
    const { worktree, plan } = await workOn(repository);
    for (const [root, target] of [
      [repository.root, "mine.txt"],
      [worktree, "agent.txt"],
    ] as const) {
      rmSync(join(root, "link"));
      symlinkSync(target, join(root, "link"));
    }
    const planned = await plan();
    assert.deepEqual(brief(planned), { link: "modified, +1 -1, conflict: kind" });
    await take(planned, "agents");
    assert.deepEqual(filesOf(repository.root), filesOf(worktree));
  });

  it("writes conflict markers with names that a user understands", async () => {
    const { repository, worktree, plan } = await workOn(new ARepository().commit({ "a.txt": LINES }));
    repository.write({ "a.txt": LINES.replace("five", "MINE"), "new.txt": "mine\n" });
    writeFiles(worktree, { "a.txt": LINES.replace("five", "AGENT"), "new.txt": "agent\n" });
    const planned = await plan();
    await take(planned, "markers");
    assert.equal(
      repository.read("a.txt"),
      LINES.replace("five", "<<<<<<< Your changes\nMINE\n=======\nAGENT\n>>>>>>> Changes by the agent"),
    );
    const labels = { mine: "我的更改", agents: "Fix the login" };
    const { bytes } = await contents(planned, "new.txt", "markers", { labels });
    assert.equal(String(bytes), "<<<<<<< 我的更改\nmine\n=======\nagent\n>>>>>>> Fix the login\n");
  });

  it("refuses to put a file where the user has a folder, and the reverse", async () => {
    const { repository, worktree, plan } = await workOn(new ARepository().commit({ "a.txt": "a\n" }));
    repository.write({ "x/mine.txt": "mine\n", y: "mine\n", "deep/place": "mine\n" });
    writeFiles(worktree, { x: "agent\n", "y/agent.txt": "agent\n", "deep/place/inner/a.txt": "agent\n" });
    const planned = await plan();
    assert.deepEqual(brief(planned), {
      "deep/place": "deleted, +0 -1, conflict: kind",
      "deep/place/inner/a.txt": "added, +1 -0, conflict: kind",
      x: "added, +1 -0, conflict: kind",
      y: "deleted, +0 -1, conflict: kind",
      "y/agent.txt": "added, +1 -0, conflict: kind",
    });
    await assert.rejects(take(planned, { x: "agents" }), /x is a folder/);
    await assert.rejects(take(planned, { "y/agent.txt": "agents" }), /y isn't a folder/);
    assert.equal(repository.read("x/mine.txt"), "mine\n");
  });

  it("replaces a folder by a file where the user changed nothing in it", async () => {
    const { repository, worktree, plan } = await workOn(
      new ARepository().commit({ "x/a.txt": "a\n", "x/b/c.txt": "c\n" }),
    );
    rmSync(join(worktree, "x"), { recursive: true });
    writeFiles(worktree, { x: "a file\n" });
    const planned = await plan();
    const all = await Promise.all(planned.files.map((file) => changesOf(planned, file, "merged")));
    await writeBack(planned, new Map(all.flatMap((changes) => [...changes])));
    assert.deepEqual(filesOf(repository.root), { x: "644 a file\n" });
  });

  it("doesn't take a file for deleted that is still in the worktree, where Git ignores it", async () => {
    const repository = new ARepository().commit({ ".env": "a\n", "gone.env": "a\n" });
    repository.write({ "modules/b/c.js": "c\n", ".git/info/exclude": "dist/\n", "dist/b.js": "b\n" });
    repository.git("add", "-f", "dist/b.js");
    const { worktree, base, plan } = await workOn(repository);
    writeFiles(worktree, { ".gitignore": "modules/\n*.env\n" });
    gitIn(worktree, "rm", "-q", "--cached", ".env", "gone.env");
    rmSync(join(worktree, "gone.env"));
    const planned = await plan();
    assert.deepEqual(brief(planned), {
      ".gitignore": "added, +2 -0",
      "gone.env": "deleted, +0 -1",
    });
    assert.deepEqual(await contents(planned, "gone.env", "merged"), { bytes: undefined, mode: "file" });
    const worktrees = new FolderWorktrees(repository.root, () => ({}), silentLogger);
    assert.ok(await worktrees.isAsPlanned({ name: "work", directory: worktree, base }, planned));
    await take(planned, "merged");
    assert.deepEqual(filesOf(repository.root), filesOf(worktree));
  });

  it("doesn't overwrite an ignored file of the folder without saying so", async () => {
    const repository = new ARepository().commit({ ".gitignore": "*.local\n" }).write({ "a.local": "mine\n" });
    const { worktree, plan } = await workOn(repository);
    writeFiles(worktree, { ".gitignore": "", "a.local": "agent\n" });
    const planned = await plan();
    assert.equal(planned.files.find(({ path }) => path === "a.local")?.conflict, "both-added");
    await take(planned, { "a.local": "agents" });
    assert.equal(repository.read("a.local"), "agent\n");
  });

  it("knows the folder's files that the user ignores since the worktree was made", async () => {
    const repository = new ARepository();
    repository.write({ "a.env": LINES, "b.env": LINES });
    const { worktree, plan } = await workOn(repository);
    repository.write({ ".gitignore": "*.env\n", "a.env": LINES.replace("one", "MINE") });
    writeFiles(worktree, { "a.env": LINES.replace("five", "AGENT") });
    rmSync(join(worktree, "b.env"));
    const planned = await plan();
    assert.deepEqual(brief(planned), { "a.env": "modified, +1 -1", "b.env": "deleted, +0 -9" });
    await take(planned, "merged");
    assert.deepEqual(filesOf(repository.root), {
      ".gitignore": "644 *.env\n",
      "a.env": `644 ${LINES.replace("one", "MINE").replace("five", "AGENT")}`,
    });
  });

  it("says what conflicts if the agent added a file where the user has put a link in a folder's place", async () => {
    const { repository, worktree, plan } = await workOn(
      new ARepository().commit({ "sub/a.txt": "a\n", "other/new.txt": "mine\n" }),
    );
    repository.remove("sub");
    symlinkSync("other", join(repository.root, "sub"));
    writeFiles(worktree, { "sub/new.txt": "by the agent\n" });
    const planned = await plan();
    assert.deepEqual(brief(planned), {
      sub: "deleted, +0 -1, conflict: kind",
      "sub/new.txt": "added, +1 -0, conflict: kind",
    });
    await assert.rejects(
      take(planned, { "sub/new.txt": "agents" }),
      /^Error: sub isn't a folder, so sub\/new.txt wasn't written/,
    );
    assert.equal(repository.read("other/new.txt"), "mine\n");
  });

  it("names a file that it can't write, rather than taking it for deleted", async () => {
    const repository = new ARepository().commit({ "a.txt": "a\n" });
    const latin = (root: string): Buffer => Buffer.from(join(root, "caf\u00e9.txt"), "latin1");
    writeFileSync(latin(repository.root), "a\n");
    const { worktree, plan } = await workOn(repository);
    const inner = new ARepository().commit({ "a.txt": "a\n" });
    renameSync(inner.root, join(worktree, "inner"));
    gitIn(worktree, "-c", "advice.addEmbeddedRepo=false", "add", "inner");
    writeFileSync(latin(worktree), "by the agent\n");
    const planned = await plan();
    assert.deepEqual(Object.keys(brief(planned)), ["caf\ufffd.txt", "inner"]);
    for (const path of ["caf\ufffd.txt", "inner"])
      await assert.rejects(take(planned, { [path]: "merged" }), {
        message: `${path} can't be brought back because it is a repository of its own, or because of its name, so nothing was written. Copy it yourself, and bring back the other files only.`,
      });
    rmSync(latin(worktree));
    await assert.rejects(take(await plan(), { "caf\ufffd.txt": "merged" }), /^Error: caf\ufffd.txt can't be/);
    writeFiles(worktree, { "a.txt": "by the agent\n" });
    const [file] = (await plan()).files;
    assert.ok(file);
    const missing = { ...file, path: "missing.txt" };
    await assert.rejects(changesOf(planned, missing, "merged"), /^Error: missing.txt can't be brought back/);
    repository.write({ "a.txt": "mine\n" });
    rmSync(join(worktree, "a.txt"));
    renameSync(join(worktree, "inner"), join(worktree, "a.txt"));
    gitIn(worktree, "-c", "advice.addEmbeddedRepo=false", "add", "a.txt");
    await assert.rejects(take(await plan(), { "a.txt": "agents" }), /^Error: a.txt can't be brought back/);
  });

  it("writes nothing if a file has changed since, was deleted, or leads out of the folder", async () => {
    const repository = new ARepository().commit({
      "a.bin": Buffer.from([0]),
      "b.bin": Buffer.from([1]),
      "sub/c.bin": "c",
    });
    const { worktree, plan } = await workOn(repository);
    writeFiles(worktree, { "a.bin": Buffer.from([0, 0]), "b.bin": Buffer.from([1, 1]), "sub/c.bin": "cc" });
    const planned = await plan();
    const all = await Promise.all(planned.files.map((file) => changesOf(planned, file, "merged")));
    const changes = new Map(all.flatMap((one) => [...one]));
    repository.write({ "b.bin": "mine" });
    const before = repository.state();
    await assert.rejects(
      writeBack(planned, changes),
      /b\.bin has changed in the meantime, so nothing was written/,
    );
    assert.deepEqual(repository.state(), before);
    repository.remove("b.bin");
    await assert.rejects(writeBack(planned, changes), /b\.bin has changed/);
    chmodSync(join(repository.write({ "b.bin": Buffer.from([1]) }).root, "b.bin"), 0o755);
    await assert.rejects(writeBack(planned, changes), /b\.bin has changed/);
    const outside = new ARepository().write({ "c.bin": "c" });
    repository.remove("sub");
    symlinkSync(outside.root, join(repository.root, "sub"));
    await assert.rejects(writeBack(planned, changes), /sub isn't a folder, so sub\/c\.bin wasn't written/);
    assert.equal(outside.read("c.bin"), "c");
  });

  it("keeps a file's permissions but for the right to execute it", async () => {
    const repository = new ARepository().commit({ "run.sh": "echo\n", "private.txt": "a\n" });
    const { worktree, plan } = await workOn(repository);
    for (const path of ["run.sh", "private.txt"]) chmodSync(join(repository.root, path), 0o600);
    writeFiles(worktree, { "run.sh": "echo 2\n", "private.txt": "b\n" });
    chmodSync(join(worktree, "run.sh"), 0o755);
    await take(await plan(), "merged");
    assert.deepEqual(filesOf(repository.root), { "run.sh": "700 echo 2\n", "private.txt": "600 b\n" });
  });

  for (const config of ["core.autocrlf=true", "core.autocrlf=input", "core.autocrlf=false"])
    it(`keeps the folder's line endings, with ${config}`, async () => {
      const crlf = (text: string): string => text.replaceAll("\n", "\r\n");
      const repository = new ARepository(config).commit({
        ".gitattributes": "*.sh text eol=lf\n*.bat text eol=crlf\n*.auto text=auto\n",
        "a.txt": crlf(LINES),
        "a.auto": crlf(LINES),
        "a.bat": crlf(LINES),
        "a.sh": LINES,
        "unix.txt": LINES,
      });
      const before = filesOf(repository.root);
      const { worktree, plan } = await workOn(repository);
      for (const path of ["a.txt", "a.auto", "a.bat", "a.sh", "unix.txt"]) {
        const [, text = ""] = /^644 ([^]*)$/.exec(filesOf(worktree)[path] ?? "") ?? [];
        writeFiles(worktree, { [path]: text.replace("five", "AGENT"), "new.bat": crlf("new\n") });
      }
      const planned = await plan();
      assert.ok(planned.files.every(({ added, removed }) => added === 1 && removed <= 1));
      await take(planned, "merged");
      const expected = Object.entries(before).map(([path, text]) => [path, text.replace("five", "AGENT")]);
      assert.deepEqual(filesOf(repository.root), {
        ...Object.fromEntries(expected),
        "new.bat": "644 new\r\n",
      });
    });

  it("writes a file of mixed line endings as Git would check it out", async () => {
    const repository = new ARepository("core.autocrlf=true", "core.safecrlf=false").commit({
      "a.txt": "one\r\ntwo\nthree\n",
    });
    const { worktree, plan } = await workOn(repository);
    writeFiles(worktree, { "a.txt": "one\r\ntwo\r\nAGENT\r\n" });
    await take(await plan(), "merged");
    assert.equal(repository.read("a.txt"), "one\r\ntwo\r\nAGENT\r\n");
  });

  it("changes line endings if that is what the agent did", async () => {
    const repository = new ARepository("core.autocrlf=false").commit({
      "run.sh": "one\r\ntwo\r\n",
      "run.bat": "one\ntwo\n",
    });
    const { worktree, plan } = await workOn(repository);
    writeFiles(worktree, { "run.sh": "one\ntwo\n", "run.bat": "one\r\ntwo\r\n" });
    await take(await plan(), "merged");
    assert.deepEqual(filesOf(repository.root), {
      "run.bat": "644 one\r\ntwo\r\n",
      "run.sh": "644 one\ntwo\n",
    });
  });

  it("runs the filters of the user's configuration", async () => {
    const repository = new ARepository(
      "filter.shout.clean=tr A-Z a-z",
      "filter.shout.smudge=tr a-z A-Z",
    ).commit({
      ".gitattributes": "*.up filter=shout\n",
      "a.up": "LOUD\n",
    });
    const { worktree, plan } = await workOn(repository);
    writeFiles(worktree, { "a.up": "LOUD\nAND CLEAR\n" });
    symlinkSync("a.up", join(worktree, "link.up"));
    const planned = await plan();
    await take(planned, "merged");
    assert.equal(repository.read("a.up"), "LOUD\nAND CLEAR\n");
    // The target of a link is no text that Git would filter.
    assert.equal(filesOf(repository.root)["link.up"], "link a.up");
  });

  it("merges as text where the user has a merge driver, which could run anything and take a side in silence", async () => {
    const mark = join(tempDir("driver"), "ran");
    const repository = new ARepository(
      "merge.ours.driver=true",
      `merge.Touch.X.driver=touch '${mark}'`,
    ).commit({
      ".gitattributes": "*.lock merge=ours\n*.bin merge=Touch.X\n*.json merge=Touch.X\n",
      "a.lock": LINES,
      "b.json": LINES,
      "c.bin": Buffer.from([0, 1, 2]),
    });
    const { worktree, plan } = await workOn(repository);
    repository.write({
      "a.lock": LINES.replace("two", "MINE"),
      "b.json": LINES.replace("two", "MINE"),
      "c.bin": Buffer.from([0, 1, 3]),
    });
    writeFiles(worktree, {
      "a.lock": LINES.replace("two", "THEIRS"),
      "b.json": LINES.replace("six", "THEIRS"),
      "c.bin": Buffer.from([0, 1, 4]),
    });
    const planned = await plan();
    assert.deepEqual(brief(planned), {
      "a.lock": "modified, +1 -1, conflict: content",
      "b.json": "modified, +1 -1",
      "c.bin": "modified, +0 -0, binary, conflict: content",
    });
    await take(planned, { "a.lock": "markers", "b.json": "merged" });
    assert.ok(repository.read("a.lock").includes("<<<<<<< Your changes\nMINE\n=======\nTHEIRS\n>>>>>>>"));
    assert.equal(repository.read("b.json"), LINES.replace("two", "MINE").replace("six", "THEIRS"));
    assert.ok(!existsSync(mark));
  });

  it("works before the first commit", async () => {
    const { repository, worktree, plan } = await workOn(new ARepository().write({ "a.txt": LINES }));
    repository.write({ "a.txt": LINES.replace("two", "MINE") });
    writeFiles(worktree, { "a.txt": LINES.replace("eight", "AGENT"), "b.txt": "b\n" });
    await take(await plan(), "merged");
    assert.equal(repository.read("a.txt"), LINES.replace("two", "MINE").replace("eight", "AGENT"));
    assert.equal(repository.git("status", "--porcelain"), "?? a.txt\n?? b.txt\n");
  });

  it("works after the user committed, switched branches, or works in a folder below the top", async () => {
    const repository = new ARepository().commit({ "a.txt": LINES, "sub/b.txt": "b\n" });
    const { worktree } = await workOn(repository, "head");
    const base = gitIn(worktree, "rev-parse", "HEAD").trim();
    writeFiles(worktree, { "a.txt": LINES.replace("eight", "AGENT"), "sub/b.txt": "agent\n" });
    repository.git("checkout", "-qb", "other");
    repository.commit({ "a.txt": LINES.replace("two", "MINE") });
    const planned = await planBringBack({
      folder: join(repository.root, "sub"),
      worktree: join(worktree, "sub"),
      base,
    });
    await take(planned, "merged");
    assert.equal(repository.read("a.txt"), LINES.replace("two", "MINE").replace("eight", "AGENT"));
    assert.equal(repository.read("sub/b.txt"), "agent\n");
  });

  it("is refused while a rebase is in progress in the worktree", async () => {
    const repository = new ARepository().commit({ "a.txt": "a\n" });
    const { root, base } = await makeWorktree({
      directory: repository.root,
      name: "work",
      from: "what-you-see",
    });
    stopInRebase(root);
    await assert.rejects(
      planBringBack({ folder: repository.root, worktree: root, base }),
      /A rebase is in progress in the worktree/,
    );
  });

  it("from a folder that is no worktree of ours is refused", async () => {
    const repository = new ARepository().commit({ "a.txt": "a\n" });
    mkdirSync(join(repository.root, "x"));
    await assert.rejects(
      planBringBack({ folder: repository.root, worktree: join(repository.root, "x"), base: "HEAD" }),
      /isn't a worktree made for a task/,
    );
  });
});
