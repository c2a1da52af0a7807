import { resolve } from "node:path";
import * as vscode from "vscode";
import type { Logger } from "../../engine/ports.ts";
import { showError } from "../human-error.ts";
import type { TaskCommands } from "../../engine/task-commands.ts";
import type { OutputActions } from "./output-session.ts";

/** What the panel's buttons do. */
export function createOutputActions(tasks: TaskCommands, logger: Logger): OutputActions {
  const orShow = (action: Thenable<unknown>): void => {
    action.then(undefined, (error: unknown) => void showError(error, logger));
  };
  const command = (name: string, taskID: string): void =>
    orShow(vscode.commands.executeCommand(`asyncagents.${name}`, taskID));
  return {
    canFork: () => true,
    cancel: (id) => command("cancel", id),
    resume: async (id, prompt) => void (await tasks.resume(id, prompt)),
    fork: (id) => command("fork", id),
    retry: (id) => command("retry", id),
    answer: (id) => command("answer", id),
    connect: () => orShow(vscode.commands.executeCommand("asyncagents.connect")),
    copyResult: (id) =>
      orShow(
        tasks.output(id).then(async ({ result }) => {
          await vscode.env.clipboard.writeText(result ?? "");
          vscode.window.setStatusBarMessage(vscode.l10n.t("Result copied"), 3_000);
        }),
      ),
    openExternal: (url) => orShow(vscode.env.openExternal(vscode.Uri.parse(url, true))),
    openFile: (path) => orShow(openFile(path)),
  };
}

/** Only files of the workspace: what an agent writes must not make the editor open anything else. */
async function openFile(path: string): Promise<void> {
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath ?? "";
  // Resolved first: `..` must not lead out of the workspace.
  const uri = vscode.Uri.file(resolve(folder, path));
  if (!vscode.workspace.getWorkspaceFolder(uri)) {
    void vscode.window.showWarningMessage(
      vscode.l10n.t("{0} is not in this workspace, so it is not opened.", path),
    );
    return;
  }
  await vscode.window.showTextDocument(uri, { preview: true });
}
