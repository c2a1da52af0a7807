import * as vscode from "vscode";
import { excerpt } from "../../engine/fork/excerpt.ts";
import type { Task } from "../../engine/task.ts";
import { title } from "../plain-text.ts";
import { enumerate } from "../translate.ts";
import { CHILD_STATES, countStates } from "./child-state.ts";
import type { Below } from "./family.ts";
import type { BatchNode } from "./nodes.ts";
import { STATE_ICON } from "./task-item.ts";
import { belowWords, costWord, countWord } from "./words.ts";

/** Words that all descriptions begin with, for them to name the batch. */
const COMMON_WORDS = 2;
/** Characters of a name, which is to leave room for the counts. */
const NAME_LENGTH = 24;

/** How a batch looks in the tree, by all of its tasks, those too that a filter hides. */
export function batchItem(
  { batchID, parentSessionID }: BatchNode,
  tasks: readonly Task[],
  below: Below,
): vscode.TreeItem {
  const counts = countStates(tasks);
  const atWork = counts.waiting + counts.running;
  const label = batchLabel(tasks);
  const item = new vscode.TreeItem(
    label,
    atWork + below.atWork > 0
      ? vscode.TreeItemCollapsibleState.Expanded
      : vscode.TreeItemCollapsibleState.Collapsed,
  );
  item.id = `${parentSessionID}/${batchID}`;
  const facts = [
    counts.waiting > 0 && countWord("waiting", counts.waiting),
    belowWords(below, atWork > 0),
    vscode.l10n.t("{0} of {1} done", tasks.length - atWork, tasks.length),
    ...(["error", "cancelled"] as const).map((state) => counts[state] > 0 && countWord(state, counts[state])),
    // While they work it would change with every answer, and the row be drawn anew with all those below it.
    atWork === 0 && costWord(tasks.reduce((sum, { cost }) => sum + cost, 0)),
  ].filter(Boolean);
  item.description = facts.join(" · ");
  item.iconPath = STATE_ICON[CHILD_STATES.find((state) => counts[state] > 0) ?? "completed"];
  item.contextValue = [
    "batch",
    atWork > 0 ? "active" : "ended",
    ...(tasks.some(({ finalMessageID }) => finalMessageID !== undefined) ? ["answered"] : []),
  ].join(" ");
  item.accessibilityInformation = { label: enumerate([vscode.l10n.t("Batch"), label, ...facts]) };
  return item;
}

/** What the descriptions are or begin with, where that is alike, else how many they are. */
export function batchLabel(tasks: readonly Task[]): string {
  const descriptions = tasks.map(({ description }) => title(description));
  const [first = [], ...others] = descriptions.map((description) => description.split(" "));
  const differs = first.findIndex((word, index) => others.some((words) => words[index] !== word));
  const common = differs === -1 ? first : first.slice(0, differs);
  if (common.length < COMMON_WORDS) return vscode.l10n.t("Batch of {0}", tasks.length);
  while (common.length > COMMON_WORDS && common.join(" ").length > NAME_LENGTH) common.pop();
  const label = common.join(" ");
  if (label.length > NAME_LENGTH) return excerpt(label, NAME_LENGTH);
  return descriptions.every((description) => description === label) ? label : `${label} …`;
}
