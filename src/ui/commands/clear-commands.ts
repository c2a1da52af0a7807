import * as vscode from "vscode";
import { Refusal } from "../../engine/errors.ts";
import { sentence } from "../../engine/sentence.ts";
import { type Child, isCleared, isRunning, isTask } from "../../engine/subagent.ts";
import type { Task } from "../../engine/task.ts";
import { isAgreed } from "../dialogs.ts";
import { allBelow, ancestors, finishedTasks, runningDescendants } from "../tree/family.ts";
import { offerUndo } from "../worktrees/bring-back.ts";
import { isIsolated, isThere, nameOf } from "../worktrees/isolated-task.ts";
import { discardWork } from "../worktrees/worktree-commands.ts";
import type { PromptContext, TaskContext } from "./command.ts";
import { pickChildren } from "./pick.ts";
import { forEach } from "./row-commands.ts";

export async function clear(context: TaskContext, argument: unknown, selection: unknown): Promise<void> {
  const title = vscode.l10n.t("Clear Task");
  const accepts = (child: Child): boolean => isTask(child) && !isCleared(child);
  await clearAll(context, await pickChildren(context, argument, selection, { title, accepts }));
}

export async function clearFinished(context: TaskContext): Promise<void> {
  const { known, folders } = context;
  await clearAll(
    context,
    folders.sessionIDs.flatMap((id) => finishedTasks(known, id)),
  );
}

/** Clears tasks immediately and offers to undo it; asks first if a running task would be cancelled. */
async function clearAll(context: TaskContext, asked: readonly Child[]): Promise<void> {
  const { known, tasks, logger } = context;
  // Running descendants of a cleared task would continue out of sight.
  const working = (): readonly string[] =>
    asked
      .flatMap(({ id }) => [known.child(id), ...runningDescendants(known, id)])
      .flatMap((task) => (task && isRunning(task) ? task.id : []));
  let agreed = new Set<string>();
  // Others may have been resumed while the user was asked.
  while (working().some((id) => !agreed.has(id))) {
    agreed = new Set(working());
    const question =
      agreed.size === 1
        ? vscode.l10n.t("1 task is still running. Cancel it and clear it from the list?")
        : vscode.l10n.t(
            "{0} tasks are still running. Cancel them and clear them from the list?",
            agreed.size,
          );
    if (!(await isAgreed(question, vscode.l10n.t("Cancel and Clear")))) return;
  }
  const ids = new Set(asked.map(({ id }) => id));
  const isBelow = (task: Child): boolean => ancestors(known, task).some((id) => ids.has(id));
  const cleared: Task[] = [];
  // A task that is told of the end of a subtask would begin again, so those above are cleared first.
  for (const some of [asked.filter((task) => !isBelow(task)), asked.filter(isBelow)])
    cleared.push(
      ...(await forEach(context, vscode.l10n.t("Clearing tasks…"), some, ({ id }) =>
        tasks.clear(id, { cancelRunning: true }),
      )),
    );
  const [first, ...others] = cleared;
  if (!first) return;
  const message =
    others.length === 0
      ? vscode.l10n.t('Cleared "{0}" from the list. Its session is kept.', nameOf(first))
      : vscode.l10n.t("Cleared {0} tasks from the list. Their sessions are kept.", cleared.length);
  const undo = async (): Promise<void> =>
    void (await Promise.all(cleared.map(({ id }) => tasks.restore(id))));
  offerUndo(message, undo, logger);
}

/** Puts cleared tasks back into the list. */
export async function restore(context: PromptContext, argument: unknown, selection: unknown): Promise<void> {
  const title = vscode.l10n.t("Restore Task");
  const cleared = await pickCleared(context, argument, selection, title);
  const [first] = await forEach(context, vscode.l10n.t("Restoring tasks…"), cleared, ({ id }) =>
    context.tasks.restore(id),
  );
  if (first) context.reveal(first.id);
}

/** Deletes cleared tasks for good. The work in a task's worktree is discarded first, which asks by itself. */
export async function deleteTask(context: TaskContext, argument: unknown, selection: unknown): Promise<void> {
  const title = vscode.l10n.t("Delete Task");
  const cleared = await pickCleared(context, argument, selection, title);
  const [first, ...others] = cleared;
  if (!first) return;
  const question =
    others.length === 0
      ? vscode.l10n.t('Permanently delete "{0}"?', nameOf(first))
      : vscode.l10n.t("Permanently delete {0} tasks?", cleared.length);
  const detail = vscode.l10n.t(
    "This also deletes the conversation and all subtasks from OpenCode, and can't be undone.",
  );
  if (!(await isAgreed(question, vscode.l10n.t("Delete"), detail))) return;
  const offers: { readonly of: Child; readonly undo: () => void }[] = [];
  let deleted: readonly Child[] = [];
  try {
    for (const of of cleared.filter((child) => !isBack(context, child)))
      for (const { id } of [of, ...allBelow(context.known, of.id)]) {
        const holdsWork = async (): Promise<boolean> => {
          const child = context.known.child(id);
          return !!child && isIsolated(child) && !child.worktree.outcome && (await isThere(child));
        };
        if (!(await holdsWork())) continue;
        const discarded = await discardWork(context, id);
        if (discarded)
          offers.push({ of, undo: () => offerUndo(discarded.message, discarded.undo, context.logger) });
        if (await holdsWork()) return;
      }
    deleted = await forEach(context, vscode.l10n.t("Deleting tasks…"), cleared, async (child) => {
      if (isBack(context, child))
        throw new Refusal(
          "wrong-status",
          sentence('"{0}" is in the list again, so it wasn\'t deleted.', nameOf(child)),
        );
      await context.tasks.clear(child.id, { cancelRunning: true, deleteSession: true });
      return child;
    });
  } finally {
    // Those that stay: the user decided against the work of the next one, or something failed.
    for (const { of, undo } of offers) if (!deleted.includes(of)) undo();
  }
}

/** Whether a task that was to be deleted was restored meanwhile, such as in another window. */
function isBack({ known }: TaskContext, asked: Child): boolean {
  const now = known.child(asked.id);
  return isCleared(asked) && now !== undefined && !isCleared(now);
}

function pickCleared(
  context: TaskContext,
  argument: unknown,
  selection: unknown,
  title: string,
): Promise<readonly Child[]> {
  const none = vscode.l10n.t("No cleared tasks are selected.");
  return pickChildren(context, argument, selection, { title, accepts: isCleared, none });
}
