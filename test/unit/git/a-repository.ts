import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { tempDir } from "../../support/temp.ts";

/** A repository of a test, whose user has made changes of all kinds. */
export class ARepository {
  /** In a folder of its own, beside which worktrees are made. */
  readonly root = join(tempDir("git"), "project");

  constructor(...config: readonly string[]) {
    mkdirSync(this.root);
    this.git("init", "-q", "-b", "main");
    for (const setting of ["user.name=A User", "user.email=user@example.com", ...config]) {
      const [name = "", value = ""] = setting.split("=");
      this.git("config", name, value);
    }
  }

  git(...args: readonly string[]): string {
    return gitIn(this.root, ...args);
  }

  write(files: Readonly<Record<string, string | Buffer>>): this {
    writeFiles(this.root, files);
    return this;
  }

  commit(files: Readonly<Record<string, string | Buffer>>, message = "Change"): this {
    this.write(files).git("add", "-A");
    this.git("commit", "-qm", message);
    return this;
  }

  remove(...paths: readonly string[]): this {
    for (const path of paths) rmSync(join(this.root, path), { recursive: true });
    return this;
  }

  read(path: string): string {
    return readFileSync(join(this.root, path), "utf8");
  }

  /** What must not change when Git only reads: the status, the index, each reference, each file. */
  state(): object {
    return {
      status: this.git("status", "--porcelain=v2", "--branch", "--ignored", "-uall"),
      index: createHash("sha256")
        .update(this.git("ls-files", "--stage", "-v"))
        .digest("hex"),
      branches: this.git("for-each-ref", "refs/heads", "refs/tags"),
      stash: this.git("stash", "list"),
      files: filesOf(this.root),
    };
  }
}

export function gitIn(directory: string, ...args: readonly string[]): string {
  return execFileSync("git", args, {
    cwd: directory,
    encoding: "utf8",
    maxBuffer: 1e9,
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, GIT_OPTIONAL_LOCKS: "0" },
  });
}

export function writeFiles(root: string, files: Readonly<Record<string, string | Buffer>>): void {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  }
}

/** Each file below a folder, except for Git's own, with mode and content. */
export function filesOf(root: string, below = ""): Record<string, string> {
  const files: Record<string, string> = {};
  for (const name of readdirSync(join(root, below)).sort()) {
    if (below === "" && name === ".git") continue;
    const path = below === "" ? name : `${below}/${name}`;
    const full = join(root, path);
    const stats = lstatSync(full);
    if (stats.isDirectory()) Object.assign(files, filesOf(root, path));
    else if (stats.isSymbolicLink()) files[path] = `link ${readlinkSync(full)}`;
    else files[path] = `${(stats.mode & 0o777).toString(8)} ${readFileSync(full, "latin1")}`;
  }
  return files;
}

/** A repository with committed, staged, unstaged, untracked and ignored files of many kinds. */
export function dirtyRepository(): ARepository {
  const repository = new ARepository().commit({
    ".gitignore": "ignored/\n*.secret\n",
    "kept.txt": "one\ntwo\nthree\n",
    "staged.txt": "before\n",
    "both.txt": "before\n",
    "unstaged.txt": "before\n",
    "deleted.txt": "gone soon\n",
    "removed.txt": "gone from the index\n",
    "run.sh": "echo\n",
    "old-name.txt": "a text\nthat is long\nenough to be\nrecognized\n",
    "picture.bin": Buffer.from([0, 1, 2, 255, 0]),
    "sub/deep.txt": "deep\n",
  });
  symlinkSync("kept.txt", join(repository.root, "link"));
  repository.commit({}, "Link");
  repository.write({ "staged.txt": "staged\n", "both.txt": "staged\n" }).git("add", "-A");
  repository.git("mv", "old-name.txt", "new-name.txt");
  repository.git("rm", "-q", "--cached", "removed.txt");
  chmodSync(join(repository.root, "run.sh"), 0o755);
  return repository
    .write({
      "both.txt": "unstaged\n",
      "unstaged.txt": "unstaged\n",
      "picture.bin": Buffer.from([0, 9, 9, 255, 0]),
      "sub/untracked ünï.txt": "untracked\n",
      "ignored/build.js": "built\n",
      "key.secret": "secret\n",
    })
    .remove("deleted.txt");
}

/**
 * Leaves a worktree whose agent has made three commits in the middle of a rebase onto another one: the second is in
 * conflict, the last is yet to come.
 * @returns the last one, which is no longer checked out
 */
export function stopInRebase(worktree: string): string {
  const commit = (files: Readonly<Record<string, string>>, message: string): void => {
    writeFiles(worktree, files);
    gitIn(worktree, "add", "-A");
    gitIn(worktree, "commit", "-qm", message);
  };
  commit({ "first.txt": "1\n" }, "First");
  const onto = gitIn(worktree, "rev-parse", "HEAD").trim();
  commit({ "second.txt": "2\n" }, "Second");
  commit({ "last.txt": "3\n" }, "Last");
  const tip = gitIn(worktree, "rev-parse", "HEAD").trim();
  gitIn(worktree, "checkout", "-q", onto);
  commit({ "second.txt": "other\n" }, "Other");
  const other = gitIn(worktree, "rev-parse", "HEAD").trim();
  gitIn(worktree, "checkout", "-q", tip);
  assert.throws(() => gitIn(worktree, "rebase", "-q", other));
  return tip;
}

/** Stops a merge in a worktree at a conflict, for which Git has put aside that `b.txt` is changed. */
export function stopInMerge(worktree: string): void {
  gitIn(worktree, "checkout", "-q", "--detach");
  const commit = (text: string): string => {
    writeFiles(worktree, { "a.txt": text });
    gitIn(worktree, "commit", "-qam", text);
    return gitIn(worktree, "rev-parse", "HEAD").trim();
  };
  const other = commit("other\n");
  gitIn(worktree, "checkout", "-q", "HEAD~1");
  commit("own\n");
  writeFiles(worktree, { "b.txt": "not committed\n" });
  assert.throws(() => gitIn(worktree, "merge", "-q", "--autostash", other));
}
