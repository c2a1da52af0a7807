import assert from "node:assert/strict";

import { pathAndPosition } from "../../../src/ui/output/file-reference.ts";
import { looksLikeFile } from "../../../src/webview/file-links.ts";

describe("references to files", () => {
  it("are distinguished from other code", () => {
    for (const code of [
      "src/a.ts",
      "./a.ts",
      "../lib/index.test.tsx",
      "/home/me/x.py",
      "README.md",
      "src/a.ts:12",
      "src/a.ts:12:5",
      "main.log:3",
      "a.ts#L10-L20",
      "C:\\work\\a.cs",
      "app/[id]/page.tsx",
      ".github/workflows/ci.yml",
    ])
      assert.ok(looksLikeFile(code), code);
    for (const code of [
      "console.log",
      "array.length",
      "and/or",
      "npm test",
      "https://a.test/x.ts",
      "a.ts b.ts",
      "1.2.3",
      "foo()",
      "x".repeat(500) + ".ts",
      "",
    ])
      assert.ok(!looksLikeFile(code), code);
  });

  it("are split into path and position", () => {
    const at = (line: number, column = 1) => ({ line, column });
    assert.deepEqual(pathAndPosition("src/a.ts"), { file: "src/a.ts", position: undefined });
    assert.deepEqual(pathAndPosition("src/a.ts:12"), { file: "src/a.ts", position: at(12) });
    assert.deepEqual(pathAndPosition("src/a.ts:12:5"), { file: "src/a.ts", position: at(12, 5) });
    assert.deepEqual(pathAndPosition("src/a.ts:12-20"), { file: "src/a.ts", position: at(12) });
    assert.deepEqual(pathAndPosition("a.ts#L7-L9"), { file: "a.ts", position: at(7) });
    assert.deepEqual(pathAndPosition("C:\\a.cs:3"), { file: "C:\\a.cs", position: at(3) });
    assert.deepEqual(pathAndPosition("a.ts:0:0"), { file: "a.ts", position: at(1) });
  });
});
