import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { basename, join } from "node:path";
import * as vscode from "vscode";
import { Refusal } from "../../engine/errors.ts";
import { sentence } from "../../engine/sentence.ts";
import type { DaemonStatus } from "../../rpc/contract.ts";
import type { DaemonClient } from "../../rpc/daemon-client.ts";
import { type FolderWork, lossWords, sharers, stoppable, workWords } from "../background-work.ts";
import { type Folder, connectedFolder, folderTitle, requireFolder } from "../folders/folders.ts";
import { inform, isAgreed } from "../dialogs.ts";
import { showIfLong, enumerate, translate } from "../messages.ts";
import { realPath } from "../output/workspace-file.ts";
import { title, visible, withoutIcons } from "../plain-text.ts";
import { isQueuedChild, runningIn } from "../tree/family.ts";
import type { ServerContext, TaskContext } from "./command.ts";

export async function selectSession({ folders }: TaskContext): Promise<void> {
  const folder = await connectedFolder(folders);
  const { known, session } = folder;
  const follow = {
    label: vscode.l10n.t("$(sync) Use the Latest Message"),
    description: vscode.l10n.t("the most recently used session"),
    id: undefined,
  };
  const sessions = session.roots().map(({ id, title }) => {
    const count = known.list(id).length;
    return {
      label: withoutIcons(title),
      description: [
        id === session.id ? vscode.l10n.t("active") : "",
        count === 0 ? "" : count === 1 ? vscode.l10n.t("1 task") : vscode.l10n.t("{0} tasks", count),
      ]
        .filter(Boolean)
        .join(" · "),
      id,
    };
  });
  const picked = await vscode.window.showQuickPick([follow, ...sessions], {
    title: folderTitle(folders, folder, vscode.l10n.t("Select Session")),
    // Otherwise a panel that opens late would close the list.
    ignoreFocusOut: true,
    placeHolder: vscode.l10n.t("Select the session whose tasks to show"),
  });
  if (picked) session.select(picked.id);
}

/** Stops the server of the folder if the extension started it; while the folder is connecting, cancels that. */
export async function stopServer({ folders, daemon }: ServerContext): Promise<void> {
  const folder = requireFolder(folders);
  const { known, connector } = folder;
  if (connector.state.kind === "connecting") return connector.cancel();
  const own = runningIn(known);
  const queued = own.filter(isQueuedChild).length;
  const running = own.length - queued + (await runningElsewhere(folder, daemon));
  if (running > 0) {
    const question =
      running === 1
        ? vscode.l10n.t("Stop OpenCode? 1 agent is still running and will be stopped.")
        : vscode.l10n.t("Stop OpenCode? {0} agents are still running and will be stopped.", running);
    const detail = queued > 0 ? vscode.l10n.t("Queued tasks start once OpenCode is connected again.") : "";
    if (!(await isAgreed(question, vscode.l10n.t("Stop OpenCode"), detail))) return;
  }
  await connector.stopServer();
}

/** The number of running tasks in other folders that would end with the folder's server, because they share it. */
async function runningElsewhere(own: Folder, daemon: Pick<DaemonClient, "status">): Promise<number> {
  const [status, directory] = await Promise.all([daemon.status(), realPath(own)]);
  const folder = status.folders.find((each) => each.directory === directory);
  if (!folder?.server) return 0;
  const others = sharers(folder, status).filter((each) => each !== folder);
  return others.flatMap(({ tasks }) => tasks).filter(({ queued }) => !queued).length;
}

/** Shows the named log, or saves diagnostics; without a name, asks. */
export async function showLog(context: ServerContext, name: unknown): Promise<void> {
  const logs = [
    {
      name: "window",
      label: vscode.l10n.t("Window"),
      description: vscode.l10n.t("What happened in this window"),
      show: async () => context.showLog(),
    },
    {
      name: "background",
      label: vscode.l10n.t("Background"),
      description: vscode.l10n.t("Includes what happened while no window was open"),
      show: () => showDaemonLog(context),
    },
    {
      name: "diagnostics",
      label: vscode.l10n.t("Collect Diagnostics…"),
      description: vscode.l10n.t("Saves what helps to find the cause of a problem"),
      show: () => collectDiagnostics(context),
    },
  ];
  const options = {
    title: vscode.l10n.t("Show Log or Collect Diagnostics"),
    placeHolder: vscode.l10n.t("Select a log"),
  };
  const picked = logs.find((log) => log.name === name) ?? (await vscode.window.showQuickPick(logs, options));
  await picked?.show();
}

async function showDaemonLog({ daemon }: ServerContext): Promise<void> {
  const log = await daemon.logFile();
  if (!existsSync(log)) throw new Refusal("unavailable", sentence("The background process hasn't run yet."));
  await vscode.window.showTextDocument(vscode.Uri.file(log));
  await vscode.commands.executeCommand("cursorBottom");
}

/** Writes what helps to find the cause of a problem to a file that the user selects, and opens it for review. */
async function collectDiagnostics({ daemon }: ServerContext): Promise<void> {
  const uri = await vscode.window.showSaveDialog({
    title: vscode.l10n.t("Save Diagnostics"),
    defaultUri: vscode.Uri.file(join(homedir(), "async-agents-diagnostics.json")),
    filters: { JSON: ["json"] },
  });
  if (!uri) return;
  // Asking the daemon would start it.
  const background = vscode.workspace.isTrusted ? await daemon.diagnostics() : undefined;
  const window = {
    version: vscode.version,
    app: vscode.env.appName,
    remote: vscode.env.remoteName,
    isTrusted: vscode.workspace.isTrusted,
  };
  const text = `${JSON.stringify({ window, background }, undefined, 2)}\n`;
  await vscode.workspace.fs.writeFile(uri, new TextEncoder().encode(text));
  await vscode.window.showTextDocument(uri);
}

/** Stops background work in folders that the user picks, whichever windows have them open. */
export async function stopBackgroundWork({ daemon }: ServerContext): Promise<void> {
  // Without a daemon there is nothing to stop; don't start one just to find that out.
  const chosen = await choose((await daemon.isStarted()) ? await daemon.status() : { folders: [] });
  if (!chosen || chosen.length === 0 || !(await confirm(chosen))) return;
  const directories = chosen.map(({ directory }) => directory);
  await showIfLong(vscode.l10n.t("Stopping background work…"), daemon.stop(directories));
}

/** Undefined if the user cancels, or if there is nothing to stop (shows a message). */
async function choose(status: Pick<DaemonStatus, "folders">): Promise<readonly FolderWork[] | undefined> {
  const work = stoppable(status);
  if (work.length === 0) {
    inform(vscode.l10n.t("No background work is running."));
    return undefined;
  }
  const now = Date.now();
  const items = work.map((folder) => ({
    label: withoutIcons(title(basename(folder.directory))),
    description: withoutIcons(title(folder.directory)),
    detail: workWords(folder, sharers(folder, status).length, now).map(translate).join(" · "),
    folder,
  }));
  const picked = await vscode.window.showQuickPick(items, {
    title: vscode.l10n.t("Stop Background Work"),
    placeHolder: vscode.l10n.t("Select the folders whose work to stop"),
    canPickMany: true,
    matchOnDescription: true,
    ignoreFocusOut: true,
  });
  return picked?.map(({ folder }) => folder);
}

function confirm(chosen: readonly FolderWork[]): Promise<boolean> {
  const names = enumerate(chosen.map(({ directory }) => basename(directory)));
  const question = visible(vscode.l10n.t("Stop work in {0}?", names));
  const detail = lossWords(chosen).map(translate).join("\n\n");
  return isAgreed(question, vscode.l10n.t("Stop Work"), detail);
}
