import * as vscode from "vscode";
import { hasOpenWork } from "../../engine/task.ts";
import type { Folders } from "./folders.ts";

/** Has conflicts of isolated tasks predicted again when files may have changed: after saving, and after other programs. */
export function followSavedFiles(folders: Folders): vscode.Disposable {
  const predict = (): void => {
    for (const folder of folders.all)
      // A folder without tasks may not be connected, and then has no calls.
      if (folder.known.allTasks().some(hasOpenWork)) folder.calls.predictConflicts().catch(() => undefined);
  };
  return vscode.Disposable.from(
    vscode.workspace.onDidSaveTextDocument(predict),
    vscode.window.onDidChangeWindowState(({ focused }) => focused && predict()),
  );
}
