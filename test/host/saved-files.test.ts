import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import * as vscode from "vscode";
import { Refusal } from "../../src/engine/errors.ts";
import type { Folders } from "../../src/ui/folders/folders.ts";
import { followSavedFiles } from "../../src/ui/folders/saved-files.ts";
import { tempDir } from "../support/temp.ts";
import { until } from "../support/wait.ts";
import { record } from "../unit/engine/builders.ts";

describe("files that are saved", () => {
  it("have conflicts predicted again for folders with isolated tasks, and others may be unconnected", async () => {
    const worktree = { name: "work", directory: "/work", base: "0" };
    let predicted = 0;
    const all = [
      {
        known: { allTasks: () => [] },
        get calls(): never {
          throw new Refusal("unavailable", { text: "This folder isn't connected yet." } as never);
        },
      },
      {
        known: { allTasks: () => [record({ status: "running", worktree })] },
        calls: { predictConflicts: async () => void predicted++ },
      },
    ];
    const following = followSavedFiles({ all } as unknown as Folders);
    const file = join(tempDir("saved"), "a.txt");
    writeFileSync(file, "a\n");
    try {
      const editor = await vscode.window.showTextDocument(await vscode.workspace.openTextDocument(file));
      await editor.edit((edit) => edit.insert(new vscode.Position(0, 0), "b"));
      assert.ok(await editor.document.save());
      await until("the prediction", () => predicted > 0);
    } finally {
      following.dispose();
      await vscode.commands.executeCommand("workbench.action.closeActiveEditor");
    }
  });
});
