import assert from "node:assert/strict";
import type { ToolState } from "../../../src/engine/server-model.ts";
import { filesToChange, filesToWrite, fileUse } from "../../../src/opencode/file-tools.ts";

describe("the files that OpenCode's tools name", () => {
  const completed = (input: Readonly<Record<string, unknown>>): ToolState => ({
    status: "completed",
    input,
    output: "",
    title: "",
    start: 1,
    end: 2,
  });

  it("are named by requests to change them, in the form in which they are compared", () => {
    const named = (permission: string, metadata: Record<string, unknown>) =>
      filesToChange({ permission, metadata });
    assert.deepEqual(named("edit", { filepath: "/work/./a.ts", diff: "" }), [{ path: "/work/a.ts" }]);
    const files = [
      { filePath: "/work//a.ts", type: "move", movePath: "/work/x/../b.ts" },
      { filePath: "/c.ts" },
    ];
    assert.deepEqual(named("edit", { filepath: "a.ts, c.ts", files }), [
      { path: "/work/a.ts", movedTo: "/work/b.ts" },
      { path: "/c.ts" },
    ]);
    assert.deepEqual(named("edit", { filepath: "a.ts" }), []);
    assert.deepEqual(named("external_directory", { filepath: "/etc/a.ts" }), []);
  });

  it("are those of edit and write, as absolute and normalized paths", () => {
    assert.deepEqual(filesToWrite("edit", { filePath: "src/../a.ts" }, "/work"), ["/work/a.ts"]);
    assert.deepEqual(filesToWrite("write", { filePath: "/else/./b.ts" }, "/work"), ["/else/b.ts"]);
  });

  it("are all those of a patch", () => {
    const patchText = [
      "*** Begin Patch",
      "*** Add File: new.ts",
      "+*** Update File: not/this.ts",
      "*** Update File: old.ts",
      "*** Move to: moved.ts",
      "@@",
      "*** Delete File: gone.ts",
      "*** End Patch",
    ].join("\n");
    assert.deepEqual(filesToWrite("apply_patch", { patchText }, "/work"), [
      "/work/new.ts",
      "/work/old.ts",
      "/work/moved.ts",
      "/work/gone.ts",
    ]);
  });

  it("are none of other tools, or for invalid input", () => {
    for (const [tool, input] of [
      ["bash", { command: "rm a.ts" }],
      ["read", { filePath: "a.ts" }],
      ["edit", { filePath: 7 }],
      ["edit", null],
      ["apply_patch", {}],
    ] as const)
      assert.deepEqual(filesToWrite(tool, input, "/work"), []);
  });

  it("count as read once the call runs, and as written once it is completed", () => {
    const input = { filePath: "a.ts" };
    const running: ToolState = { status: "running", input, start: 1 };
    const read = { access: "read", paths: ["/work/a.ts"] };
    assert.equal(fileUse("read", { status: "pending", input }, "/work"), undefined);
    assert.deepEqual(fileUse("read", running, "/work"), read);
    assert.deepEqual(fileUse("read", completed(input), "/work"), read);
    assert.equal(fileUse("edit", running, "/work"), undefined);
    assert.deepEqual(fileUse("edit", completed(input), "/work"), { access: "write", paths: ["/work/a.ts"] });
    const failed: ToolState = { status: "error", input, error: "Not found.", start: 1, end: 2 };
    assert.equal(fileUse("edit", failed, "/work"), undefined);
  });

  it("are unknown for a command, which may have written any by its end, also if it failed", () => {
    const input = { command: "rm a.ts" };
    assert.equal(fileUse("bash", { status: "running", input, start: 1 }, "/work"), undefined);
    const failed: ToolState = { status: "error", input, error: "Aborted.", start: 1, end: 2 };
    for (const state of [completed(input), failed])
      assert.deepEqual(fileUse("bash", state, "/work"), { access: "write", paths: [] });
  });
});
