import * as vscode from "vscode";
import { type ConnectionState, describeFailure } from "../../engine/connection.ts";
import { excerpt } from "../../engine/fork/excerpt.ts";
import { type Child, isRunning, isTask } from "../../engine/subagent.ts";
import type { Phase, Task } from "../../engine/task.ts";
import type { Tasks } from "../folders/all-tasks.ts";
import type { Folder, Folders } from "../folders/folders.ts";
import { title } from "../plain-text.ts";
import { enumerate, translate } from "../messages.ts";
import {
  type DescendantCounts,
  CHILD_STATES,
  type ChildState,
  countDescendants,
  countStates,
  isAnswered,
  stateOf,
  waitsForUser,
} from "./family.ts";
import {
  activity,
  descendantWords,
  limitWord,
  collisionWords,
  costWord,
  countWord,
  elapsed,
  marks,
  rowTime,
  statusWord,
  toolCalls,
  toolCount,
} from "./words.ts";
import type { UnreadableTask } from "../../engine/registry.ts";

/** A row of the tree. */
export abstract class TreeNode {}

/** A workspace folder, by its address; used only if there are several folders. */
export class FolderNode extends TreeNode {
  constructor(readonly uri: string) {
    super();
  }
}

/** A task, or a subagent launched elsewhere, by the ID of its session. */
export class ChildNode extends TreeNode {
  constructor(readonly id: string) {
    super();
  }
}

/** The tasks of a batch with the same parent session. */
export class BatchNode extends TreeNode {
  constructor(
    readonly batchID: string,
    readonly parentSessionID: string,
  ) {
    super();
  }
}

/** A session whose record can't be read. */
export class UnreadableNode extends TreeNode {
  constructor(readonly task: UnreadableTask) {
    super();
  }
}

export type Node = FolderNode | ChildNode | BatchNode | UnreadableNode;

/** The folder that a row belongs to. Undefined if the folder was removed, or if this isn't a row. */
export function folderOf(folders: Folders, node: unknown): Folder | undefined {
  if (node instanceof FolderNode) return folders.all.find(({ uri }) => uri.toString() === node.uri);
  if (node instanceof ChildNode) return folders.of(node.id);
  if (node instanceof BatchNode) return folders.of(node.parentSessionID);
  return node instanceof UnreadableNode ? folders.of(node.task.sessionID) : undefined;
}

/** Shows the output of the row that was just clicked, which is thus the selected one. */
export const SHOW_SELECTED = "_asyncagents.showSelected";

const { Collapsed, Expanded, None } = vscode.TreeItemCollapsibleState;

/** The row of a folder: its activity, or why there is none. */
export function folderItem(folder: Folder, known: Tasks): vscode.TreeItem {
  const { uri, session, connector } = folder;
  const name = title(folder.name);
  const { state } = connector;
  const item = new vscode.TreeItem(name);
  item.id = uri.toString();
  const hasRows =
    session.id !== undefined && known.children(session.id).length + known.unreadable(session.id).length > 0;
  // Expanding a folder that isn't connected connects it, because whoever expands it wants to see its tasks.
  item.collapsibleState = hasRows ? Expanded : state.kind === "connected" ? None : Collapsed;
  const words = [
    stateWords(state),
    state.kind === "connected" && !hasRows && vscode.l10n.t("no tasks"),
    session.id !== undefined && runningWords(known, session.id),
    title(session.session?.title ?? ""),
  ];
  item.description = words.filter(Boolean).join(" · ");
  item.accessibilityInformation = { label: [name, item.description].filter(Boolean).join(", ") };
  const path = title(uri.fsPath);
  item.tooltip =
    state.kind === "failed" ? `${path}\n\n${title(translate(describeFailure(state.failure)))}` : path;
  item.iconPath = folderIcon(state);
  // A server that the extension started can be stopped, even while it is still starting.
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
      return vscode.l10n.t("connection lost, reconnecting");
    case "disconnected":
      return vscode.l10n.t("not connected");
    case "failed":
      return title(translate(state.failure.message));
  }
}

function runningWords(known: Tasks, sessionID: string): string | undefined {
  const { waiting, running } = countDescendants(known, [sessionID]);
  if (waiting === 1) return vscode.l10n.t("1 needs you");
  if (waiting > 1) return vscode.l10n.t("{0} need you", waiting);
  if (running === 0) return undefined;
  return running === 1 ? vscode.l10n.t("1 running") : vscode.l10n.t("{0} running", running);
}

function folderIcon({ kind }: ConnectionState): vscode.ThemeIcon {
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

/** The least number of words that the descriptions must share for them to name the batch. */
const COMMON_WORDS = 2;
/** The longest name in characters; leaves room for the counts. */
const NAME_LENGTH = 24;

/** The row of a batch, which covers all of its tasks, including those hidden by a filter. */
export function batchItem(
  { batchID, parentSessionID }: BatchNode,
  tasks: readonly Task[],
  descendants: DescendantCounts,
): vscode.TreeItem {
  const counts = countStates(tasks);
  const running = counts.waiting + counts.running;
  const label = batchLabel(tasks);
  const item = new vscode.TreeItem(
    label,
    running + descendants.running > 0
      ? vscode.TreeItemCollapsibleState.Expanded
      : vscode.TreeItemCollapsibleState.Collapsed,
  );
  item.id = `${parentSessionID}/${batchID}`;
  const facts = [
    counts.waiting > 0 && countWord("waiting", counts.waiting),
    descendantWords(descendants, running > 0),
    vscode.l10n.t("{0} of {1} done", tasks.length - running, tasks.length),
    ...(["error", "cancelled"] as const).map((state) => counts[state] > 0 && countWord(state, counts[state])),
    // While tasks run, the cost would change with every answer, and redraw the row with all its children.
    running === 0 && costWord(tasks.reduce((sum, { cost }) => sum + cost, 0)),
  ].filter(Boolean);
  item.description = facts.join(" · ");
  item.iconPath = STATE_ICON[CHILD_STATES.find((state) => counts[state] > 0) ?? "completed"];
  item.contextValue = [
    "batch",
    running > 0 ? "active" : "ended",
    ...(tasks.some(({ finalMessageID }) => finalMessageID !== undefined) ? ["answered"] : []),
  ].join(" ");
  item.accessibilityInformation = { label: enumerate([vscode.l10n.t("Batch"), label, ...facts]) };
  return item;
}

/** The descriptions or their common beginning; if they share too little, the number of tasks. */
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

/** The scheme of the URIs that give tasks their badges. */
const TASK_SCHEME = "asyncagents-task";

/** What a child's row shows in addition to the child itself. */
export interface Surroundings {
  /** Milliseconds since 1970. */
  readonly now: number;
  /** Whether the row has child rows. */
  readonly isParent: boolean;
  readonly descendants: DescendantCounts;
}

/** The icon for each state. */
const STATE_ICON: Readonly<Record<ChildState, vscode.ThemeIcon>> = {
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

/** It is unknown how the subagent ended. */
const IDLE_ICON = icon("check", "descriptionForeground");
/** The subagent has no output yet. */
const NEW_ICON = icon("circle-outline", "descriptionForeground");

/** The row of a task, or of a subagent launched elsewhere. */
export function childItem(child: Child, around: Surroundings): vscode.TreeItem {
  const { now, isParent } = around;
  const name = title(child.description);
  const item = new vscode.TreeItem(
    name,
    !isParent
      ? vscode.TreeItemCollapsibleState.None
      : around.descendants.running > 0
        ? vscode.TreeItemCollapsibleState.Expanded
        : vscode.TreeItemCollapsibleState.Collapsed,
  );
  item.id = child.id;
  const descendants = descendantWords(around.descendants, isRunning(child));
  const doing = activity(child);
  const [shared, limit] = isTask(child) ? [collisionWords(child), limitWord(child)] : [];
  const who = [child.agent && title(child.agent), isTask(child) ? undefined : "OpenCode"];
  const numbers = [toolCount(toolCalls(child)), costWord(child.cost)];
  // Views are narrow, so facts that affect the user's next step come first.
  item.description = [
    descendants,
    ...marks(child),
    shared,
    limit,
    doing,
    ...who,
    ...numbers,
    rowTime(child, now),
  ]
    .filter(Boolean)
    .join(" · ");
  // Without arguments: the editor drops those of a row that is being redrawn, so a click at that moment would be lost.
  item.command = { command: SHOW_SELECTED, title: vscode.l10n.t("Show Output") };
  item.iconPath = childIcon(child);
  item.contextValue = contextWords(child).join(" ");
  if (isTask(child)) item.resourceUri = taskUri(child);
  item.accessibilityInformation = {
    // Leaves out the time and tool calls of running tasks: a screen reader would repeat the row at each change.
    label: enumerate([
      name,
      statusWord(child),
      descendants,
      ...marks(child),
      shared,
      limit,
      ...who,
      doing,
      ...(isRunning(child) ? [] : [...numbers, elapsed(child, now)]),
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

/** The words that the menus' `when` clauses match. */
function contextWords(child: Child): readonly string[] {
  const common = [
    isRunning(child) ? "active" : "ended",
    child.status,
    ...(waitsForUser(child) ? ["waiting"] : []),
    ...(isAnswered(child) ? ["answered"] : []),
  ];
  if (!isTask(child)) return ["subagent", ...common];
  return [
    "task",
    ...common,
    ...(child.status === "error" || child.status === "cancelled" ? ["retryable"] : []),
    ...(child.isForked ? ["forked"] : []),
    ...(child.worktree ? ["isolated"] : []),
    // The status `resumed` already adds this word, which means that the task was resumed at least once.
    ...(child.resumeCount > 0 && child.status !== "resumed" ? ["resumed"] : []),
  ];
}

function icon(id: string, color: string): vscode.ThemeIcon {
  return new vscode.ThemeIcon(id, new vscode.ThemeColor(color));
}

/** Badges of tasks: `R` resumed, `F` forked, `RF` both. The URI contains these facts, so the badge changes with it. */
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
