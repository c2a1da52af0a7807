import * as vscode from "vscode";
import { type ConnectionState, describeFailure } from "../../engine/connection.ts";
import { type Child, isRunning, isTask, isCleared } from "../../engine/subagent.ts";
import type { Phase, Task } from "../../engine/task.ts";
import { SHOW_SELECTED } from "../commands/internal-commands.ts";
import type { Tasks } from "../folders/all-tasks.ts";
import type { Folder, Folders } from "../folders/folders.ts";
import type { Group } from "./groups.ts";
import type { ListOptions } from "./list-options.ts";
import { title } from "../plain-text.ts";
import { batchName, batchWords } from "./titles.ts";
import { enumerate, translate } from "../messages.ts";
import {
  type DescendantCounts,
  CHILD_STATES,
  type ChildState,
  countStates,
  isAnswered,
  isQueuedChild,
  runningDescendants,
  stateOf,
  waitsForUser,
} from "./family.ts";
import {
  activity,
  descendantWords,
  limitWord,
  collisionWords,
  conflictWords,
  inConflict,
  costWord,
  countWord,
  elapsed,
  factsAfter,
  marks,
  rowTime,
  stateCounts,
  statusWord,
  toolCalls,
  toolCount,
  workWords,
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

/** The rows of one group under the active session of a folder. */
export class GroupNode extends TreeNode {
  constructor(
    readonly group: Group,
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

/** What is being launched, until its task has a row or the launch fails. */
export class LaunchingNode extends TreeNode {
  constructor(
    readonly title: string,
    readonly folder: Folder,
  ) {
    super();
  }
}

export type Node = FolderNode | GroupNode | ChildNode | BatchNode | UnreadableNode | LaunchingNode;

/** The ID that the editor uses for the row. */
export function rowID(node: Node): string {
  if (node instanceof FolderNode) return node.uri;
  if (node instanceof BatchNode) return `${node.parentSessionID}/${node.batchID}`;
  if (node instanceof GroupNode) return `${node.parentSessionID}/${node.group}`;
  if (node instanceof LaunchingNode) return node.title;
  return node instanceof ChildNode ? node.id : node.task.sessionID;
}

/** The folder that a row belongs to. Undefined if the folder was removed, or if this isn't a row. */
export function folderOf(folders: Folders, node: unknown): Folder | undefined {
  if (node instanceof FolderNode) return folders.all.find(({ uri }) => uri.toString() === node.uri);
  if (node instanceof ChildNode) return folders.of(node.id);
  if (node instanceof BatchNode || node instanceof GroupNode) return folders.of(node.parentSessionID);
  return node instanceof UnreadableNode ? folders.of(node.task.sessionID) : undefined;
}

const { Collapsed, Expanded, None } = vscode.TreeItemCollapsibleState;

/** The row of a folder: its activity, or why there is none. */
export function folderItem(
  folder: Folder,
  known: Tasks,
  { showsCleared }: Pick<ListOptions, "showsCleared">,
  isLaunching: boolean,
): vscode.TreeItem {
  const { uri, session, connector } = folder;
  const name = title(folder.name);
  const { state } = connector;
  const item = new vscode.TreeItem(name);
  item.id = uri.toString();
  const { id } = session;
  const hasRows =
    isLaunching ||
    (id !== undefined &&
      [known.children(id), known.unreadable(id), showsCleared ? known.cleared(id) : []].flat().length > 0);
  // Expanding a folder that isn't connected connects it, because whoever expands it wants to see its tasks.
  item.collapsibleState = hasRows ? Expanded : state.kind === "connected" ? None : Collapsed;
  const words = [
    stateWords(state),
    state.kind === "connected" && !hasRows && vscode.l10n.t("no tasks"),
    id !== undefined && runningWords(known, id),
    title(session.session?.title ?? ""),
  ];
  item.description = factsAfter(name, words);
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

function runningWords(known: Tasks, sessionID: string): string {
  return enumerate(stateCounts(runningDescendants(known, sessionID)));
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

/** The row of a batch, which covers all of its tasks, including those hidden by a filter. */
export function batchItem(
  node: BatchNode,
  tasks: readonly Task[],
  descendants: DescendantCounts,
  unread = 0,
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
  item.id = rowID(node);
  const facts = [
    counts.waiting > 0 && countWord("waiting", counts.waiting),
    descendantWords(descendants, running > 0),
    vscode.l10n.t("{0} of {1} done", tasks.length - running, tasks.length),
    unread > 0 && vscode.l10n.t("{0} unread", unread),
    inConflict(tasks),
    ...(["error", "cancelled"] as const).map((state) => counts[state] > 0 && countWord(state, counts[state])),
    // While tasks run, the cost would change with every answer, and redraw the row with all its children.
    running === 0 && costWord(tasks.reduce((sum, { cost }) => sum + cost, 0)),
  ];
  item.description = factsAfter(label, facts);
  item.iconPath = STATE_ICON[CHILD_STATES.find((state) => counts[state] > 0) ?? "completed"];
  item.contextValue = [
    "batch",
    running > 0 ? "active" : "ended",
    ...(tasks.some(({ finalMessageID }) => finalMessageID !== undefined) ? ["answered"] : []),
  ].join(" ");
  if (unread > 0) item.resourceUri = taskUri(rowID(node), ["unread"]);
  item.accessibilityInformation = { label: enumerate([vscode.l10n.t("Batch"), label, ...facts]) };
  return item;
}

/** The descriptions or their common beginning; if they share too little, the number of tasks. */
export function batchLabel(tasks: readonly Task[]): string {
  const words = batchWords(tasks);
  if (words.length === 0) return vscode.l10n.t("Batch of {0}", tasks.length);
  const label = batchName(words);
  if (label.endsWith("…") || tasks.every(({ description }) => title(description) === label)) return label;
  return `${label} …`;
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
  /** The short title. */
  readonly title: string;
  /** Whether the user has not opened its result yet. */
  readonly isUnread: boolean;
  /** Its place in the queue, counted from 1; undefined if it isn't queued. */
  readonly place: number | undefined;
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
    around.title,
    !isParent
      ? vscode.TreeItemCollapsibleState.None
      : around.descendants.running > 0
        ? vscode.TreeItemCollapsibleState.Expanded
        : vscode.TreeItemCollapsibleState.Collapsed,
  );
  item.id = child.id;
  const descendants = descendantWords(around.descendants, isRunning(child));
  const doing = around.place === undefined ? activity(child) : vscode.l10n.t("queued, #{0}", around.place);
  const [conflict, shared, limit, work] = isTask(child)
    ? [conflictWords(child), collisionWords(child), limitWord(child), workWords(child)]
    : [];
  const isQueued = isQueuedChild(child);
  const launcher = isTask(child) ? undefined : "OpenCode";
  const cost = costWord(child.cost);
  // Views are narrow, so facts that affect the user's next step come first; others are in the tooltip.
  const facts = [shared, limit, doing, rowTime(child, now), cost, launcher];
  item.description = factsAfter(around.title, [descendants, conflict, ...marks(child, work), ...facts]);
  // Without arguments: the editor drops those of a row that is being redrawn, so a click at that moment would be lost.
  item.command = { command: SHOW_SELECTED, title: vscode.l10n.t("Show Output") };
  item.iconPath = childIcon(child);
  item.contextValue = contextWords(child).join(" ");
  if (isTask(child)) item.resourceUri = taskUri(child.id, badgeWords(child, around));
  item.accessibilityInformation = {
    // Leaves out the time and tool calls of running tasks: a screen reader would repeat the row at each change.
    label: enumerate([
      name,
      isQueued ? doing : statusWord(child),
      descendants,
      conflict,
      ...marks(child),
      shared,
      limit,
      work,
      child.agent && title(child.agent),
      launcher,
      !isQueued && doing,
      ...(isRunning(child) ? [] : [toolCount(toolCalls(child)), cost, elapsed(child, now)]),
      around.isUnread && vscode.l10n.t("unread"),
    ]),
  };
  return item;
}

export function childIcon(child: Child): vscode.ThemeIcon {
  if (child.status === "idle") return child.tokens.output === 0 ? NEW_ICON : IDLE_ICON;
  return (child.progress && PHASE_ICON[child.progress.phase]) ?? STATE_ICON[stateOf(child)];
}

/** The words that determine the badge. */
function badgeWords(task: Task, { isUnread }: Surroundings): readonly string[] {
  return [
    ...(isUnread ? ["unread"] : []),
    ...(task.resumeCount > 0 ? ["resumed"] : []),
    ...(task.isForked ? ["forked"] : []),
  ];
}

function taskUri(id: string, words: readonly string[]): vscode.Uri {
  return vscode.Uri.from({ scheme: TASK_SCHEME, path: `/${id}`, query: words.join("&") });
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
  if (isCleared(child)) return ["cleared", ...(isAnswered(child) ? ["answered"] : [])];
  return [
    "task",
    ...common,
    ...(child.status === "error" || child.status === "cancelled" ? ["retryable"] : []),
    ...(child.isForked ? ["forked"] : []),
    // A worktree whose work is settled is removed.
    ...(child.worktree ? [child.worktree.outcome ? "isolated gone" : "isolated"] : []),
    // The status `resumed` already adds this word, which means that the task was resumed at least once.
    ...(child.resumeCount > 0 && child.status !== "resumed" ? ["resumed"] : []),
  ];
}

function icon(id: string, color: string): vscode.ThemeIcon {
  return new vscode.ThemeIcon(id, new vscode.ThemeColor(color));
}

/**
 * Badges of rows: `R` resumed, `F` forked, `RF` both, with a dot and a colour for an unread result. The editor shows two
 * characters, so an unread `RF` has the colour alone. The URI contains these facts, so the badge changes with it.
 */
export class TaskDecorations implements vscode.FileDecorationProvider {
  provideFileDecoration(uri: vscode.Uri): vscode.FileDecoration | undefined {
    if (uri.scheme !== TASK_SCHEME) return undefined;
    const words = uri.query.split("&");
    const resumed = words.includes("resumed");
    const forked = words.includes("forked");
    const unread = words.includes("unread");
    if (!resumed && !forked && !unread) return undefined;
    const origin = `${resumed ? "R" : ""}${forked ? "F" : ""}`;
    const badge = unread && origin.length < 2 ? `●${origin}` : origin;
    const tooltip = enumerate([
      unread && vscode.l10n.t("Unread"),
      resumed && vscode.l10n.t("Resumed"),
      forked && vscode.l10n.t("Forked"),
    ]);
    const color = unread ? new vscode.ThemeColor("list.highlightForeground") : undefined;
    return new vscode.FileDecoration(badge, tooltip, color);
  }
}
