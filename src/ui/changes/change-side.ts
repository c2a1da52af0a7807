import * as vscode from "vscode";
import type { FileChange, FileContent } from "../../engine/server-model.ts";

export const CHANGE_SCHEME = "asyncagents-change";

/** The longest text shown, in characters. */
const LONGEST = 2_000_000;

/** A file that a task or subagent changed. */
export interface ReviewedFile {
  readonly taskID: string;
  /** Absolute. */
  readonly path: string;
}

type Side = "before" | "after";

/** The text of a changed file before or after the task. */
export interface ChangeSide extends ReviewedFile {
  readonly side: Side;
}

/**
 * The address of a read-only document titled like `name`. The address contains everything needed to read the text
 * again, which the editor does after a window reload or when a closed editor is reopened.
 */
export function sideUri(name: vscode.Uri, { taskID, path, side }: ChangeSide): vscode.Uri {
  const query = JSON.stringify({ taskID, path, side });
  return name.with({ scheme: CHANGE_SCHEME, authority: "", query, fragment: "" });
}

/** Undefined if the document isn't a side of a change. */
export function sideOf({ scheme, query }: vscode.Uri): ChangeSide | undefined {
  if (scheme !== CHANGE_SCHEME) return undefined;
  try {
    const value: unknown = JSON.parse(query);
    return isSide(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The change that a tab's diff editor shows; undefined if it shows none or several. */
export function shownChange({ input }: vscode.Tab): ReviewedFile | undefined {
  return input instanceof vscode.TabInputTextDiff ? sideOf(input.original) : undefined;
}

/**
 * The document's text. Content that can't be shown is replaced by a sentence, as two empty sides would look unchanged.
 */
export function sideText(change: FileChange, side: Side): string {
  const content = change[side];
  const when = side === "before" ? vscode.l10n.t("Before") : vscode.l10n.t("After");
  switch (content.kind) {
    case "absent":
      return "";
    case "binary":
      return vscode.l10n.t("{0}: a binary file, not shown.", when);
    case "unknown":
      return vscode.l10n.t("{0}: not known because OpenCode took no snapshot of it.", when);
    case "excerpt":
      return content.text;
    case "text":
      return isTooLong(content)
        ? vscode.l10n.t("{0}: larger than {1} MB, not shown.", when, LONGEST / 1_000_000)
        : content.text;
  }
}

function isTooLong({ text }: { readonly text: string }): boolean {
  return text.length > LONGEST;
}

function isSide(value: unknown): value is ChangeSide {
  return (
    typeof value === "object" &&
    value !== null &&
    "taskID" in value &&
    typeof value.taskID === "string" &&
    "path" in value &&
    typeof value.path === "string" &&
    "side" in value &&
    (value.side === "before" || value.side === "after")
  );
}

/** The two documents of a diff editor, and the file they belong to. */
export interface DiffSides {
  readonly file: vscode.Uri;
  readonly original: vscode.Uri;
  readonly modified: vscode.Uri;
}

/** The documents that show a task's change to a file. */
export async function diffSides(taskID: string, { path, after }: FileChange): Promise<DiffSides> {
  const file = vscode.Uri.file(path);
  const isOnDisk = await isAsLeft(file, after);
  // For two sides with different paths the editor assumes a rename, and it abbreviates only the paths of real files.
  const name = isOnDisk ? file : namelike(file);
  return {
    file,
    original: sideUri(name, { taskID, path, side: "before" }),
    modified: isOnDisk ? file : sideUri(name, { taskID, path, side: "after" }),
  };
}

/** A path that the editor displays like the file's path within the workspace. */
export function namelike(file: vscode.Uri): vscode.Uri {
  return vscode.Uri.file(`/${vscode.workspace.asRelativePath(file, false)}`);
}

/**
 * Whether the file on disk can serve as the modified side, so that it can be edited and navigated. Only a file in the
 * workspace can: what an agent did must not make the editor open anything else.
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
