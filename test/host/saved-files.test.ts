import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import * as vscode from "vscode";
import { Refusal } from "../../src/engine/errors.ts";
import type { Folders } from "../../src/ui/folders/folders.ts";
import { followSavedFiles } from "../../src/ui/folders/saved-files.ts";
import { tempDir } from "../support/temp.ts";
import { until } from "../support/wait.ts";

describe("files that are saved", () => {
  it("are reported to all folders that are open, with the time", async () => {
    const saved: (readonly [string, number])[] = [];
    const all = [
      {
        get calls(): never {
          throw new Refusal("unavailable", { text: "This folder isn't connected yet." } as never);
        },
      },
      {
        calls: { fileSaved: async (path: string, at: number) => void saved.push([path, at]) },
      },
    ];
    const following = followSavedFiles({ all } as unknown as Folders);
    const file = join(tempDir("saved"), "a.txt");
    writeFileSync(file, "a\n");
    const before = Date.now();
    try {
      const editor = await vscode.window.showTextDocument(await vscode.workspace.openTextDocument(file));
      await editor.edit((edit) => edit.insert(new vscode.Position(0, 0), "b"));
      assert.ok(await editor.document.save());
      const [report] = await until("the report", () => saved.length > 0 && saved);
      assert.equal(report?.[0], editor.document.uri.fsPath);
      assert.ok(report[1] >= before && report[1] <= Date.now());
    } finally {
      following.dispose();
      await vscode.commands.executeCommand("workbench.action.closeActiveEditor");
    }
  });
});
