import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import * as vscode from "vscode";
import { openWorkspaceFile, presentFile } from "../../src/ui/output/workspace-file.ts";
import { tempDir } from "../support/temp.ts";
import { until } from "../support/wait.ts";

const PIXEL =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

describe("a file that an agent names", () => {
  const folder = (): string => vscode.workspace.workspaceFolders?.[0]?.uri.fsPath ?? "";

  afterEach(() => vscode.commands.executeCommand("workbench.action.closeActiveEditor"));

  it("opens as an image if it is one", async () => {
    writeFileSync(join(folder(), "shot.png"), Buffer.from(PIXEL, "base64"));
    await openWorkspaceFile("shot.png");
    const input = await until("the picture", () => {
      const tab = vscode.window.tabGroups.activeTabGroup.activeTab;
      return tab?.label === "shot.png" ? tab.input : undefined;
    });
    assert.ok(input instanceof vscode.TabInputCustom);
  });

  it("opens at the given line and column", async () => {
    writeFileSync(join(folder(), "named.txt"), "one\ntwo\nthree\n");
    await openWorkspaceFile("named.txt", { line: 2, column: 3 });
    const editor = vscode.window.activeTextEditor;
    assert.deepEqual(editor?.selection.active, new vscode.Position(1, 2));
    assert.match(editor.document.uri.path, /named\.txt$/);
  });

  it("opens, and its state is known, even if another folder was deleted from the disk", async () => {
    const file = join(folder(), "present.txt");
    writeFileSync(file, "here\n");
    const gone = join(tempDir("gone"), "folder");
    assert.equal((await presentFile(file, gone)).kind, "file");
    assert.deepEqual(await presentFile(join(gone, "file.txt"), gone), { kind: "outside" });
    await openWorkspaceFile("present.txt", undefined, gone);
    assert.match(vscode.window.activeTextEditor?.document.uri.path ?? "", /present\.txt$/);
  });
});
