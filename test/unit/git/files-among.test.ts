import assert from "node:assert/strict";
import { filesAmong } from "../../../src/git/files-among.ts";

/** A disk that finds a folder in any case, but lists each name as it was written. */
function diskThatIgnoresCase(folders: Readonly<Record<string, readonly string[]>>) {
  return (folder: string) =>
    Promise.resolve(
      (folders[folder.toLowerCase()] ?? []).map((name) => ({
        name: Buffer.from(name.replace("/", "")),
        isDirectory: () => name.endsWith("/"),
      })),
    );
}

describe("The files among paths", () => {
  const list = diskThatIgnoresCase({
    "": ["readme.md", "docs/", "cafe\u0301.txt"],
    docs: ["guide.md", "more/"],
    "docs/more": ["deep.md"],
  });

  it("are those that their folders list under exactly these names, also on a disk that ignores case", async () => {
    const paths = ["readme.md", "README.md", "docs/guide.md", "Docs/guide.md", "docs/Guide.md"];
    assert.deepEqual(await filesAmong(paths, list), ["readme.md", "docs/guide.md"]);
  });

  it("are no folders, and nothing in what is missing or no folder", async () => {
    const paths = ["docs", "docs/more/deep.md", "none/deep.md", "readme.md/deep.md"];
    assert.deepEqual(await filesAmong(paths, list), ["docs/more/deep.md"]);
  });

  it("can be listed with other characters for the same name", async () => {
    const path = Buffer.from("caf\u00e9.txt").toString("latin1");
    assert.deepEqual(await filesAmong([path], list), [path]);
  });
});
