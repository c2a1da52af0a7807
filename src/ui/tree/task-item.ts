import * as vscode from "vscode";
import { formatDuration } from "../../engine/notice-text.ts";
import type { Child } from "../../engine/subagent.ts";
import { isActive, isUntold, shortID, type Phase, type Task, type TaskStatus } from "../../engine/task.ts";

/** The scheme of the URIs by which tasks get their badges. */
export const TASK_SCHEME = "asyncagents-task";

const STATUS_ICON: Readonly<Record<TaskStatus, vscode.ThemeIcon>> = {
  running: icon("sync~spin", "charts.blue"),
  resumed: icon("sync~spin", "charts.blue"),
  completed: icon("pass", "testing.iconPassed"),
  error: icon("error", "testing.iconFailed"),
  cancelled: icon("circle-slash", "testing.iconSkipped"),
};

const PHASE_ICON: Readonly<Partial<Record<Phase, vscode.ThemeIcon>>> = {
  queued: icon("watch", "testing.iconQueued"),
  retrying: icon("history", "charts.yellow"),
  stalled: icon("warning", "list.warningForeground"),
  "needs-permission": icon("shield", "list.warningForeground"),
  "needs-answer": icon("question", "list.warningForeground"),
};

/** How a task looks in the tree at the time `now` (milliseconds since 1970). */
export function taskItem(task: Task, now: number): vscode.TreeItem {
  const item = new vscode.TreeItem(task.description, vscode.TreeItemCollapsibleState.None);
  item.id = task.id;
  item.description = [...marks(task), task.agent, activity(task, now), elapsed(task, now)]
    .filter(Boolean)
    .join(" · ");
  item.iconPath = (task.progress && PHASE_ICON[task.progress.phase]) ?? STATUS_ICON[task.status];
  item.contextValue = contextWords(task).join(" ");
  item.resourceUri = taskUri(task);
  item.accessibilityInformation = {
    // Without the time of what still runs: a reader would say it anew every second.
    label: [
      task.description,
      statusWord(task),
      ...marks(task),
      task.agent,
      activity(task, now),
      isActive(task) ? undefined : elapsed(task, now),
    ]
      .filter(Boolean)
      .join(", "),
  };
  return item;
}

/** All facts of a task, shown on hover. */
export function taskTooltip(task: Task, now: number): vscode.MarkdownString {
  const tooltip = new vscode.MarkdownString(undefined, true);
  tooltip.appendMarkdown("**").appendText(task.description).appendMarkdown("**\n\n");
  const rows: readonly (readonly [string, string | undefined])[] = [
    [vscode.l10n.t("Status"), [statusWord(task), activity(task, now)].filter(Boolean).join(", ")],
    [vscode.l10n.t("Agent"), task.agent],
    [vscode.l10n.t("Model"), task.model && `${task.model.providerID}/${task.model.modelID}`],
    [vscode.l10n.t("Time"), elapsed(task, now)],
    [vscode.l10n.t("Tool calls"), toolCalls(task)],
    [
      vscode.l10n.t("Recent tools"),
      task.progress?.recentTools.map(({ tool, title }) => title ?? tool).join(", "),
    ],
    [vscode.l10n.t("Tokens"), tokens(task)],
    [vscode.l10n.t("Cost"), task.cost > 0 ? `$${task.cost.toFixed(4)}` : undefined],
    [vscode.l10n.t("Error"), task.error?.message],
    [
      vscode.l10n.t("Session not told yet"),
      task.notice.state === "pending" ? task.notice.lastError : undefined,
    ],
    [vscode.l10n.t("ID"), shortID(task.id)],
  ];
  for (const [name, value] of rows) if (value) tooltip.appendText(`${name}: ${value}`).appendMarkdown("  \n");
  return tooltip;
}

export function taskUri(task: Task): vscode.Uri {
  return vscode.Uri.from({
    scheme: TASK_SCHEME,
    path: `/${task.id}`,
    query: [task.resumeCount > 0 ? "resumed" : "", task.isForked ? "forked" : ""].filter(Boolean).join("&"),
  });
}

export function statusWord(task: Task): string {
  switch (task.status) {
    case "running":
      return vscode.l10n.t("running");
    case "resumed":
      return vscode.l10n.t("being resumed");
    case "completed":
      return vscode.l10n.t("completed");
    case "error":
      return vscode.l10n.t("failed");
    case "cancelled":
      return vscode.l10n.t("cancelled");
  }
}

function marks(task: Task): readonly string[] {
  return [
    ...(task.resumeCount > 0 ? [vscode.l10n.t("(resumed)")] : []),
    ...(task.isForked ? [vscode.l10n.t("(forked)")] : []),
  ];
}

/** What a child at work is doing, in words. */
export function activity({ progress }: Pick<Child, "progress">, now: number): string | undefined {
  if (!progress) return undefined;
  switch (progress.phase) {
    case "queued":
      return vscode.l10n.t("queued");
    case "starting":
      return vscode.l10n.t("starting");
    case "thinking":
      return vscode.l10n.t("thinking");
    case "streaming":
      return vscode.l10n.t("writing");
    case "tool":
      return progress.recentTools.findLast(({ status }) => status === "running" || status === "pending")
        ?.tool;
    case "retrying":
      return progress.retry
        ? vscode.l10n.t("retry in {0}", formatDuration(progress.retry.next - now))
        : vscode.l10n.t("waiting to retry");
    case "needs-permission":
      return vscode.l10n.t("needs permission");
    case "needs-answer":
      return vscode.l10n.t("needs an answer");
    case "stalled":
      return vscode.l10n.t("stalled");
  }
}

function elapsed(task: Task, now: number): string {
  return formatDuration(
    (task.endedAt !== undefined && !isActive(task) ? task.endedAt : now) - task.startedAt,
  );
}

function tokens({ tokens }: Task): string | undefined {
  const total = tokens.input + tokens.output + tokens.reasoning + tokens.cacheRead + tokens.cacheWrite;
  return total > 0 ? total.toLocaleString() : undefined;
}

function toolCalls({ toolCalls, progress }: Task): string | undefined {
  const total = toolCalls + (progress?.toolCalls ?? 0);
  return total > 0 ? String(total) : undefined;
}

function contextWords(task: Task): readonly string[] {
  return [
    "task",
    isActive(task) ? "active" : "ended",
    task.status,
    ...(task.status === "error" || task.status === "cancelled" ? ["retryable"] : []),
    ...(task.progress?.phase === "needs-permission" || task.progress?.phase === "needs-answer"
      ? ["waiting"]
      : []),
    ...(isUntold(task) ? ["untold"] : []),
    ...(task.isForked ? ["forked"] : []),
    // The status has this word too; here it says that the task was resumed at least once.
    ...(task.resumeCount > 0 && task.status !== "resumed" ? ["resumed"] : []),
  ];
}

function icon(id: string, color: string): vscode.ThemeIcon {
  return new vscode.ThemeIcon(id, new vscode.ThemeColor(color));
}
