import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdirSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { FormerModes } from "../../../src/git/former-modes.ts";
import { makeRepository } from "../../support/repository.ts";
import { tempDir } from "../../support/temp.ts";

describe("the mode of a file that was deleted", () => {
  it("isn't read where a worktree leads to a repository of its agent, which could run anything", async () => {
    const { directory } = makeRepository();
    const ran = join(tempDir(), "ran");
    const other = makeRepository();
    other.git("config", "core.repositoryformatversion", "1");
    other.git("config", "extensions.partialClone", "o");
    other.git("config", "remote.o.promisor", "true");
    other.git("config", "remote.o.url", other.directory);
    other.git("config", "remote.o.uploadpack", `touch ${ran}; git-upload-pack`);
    const head = other.git("rev-parse", "HEAD").trim();
    rmSync(join(other.directory, ".git/objects", head.slice(0, 2), head.slice(2)));
    const path = join(other.directory, "gone.txt");
    assert.equal(await new FormerModes(directory).of(other.directory, path), undefined);
    assert.ok(!existsSync(ran));
  });

  const formerMode = (directory: string, path: string) => new FormerModes(directory).of(directory, path);

  it("is that of the last commit, also if the file is gone from the index and with its folder", async () => {
    const { directory, git, write } = makeRepository();
    const at = (name: string): string => join(directory, name);
    mkdirSync(at("tools"));
    for (const name of ["tools/run.sh", "removed.sh", "[a].txt", "there.sh"]) write(name, "echo\n");
    for (const name of ["tools/run.sh", "removed.sh", "there.sh"]) chmodSync(at(name), 0o755);
    symlinkSync("a.txt", at("link"));
    git("add", ".");
    git("commit", "--quiet", "--message=Second");
    write("untracked.sh", "echo\n");
    git("rm", "--quiet", "removed.sh");
    for (const name of ["tools", "link", "[a].txt", "untracked.sh"]) rmSync(at(name), { recursive: true });
    const modes = new FormerModes(directory);
    const asked = ["tools/run.sh", "removed.sh", "link", "[a].txt", "untracked.sh", "there.sh"];
    assert.deepEqual(await Promise.all(asked.map((name) => modes.of(directory, at(name)))), [
      "100755",
      "100755",
      "120000",
      "100644",
      undefined,
      undefined,
    ]);
    assert.equal(await modes.of(at("tools"), at("tools/run.sh")), undefined);
    write("there.sh", "echo\n");
    rmSync(at("there.sh"));
    assert.equal(await modes.of(directory, at("there.sh")), "100755");
  });

  it("is unknown outside of a repository, and before the first commit", async () => {
    const directory = tempDir("folder");
    assert.equal(await formerMode(directory, join(directory, "run.sh")), undefined);
    const { directory: other, git } = makeRepository();
    git("update-ref", "-d", "HEAD");
    assert.equal(await formerMode(other, join(other, "a.txt")), undefined);
    assert.equal(await formerMode(other, join(directory, "run.sh")), undefined);
  });
});
