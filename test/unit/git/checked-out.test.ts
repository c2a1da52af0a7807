import assert from "node:assert/strict";
import { join } from "node:path";
import { checkedOut } from "../../../src/git/checked-out.ts";
import { FolderWorktrees } from "../../../src/git/folder-worktrees.ts";
import { tempDir } from "../../support/temp.ts";
import { silentLogger } from "../rpc/fake-host.ts";
import { ARepository } from "./a-repository.ts";

describe("A text that Git has stored", () => {
  it("is checked out with line endings and filters, also for a worktree", async () => {
    const repository = new ARepository(
      "core.autocrlf=true",
      "filter.loud.smudge=tr a-z A-Z",
      "filter.raw.smudge=printf '\\377'",
      "filter.broken.smudge=false",
      "filter.broken.required=true",
    ).commit({
      ".gitattributes": "*.loud filter=loud\n*.raw filter=raw\n*.broken filter=broken\n",
      "sub/a.txt": "a\n",
    });
    const { root } = repository;
    const folder = join(root, "sub");
    const of = (name: string, directory = folder) =>
      checkedOut(folder, directory, join(directory, name), "one\ntwo\n");
    const text = { kind: "text", text: "one\r\ntwo\r\n" };
    assert.deepEqual(await of("a.txt"), text);
    assert.deepEqual(await of("new.loud"), { kind: "text", text: "ONE\r\nTWO\r\n" });
    assert.deepEqual(await of("a.raw"), { kind: "binary" });
    assert.deepEqual(await of("a.broken"), { kind: "unknown" });
    const worktrees = new FolderWorktrees(folder, () => process.env, silentLogger);
    const { directory } = await worktrees.make({ name: "work", startFrom: "whatYouSee" });
    assert.deepEqual(await of("a.txt", directory), text);
  });

  it("stays as it is outside of a repository or of the folder", async () => {
    const same = { kind: "text", text: "one\n" };
    const folder = tempDir("plain");
    assert.deepEqual(await checkedOut(folder, folder, join(folder, "a.txt"), "one\n"), same);
    const { root } = new ARepository("core.autocrlf=true");
    assert.deepEqual(await checkedOut(root, root, join(folder, "a.txt"), "one\n"), same);
  });
});
