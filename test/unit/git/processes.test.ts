import assert from "node:assert/strict";
import { build } from "esbuild";
import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { FolderWorktrees } from "../../../src/git/folder-worktrees.ts";
import { silentLogger } from "../rpc/fake-host.ts";
import { tempDir } from "../../support/temp.ts";
import { ARepository, writeFiles } from "./a-repository.ts";

const AT_ONCE = 16;

describe("The processes of Git", function () {
  before(function () {
    if (process.platform === "win32") this.skip();
  });

  it("are few at once, however many files are brought back or merged", async () => {
    const repository = new ARepository().commit({ "a.txt": "a\n" });
    const worktrees = new FolderWorktrees(repository.root, () => process.env, silentLogger);
    const made = await worktrees.make({ name: "work", startFrom: "head" });
    const files = (text: string): Record<string, string> =>
      Object.fromEntries(Array.from({ length: 60 }, (_, at) => [`${text}-${at}.txt`, text]));
    writeFiles(made.directory, files("agent"));
    repository.write(files("mine"));
    const mostAtOnce = countGit();
    const plan = await worktrees.planBringBack(made, new Map());
    const choices = plan.files.map(({ path }) => ({ path, take: "merged" as const }));
    assert.equal(choices.length, 60);
    await worktrees.undoBringBack(await worktrees.bringBack(plan, choices, []));
    await worktrees.takeIn(made, plan);
    const most = mostAtOnce();
    assert.ok(most > 1 && most <= AT_ONCE, `${most} at once`);
  });

  it("that can't be started as too many files are open end nothing but what asked for them", async () => {
    const program = join(tempDir("files"), "program.mjs");
    const contents = `
      import { openSync } from "node:fs";
      import { git } from "./git.ts";
      await git("/", ["version"]);
      try { for (;;) openSync("/dev/null", "r"); } catch {}
      await git("/", ["version"]).catch((error) => process.stdout.write(error.name + ": " + error.message));`;
    const stdin = { contents, resolveDir: join(import.meta.dirname, "../../../src/git") };
    await build({ stdin, outfile: program, bundle: true, platform: "node", format: "esm" });
    const command = 'ulimit -n 128; exec "$0" "$1"';
    const { stdout, stderr, status } = spawnSync("sh", ["-c", command, process.execPath, program], {
      encoding: "utf8",
    });
    assert.match(stdout, /^GitError: Git couldn't be started: .*EMFILE/);
    assert.deepEqual([stderr, status], ["", 0]);
  });
});

/** Puts a program that counts before Git, and returns how to take it away and get the count. */
function countGit(): () => number {
  const [folder, path] = [tempDir("count"), process.env["PATH"] ?? ""];
  const git = execFileSync("sh", ["-c", "command -v git"], { encoding: "utf8" }).trim();
  mkdirSync(join(folder, "running"));
  writeFileSync(
    join(folder, "git"),
    `#!/bin/sh
: > "${folder}/running/$$"
count=0
for one in "${folder}"/running/*; do count=$((count + 1)); done
echo $count >> "${folder}/counts"
"${git}" "$@"
code=$?
rm "${folder}/running/$$"
exit $code
`,
  );
  chmodSync(join(folder, "git"), 0o755);
  process.env["PATH"] = `${folder}${delimiter}${path}`;
  return () => {
    process.env["PATH"] = path;
    return Math.max(...readFileSync(join(folder, "counts"), "utf8").trim().split("\n").map(Number));
  };
}
