import * as vscode from "vscode";
import { tokenSum } from "../../engine/budget.ts";
import { timeOf } from "../../engine/ids.ts";
import { type Child, isRunning, isTask, isCleared } from "../../engine/subagent.ts";
import type { Task } from "../../engine/task.ts";
import { parsePanelMessage } from "../../protocol/output-guard.ts";
import type { OverviewMessage, OverviewTask } from "../../protocol/overview.ts";
import type { Folders } from "../folders/folders.ts";
import { title } from "../plain-text.ts";
import { endOf } from "../tree/family.ts";
import { startOfDay } from "../tree/groups.ts";
import { connectionOf } from "./open-session.ts";
import type { PanelParts } from "./output-panels.ts";

/** Changes within this time are sent together, in milliseconds. */
const BATCH_MS = 250;

/**
 * Fills a panel with the overview, and keeps it up to date.
 * @returns what handles the messages of its page
 */
export function openOverview(
  panel: vscode.WebviewPanel,
  { known, folders }: PanelParts,
): (value: unknown) => void {
  const { webview } = panel;
  const post = (message: OverviewMessage): void => void webview.postMessage(message);
  let timer: ReturnType<typeof setTimeout> | undefined;
  const send = (): void => {
    timer = undefined;
    const now = Date.now();
    const dayStart = startOfDay(now);
    const tasks = tasksSince(folders, dayStart, now);
    if (panel.visible) post({ type: "tasks", connection: connectionOf(folders), dayStart, tasks });
  };
  const update = (): void => void (timer ??= setTimeout(send, BATCH_MS));
  const parts = vscode.Disposable.from(
    known.onDidChange(update),
    known.onDidChangeSubagent(update),
    known.onDidChangeRequests(update),
    folders.onDidChange(update),
    folders.follow(({ connector }) => connector.onDidChange(update)),
  );
  panel.onDidDispose(() => {
    clearTimeout(timer);
    parts.dispose();
  });
  return (value) => {
    const message = parsePanelMessage(value);
    if (message?.type === "ready") {
      post({ type: "setup", translations: vscode.l10n.bundle ?? {}, now: Date.now() });
      send();
    } else if (message?.type === "open-task")
      void vscode.commands.executeCommand("asyncagents.showOutput", message.id);
    else if (message?.type === "run") void vscode.commands.executeCommand("asyncagents.connect");
  };
}

/** The tasks and subagents of all sessions that were active since this time, except cleared ones. */
function tasksSince(folders: Folders, since: number, now: number): readonly OverviewTask[] {
  return folders.all.flatMap(({ known }) => {
    const waiting = new Map<string, number>();
    for (const { request, child } of known.openRequests())
      waiting.set(child.id, Math.min(waiting.get(child.id) ?? now, timeOf(request.id, now)));
    return known.sessions().flatMap(({ id }) => {
      const child = known.child(id);
      if (!child || isCleared(child)) return [];
      return isRunning(child) || endOf(child) >= since ? [overviewTask(child, waiting.get(id))] : [];
    });
  });
}

function overviewTask(child: Child, waitingSince: number | undefined): OverviewTask {
  const task = isTask(child) ? child : undefined;
  const { id, parentSessionID, description, status, progress, createdAt, startedAt, endedAt, cost } = child;
  return {
    id,
    parentID: parentSessionID,
    description: title(description),
    status,
    phase: progress?.phase,
    createdAt,
    startedAt,
    endedAt,
    spans: task?.spans,
    hasUnknownTurns: task ? hasUnknownTurns(task) : startedAt > createdAt,
    worked: task?.worked,
    waitingSince,
    cost,
    tokens: tokenSum(child.tokens),
  };
}

function hasUnknownTurns({ adoptedAt, resumeCount, spans = [] }: Task): boolean {
  return adoptedAt !== undefined || spans.filter(([what]) => what === "turn").length < resumeCount;
}
