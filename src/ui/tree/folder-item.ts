import * as vscode from "vscode";
import { describeFailure, type ConnectionState } from "../../engine/connection.ts";
import type { Tasks } from "../folders/all-tasks.ts";
import type { Folder } from "../folders/folder.ts";
import { title } from "../plain-text.ts";
import { translate } from "../translate.ts";
import { countBelow } from "./family.ts";

const { Collapsed, Expanded, None } = vscode.TreeItemCollapsibleState;

/** How a folder looks in the tree: what goes on there, or why nothing does. */
export function folderItem(folder: Folder, known: Tasks): vscode.TreeItem {
  const { uri, session, connector } = folder;
  const name = title(folder.name);
  const { state } = connector;
  const item = new vscode.TreeItem(name);
  item.id = uri.toString();
  const hasRows =
    session.id !== undefined && known.children(session.id).length + known.unreadable(session.id).length > 0;
  // Whoever opens a folder that is not connected wants to see its tasks: opening connects it.
  item.collapsibleState = hasRows ? Expanded : state.kind === "connected" ? None : Collapsed;
  const words = [
    stateWords(state),
    state.kind === "connected" && !hasRows && vscode.l10n.t("no tasks"),
    session.id !== undefined && atWorkWords(known, session.id),
    title(session.session?.title ?? ""),
  ];
  item.description = words.filter(Boolean).join(" · ");
  item.accessibilityInformation = { label: [name, item.description].filter(Boolean).join(", ") };
  const path = title(uri.fsPath);
  item.tooltip =
    state.kind === "failed" ? `${path}\n\n${title(translate(describeFailure(state.failure)))}` : path;
  item.iconPath = icon(state);
  // A server that was started for the folder can be stopped, one that is only starting too.
  const isOwn = state.kind === "connecting" || (state.kind === "connected" && state.own);
  item.contextValue = ["folder", state.kind, isOwn ? "own" : ""].filter(Boolean).join(" ");
  return item;
}

function stateWords(state: ConnectionState): string | undefined {
  switch (state.kind) {
    case "connected":
      return undefined;
    case "connecting":
      return title(translate(state.detail)) || vscode.l10n.t("connecting…");
    case "reconnecting":
      return vscode.l10n.t("connection lost, trying again");
    case "disconnected":
      return vscode.l10n.t("not connected");
    case "failed":
      return title(translate(state.failure.message));
  }
}

function atWorkWords(known: Tasks, sessionID: string): string | undefined {
  const { waiting, atWork } = countBelow(known, [sessionID]);
  if (waiting === 1) return vscode.l10n.t("1 needs you");
  if (waiting > 1) return vscode.l10n.t("{0} need you", waiting);
  if (atWork === 0) return undefined;
  return atWork === 1 ? vscode.l10n.t("1 at work") : vscode.l10n.t("{0} at work", atWork);
}

function icon({ kind }: ConnectionState): vscode.ThemeIcon {
  switch (kind) {
    case "connected":
      return new vscode.ThemeIcon("root-folder");
    case "connecting":
      return new vscode.ThemeIcon("loading~spin");
    case "reconnecting":
      return new vscode.ThemeIcon("warning", new vscode.ThemeColor("list.warningForeground"));
    case "disconnected":
      return new vscode.ThemeIcon("root-folder", new vscode.ThemeColor("disabledForeground"));
    case "failed":
      return new vscode.ThemeIcon("error", new vscode.ThemeColor("list.errorForeground"));
  }
}
