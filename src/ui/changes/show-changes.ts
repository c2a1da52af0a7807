import { basename } from "node:path";
import * as vscode from "vscode";
import type { FileChange, SessionChanges } from "../../engine/server-model.ts";
import { isAtWork, type Child } from "../../engine/subagent.ts";
import { withoutLinks } from "../plain-text.ts";
import { diffSides } from "./change-side.ts";

/** Files that a sentence names before it stops. */
const NAMED_FILES = 5;

/** Opens what a session changed in the editor's own diff editor: of one file alone, of several together. */
export async function showChanges(child: Child, { files, hasSnapshots }: SessionChanges): Promise<void> {
  if (files.length === 0) {
    void vscode.window.showInformationMessage(withoutLinks(nothingChanged(child, hasSnapshots)));
    return;
  }
  const title = changesTitle(child, hasSnapshots);
  const [only, ...others] = files;
  if (only && others.length === 0) {
    await showChange(title, child.id, only);
  } else {
    const resources = await Promise.all(
      files.map(async (change) => {
        const { file, original, modified } = await diffSides(child.id, change);
        const [before, after] = [change.before, change.after].map(({ kind }) => kind !== "absent");
        return [file, before ? original : undefined, after ? modified : undefined];
      }),
    );
    await vscode.commands.executeCommand("vscode.changes", title, resources);
  }
  const doubtful = files.filter(({ isDoubtful }) => isDoubtful).map(({ path }) => basename(path));
  if (doubtful.length > 0)
    void vscode.window.showInformationMessage(
      withoutLinks(
        vscode.l10n.t(
          "Other agents ran commands at the same time, so these changes may be theirs: {0}",
          [...doubtful.slice(0, NAMED_FILES), ...(doubtful.length > NAMED_FILES ? ["…"] : [])].join(", "),
        ),
      ),
    );
}

/** Opens one changed file in the diff editor. */
export async function showChange(title: string, taskID: string, change: FileChange): Promise<void> {
  const { file, original, modified } = await diffSides(taskID, change);
  await vscode.commands.executeCommand(
    "vscode.diff",
    original,
    modified,
    `${basename(file.fsPath)} (${title})`,
  );
}

export function changesTitle(child: Child, hasSnapshots: boolean): string {
  return hasSnapshots
    ? vscode.l10n.t("Changes: {0}", child.description)
    : vscode.l10n.t("Changes by Edit Tools: {0}", child.description);
}

function nothingChanged(child: Child, hasSnapshots: boolean): string {
  const sentence = isAtWork(child)
    ? vscode.l10n.t('"{0}" has changed no files so far.', child.description)
    : vscode.l10n.t('"{0}" changed no files.', child.description);
  if (hasSnapshots) return sentence;
  const limit = vscode.l10n.t(
    "What its commands changed is not known: OpenCode takes snapshots in Git repositories only.",
  );
  return `${sentence} ${limit}`;
}
