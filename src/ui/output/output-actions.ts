import * as vscode from "vscode";
import type { Logger } from "../../engine/ports.ts";
import type { Folders } from "../folders/folders.ts";
import { showError } from "../human-error.ts";
import type { TaskCommands } from "../../engine/task-commands.ts";
import type { OutputActions } from "./output-session.ts";

/** What the panel's buttons do. */
export function createOutputActions(tasks: TaskCommands, folders: Folders, logger: Logger): OutputActions {
  const orShow = (action: Thenable<unknown>): void => {
    action.then(undefined, (error: unknown) => void showError(error, logger));
  };
  const command = (name: string, id: string): void =>
    orShow(vscode.commands.executeCommand(`asyncagents.${name}`, id));
  return {
    cancel: (id) => command("cancel", id),
    resume: async (id, prompt) => void (await tasks.resume(id, prompt)),
    fork: (id) => command("fork", id),
    retry: async (id) => {
      try {
        return (await vscode.commands.executeCommand("asyncagents.retry", id)) !== undefined;
      } catch (error) {
        void showError(error, logger);
        return false;
      }
    },
    adopt: (id) => command("adopt", id),
    showChanges: (id) => command("showChanges", id),
    openInTerminal: (id) => command("openInTerminal", id),
    reply: (request, reply) => tasks.answer(request, reply),
    connect: (id) => command("connect", id),
    result: async (id) => (await tasks.output(id)).result,
    copyText: (text) => orShow(copy(text)),
    openExternal: (url) => orShow(vscode.env.openExternal(vscode.Uri.parse(url, true))),
    openFile: async (id, path, position) => {
      const { openWorkspaceFile } = await import("./workspace-file.ts");
      await openWorkspaceFile(path, position, folders.of(id)?.uri.fsPath);
    },
  };
}

async function copy(text: string): Promise<void> {
  await vscode.env.clipboard.writeText(text);
  vscode.window.setStatusBarMessage(vscode.l10n.t("Result copied"), 3_000);
}
