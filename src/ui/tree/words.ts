import { basename } from "node:path";
import * as vscode from "vscode";
import { percentOf, type LimitUse } from "../../engine/limit.ts";
import { excerpt } from "../../engine/fork/excerpt.ts";
import { isRunning, isTask, type Child } from "../../engine/subagent.ts";
import type { Task, TaskWorktree, ToolUse } from "../../engine/task.ts";
import { Formatter } from "../../protocol/format.ts";
import { title as oneTitle } from "../plain-text.ts";
import {
  CHILD_STATES,
  countStates,
  isQueuedChild,
  type ChildState,
  type DescendantCounts,
} from "./family.ts";

export const format = new Formatter(vscode.env.language);

const MINUTE = 60_000;

/** Characters of a tool's title, or of another task's description, in a row. */
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

/** The number of tasks in a state: `2 need you`. */
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

/** `1 needs you`, `5 running`, `3 queued` and so on. */
export function stateCounts(children: readonly Child[]): readonly string[] {
  const started = children.filter((child) => !isQueuedChild(child));
  const counts = countStates(started);
  const queued = children.length - started.length;
  return [
    ...CHILD_STATES.flatMap((state) => (counts[state] > 0 ? [countWord(state, counts[state])] : [])),
    ...(queued > 0 ? [vscode.l10n.t("{0} queued", queued)] : []),
  ];
}

export function statusWord({ status }: Child): string {
  if (status === "resumed") return vscode.l10n.t("working on follow-up");
  return status === "idle" ? vscode.l10n.t("idle") : stateWord(status);
}

/** What the descendants of a row do. Running ones aren't mentioned if the row itself is running. */
export function descendantWords({ waiting, running }: DescendantCounts, works: boolean): string | undefined {
  if (waiting === 1) return vscode.l10n.t("1 subagent needs you");
  if (waiting > 1) return vscode.l10n.t("{0} subagents need you", waiting);
  if (running === 0 || works) return undefined;
  return running === 1
    ? vscode.l10n.t("1 subagent running")
    : vscode.l10n.t("{0} subagents running", running);
}

/**
 * Marks a task as resumed, forked or isolated.
 * @param work what it has changed, in place of the mark that it is isolated: rows have room for one of them
 */
export function marks(child: Child, work?: string): readonly string[] {
  if (!isTask(child)) return [];
  return [
    // The others have badges.
    ...(child.worktree ? [work ?? worktreeMark(child.worktree)] : []),
    ...(child.resumeCount > 0 ? [vscode.l10n.t("(resumed)")] : []),
    ...(child.isForked ? [vscode.l10n.t("(forked)")] : []),
  ];
}

/** That a task works in a worktree, or what became of its work. */
function worktreeMark({ outcome }: TaskWorktree): string {
  switch (outcome) {
    case undefined:
      return vscode.l10n.t("(worktree)");
    case "broughtBack":
      return vscode.l10n.t("(brought back)");
    case "branched":
      return vscode.l10n.t("(branch created)");
    case "discarded":
      return vscode.l10n.t("(discarded)");
  }
}

/** What a child is doing; undefined if nothing. */
export function activity({ progress }: Child): string | undefined {
  if (!progress) return undefined;
  switch (progress.phase) {
    case "queued":
      return vscode.l10n.t("queued");
    case "setting-up":
      return vscode.l10n.t("setting up");
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

/** A tool and what it does; a path is shortened to its end, which says more than its beginning. */
export function toolWords({ tool, title = "" }: ToolUse): string {
  const line = oneTitle(title);
  const isPath = line.includes("/") && !line.includes(" ");
  const shown = isPath ? line.split("/").slice(-2).join("/") : line;
  return [oneTitle(tool), excerpt(shown, TITLE_LENGTH)].filter(Boolean).join(" ");
}

/** The duration of the current or last turn. */
export function elapsed(child: Child, now: number): string {
  const end = isRunning(child) ? now : (child.endedAt ?? now);
  return format.duration(end - child.startedAt);
}

/**
 * The time in a row: the duration of the last turn, or of the current turn in whole minutes, once there is one. A row
 * that is redrawn every second loses clicks on its menu, because VS Code passes no row to the command during a redraw.
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

/** The tool calls of all turns. */
export function toolCalls({ toolCalls, progress }: Child): number {
  return toolCalls + (progress?.toolCalls ?? 0);
}

/** US dollars; undefined if nothing was spent. */
export function costWord(cost: number): string | undefined {
  return cost > 0 ? format.cost(cost) : undefined;
}

/** The files that both this task and others changed; undefined if none are known. */
export function collisionWords({ collisions = [] }: Pick<Task, "collisions">): string | undefined {
  const [one, ...others] = collisions;
  if (!one) return undefined;
  if (others.length > 0) return vscode.l10n.t("files also changed by {0} tasks", collisions.length);
  const files = fileWords(one.paths, one.paths.length);
  return vscode.l10n.t('{0} also changed by "{1}"', files, excerpt(oneTitle(one.description), TITLE_LENGTH));
}

/** What an isolated task has changed: `3 files +42 −7`; undefined if nothing, or if that isn't known. */
export function workWords({ work }: Pick<Task, "work">): string | undefined {
  if (!work || work.files === 0) return undefined;
  const { files, added, removed } = work;
  return files === 1
    ? vscode.l10n.t("1 file +{0} −{1}", added, removed)
    : vscode.l10n.t("{0} files +{1} −{2}", files, added, removed);
}

/** With what the work of an isolated task conflicts, and in which file; undefined if with nothing. */
export function conflictWords({ work }: Pick<Task, "work">): string | undefined {
  const [one, ...others] = work?.conflicts ?? [];
  if (!one) return undefined;
  if (others.length > 0) return vscode.l10n.t("conflicts with {0} others", others.length + 1);
  const files = fileWords(one.paths, one.count);
  return one.task
    ? vscode.l10n.t(
        'conflicts in {0} with "{1}"',
        files,
        excerpt(oneTitle(one.task.description), TITLE_LENGTH),
      )
    : vscode.l10n.t("conflicts in {0} with the folder", files);
}

/** Letters that are written from right to left. */
const RIGHT_TO_LEFT = /[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u;
const LEFT_TO_RIGHT_MARK = "\u200E";

/**
 * The facts of a row, for display after its title. If that is written from right to left, a mark keeps their first number
 * out of it.
 */
export function factsAfter(title: string, facts: readonly (string | false | undefined)[]): string {
  const text = facts.filter(Boolean).join(" · ");
  return text !== "" && RIGHT_TO_LEFT.test(title) ? LEFT_TO_RIGHT_MARK + text : text;
}

/** How many of these conflict with something; undefined if none. */
export function inConflict(children: readonly Child[]): string | undefined {
  const count = children.filter((child) => isTask(child) && conflictWords(child)).length;
  return count === 0 ? undefined : vscode.l10n.t("{0} in conflict", count);
}

/** The name of a single file, or how many there are. */
function fileWords([path = ""]: readonly string[], count: number): string {
  return count === 1 ? oneTitle(basename(path)) : vscode.l10n.t("{0} files", count);
}

/** How close a task is to its limit; undefined if it isn't close, or if there is no limit. */
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
