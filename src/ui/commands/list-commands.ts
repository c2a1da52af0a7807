import * as vscode from "vscode";
import { Refusal } from "../../engine/errors.ts";
import type { Child } from "../../engine/subagent.ts";
import { showInput } from "../quick-input.ts";
import { SORT_ORDERS, type SortOrder } from "../tree/arrangement.ts";
import { CHILD_STATES, countStates, type ChildState } from "../tree/child-state.ts";
import { descendants } from "../tree/family.ts";
import { NO_FILTER, type TaskFilter } from "../tree/list-options.ts";
import { stateWord } from "../tree/words.ts";
import type { Command, CommandContext } from "./command.ts";

/** What a program passes: only tasks that meet every condition are shown. */
interface FilterArguments {
  readonly status?: readonly string[] | undefined;
  readonly agent?: readonly string[] | undefined;
  readonly text?: string | undefined;
}

export const filter: Command = {
  async run(context, argument) {
    if (argument === undefined) return askFilter(context);
    context.list.filter = readFilter(argument);
    return context.list.filter;
  },
};

export const clearFilter: Command = {
  run: async ({ list }) => {
    list.filter = NO_FILTER;
  },
};

export const sort: Command = {
  async run({ list }, argument) {
    const order = argument === undefined ? await askOrder(list.sortOrder) : readOrder(argument);
    if (order) await list.sortBy(order);
    return order;
  },
};

interface ConditionItem extends vscode.QuickPickItem {
  readonly state?: ChildState;
  readonly agent?: string;
}

/** One list for all conditions; what is typed is searched for. The tree follows at once, and goes back with Escape. */
async function askFilter({ known, folders, list }: CommandContext): Promise<TaskFilter | undefined> {
  const before = list.filter;
  const sessionIDs = folders.all.flatMap(({ session }) => session.id ?? []);
  const children = sessionIDs.flatMap((id) => descendants(known, id));
  const input = vscode.window.createQuickPick<ConditionItem>();
  input.title = vscode.l10n.t("Filter Tasks");
  input.placeholder = vscode.l10n.t("Choose statuses and agents, or type a part of the description");
  input.canSelectMany = true;
  input.value = before.text;
  input.items = [
    separator(vscode.l10n.t("status")),
    ...stateItems(children),
    separator(vscode.l10n.t("agent")),
    ...agentItems(children, before.agents),
  ];
  input.selectedItems = input.items.filter(
    ({ state, agent }) =>
      (state && before.states.includes(state)) || (agent !== undefined && before.agents.includes(agent)),
  );
  const apply = (): void => {
    list.filter = {
      states: input.selectedItems.flatMap(({ state }) => state ?? []),
      agents: input.selectedItems.flatMap(({ agent }) => agent ?? []),
      text: input.value,
    };
  };
  input.onDidChangeSelection(apply);
  input.onDidChangeValue(apply);
  const kept = await showInput<TaskFilter>(input, (finish) => input.onDidAccept(() => finish(list.filter)));
  if (!kept) list.filter = before;
  return kept;
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
  // What is typed is not looked for here.
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
    placeHolder: vscode.l10n.t("What is to stand at the top?"),
  });
  return picked?.order;
}

function orderWords(order: SortOrder): { readonly label: string; readonly description: string } {
  switch (order) {
    case "active":
      return {
        label: vscode.l10n.t("Active First"),
        description: vscode.l10n.t("what needs you, what works, then the newest"),
      };
    case "newest":
      return { label: vscode.l10n.t("Newest First"), description: "" };
    case "oldest":
      return { label: vscode.l10n.t("Oldest First"), description: "" };
    case "status":
      return {
        label: vscode.l10n.t("Status"),
        description: vscode.l10n.t("what needs you, works, failed, was cancelled, completed"),
      };
    case "name":
      return { label: vscode.l10n.t("Name"), description: "" };
    case "cost":
      return { label: vscode.l10n.t("Cost"), description: vscode.l10n.t("the most expensive first") };
  }
}

function readOrder(argument: unknown): SortOrder {
  const order = SORT_ORDERS.find((each) => each === argument);
  if (!order) throw new Refusal("invalid-argument", `The order must be one of ${SORT_ORDERS.join(", ")}.`);
  return order;
}

function readFilter(argument: unknown): TaskFilter {
  if (typeof argument !== "object" || argument === null)
    throw new Refusal("invalid-argument", "The argument must be an object with status, agent or text.");
  const { status, agent, text = "" } = argument as { readonly [K in keyof FilterArguments]: unknown };
  if (typeof text !== "string") throw new Refusal("invalid-argument", '"text" must be a string.');
  return {
    states: [...new Set(readWords("status", status).map(readState))],
    agents: readWords("agent", agent),
    text,
  };
}

function readWords(name: string, value: unknown = []): readonly string[] {
  if (Array.isArray(value) && value.every((each) => typeof each === "string")) return value;
  throw new Refusal("invalid-argument", `"${name}" must be a list of strings.`);
}

/** The states of rows, and the further words for them that tasks and subagents have. */
function readState(word: string): ChildState {
  const alias = { resumed: "running", idle: "completed" } as const;
  const state = CHILD_STATES.find((each) => each === word) ?? alias[word as keyof typeof alias];
  if (!state)
    throw new Refusal("invalid-argument", `There is no status ${word}; give ${CHILD_STATES.join(", ")}.`);
  return state;
}
