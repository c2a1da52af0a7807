import assert from "node:assert/strict";
import { describeFile } from "../../../../src/engine/fork/file-text.ts";

describe("The description of a file", () => {
  const described = (url: string, filename?: string): string =>
    describeFile({ mime: "image/png", url, filename });
  const base64 = (bytes: number): string =>
    `data:image/png;base64,${Buffer.alloc(bytes, 1).toString("base64")}`;

  it("has its name and type on one line", () => {
    assert.equal(described("https://example.com/a,b", "a\n b.png"), "[File: a b.png, image/png]");
    for (const name of [undefined, "", " \n"])
      assert.equal(described("file:///a", name), "[File: unnamed, image/png]");
  });

  it("has the size of its content if the conversation holds it", () => {
    const sizes = [0, 1, 2, 3, 999, 1_000, 1_499, 1_500, 999_499, 1_000_000, 1_250_000];
    assert.deepEqual(
      sizes.map((bytes) => described(base64(bytes)).replace(/^.*png, |\]$/g, "")),
      ["0 B", "1 B", "2 B", "3 B", "999 B", "1 kB", "1 kB", "2 kB", "999 kB", "1.0 MB", "1.3 MB"],
    );
    // The content itself is written as it is, and looks like padding.
    assert.equal(described("data:text/plain,a=="), "[File: unnamed, image/png, 3 B]");
    assert.equal(described("data:,"), "[File: unnamed, image/png, 0 B]");
  });
});
