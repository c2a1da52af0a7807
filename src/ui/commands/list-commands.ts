import * as vscode from "vscode";
import { inform } from "../dialogs.ts";
import type { Child } from "../../engine/subagent.ts";
import { type ListItem, pickAny } from "../quick-input.ts";
import { SORT_ORDERS, type SortOrder } from "../tree/arrangement.ts";
import {
  CHILD_STATES,
  type ChildState,
  countStates,
  descendants,
  runningIn,
  waitsForUser,
} from "../tree/family.ts";
import { NO_FILTER } from "../tree/list-options.ts";
import { stateWord } from "../tree/words.ts";
import type { CommandContext, TaskContext } from "./command.ts";
import { pickActive } from "./pick.ts";
import { answer } from "./row-commands.ts";

export async function clearFilter({ list }: TaskContext): Promise<void> {
  list.filter = NO_FILTER;
}

/** Shows the group of the cleared tasks, or hides it. */
export async function showCleared({ list }: TaskContext): Promise<void> {
  await list.showCleared(!list.showsCleared);
}

export async function markAllRead({ unread }: TaskContext): Promise<void> {
  unread.markAllRead();
}

/** Shows the output of the next task that waits for the user or is unread. */
export async function showNext({ known, unread, panels }: CommandContext): Promise<void> {
  const id = unread.next(known.openRequests());
  if (id !== undefined) panels.show(id, { isPreview: true });
  else inform(vscode.l10n.t("Nothing is unread or waiting for you."));
}

export async function showOverview({ overview }: CommandContext): Promise<void> {
  overview.show();
}

/** Lists everything that is running, in any session; a request is answered, other output is shown. */
export async function showActive(context: CommandContext): Promise<void> {
  const { folders, panels } = context;
  const running = folders.all.flatMap(({ known }) => runningIn(known));
  const id = await pickActive(running);
  const child = id === undefined ? undefined : context.known.child(id);
  if (!child) return;
  if (waitsForUser(child)) await answer(context, child.id);
  else panels.show(child.id);
}

interface ConditionItem extends ListItem {
  readonly state?: ChildState;
  readonly agent?: string;
}

/**
 * Offers all conditions in one list; typed text filters by description. The tree follows; Escape restores it. A button
 * leads to the sort order.
 */
export async function filter({ known, folders, list }: TaskContext): Promise<void> {
  const before = list.filter;
  const sessionIDs = folders.all.flatMap(({ session }) => session.id ?? []);
  const children = sessionIDs.flatMap((id) => descendants(known, id));
  const isChosen = ({ state, agent }: ConditionItem): boolean =>
    (state && before.states.includes(state)) || (agent !== undefined && before.agents.includes(agent));
  const kept = await pickAny<ConditionItem, "sort">({
    title: vscode.l10n.t("Filter and Sort Tasks"),
    buttons: [
      {
        iconPath: new vscode.ThemeIcon("sort-precedence"),
        tooltip: vscode.l10n.t("Sort Tasks"),
        gives: "sort",
      },
    ],
    placeholder: vscode.l10n.t("Select statuses and agents, or type part of the description"),
    text: before.text,
    items: [
      separator(vscode.l10n.t("status")),
      ...stateItems(children),
      separator(vscode.l10n.t("agent")),
      ...agentItems(children, before.agents),
    ],
    first: (items) => items.filter(isChosen),
    follow: (items, text) => {
      list.filter = {
        states: items.flatMap(({ state }) => state ?? []),
        agents: items.flatMap(({ agent }) => agent ?? []),
        text,
      };
    },
  });
  if (!kept) list.filter = before;
  if (kept !== "sort") return;
  const order = await askOrder(list.sortOrder);
  if (order) await list.sortBy(order);
}

function stateItems(children: readonly Child[]): readonly ConditionItem[] {
  const counts = countStates(children);
  return CHILD_STATES.map((state) => conditionItem(stateWord(state), counts[state], { state }));
}

function agentItems(children: readonly Child[], chosen: readonly string[]): readonly ConditionItem[] {
  const counts = new Map(chosen.map((agent) => [agent, 0]));
  for (const { agent } of children) if (agent !== undefined) counts.set(agent, (counts.get(agent) ?? 0) + 1);
  return [...counts]
    .sort(([a], [b]) => a.localeCompare(b))
    .map(([agent, count]) => conditionItem(agent, count, { agent }));
}

function conditionItem(
  label: string,
  count: number,
  condition: Pick<ConditionItem, "state" | "agent">,
): ConditionItem {
  // The typed text filters the tasks, so it must not hide rows of this list.
  return { label, description: count > 0 ? String(count) : "", alwaysShow: true, ...condition };
}

function separator(label: string): ConditionItem {
  return { label, kind: vscode.QuickPickItemKind.Separator };
}

async function askOrder(current: SortOrder): Promise<SortOrder | undefined> {
  const items = SORT_ORDERS.map((order) => ({
    ...orderWords(order),
    order,
    iconPath: new vscode.ThemeIcon(order === current ? "check" : "blank"),
  }));
  const picked = await vscode.window.showQuickPick(items, {
    title: vscode.l10n.t("Sort Tasks"),
    placeHolder: vscode.l10n.t("Sort tasks by"),
  });
  return picked?.order;
}

function orderWords(order: SortOrder): { readonly label: string; readonly description: string } {
  switch (order) {
    case "groups":
      return {
        label: vscode.l10n.t("Groups"),
        description: vscode.l10n.t("needs you, working, finished today, earlier"),
      };
    case "active":
      return {
        label: vscode.l10n.t("Active First"),
        description: vscode.l10n.t("needs you, running, then newest"),
      };
    case "newest":
      return { label: vscode.l10n.t("Newest First"), description: "" };
    case "oldest":
      return { label: vscode.l10n.t("Oldest First"), description: "" };
    case "status":
      return {
        label: vscode.l10n.t("Status"),
        description: vscode.l10n.t("needs you, running, failed, cancelled, completed"),
      };
    case "name":
      return { label: vscode.l10n.t("Name"), description: "" };
    case "cost":
      return { label: vscode.l10n.t("Cost"), description: vscode.l10n.t("most expensive first") };
  }
}
