import * as vscode from "vscode";
import { isAtWork, isTask, type Child } from "../../engine/subagent.ts";
import type { Phase, Task } from "../../engine/task.ts";
import { title } from "../plain-text.ts";
import { enumerate } from "../translate.ts";
import { isAnswered, stateOf, waitsForPerson, type ChildState } from "./child-state.ts";
import type { Below } from "./family.ts";
import {
  activity,
  belowWords,
  ceilingWord,
  costWord,
  elapsed,
  marks,
  statusWord,
  toolCalls,
  toolCount,
} from "./words.ts";

/** The scheme of the URIs by which tasks get their badges. */
const TASK_SCHEME = "asyncagents-task";

/** What the row of a child tells beside the child itself. */
export interface Surroundings {
  /** Milliseconds since 1970. */
  readonly now: number;
  /** Whether rows are below it. */
  readonly isParent: boolean;
  readonly below: Below;
  /** Whether its row stands among those of its batch. */
  readonly isInBatch: boolean;
}

/** How rows look in each state. */
export const STATE_ICON: Readonly<Record<ChildState, vscode.ThemeIcon>> = {
  waiting: icon("question", "list.warningForeground"),
  running: icon("sync~spin", "charts.blue"),
  error: icon("error", "testing.iconFailed"),
  cancelled: icon("circle-slash", "testing.iconSkipped"),
  completed: icon("pass", "testing.iconPassed"),
};

const PHASE_ICON: Readonly<Partial<Record<Phase, vscode.ThemeIcon>>> = {
  queued: icon("watch", "testing.iconQueued"),
  retrying: icon("history", "charts.yellow"),
  stalled: icon("warning", "list.warningForeground"),
  "needs-permission": icon("shield", "list.warningForeground"),
  "needs-answer": STATE_ICON.waiting,
};

/** Nobody said how it ended. */
const IDLE_ICON = icon("check", "descriptionForeground");
/** It has not said anything yet. */
const NEW_ICON = icon("circle-outline", "descriptionForeground");

/** How a task, or a subagent of others, looks in the tree. */
export function childItem(child: Child, around: Surroundings): vscode.TreeItem {
  const { now, isParent } = around;
  const name = title(child.description);
  const item = new vscode.TreeItem(
    name,
    !isParent
      ? vscode.TreeItemCollapsibleState.None
      : around.below.atWork > 0
        ? vscode.TreeItemCollapsibleState.Expanded
        : vscode.TreeItemCollapsibleState.Collapsed,
  );
  item.id = child.id;
  const below = belowWords(around.below, isAtWork(child));
  const doing = activity(child, now);
  const ceiling = isTask(child) ? ceilingWord(child) : undefined;
  const who = [child.agent && title(child.agent), isTask(child) ? undefined : "OpenCode"];
  const numbers = [toolCount(toolCalls(child)), costWord(child.cost)];
  // Views are narrow: what changes what a person does next comes first.
  item.description = [below, ...marks(child), ceiling, doing, ...who, ...numbers, elapsed(child, now)]
    .filter(Boolean)
    .join(" · ");
  item.iconPath = childIcon(child);
  item.contextValue = contextWords(child, around).join(" ");
  if (isTask(child)) item.resourceUri = taskUri(child);
  item.accessibilityInformation = {
    // Without the time and the calls of what still runs: a reader would say them anew every second.
    label: enumerate([
      name,
      statusWord(child),
      below,
      ...marks(child),
      ceiling,
      ...who,
      doing,
      ...(isAtWork(child) ? [] : [...numbers, elapsed(child, now)]),
    ]),
  };
  return item;
}

export function childIcon(child: Child): vscode.ThemeIcon {
  if (child.status === "idle") return child.tokens.output === 0 ? NEW_ICON : IDLE_ICON;
  return (child.progress && PHASE_ICON[child.progress.phase]) ?? STATE_ICON[stateOf(child)];
}

function taskUri(task: Task): vscode.Uri {
  return vscode.Uri.from({
    scheme: TASK_SCHEME,
    path: `/${task.id}`,
    query: [task.resumeCount > 0 ? "resumed" : "", task.isForked ? "forked" : ""].filter(Boolean).join("&"),
  });
}

/** What the menus ask for. */
function contextWords(child: Child, { isInBatch }: Surroundings): readonly string[] {
  const common = [
    isAtWork(child) ? "active" : "ended",
    child.status,
    ...(waitsForPerson(child) ? ["waiting"] : []),
    ...(isAnswered(child) ? ["answered"] : []),
  ];
  if (!isTask(child)) return ["subagent", ...common];
  return [
    "task",
    ...common,
    ...(child.status === "error" || child.status === "cancelled" ? ["retryable"] : []),
    ...(isInBatch ? ["batched"] : []),
    ...(child.isForked ? ["forked"] : []),
    // The status has this word too; here it says that the task was resumed at least once.
    ...(child.resumeCount > 0 && child.status !== "resumed" ? ["resumed"] : []),
  ];
}

function icon(id: string, color: string): vscode.ThemeIcon {
  return new vscode.ThemeIcon(id, new vscode.ThemeColor(color));
}

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
