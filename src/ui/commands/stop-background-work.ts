import { basename } from "node:path";
import * as vscode from "vscode";
import { Refusal } from "../../engine/errors.ts";
import { lossWords, stoppable, workWords, type FolderWork } from "../background-work.ts";
import { showIfLong } from "../long-work.ts";
import { title, visible, withoutIcons } from "../plain-text.ts";
import { enumerate, translate } from "../translate.ts";
import type { Command } from "./command.ts";

/** Ends work in folders of this user, in whichever windows they are open. Returns the paths of the folders. */
export const stopBackgroundWork: Command = {
  async run(context, argument) {
    const daemon = await context.daemon();
    // Else there is nothing to stop, and nobody is started to say so.
    const work = (await daemon.isStarted()) ? stoppable(await daemon.status()) : [];
    const asks = argument === undefined;
    const chosen = asks ? await choose(work) : named(argument, work);
    if (!chosen || chosen.length === 0) return [];
    if (asks && !(await confirm(chosen))) return [];
    const directories = chosen.map(({ directory }) => directory);
    await showIfLong(vscode.l10n.t("Stopping background work"), daemon.stop(directories));
    return directories;
  },
};

/** Undefined: none, or there is nothing to choose from, which is said. */
async function choose(work: readonly FolderWork[]): Promise<readonly FolderWork[] | undefined> {
  if (work.length === 0) {
    void vscode.window.showInformationMessage(vscode.l10n.t("Nothing works in the background."));
    return undefined;
  }
  const now = Date.now();
  const items = work.map((folder) => ({
    label: withoutIcons(title(basename(folder.directory))),
    description: withoutIcons(title(folder.directory)),
    detail: workWords(folder, now).map(translate).join(" · "),
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

/** What a program names by `{ folders: [path, …] }`; folders in which nothing works are passed over. */
function named(argument: unknown, work: readonly FolderWork[]): readonly FolderWork[] {
  const { folders } = argument as { readonly folders?: unknown };
  if (!Array.isArray(folders) || !folders.every((path) => typeof path === "string"))
    throw new Refusal(
      "invalid-argument",
      "The argument must be an object whose folders are a list of paths.",
    );
  return work.filter(({ directory }) => folders.includes(directory));
}
