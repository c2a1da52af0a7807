import * as vscode from "vscode";
import type { FileChange } from "../../engine/server-model.ts";

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

/** The value of `resourcePath` in the editor's conditions. */
export function resourcePath({
  scheme,
  path,
  fsPath,
}: Pick<vscode.Uri, "scheme" | "path" | "fsPath">): string {
  return scheme === "file" ? fsPath : path;
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

export function isTooLong({ text }: { readonly text: string }): boolean {
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
