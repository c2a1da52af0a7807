import { basename } from "node:path";
import * as vscode from "vscode";
import type { DaemonStatus } from "../../rpc/contract.ts";
import { lossWords, sharers, stoppable, workWords, type FolderWork } from "../background-work.ts";
import { showIfLong } from "../long-work.ts";
import { title, visible, withoutIcons } from "../plain-text.ts";
import { enumerate, translate } from "../translate.ts";
import type { ServerContext } from "./command.ts";

/** Ends work in folders of this user, in whichever windows they are open. */
export async function stopBackgroundWork(context: ServerContext): Promise<void> {
  const daemon = await context.daemon();
  // Else there is nothing to stop, and nobody is started to say so.
  const chosen = await choose((await daemon.isStarted()) ? await daemon.status() : { folders: [] });
  if (!chosen || chosen.length === 0 || !(await confirm(chosen))) return;
  const directories = chosen.map(({ directory }) => directory);
  await showIfLong(vscode.l10n.t("Stopping background work"), daemon.stop(directories));
}

/** Undefined: none, or there is nothing to choose from, which is said. */
async function choose(status: Pick<DaemonStatus, "folders">): Promise<readonly FolderWork[] | undefined> {
  const work = stoppable(status);
  if (work.length === 0) {
    void vscode.window.showInformationMessage(vscode.l10n.t("Nothing works in the background."));
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
    placeHolder: vscode.l10n.t("In which folders is the work to stop?"),
    canPickMany: true,
    matchOnDescription: true,
    ignoreFocusOut: true,
  });
  return picked?.map(({ folder }) => folder);
}

async function confirm(chosen: readonly FolderWork[]): Promise<boolean> {
  const stop = vscode.l10n.t("Stop the Work");
  const names = enumerate(chosen.map(({ directory }) => basename(directory)));
  const question = visible(vscode.l10n.t("Stop the work in {0}?", names));
  const detail = lossWords(chosen).map(translate).join("\n\n");
  return (await vscode.window.showWarningMessage(question, { modal: true, detail }, stop)) === stop;
}
