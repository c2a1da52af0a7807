import * as vscode from "vscode";
import { enumerate } from "../translate.ts";
import { TASK_SCHEME } from "./task-item.ts";

/** Badges of tasks: `R` resumed, `F` forked, `RF` both. The URI says which, so a badge changes with it. */
export class TaskDecorations implements vscode.FileDecorationProvider {
  provideFileDecoration(uri: vscode.Uri): vscode.FileDecoration | undefined {
    if (uri.scheme !== TASK_SCHEME) return undefined;
    const words = uri.query.split("&");
    const resumed = words.includes("resumed");
    const forked = words.includes("forked");
    if (!resumed && !forked) return undefined;
    const badge = `${resumed ? "R" : ""}${forked ? "F" : ""}`;
    const tooltip = enumerate([resumed && vscode.l10n.t("Resumed"), forked && vscode.l10n.t("Forked")]);
    return new vscode.FileDecoration(badge, tooltip);
  }
}
