import * as vscode from "vscode";
import type { OpenRequest } from "../engine/engine.ts";
import { formatDuration } from "../engine/notice-text.ts";
import { isTask, type Child } from "../engine/subagent.ts";
import { title } from "./plain-text.ts";
import { enumerate } from "./messages.ts";
import { sumTaken, type TakenSince } from "../engine/taken-since.ts";
import { activity, conflictWords, costWord, countWord, inConflict } from "./tree/words.ts";

/** The number of agents that are named; more are counted. */
const NAMED = 10;
const MINUTE = 60_000;
const COMPACT = new Intl.NumberFormat(undefined, { notation: "compact" });

/** What the status bar shows. */
export interface Activity {
  /** Running agents that don't wait for the user. */
  readonly working: readonly Child[];
  /** Agents that wait for others to end. */
  readonly queued: readonly Child[];
  readonly requests: readonly OpenRequest[];
  /** The number of agents that made them. */
  readonly waiting: number;
  /** Whether the connection is lost, so that this is the last known state. */
  readonly isLost: boolean;
  /** The usage of the tasks that ran today, per folder. */
  readonly today: readonly TakenSince[];
}

export interface StatusBarText {
  /** Empty if there is nothing to show. */
  readonly text: string;
  /** The text for screen readers. */
  readonly label: string;
  readonly tooltip: vscode.MarkdownString;
}

export function describe(activity: Activity): StatusBarText {
  const { working, queued, requests, isLost } = activity;
  const counts = [
    activity.waiting > 0 && countWord("waiting", activity.waiting),
    working.length > 0 && countWord("running", working.length),
    queued.length > 0 && vscode.l10n.t("{0} queued", queued.length),
    inConflict(working),
  ].filter(Boolean);
  const icon = isLost ? "$(debug-disconnect)" : requests.length > 0 ? "$(bell-dot)" : "$(sync~spin)";
  const parts = [
    isLost && vscode.l10n.t("the connection to OpenCode was lost"),
    working.length > 0 && agents(working.length),
    queued.length > 0 && queuedAgents(queued.length),
    requests.length > 0 && waiting(requests.length),
    inConflict(working),
  ];
  return {
    text: counts.length === 0 ? "" : `${icon} ${vscode.l10n.t("Agents: {0}", enumerate(counts))}`,
    label: vscode.l10n.t("Async Agents: {0}", enumerate(parts)),
    tooltip: tooltip(activity),
  };
}

function agents(count: number): string {
  return count === 1 ? vscode.l10n.t("1 agent running") : vscode.l10n.t("{0} agents running", count);
}

function queuedAgents(count: number): string {
  return count === 1 ? vscode.l10n.t("1 agent queued") : vscode.l10n.t("{0} agents queued", count);
}

function waiting(count: number): string {
  return count === 1
    ? vscode.l10n.t("1 request waiting for you")
    : vscode.l10n.t("{0} requests waiting for you", count);
}

function tooltip({ working, queued, requests, isLost, today: parts }: Activity): vscode.MarkdownString {
  const today = sumTaken(parts);
  const markdown = new vscode.MarkdownString();
  // Text written by agents is never treated as Markdown.
  const list = (heading: string, children: readonly Child[]): void => {
    if (children.length === 0) return;
    markdown.appendMarkdown(`**${heading}**\n\n`);
    for (const child of children.slice(0, NAMED))
      markdown.appendMarkdown("- ").appendText(line(child)).appendMarkdown("\n");
    const more = children.length - NAMED;
    if (more > 0) markdown.appendMarkdown(`- ${vscode.l10n.t("and {0} more", more)}\n`);
    markdown.appendMarkdown("\n");
  };
  if (isLost)
    markdown.appendMarkdown(
      `${vscode.l10n.t("The connection to OpenCode was lost; this may be out of date.")}\n\n`,
    );
  list(
    vscode.l10n.t("Waiting for you"),
    requests.map(({ child }) => child),
  );
  list(vscode.l10n.t("Running"), working);
  list(vscode.l10n.t("Queued"), queued);
  if (today.tasks > 0) {
    markdown.appendMarkdown("---\n\n").appendText(dayWords(today));
    if (today.launchedBefore > 0) markdown.appendMarkdown("  \n").appendText(beforeWords(today));
  }
  return markdown;
}

/** `Today: 12 tasks, $1.23, 456K tokens, 34 m of work`. */
function dayWords({ tasks, cost, tokens, worked }: TakenSince): string {
  const { input, output, reasoning, cacheRead, cacheWrite } = tokens;
  const total = input + output + reasoning + cacheRead + cacheWrite;
  const facts = [
    tasks === 1 ? vscode.l10n.t("1 task") : vscode.l10n.t("{0} tasks", tasks),
    costWord(cost),
    total > 0 && vscode.l10n.t("{0} tokens", COMPACT.format(total)),
    // In whole minutes, because the tooltip isn't updated while nothing happens.
    worked >= MINUTE && vscode.l10n.t("{0} of work", formatDuration(Math.floor(worked / MINUTE) * MINUTE)),
  ];
  return vscode.l10n.t("Today: {0}", facts.filter(Boolean).join(", "));
}

/** Sessions report only their total usage, so usage before today is included. */
function beforeWords({ launchedBefore }: TakenSince): string {
  return launchedBefore === 1
    ? vscode.l10n.t("1 of them was launched before today; its total includes earlier use.")
    : vscode.l10n.t(
        "{0} of them were launched before today; their totals include earlier use.",
        launchedBefore,
      );
}

function line(child: Child): string {
  const { description, agent } = child;
  const conflict = isTask(child) && conflictWords(child);
  return title([description, agent, activity(child), conflict].filter(Boolean).join(" · "));
}
