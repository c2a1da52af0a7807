import assert from "node:assert/strict";
import { mkdirSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readImage } from "../../../src/daemon/workspace-image.ts";
import { tempDir } from "../../support/temp.ts";

const START: Readonly<Record<string, string>> = {
  png: "\x89PNG\r\n\x1a\n",
  jpeg: "\xff\xd8\xff\xe0",
  gif: "GIF89a",
  webp: "RIFF\n\x00\x00\x00WEBPVP8 ",
};
const bytes = (text: string): Buffer => Buffer.from(text, "latin1");

describe("images of the workspace", () => {
  let folder: string;
  let elsewhere: string;

  beforeEach(() => {
    folder = tempDir("work");
    elsewhere = tempDir("elsewhere");
    mkdirSync(join(folder, "docs"));
    for (const place of [folder, elsewhere]) writeFileSync(join(place, "a.png"), bytes(START["png"]!));
  });

  const notFound = (path: string): Promise<void> =>
    assert.rejects(readImage(path, [folder]), /wasn't found in this workspace/, path);

  it("are read as addresses of their data, of the type that their bytes say", async () => {
    for (const [type, start] of Object.entries(START)) {
      writeFileSync(join(folder, "docs", "named.png"), bytes(start));
      const address = `data:image/${type};base64,${bytes(start).toString("base64")}`;
      assert.equal(await readImage("docs/named.png", [folder]), address);
      assert.equal(await readImage(join(folder, "docs", "named.png"), [folder]), address);
    }
  });

  it("are looked for in the worktree first, which may be gone", async () => {
    const worktree = tempDir("worktree");
    writeFileSync(join(worktree, "a.png"), bytes(START["gif"]!));
    assert.match(await readImage("a.png", [worktree, folder]), /^data:image\/gif/);
    assert.match(await readImage("a.png", [join(worktree, "gone"), folder]), /^data:image\/png/);
  });

  it("are files in the folder only, neither by .. nor by a link", async () => {
    symlinkSync(join(elsewhere, "a.png"), join(folder, "out.png"));
    symlinkSync(elsewhere, join(folder, "out"));
    symlinkSync(folder, join(elsewhere, "back"));
    symlinkSync(join(folder, "a.png"), join(folder, "docs", "in.png"));
    for (const path of [
      "../a.png",
      `../${elsewhere.split("/").at(-1)}/a.png`,
      join(elsewhere, "a.png"),
      // Its name is elsewhere, which isn't even looked at.
      join(elsewhere, "back", "a.png"),
      "out.png",
      "out/a.png",
      "docs",
      "nowhere.png",
      "",
    ])
      await notFound(path);
    assert.match(await readImage("docs/in.png", [folder]), /^data:image\/png/);
  });

  it("are at most 2 MB", async () => {
    truncateSync(join(folder, "a.png"), 2_000_000);
    assert.equal((await readImage("a.png", [folder])).length, 22 + Math.ceil(2_000_000 / 3) * 4);
    truncateSync(join(folder, "a.png"), 2_000_001);
    await assert.rejects(readImage("a.png", [folder]), /larger than 2 MB/);
  });

  it("are no drawings with scripts and no other files, whatever they are named", async () => {
    for (const text of ["<svg xmlns='http://www.w3.org/2000/svg'/>", "password", "", " GIF89a"]) {
      writeFileSync(join(folder, "a.png"), text);
      await assert.rejects(readImage("a.png", [folder]), /neither PNG, JPEG, GIF nor WebP/, text);
    }
  });
});
