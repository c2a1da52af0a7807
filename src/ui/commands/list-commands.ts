import * as vscode from "vscode";
import { inform } from "../dialogs.ts";
import { type Child, isCleared } from "../../engine/subagent.ts";
import { type ListItem, pickAny } from "../quick-input.ts";
import { SORT_ORDERS, type SortOrder } from "../tree/arrangement.ts";
import {
  CHILD_STATES,
  type ChildState,
  clearedBelow,
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
import type { Hit } from "../../protocol/output.ts";
import { title, withoutIcons } from "../plain-text.ts";
import { childIcon } from "../tree/items.ts";

export async function clearFilter({ list }: TaskContext): Promise<void> {
  list.filter = NO_FILTER;
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
  readonly isCleared?: boolean;
}

/**
 * Offers all conditions in one list, with the group of cleared tasks; typed text filters by description. The tree
 * follows; Escape restores it. A button leads to the sort order.
 */
export async function filter({ known, folders, list }: TaskContext): Promise<void> {
  const { filter: before, showsCleared } = list;
  const { sessionIDs } = folders;
  const children = sessionIDs.flatMap((id) => descendants(known, id));
  const cleared = sessionIDs.flatMap((id) => clearedBelow(known, id)).length;
  const isChosen = ({ state, agent, isCleared }: ConditionItem): boolean =>
    (isCleared && showsCleared) ||
    (state && before.states.includes(state)) ||
    (agent !== undefined && before.agents.includes(agent));
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
      ...(cleared === 0
        ? []
        : [
            separator(vscode.l10n.t("also show")),
            conditionItem(vscode.l10n.t("Cleared Tasks"), cleared, { isCleared: true }),
          ]),
    ],
    first: (items) => items.filter(isChosen),
    follow: (items, text) => {
      list.filter = {
        states: items.flatMap(({ state }) => state ?? []),
        agents: items.flatMap(({ agent }) => agent ?? []),
        text,
      };
      // Otherwise, the list doesn't offer them.
      if (cleared > 0) list.showsCleared = items.some(({ isCleared }) => isCleared);
    },
  });
  if (!kept) {
    list.filter = before;
    list.showsCleared = showsCleared;
  }
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
  condition: Pick<ConditionItem, "state" | "agent" | "isCleared">,
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

/** Milliseconds of typing after which a search begins. */
const DELAY_MS = 250;
const SHORTEST_QUERY = 2;
const MAX_HITS = 300;

interface HitItem extends vscode.QuickPickItem {
  readonly taskID: string;
  readonly hit: Hit;
}

/** Searches the conversations of all tasks for what is typed, and shows the one that is picked at the hit. */
export async function searchOutputs({ known, folders, panels, logger }: CommandContext): Promise<void> {
  const list = vscode.window.createQuickPick<HitItem>();
  const heading = vscode.l10n.t("Search All Outputs");
  list.title = heading;
  list.placeholder = vscode.l10n.t("Enter the text to find");
  list.matchOnDetail = true;
  list.keepScrollPosition = true;
  /** The search that counts; others end. */
  let current: object | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;

  const search = async (query: string): Promise<void> => {
    const own = (current = {});
    const items: HitItem[] = [];
    const ids = searched();
    let failed = 0;
    for (const [index, id] of ids.entries()) {
      list.title = vscode.l10n.t("{0} ({1} of {2})", heading, index, ids.length);
      const hits = await known.search(id, query).catch((error: unknown) => {
        failed++;
        logger.warn(`Couldn't search ${id}: ${String(error)}`);
        return [];
      });
      // The user has typed on, or closed the list.
      if (own !== current) return;
      if (hits.length === 0) continue;
      items.push(...hits.map((hit) => item(id, hit)));
      const active = list.activeItems;
      list.items = items;
      // The list makes the first row active unless it is told which one.
      if (active.length > 0) list.activeItems = active;
      if (items.length >= MAX_HITS) break;
    }
    list.title =
      failed > 0
        ? vscode.l10n.t("Search All Outputs: {0} Couldn't Be Read", failed)
        : items.length >= MAX_HITS
          ? vscode.l10n.t("Search All Outputs: First {0} Lines", items.length)
          : items.length > 0
            ? heading
            : vscode.l10n.t("Search All Outputs: No Results");
    list.busy = false;
  };
  /** The newest tasks first. */
  const searched = (): readonly string[] =>
    folders.all
      .flatMap((folder) => folder.known.sessions().flatMap(({ id }) => known.child(id) ?? []))
      .filter((child) => !isCleared(child))
      .sort((a, b) => b.createdAt - a.createdAt)
      .map(({ id }) => id);
  const item = (taskID: string, hit: Hit): HitItem => {
    const child = known.child(taskID);
    return {
      label: withoutIcons(title(child?.description ?? taskID)),
      // The list would sort lines by where they match if they were labels.
      detail: withoutIcons(title(hit.line)),
      ...(child && { iconPath: childIcon(child) }),
      // The list matches texts in another way.
      alwaysShow: true,
      taskID,
      hit,
    };
  };

  list.onDidChangeValue((query) => {
    current = undefined;
    clearTimeout(timer);
    list.items = [];
    list.title = heading;
    list.busy = query.trim().length >= SHORTEST_QUERY;
    if (list.busy) timer = setTimeout(() => void search(query), DELAY_MS);
  });
  list.onDidAccept(() => {
    const [picked] = list.selectedItems;
    if (!picked) return;
    const { entryID, nth } = picked.hit;
    panels.showMatch(picked.taskID, { query: list.value.trim(), entryID, nth });
    list.hide();
  });
  list.onDidHide(() => {
    current = undefined;
    clearTimeout(timer);
    list.dispose();
  });
  list.show();
}
