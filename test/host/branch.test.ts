import assert from "node:assert/strict";
import * as vscode from "vscode";
import { showBranch } from "../../src/ui/worktrees/worktree-commands.ts";

describe("a branch made from a worktree, in the extension host", () => {
  const { showInformationMessage } = vscode.window;
  const folder = { uri: vscode.Uri.file("/work/shop") };
  let shown: (readonly unknown[])[];
  let chosen: string | undefined;

  beforeEach(() => {
    shown = [];
    vscode.window.showInformationMessage = async (...message: unknown[]) => {
      shown.push(message);
      return chosen as never;
    };
  });
  afterEach(() => void Object.assign(vscode.window, { showInformationMessage }));

  it("is only reported if nothing creates pull requests", async () => {
    await showBranch("louder", "Created it.", folder);
    assert.deepEqual(shown, [["Created it."]]);
  });

  it("[ISO-6] leads on to a pull request where GitHub Pull Requests is installed", async () => {
    const created: unknown[] = [];
    const command = vscode.commands.registerCommand("pr.create", (...args) => void created.push(...args));
    try {
      await showBranch("louder", "Created it.", folder);
      assert.deepEqual(created, []);
      chosen = "Create Pull Request…";
      await showBranch("louder", "Created it.", folder);
    } finally {
      command.dispose();
    }
    assert.deepEqual(shown, Array(2).fill(["Created it.", chosen]));
    assert.deepEqual(created, [{ repoPath: folder.uri.fsPath, compareBranch: "louder" }]);
  });
});
