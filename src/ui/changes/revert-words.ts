import * as vscode from "vscode";
import type { RefusedFile } from "./revert-files.ts";

/** Why a file is left alone and what to do, in a sentence. `workers`: who is at work on it. */
export function refusalSentence({ path, reason, error }: RefusedFile, workers: readonly string[]): string {
  const file = vscode.workspace.asRelativePath(path);
  switch (reason) {
    case "at-work":
      return vscode.l10n.t("{0}: the task is still at work. Wait for its end, or cancel it first.", file);
    case "worked-on":
      return vscode.l10n.t(
        '{0}: "{1}" is at work and has changed it as well. Wait for its end, or cancel it first.',
        file,
        workers.join(`", "`),
      );
    case "outside":
      return vscode.l10n.t("{0}: it is outside of this workspace, or a link leads to it.", file);
    case "unsaved":
      return vscode.l10n.t("{0}: it has unsaved changes in an editor. Save or discard them first.", file);
    case "unreadable":
      return vscode.l10n.t("{0}: it cannot be read as a file.", file);
    case "no-snapshot":
      return vscode.l10n.t("{0}: what it was is not known whole, as OpenCode took no snapshot of it.", file);
    case "binary":
      return vscode.l10n.t("{0}: it is a binary file, whose former content is not at hand.", file);
    case "encoding":
      return vscode.l10n.t(
        "{0}: it was not written in UTF-8, so its former text is not known exactly.",
        file,
      );
    case "doubtful":
      return vscode.l10n.t(
        "{0}: other agents ran commands at the same time, so the change may be theirs. Compare, and revert by hand.",
        file,
      );
    case "mixed":
      return vscode.l10n.t(
        "{0}: somebody else changed it as well while the task worked, which would be lost. Compare, and revert by hand.",
        file,
      );
    case "changed-since":
      return vscode.l10n.t(
        "{0}: it was changed since in the same places. Compare, and revert by hand.",
        file,
      );
    case "not-writable":
      return vscode.l10n.t("{0}: it could not be written: {1}", file, error ?? "");
  }
}
