import * as vscode from "vscode";
import { enumerate, translate } from "../messages.ts";
import { title } from "../plain-text.ts";
import type { LaunchingNode, UnreadableNode } from "./items.ts";

/** The row of what is being launched. */
export function launchingItem(node: LaunchingNode): vscode.TreeItem {
  return plainItem(node.title, vscode.l10n.t("launching…"), new vscode.ThemeIcon("loading~spin"));
}

/** The row of a session whose record can't be read. */
export function unreadableItem({ task }: UnreadableNode): vscode.TreeItem {
  const icon = new vscode.ThemeIcon("question", new vscode.ThemeColor("list.warningForeground"));
  const item = plainItem(task.title, vscode.l10n.t("unreadable"), icon);
  item.id = task.sessionID;
  item.tooltip = vscode.l10n.t(
    "Can't read the record of this task; it isn't changed: {0}",
    title(translate(task.reason)),
  );
  item.contextValue = "unreadable";
  return item;
}

function plainItem(text: string, description: string, iconPath: vscode.ThemeIcon): vscode.TreeItem {
  const name = title(text);
  const label = enumerate([name, description]);
  return Object.assign(new vscode.TreeItem(name), {
    description,
    iconPath,
    accessibilityInformation: { label },
  });
}
