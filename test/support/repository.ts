import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { tempDir } from "./temp.ts";

/** A Git repository that a test works in. Its worktrees are beside it, and are removed with it. */
export interface TestRepository {
  readonly directory: string;
  git(...args: readonly string[]): string;
  write(path: string, content: string): void;
}

/** Makes a repository with these files in its only commit. */
export function makeRepository(files: Readonly<Record<string, string>> = { "a.txt": "a\n" }): TestRepository {
  const directory = join(tempDir("repo"), "shop");
  mkdirSync(directory);
  const who = ["-c", "user.name=Test", "-c", "user.email=test@localhost"];
  const repository: TestRepository = {
    directory,
    git: (...args) =>
      execFileSync("git", [...who, ...args], { cwd: directory, encoding: "utf8", stdio: "pipe" }),
    write: (path, content) => writeFileSync(join(directory, path), content),
  };
  repository.git("init", "--quiet");
  for (const [path, content] of Object.entries(files)) repository.write(path, content);
  repository.git("add", ".");
  repository.git("commit", "--quiet", "--message=First");
  return repository;
}
