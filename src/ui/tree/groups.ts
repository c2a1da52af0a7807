import * as vscode from "vscode";
import { type TreeRow, isBatchRow } from "./arrangement.ts";
import { endOf, type Family, stateWithDescendants } from "./family.ts";

/** The groups of the rows under a root session, in their order. */
export const GROUPS = ["needsYou", "working", "today", "earlier"] as const;
/** Cleared tasks have a group in every sort order, if they are shown. */
export type Group = (typeof GROUPS)[number] | "cleared";

/** The group of a row. A batch is in the group of its first member, which the order of rows has put there. */
export function groupOf(family: Family, row: TreeRow, now: number): Group | undefined {
  const child = isBatchRow(row) ? row.members[0] : row;
  if (!child) return undefined;
  const state = stateWithDescendants(family, child);
  if (state === "waiting") return "needsYou";
  if (state === "running") return "working";
  return endOf(child) >= startOfDay(now) ? "today" : "earlier";
}

export function startOfDay(time: number): number {
  return new Date(time).setHours(0, 0, 0, 0);
}

function groupName(group: Group): string {
  switch (group) {
    case "needsYou":
      return vscode.l10n.t("Needs You");
    case "working":
      return vscode.l10n.t("Working");
    case "today":
      return vscode.l10n.t("Finished Today");
    case "earlier":
      return vscode.l10n.t("Earlier");
    case "cleared":
      return vscode.l10n.t("Cleared");
  }
}

/** The row of a group, which says how many tasks it has and how many of them are unread. */
export function groupItem(group: Group, count: number, unread: number): vscode.TreeItem {
  const { Collapsed, Expanded } = vscode.TreeItemCollapsibleState;
  const name = groupName(group);
  const item = new vscode.TreeItem(name, group === "earlier" || group === "cleared" ? Collapsed : Expanded);
  const facts = [String(count), ...(unread > 0 ? [vscode.l10n.t("{0} unread", unread)] : [])];
  item.description = facts.join(" · ");
  item.accessibilityInformation = { label: [name, ...facts].join(", ") };
  item.contextValue = "group";
  return item;
}
