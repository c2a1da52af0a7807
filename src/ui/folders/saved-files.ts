import * as vscode from "vscode";
import { hasOpenWork } from "../../engine/task.ts";
import type { Folder, Folders } from "./folders.ts";

/** Reports which files are saved, and has conflicts of isolated tasks predicted again after other programs. */
export function followSavedFiles(folders: Folders): vscode.Disposable {
  const report = ({ uri }: { readonly uri: vscode.Uri }): void => {
    const at = Date.now();
    // A folder that isn't open yet has no calls.
    const tell = async (folder: Folder): Promise<void> => folder.calls.fileSaved(uri.fsPath, at);
    for (const folder of folders.all) tell(folder).catch(() => undefined);
  };
  const predict = (): void => {
    for (const folder of folders.all)
      if (folder.known.allTasks().some(hasOpenWork)) folder.calls.predictConflicts().catch(() => undefined);
  };
  return vscode.Disposable.from(
    vscode.workspace.onDidSaveTextDocument(report),
    vscode.workspace.onDidSaveNotebookDocument(report),
    vscode.window.onDidChangeWindowState(({ focused }) => focused && predict()),
  );
}
