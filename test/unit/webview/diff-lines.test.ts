import assert from "node:assert/strict";

import { diffLines } from "../../../src/protocol/diff-lines.ts";

describe("diffLines", () => {
  const read = (diff: string): unknown[] =>
    diffLines(diff).map(({ kind, text, number }) => [kind, text, number]);

  it("numbers the lines of each hunk", () => {
    const diff =
      "Index: a.ts\n=====\n--- a.ts\told\n+++ a.ts\tnew\n" +
      "@@ -3,3 +3,4 @@ function x()\n same\n-old\n+new\n+more\n last\n@@ -20 +21 @@\n-x\n+y\n";
    assert.deepEqual(read(diff), [
      ["hunk", "@@ -3,3 +3,4 @@ function x()", undefined],
      ["context", " same", 3],
      ["removed", "-old", 4],
      ["added", "+new", 4],
      ["added", "+more", 5],
      ["context", " last", 6],
      ["hunk", "@@ -20 +21 @@", undefined],
      ["removed", "-x", 20],
      ["added", "+y", 21],
    ]);
  });

  it("does not read changed lines as headers", () => {
    assert.deepEqual(read("--- a\n+++ a\n@@ -1,2 +1,2 @@\n--- a comment\n+++ counter\n same"), [
      ["hunk", "@@ -1,2 +1,2 @@", undefined],
      ["removed", "--- a comment", 1],
      ["added", "+++ counter", 1],
      ["context", " same", 2],
    ]);
  });

  it("does not read changed lines as headers either where hunks have no numbers", () => {
    assert.deepEqual(read(" select\n--- a comment\n-old\n+++ counter\n+new"), [
      ["context", " select", undefined],
      ["removed", "--- a comment", undefined],
      ["removed", "-old", undefined],
      ["added", "+++ counter", undefined],
      ["added", "+new", undefined],
    ]);
    assert.deepEqual(read("*** Begin Patch\n*** Update File: a.sql\n@@\n--- a comment\n+++ b"), [
      ["hunk", "@@", undefined],
      ["removed", "--- a comment", undefined],
      ["added", "+++ b", undefined],
    ]);
  });

  it("reads none of an empty file that is created", () => {
    assert.deepEqual(read("Index: /p/a.py\n====\n--- /p/a.py\n+++ /p/a.py\n"), []);
  });

  it("names the files if there are several", () => {
    const file = (name: string): string =>
      `diff --git a/${name} b/${name}\nindex 1..2\n--- a/${name}\n+++ b/${name}\n@@ -1 +1 @@\n-a\n+b\n`;
    const files = diffLines(file("x.ts") + file("src/y.ts")).filter(({ kind }) => kind === "file");
    assert.deepEqual(
      files.map(({ text }) => text),
      ["x.ts", "src/y.ts"],
    );
  });

  it("reads a patch without line numbers", () => {
    const patch =
      "*** Begin Patch\n*** Update File: a.ts\n@@ class A\n-old\n+new\n*** Delete File: b.ts\n*** End Patch";
    assert.deepEqual(read(patch), [
      ["file", "a.ts", undefined],
      ["hunk", "@@ class A", undefined],
      ["removed", "-old", undefined],
      ["added", "+new", undefined],
      ["file", "b.ts", undefined],
    ]);
  });
});
