import * as vscode from "vscode";
import { isRunning, isTask, type Child } from "../../engine/subagent.ts";
import { shortID, type NoticeState, type Task, type TokenUsage } from "../../engine/task.ts";
import type { Tasks } from "../folders/all-tasks.ts";
import { plainMarkdown } from "../plain-text.ts";
import { enumerate, translate } from "../messages.ts";
import { batchLabel, type BatchNode } from "./items.ts";
import { batchMembers, isQueuedChild } from "./family.ts";
import {
  activity,
  limitAmounts,
  limitWord,
  costWord,
  elapsed,
  format,
  marks,
  stateCounts,
  statusWord,
  toolCalls,
  toolWords,
  workWords,
} from "./words.ts";

/** The number of files that are named per collision. */
const NAMED_FILES = 5;

/** The name of a fact, and its value if known. */
type Fact = readonly [name: string, value: string | undefined];

/** The tooltip with all facts about a task, or a subagent launched elsewhere. */
export function childTooltip(known: Tasks, id: string, now: number): vscode.MarkdownString | undefined {
  const child = known.child(id);
  if (!child) return undefined;
  const { model } = child;
  const isQueued = isQueuedChild(child);
  const status = [!isQueued && statusWord(child), activity(child), ...marks(child)]
    .filter(Boolean)
    .join(" · ");
  return tooltip(child.description, status, [
    [
      [vscode.l10n.t("Error"), child.error && translate(child.error.sentence ?? child.error.message)],
      [
        vscode.l10n.t("Remedy"),
        isTask(child) && child.error
          ? vscode.l10n.t(
              "Retry launches a new task with the same prompt; Continue launches one that carries on from its conversation.",
            )
          : undefined,
      ],
    ],
    isTask(child) ? conflictFacts(child) : [],
    isTask(child) ? collisionFacts(child) : [],
    [
      [vscode.l10n.t("Agent"), child.agent],
      [
        vscode.l10n.t("Model"),
        model && [model.providerID, model.modelID, model.variant].filter(Boolean).join("/"),
      ],
      [vscode.l10n.t("Launched by"), launcher(child)],
      ...(isTask(child) ? taskFacts(known, child) : []),
      [isQueued ? vscode.l10n.t("Queued since") : vscode.l10n.t("Started"), format.moment(child.startedAt)],
      [
        isQueued
          ? vscode.l10n.t("Queued for")
          : isRunning(child)
            ? vscode.l10n.t("Running for")
            : vscode.l10n.t("Duration"),
        elapsed(child, now),
      ],
    ],
    [
      [vscode.l10n.t("Tool calls"), toolCallWords(child)],
      [vscode.l10n.t("Recent tools"), child.progress?.recentTools.map(toolWords).join(", ")],
      [vscode.l10n.t("Tokens"), tokenWords(child.tokens)],
      [vscode.l10n.t("Cost"), costWord(child.cost)],
      [vscode.l10n.t("Cost including subtasks"), costWithDescendants(known, child)],
    ],
    [[vscode.l10n.t("ID"), shortID(child.id)]],
  ]);
}

/** The tooltip with the shared facts of a batch, and the totals of its tasks. */
export function batchTooltip(known: Tasks, { parentSessionID, batchID }: BatchNode): vscode.MarkdownString {
  const tasks = batchMembers(known, parentSessionID, batchID);
  const { cost, tokens, duration, toolCalls } = known.totals(tasks.map(({ id }) => id));
  return tooltip(batchLabel(tasks), stateCounts(tasks).join(" · "), [
    [
      [vscode.l10n.t("Duration"), format.duration(duration)],
      [vscode.l10n.t("Tool calls"), toolCalls > 0 ? String(toolCalls) : undefined],
      [vscode.l10n.t("Tokens"), tokenWords(tokens)],
      [vscode.l10n.t("Cost including subtasks"), costWord(cost)],
      limitFact(tasks.find(({ nearLimit }) => nearLimit?.scope === "batch")),
    ],
    [[vscode.l10n.t("Batch"), batchID]],
  ]);
}

function tooltip(
  title: string,
  status: string,
  sections: readonly (readonly Fact[])[],
): vscode.MarkdownString {
  const texts = sections
    .map((facts) =>
      facts
        .flatMap(([name, value]) => (value ? [`**${plainMarkdown(name)}**: ${plainMarkdown(value)}`] : []))
        .join("  \n"),
    )
    .filter(Boolean);
  return new vscode.MarkdownString(
    [`**${plainMarkdown(title)}**  \n${plainMarkdown(status)}`, ...texts].join("\n\n---\n\n"),
  );
}

function taskFacts(known: Tasks, task: Task): readonly Fact[] {
  const source = task.forkedFrom;
  const batch = batchMembers(known, task.parentSessionID, task.batchID);
  return [
    [vscode.l10n.t("Adopted"), task.adoptedAt === undefined ? undefined : format.moment(task.adoptedAt)],
    [vscode.l10n.t("Worktree"), task.worktree?.directory],
    [vscode.l10n.t("Changes"), workWords(task)],
    [vscode.l10n.t("Forked from"), source && (known.session(source)?.title ?? shortID(source))],
    [
      vscode.l10n.t("Batch"),
      batch.length > 1 ? vscode.l10n.t("{0} ({1} tasks)", task.batchID, batch.length) : undefined,
    ],
    [vscode.l10n.t("Parent session notified"), noticeWords(task.notice)],
    limitFact(task),
  ];
}

function conflictFacts({ work }: Task): readonly Fact[] {
  return (work?.conflicts ?? []).map(({ task, paths }) => [
    task
      ? vscode.l10n.t('Conflicts with "{0}"', task.description)
      : vscode.l10n.t("Conflicts with the folder"),
    fileNames(paths),
  ]);
}

function fileNames(paths: readonly string[]): string {
  return enumerate([...paths.slice(0, NAMED_FILES), paths.length > NAMED_FILES && "…"]);
}

function collisionFacts({ collisions = [] }: Task): readonly Fact[] {
  if (collisions.length === 0) return [];
  return [
    ...collisions.map(({ description, paths }): Fact => {
      const names = paths.map((path) => vscode.workspace.asRelativePath(path));
      return [vscode.l10n.t('Also changed by "{0}"', description), fileNames(names)];
    }),
    [
      vscode.l10n.t("Shell commands"),
      vscode.l10n.t("What they change is seen only afterwards, by Show Changes."),
    ],
  ];
}

/** `85% of its limit ($0.85 of $1.00)`. */
function limitFact(task: Pick<Task, "nearLimit"> = {}): Fact {
  const words = limitWord(task);
  return [
    vscode.l10n.t("Usage"),
    words && task.nearLimit && vscode.l10n.t("{0} ({1})", words, limitAmounts(task.nearLimit)),
  ];
}

function launcher(child: Child): string {
  const isOthers = !isTask(child) || child.adoptedAt !== undefined;
  if (isOthers) return vscode.l10n.t("an agent or a user in OpenCode");
  return child.launchedBy === "person" ? vscode.l10n.t("you") : vscode.l10n.t("an agent");
}

function noticeWords(notice: NoticeState): string | undefined {
  switch (notice.state) {
    case "none":
      return undefined;
    case "pending":
      return [vscode.l10n.t("not yet"), notice.lastError].filter(Boolean).join(": ");
    case "delivered":
      return format.moment(notice.at);
    case "skipped":
      return vscode.l10n.t("no: {0}", translate({ template: notice.reason, values: [] }));
  }
}

function toolCallWords(child: Child): string | undefined {
  const total = toolCalls(child);
  if (total === 0) return undefined;
  const counts = Object.entries(child.progress?.toolCounts ?? {}).sort(([, a], [, b]) => b - a);
  const names = counts.map(([tool, count]) => (count > 1 ? `${tool} × ${count}` : tool)).join(", ");
  return names ? `${total} (${names})` : String(total);
}

function tokenWords({ input, output, reasoning, cacheRead, cacheWrite }: TokenUsage): string | undefined {
  if (input + output + reasoning + cacheRead + cacheWrite === 0) return undefined;
  const words: readonly (readonly [number, string])[] = [
    [input, vscode.l10n.t("{0} in", format.number(input))],
    [output, vscode.l10n.t("{0} out", format.number(output))],
    [reasoning, vscode.l10n.t("{0} for reasoning", format.number(reasoning))],
    [cacheRead, vscode.l10n.t("{0} read from cache", format.number(cacheRead))],
    [cacheWrite, vscode.l10n.t("{0} written to cache", format.number(cacheWrite))],
  ];
  return enumerate(words.map(([count, word]) => count > 0 && word));
}

/** Undefined if descendants, cleared ones included, have cost nothing. */
function costWithDescendants(known: Tasks, { id, cost }: Child): string | undefined {
  const { cost: total } = known.totals([id]);
  return total > cost ? costWord(total) : undefined;
}
