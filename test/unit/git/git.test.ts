import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { git } from "../../../src/git/git.ts";
import { withTemporaryIndex } from "../../../src/git/temporary-index.ts";
import { tempDir } from "../../support/temp.ts";
import { ARepository } from "./a-repository.ts";

describe("A file that Git isn't allowed to read", () => {
  it("is named with what to do about it", async () => {
    const repository = new ARepository();
    // A user who may read everything, such as in a container, doesn't get to see Git's own.
    const alias = `!echo 'error: open("data/my db.log"): Permission denied' >&2; exit 128`;
    repository.git("config", "alias.fails", alias);
    await assert.rejects(git(repository.root, ["fails"]), {
      name: "GitError",
      message:
        "Git isn't allowed to read data/my db.log. Make it readable or, if it isn't tracked, have Git ignore it, then try again.",
    });
  });
});

describe("A Git command of a process that runs for weeks", () => {
  it("runs after the folder of the process's program is gone, as after an update of the editor", async function () {
    // There, a folder can't be removed while a program in it is running.
    if (process.platform === "win32") return this.skip();
    const { root } = new ARepository();
    const { execPath } = process;
    process.execPath = "/gone/node";
    try {
      assert.match(String(await git(root, ["rev-parse", "--is-inside-work-tree"])), /true/);
    } finally {
      process.execPath = execPath;
    }
  });

  it("has its temporary index after the folder for temporary files was removed", async function () {
    if (process.platform === "win32") return this.skip();
    const { TMPDIR } = process.env;
    process.env.TMPDIR = join(tempDir("temporary"), "gone");
    try {
      await withTemporaryIndex(async (_, path) => assert.ok(existsSync(dirname(path))));
    } finally {
      if (TMPDIR === undefined) delete process.env.TMPDIR;
      else process.env.TMPDIR = TMPDIR;
    }
  });
});
