import assert from "node:assert/strict";
import * as vscode from "vscode";

describe("after a test in the extension host that left unsaved text", () => {
  const unsaved = (): readonly vscode.Tab[] =>
    vscode.window.tabGroups.all.flatMap(({ tabs }) => tabs).filter(({ isDirty }) => isDirty);

  it("two unsaved documents are left, and a question that nobody answers", async () => {
    for (const content of ["Left behind", "Left behind as well"])
      await vscode.window.showTextDocument(await vscode.workspace.openTextDocument({ content }), {
        preview: false,
      });
    void vscode.window.showInputBox({ prompt: "Nobody answers", ignoreFocusOut: true });
    assert.equal(unsaved().length, 2);
  });

  it("no unsaved document is left", () => {
    assert.deepEqual(unsaved(), []);
  });
});
