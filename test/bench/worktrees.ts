/**
 * Four worktrees made at once of a repository with 20,000 files, some of them changed, compared to bare
 * `git worktree add`; then the prediction of conflicts between two of them, with and without reading their files anew.
 */
import { execFile, execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { discard } from "../../src/git/discard.ts";
import { makeWorktree, type MadeWorktree } from "../../src/git/make-worktree.ts";
import { predict, worktreeState } from "../../src/git/predict.ts";
import { snapshot } from "../../src/git/snapshot.ts";
import { tempDir } from "../support/temp.ts";
import { interleaved, median, timed } from "./support/measure.ts";
import { Report } from "./support/report.ts";

const FILES = 20_000;
const CHANGED = 200;
const AT_ONCE = 4;

const root = join(tempDir("bench"), "project");
const run = promisify(execFile);

function git(...args: readonly string[]): void {
  execFileSync("git", args, { cwd: root });
}

function pathOf(index: number): string {
  return `part-${Math.floor(index / 200)}/folder-${Math.floor(index / 20) % 10}/file-${index}.ts`;
}

function write(below: string, index: number, text: string): void {
  const path = join(below, pathOf(index));
  mkdirSync(join(path, ".."), { recursive: true });
  writeFileSync(path, `// File ${index}\n${"const line = 1;\n".repeat(40)}${text}\n`);
}

mkdirSync(root);
git("init", "-q");
git("config", "user.name", "A User");
git("config", "user.email", "user@example.com");
git("config", "gc.auto", "0");
for (let index = 0; index < FILES; index++) write(root, index, "");
git("add", "-A");
git("commit", "-qm", "All files");
// As in a repository that was cloned.
git("gc", "-q");
for (let index = 0; index < CHANGED; index++) write(root, index * 100, "changed");
for (let index = 0; index < CHANGED; index++) write(root, FILES + index, "untracked");

let made: MadeWorktree[] = [];

async function makeOurs(): Promise<number> {
  const one = (): Promise<MadeWorktree> =>
    makeWorktree({ directory: root, name: "task", from: "what-you-see" });
  const took = await timed(async () => {
    made = await Promise.all(Array.from({ length: AT_ONCE }, one));
  });
  for (const { root: directory } of made) await discard({ folder: root, directory });
  return took;
}

/** The two steps of `git worktree add`, of which several at once disturb each other in the first one. */
async function makeBare(): Promise<number> {
  const folders = Array.from({ length: AT_ONCE }, (_, index) => `${root}.bare/${index}`);
  const took = await timed(async () => {
    for (const folder of folders)
      await run("git", ["worktree", "add", "--no-checkout", "--detach", folder], { cwd: root });
    await Promise.all(
      folders.map((cwd) => run("git", ["reset", "-q", "--hard", "--no-recurse-submodules"], { cwd })),
    );
  });
  for (const folder of folders) git("worktree", "remove", "--force", folder);
  return took;
}

const making = await interleaved({ rounds: 5, warmUp: 1 }, { bare: makeBare, ours: makeOurs });

const [first, second] = [
  await makeWorktree({ directory: root, name: "first", from: "what-you-see" }),
  await makeWorktree({ directory: root, name: "second", from: "what-you-see" }),
];
for (let index = 0; index < CHANGED; index++) {
  write(first.root, index * 50, `first ${index}`);
  write(second.root, index * 70, `second ${index}`);
}
const [a, b] = [await worktreeState(first.root, first.base), await worktreeState(second.root, second.base)];
const folder = await snapshot(root);
const predicting = await interleaved(
  { rounds: 15, warmUp: 3 },
  {
    read: () => timed(() => snapshot(first.root)),
    folder: () => timed(() => predict(root, a, folder)),
    pair: () => timed(() => predict(root, a, b)),
    floor: () => timed(() => run("git", ["status", "--porcelain"], { cwd: first.root })),
  },
);

const over = making.ours.map((figure, round) => figure - (making.bare[round] ?? NaN));
const report = new Report("worktrees");
report.figures(`${AT_ONCE} bare worktrees at once`, "ms", making.bare);
report.figures(`${AT_ONCE} worktrees of tasks at once`, "ms", making.ours);
report.figures("git status of a worktree", "ms", predicting.floor);
report.figures("reading a worktree", "ms", predicting.read);
report.figures("predicting, with the folder", "ms", predicting.folder);
report.figures("predicting, with another worktree", "ms", predicting.pair);
report.budget({ what: "over bare worktrees", value: median(over), limit: 2_000, unit: "ms" });
report.budget({
  what: "predicting, with the folder",
  value: median(predicting.folder),
  limit: 50,
  unit: "ms",
});
report.budget({
  what: "predicting, with another worktree",
  value: median(predicting.pair),
  limit: 50,
  unit: "ms",
});
report.finish();
