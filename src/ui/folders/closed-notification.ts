import * as vscode from "vscode";
import type { Logger } from "../../engine/ports.ts";
import { formatDuration } from "../../engine/notice-text.ts";
import type { Task } from "../../engine/task.ts";
import { showError } from "../human-error.ts";
import { withoutLinks } from "../plain-text.ts";
import type { Folder } from "./folder.ts";
import type { OpenFolder } from "./folders.ts";

/**
 * Notifies the user that tasks are still running in a folder that was removed from the workspace, and what happens to
 * them.
 * @param isOwnServer whether the extension started the server, which thus stops once the work has ended
 */
export async function showClosed(
  { uri, name, settings }: Pick<Folder, "uri" | "name" | "settings">,
  running: readonly Task[],
  isOwnServer: boolean,
  openFolder: OpenFolder,
  logger: Logger,
): Promise<void> {
  const stop = running.length === 1 ? vscode.l10n.t("Cancel Task") : vscode.l10n.t("Cancel Tasks");
  const add = vscode.l10n.t("Add the Folder Again");
  const text = withoutLinks(message(name, running.length, isOwnServer, settings.keepWorking()));
  const choice = await vscode.window.showWarningMessage(text, stop, add);
  if (choice === add) {
    const { workspaceFolders = [] } = vscode.workspace;
    vscode.workspace.updateWorkspaceFolders(workspaceFolders.length, 0, { uri, name });
  } else if (choice === stop) {
    const folder = openFolder({ uri, name, index: -1 });
    try {
      // If the extension's own server is no longer found, no task is running.
      await (isOwnServer ? folder.connector.adopt() : folder.connector.ensureConnected());
      const working = new Set(folder.known.active().map(({ id }) => id));
      const cancels = running.filter(({ id }) => working.has(id)).map(({ id }) => folder.calls.cancel(id));
      const failed = (await Promise.allSettled(cancels)).find((one) => one.status === "rejected");
      if (failed) throw failed.reason;
    } catch (error) {
      void showError(error, logger);
    } finally {
      folder.dispose();
    }
  }
}

function message(name: string, count: number, isOwnServer: boolean, keepWorkingMs: number): string {
  if (isOwnServer && keepWorkingMs > 0) {
    const time = formatDuration(keepWorkingMs);
    return count === 1
      ? vscode.l10n.t(
          "A task is still running in {0}, which was removed from the workspace. It continues for up to {1} without a window.",
          name,
          time,
        )
      : vscode.l10n.t(
          "{0} tasks are still running in {1}, which was removed from the workspace. They continue for up to {2} without a window.",
          count,
          name,
          time,
        );
  }
  if (isOwnServer)
    return count === 1
      ? vscode.l10n.t(
          "A task is still running in {0}, which was removed from the workspace. Its server stops in a minute unless the folder is opened again.",
          name,
        )
      : vscode.l10n.t(
          "{0} tasks are still running in {1}, which was removed from the workspace. Their server stops in a minute unless the folder is opened again.",
          count,
          name,
        );
  return count === 1
    ? vscode.l10n.t(
        "A task is still running in {0}, which was removed from the workspace. It continues; open the folder again to see the result.",
        name,
      )
    : vscode.l10n.t(
        "{0} tasks are still running in {1}, which was removed from the workspace. They continue; open the folder again to see the results.",
        count,
        name,
      );
}
