import * as vscode from "vscode";
import type { FileChange, FileContent } from "../../engine/server-model.ts";

/** Characters of the longest text that is shown. */
const LONGEST = 2_000_000;

/** What the editor holds against each other for one file; undefined where there was, or is, none. */
export interface DiffSides {
  readonly file: vscode.Uri;
  readonly original: vscode.Uri | undefined;
  readonly modified: vscode.Uri | undefined;
}

/** Makes a read-only document of a text, called like the file. */
export type AddText = (file: vscode.Uri, text: string) => vscode.Uri;

/** The documents of a changed file. What cannot be shown is replaced by a sentence that says so. */
export async function diffSides({ path, before, after }: FileChange, addText: AddText): Promise<DiffSides> {
  const file = vscode.Uri.file(path);
  const isOnDisk = await isAsLeft(file, after);
  // The editor takes sides of different paths for a renamed file, and shows the path of any but a real file whole.
  const name = isOnDisk ? file : vscode.Uri.file(`/${vscode.workspace.asRelativePath(file, false)}`);
  const document = (text: string | undefined): vscode.Uri | undefined =>
    text === undefined ? undefined : addText(name, text);
  return {
    file,
    original: document(shown(before, vscode.l10n.t("Before"))),
    modified: isOnDisk ? file : document(shown(after, vscode.l10n.t("After"))),
  };
}

/**
 * Whether the file on disk can stand for what it became, so that it can be edited and navigated. Only a file of the
 * workspace: what an agent did must not make the editor open anything else.
 */
async function isAsLeft(file: vscode.Uri, after: FileContent): Promise<boolean> {
  if (!vscode.workspace.getWorkspaceFolder(file)) return false;
  try {
    if (after.kind === "unknown") return (await vscode.workspace.fs.stat(file)).type === vscode.FileType.File;
    if (after.kind !== "text" || isTooLong(after)) return false;
    return Buffer.from(await vscode.workspace.fs.readFile(file)).equals(Buffer.from(after.text));
  } catch {
    return false;
  }
}

/**
 * Undefined: there was, or is, no file. `when` begins the sentence where there is nothing to show, as two equal ones
 * would look like no change.
 */
function shown(content: FileContent, when: string): string | undefined {
  switch (content.kind) {
    case "absent":
      return undefined;
    case "binary":
      return vscode.l10n.t("{0}: a binary file, which is not shown.", when);
    case "unknown":
      return vscode.l10n.t("{0}: not known, as OpenCode took no snapshot of it.", when);
    case "excerpt":
      return content.text;
    case "text":
      return isTooLong(content)
        ? vscode.l10n.t("{0}: more than {1} MB, which are not shown.", when, LONGEST / 1_000_000)
        : content.text;
  }
}

function isTooLong({ text }: { readonly text: string }): boolean {
  return text.length > LONGEST;
}
