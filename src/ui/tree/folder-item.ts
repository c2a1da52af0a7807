import * as vscode from "vscode";
import type { Tasks } from "../folders/engines.ts";
import type { Folder } from "../folders/folder.ts";

/** How a folder looks in the tree. */
export function folderItem({ uri, name, session }: Folder, engine: Tasks): vscode.TreeItem {
  const { Collapsed, Expanded } = vscode.TreeItemCollapsibleState;
  const hasTasks = session.id !== undefined && engine.children(session.id).length > 0;
  const item = new vscode.TreeItem(name, hasTasks ? Expanded : Collapsed);
  item.id = uri.toString();
  item.description = session.session?.title ?? "";
  item.iconPath = new vscode.ThemeIcon("root-folder");
  item.contextValue = "folder";
  return item;
}
