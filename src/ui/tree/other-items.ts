import * as vscode from "vscode";
import { enumerate, translate } from "../messages.ts";
import { title } from "../plain-text.ts";
import type { LaunchingNode, UnreadableNode } from "./items.ts";

/** The row of what is being launched. */
export function launchingItem({ title: what }: LaunchingNode): vscode.TreeItem {
  const name = title(what);
  const item = new vscode.TreeItem(name);
  item.description = vscode.l10n.t("launching…");
  item.accessibilityInformation = { label: enumerate([name, item.description]) };
  item.iconPath = new vscode.ThemeIcon("loading~spin");
  return item;
}

/** The row of a session whose record can't be read. */
export function unreadableItem({ task }: UnreadableNode): vscode.TreeItem {
  const name = title(task.title);
  const item = new vscode.TreeItem(name);
  item.id = task.sessionID;
  item.description = vscode.l10n.t("unreadable");
  item.accessibilityInformation = { label: enumerate([name, item.description]) };
  item.tooltip = vscode.l10n.t(
    "Can't read the record of this task; it isn't changed: {0}",
    title(translate(task.reason)),
  );
  item.iconPath = new vscode.ThemeIcon("question", new vscode.ThemeColor("list.warningForeground"));
  item.contextValue = "unreadable";
  return item;
}
