import { basename } from "node:path";
import * as vscode from "vscode";
import { percentOf, type LimitUse } from "../../engine/limit.ts";
import { excerpt } from "../../engine/fork/excerpt.ts";
import { isRunning, isTask, type Child } from "../../engine/subagent.ts";
import type { Task, ToolUse } from "../../engine/task.ts";
import { Formatter } from "../../protocol/format.ts";
import { title as oneTitle } from "../plain-text.ts";
import type { DescendantCounts, ChildState } from "./family.ts";

export const format = new Formatter(vscode.env.language);

const MINUTE = 60_000;

/** Characters of what a tool does, or of another task's description, that stand in a row. */
const TITLE_LENGTH = 32;

export function stateWord(state: ChildState): string {
  switch (state) {
    case "waiting":
      return vscode.l10n.t("needs you");
    case "running":
      return vscode.l10n.t("running");
    case "completed":
      return vscode.l10n.t("completed");
    case "error":
      return vscode.l10n.t("failed");
    case "cancelled":
      return vscode.l10n.t("cancelled");
  }
}

/** How many are in a state: `2 need you`. */
export function countWord(state: ChildState, count: number): string {
  switch (state) {
    case "waiting":
      return count === 1 ? vscode.l10n.t("1 needs you") : vscode.l10n.t("{0} need you", count);
    case "running":
      return vscode.l10n.t("{0} running", count);
    case "completed":
      return vscode.l10n.t("{0} completed", count);
    case "error":
      return vscode.l10n.t("{0} failed", count);
    case "cancelled":
      return vscode.l10n.t("{0} cancelled", count);
  }
}

export function statusWord({ status }: Child): string {
  if (status === "resumed") return vscode.l10n.t("being resumed");
  return status === "idle" ? vscode.l10n.t("idle") : stateWord(status);
}

/** What goes on below a row that may be closed; that work goes on below one that works goes without saying. */
export function descendantWords({ waiting, running }: DescendantCounts, works: boolean): string | undefined {
  if (waiting === 1) return vscode.l10n.t("1 subagent needs you");
  if (waiting > 1) return vscode.l10n.t("{0} subagents need you", waiting);
  if (running === 0 || works) return undefined;
  return running === 1
    ? vscode.l10n.t("1 subagent running")
    : vscode.l10n.t("{0} subagents running", running);
}

/** How a child came to be what it is. */
export function marks(child: Child): readonly string[] {
  if (!isTask(child)) return [];
  return [
    ...(child.resumeCount > 0 ? [vscode.l10n.t("(resumed)")] : []),
    ...(child.isForked ? [vscode.l10n.t("(forked)")] : []),
  ];
}

/** What a child is doing; undefined: nothing. */
export function activity({ progress }: Child): string | undefined {
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
    case "tool": {
      const tool = progress.recentTools.findLast(
        ({ status }) => status === "running" || status === "pending",
      );
      return tool && toolWords(tool);
    }
    case "retrying":
      return vscode.l10n.t("waiting to retry");
    case "needs-permission":
      return vscode.l10n.t("needs permission");
    case "needs-answer":
      return vscode.l10n.t("needs an answer");
    case "stalled":
      return vscode.l10n.t("stalled");
  }
}

/** A tool and what it does; of a path its end, which tells more than where it begins. */
export function toolWords({ tool, title = "" }: ToolUse): string {
  const line = oneTitle(title);
  const isPath = line.includes("/") && !line.includes(" ");
  const shown = isPath ? line.split("/").slice(-2).join("/") : line;
  return [oneTitle(tool), excerpt(shown, TITLE_LENGTH)].filter(Boolean).join(" ");
}

/** The time of the present or last turn. */
export function elapsed(child: Child, now: number): string {
  const end = isRunning(child) ? now : (child.endedAt ?? now);
  return format.duration(end - child.startedAt);
}

/**
 * The time of a row: of the last turn, or of the present one in whole minutes, none within the first. A row that is redrawn
 * each second loses the clicks on its menu, as VS Code passes no row to a command while it redraws.
 */
export function rowTime(child: Child, now: number): string | undefined {
  if (!isRunning(child)) return elapsed(child, now);
  const minutes = Math.floor((now - child.startedAt) / MINUTE);
  return minutes > 0 ? format.duration(minutes * MINUTE) : undefined;
}

export function toolCount(count: number): string | undefined {
  if (count === 0) return undefined;
  return count === 1 ? vscode.l10n.t("1 tool") : vscode.l10n.t("{0} tools", count);
}

/** Tool calls of all turns. */
export function toolCalls({ toolCalls, progress }: Child): number {
  return toolCalls + (progress?.toolCalls ?? 0);
}

/** US dollars; undefined: none were spent. */
export function costWord(cost: number): string | undefined {
  return cost > 0 ? format.cost(cost) : undefined;
}

/** Which files a task changed that others had changed; undefined: none that is known. */
export function collisionWords({ collisions = [] }: Pick<Task, "collisions">): string | undefined {
  const [one, ...others] = collisions;
  if (!one) return undefined;
  if (others.length > 0) return vscode.l10n.t("files also changed by {0} tasks", collisions.length);
  const [path = ""] = one.paths;
  const files =
    one.paths.length === 1 ? oneTitle(basename(path)) : vscode.l10n.t("{0} files", one.paths.length);
  return vscode.l10n.t('{0} also changed by "{1}"', files, excerpt(oneTitle(one.description), TITLE_LENGTH));
}

/** How near a task is to its limit; undefined: not near, or there is none. */
export function limitWord({ nearLimit }: Pick<Task, "nearLimit">): string | undefined {
  if (!nearLimit) return undefined;
  return nearLimit.scope === "task"
    ? vscode.l10n.t("{0}% of its limit", percentOf(nearLimit))
    : vscode.l10n.t("{0}% of its batch's limit", percentOf(nearLimit));
}

/** `$0.85 of $1.00`. */
export function limitAmounts({ measure, used, amount }: LimitUse): string {
  switch (measure) {
    case "cost":
      return vscode.l10n.t("{0} of {1}", format.cost(used), format.cost(amount));
    case "tokens":
      return vscode.l10n.t("{0} of {1} tokens", format.number(used), format.number(amount));
    case "minutes":
      return vscode.l10n.t("{0} of {1}", format.duration(used * 60_000), format.duration(amount * 60_000));
  }
}
