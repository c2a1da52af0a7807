import * as vscode from "vscode";
import { isGenerated } from "../engine/batch-ids.ts";
import { settingOf } from "../engine/budget.ts";
import { BUDGET_EXCEEDED, percentOf } from "../engine/limit.ts";
import type { Disposable } from "../engine/event.ts";
import type { Refused } from "../engine/folder-changes.ts";
import { excerpt, oneLine } from "../engine/fork/excerpt.ts";
import type { Clock, Logger } from "../engine/ports.ts";
import { INTERRUPTED_ERROR, isActive, type Collision, type Task } from "../engine/task.ts";
import type { TaskCommands } from "../engine/task-commands.ts";
import type { Tasks } from "./folders/all-tasks.ts";
import { offer, offerWarning, openSettings } from "./dialogs.ts";
import { showError, enumerate, translate } from "./messages.ts";
import { withoutLinks } from "./plain-text.ts";
import type { NotifyUser } from "./settings.ts";
import { limitAmounts } from "./tree/words.ts";
import { type News, newsWords } from "./while-away.ts";
import { formatDuration } from "../engine/notice-text.ts";
import type { Folder, FolderOpener, Folders } from "./folders/folders.ts";
import { askForSetup } from "./worktrees/isolated-task.ts";

/** What task notifications need. */
export interface NotificationContext {
  readonly folders: Pick<Folders, "of">;
  readonly known: Pick<Tasks, "get" | "active" | "list" | "onDidChange" | "onDidWarn" | "onDidRefuse">;
  readonly tasks: Pick<TaskCommands, "cancel" | "cancelBatch">;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly notifyUser: () => NotifyUser;
  readonly showOutput: (taskID: string) => void;
  readonly showTasks: () => void;
  /** Whether the user can see this task's output. */
  readonly isShown: (taskID: string) => boolean;
  /** Whether the user can see the list of tasks that this one is in. */
  readonly isListShown: (task: Task) => boolean;
}

/** Tasks of a batch that were created within this time of each other, in milliseconds, were launched together. */
const LAUNCHED_AS_ONE_MS = 5_000;

/** Ends within this time of the first are reported together, in milliseconds, while other tasks of the user run. */
const GATHER_MS = 10_000;
/** Ends that arrive together are fired one by one, when the others already count as ended; in milliseconds. */
const SETTLE_MS = 500;

/** How long a failure that is shown holds back others, in milliseconds: the editor doesn't report that it was hidden. */
const FAILURE_MS = 60_000;

/** Characters of a task's description in a notification. */
const TASK_SHOWN = 60;

/** Notifies the user that tasks they launched have ended. */
export class EndNotifications implements Disposable {
  /** Ends to report: each a task, or several that were launched together. */
  private pending: (readonly Task[])[] = [];
  /** Those of them that wait for the failure on screen. */
  private held: ReadonlySet<readonly Task[]> = new Set();
  /** When the first of the others was added, in milliseconds since 1970. */
  private since = 0;
  private timer: Disposable | undefined;
  /** When the failure on screen was shown, in milliseconds since 1970; further ones wait, so that they don't pile up. */
  private failureAt: number | undefined;
  /** The batches whose end was reported, by the IDs of their tasks: their last ends may arrive together. */
  private readonly reported = new Set<string>();

  constructor(private readonly context: NotificationContext) {}

  /**
   * Notifies the user of the end of a task, together with other ends. Tasks that were launched together are reported when
   * the last one ends.
   * @param siblings the tasks with the same parent at that time, if the task may have been launched together with some
   */
  show(task: Task, siblings: readonly Task[]): void {
    const batch = launchedWith(siblings, task);
    if (batch.length > 1) {
      const key = batch.map(({ id }) => id).join();
      if (batch.some(({ status }) => status === "running") || this.reported.has(key)) return;
      this.reported.add(key);
    }
    this.add(batch.length > 1 ? batch : [task]);
  }

  /** Notifies the user of the tasks that were launched with one that is gone, if their last end was awaited. */
  leave(gone: Task, siblings: readonly Task[]): void {
    const all = [...siblings, gone].sort((a, b) => a.createdAt - b.createdAt);
    const others = launchedWith(all, gone).filter(({ id }) => id !== gone.id);
    if (others.length > 0 && !others.some(({ status }) => status === "running")) this.add(others);
  }

  private add(tasks: readonly Task[]): void {
    if (!isWanted(this.context, tasks) || this.isSeen(tasks)) return;
    const { clock, known } = this.context;
    if (this.pending.every((each) => this.held.has(each))) this.since = clock.now();
    this.pending.push(tasks);
    const others = known.active().some(({ launchedBy }) => launchedBy === "person");
    this.reportAfter(others ? this.since + GATHER_MS - clock.now() : SETTLE_MS);
  }

  dispose(): void {
    this.timer?.dispose();
  }

  private reportAfter(ms: number): void {
    this.timer?.dispose();
    this.timer = this.context.clock.after(Math.max(0, ms), () => void this.report());
  }

  private async report(): Promise<void> {
    const now = this.context.clock.now();
    const ends = this.pending.filter((tasks) => !this.isStale(tasks) && !this.isSeen(tasks));
    const held = this.failureAt === undefined ? 0 : this.failureAt + FAILURE_MS - now;
    this.pending = held > 0 ? ends.filter(hasFailed) : [];
    this.held = new Set(this.pending);
    if (this.pending.length > 0) this.reportAfter(held);
    const [first, ...others] = ends.filter((tasks) => !this.pending.includes(tasks));
    if (!first) return;
    const tasks = [first, ...others].flat();
    const isFailure = hasFailed(tasks);
    if (isFailure) this.failureAt = now;
    const [task] = tasks;
    if (task && tasks.length === 1) await showTask(this.context, task);
    // Whoever looks at the tasks sees the other failures as well.
    else if (await showSeveral(this.context, tasks, others.length === 0)) this.pending = [];
    if (!isFailure || this.failureAt !== now) return;
    this.failureAt = undefined;
    await this.report();
  }

  /** Whether the user can see the end: in the output, or, if nothing failed, in the list of tasks. */
  private isSeen(tasks: readonly Task[]): boolean {
    const { isShown, isListShown } = this.context;
    return tasks.every(({ id }) => isShown(id)) || (tasks.every(isListShown) && !hasFailed(tasks));
  }

  /** Whether all of these tasks were cleared, deleted, resumed, retried or continued since. */
  private isStale(tasks: readonly Task[]): boolean {
    const { known } = this.context;
    return tasks.every(({ id, endedAt, parentSessionID }) => {
      const task = known.get(id);
      return (
        !task ||
        task.clearedAt !== undefined ||
        task.endedAt !== endedAt ||
        isActive(task) ||
        known.list(parentSessionID).some(({ insteadOf }) => insteadOf === id)
      );
    });
  }
}

function hasFailed(tasks: readonly Task[]): boolean {
  return tasks.some(({ status }) => status === "error");
}

function isWanted({ notifyUser }: NotificationContext, tasks: readonly Task[]): boolean {
  const setting = notifyUser();
  if (setting === "never") return false;
  // Users know when they have cancelled a task.
  return hasFailed(tasks) || (setting === "always" && tasks.some(({ status }) => status !== "cancelled"));
}

async function showTask({ showOutput }: NotificationContext, task: Task): Promise<void> {
  const show = vscode.l10n.t("Show Output");
  const retry = vscode.l10n.t("Retry");
  const change = vscode.l10n.t("Change Limit");
  // With the same limit, a retry would be stopped again.
  const isStopped = task.error?.name === BUDGET_EXCEEDED;
  const choice =
    task.status === "error"
      ? await vscode.window.showErrorMessage(failure(task), show, ...(isStopped ? [change] : []), retry)
      : await vscode.window.showInformationMessage(
          vscode.l10n.t('Task "{0}" completed.', withoutLinks(task.description)),
          show,
        );
  if (choice === show) showOutput(task.id);
  if (choice === change) await openSettings("asyncagents.budget.*");
  if (choice === retry) await vscode.commands.executeCommand("asyncagents.retry", task.id);
}

/** Resolves to whether the user then went to the tasks. */
async function showSeveral(
  { showTasks }: NotificationContext,
  tasks: readonly Task[],
  isBatch: boolean,
): Promise<boolean> {
  const { showErrorMessage, showInformationMessage } = vscode.window;
  const showMessage = hasFailed(tasks) ? showErrorMessage : showInformationMessage;
  const show = vscode.l10n.t("Show Tasks");
  const isChosen = await offer(outcome(tasks, isBatch), show, showMessage);
  if (isChosen) showTasks();
  return isChosen;
}

/**
 * The task and those launched together with it. The batch ID isn't enough: tasks launched later, and retries, belong to
 * the batch as well, but get their own notification.
 */
function launchedWith(siblings: readonly Task[], task: Task): readonly Task[] {
  const batch = siblings.filter(
    ({ batchID, launchedBy, insteadOf }) =>
      batchID === task.batchID && launchedBy === "person" && insteadOf === undefined,
  );
  const isApart = (one: Task | undefined, other: Task | undefined): boolean =>
    !one || !other || other.createdAt - one.createdAt > LAUNCHED_AS_ONE_MS;
  const at = batch.findIndex(({ id }) => id === task.id);
  if (at < 0) return [];
  // Nothing is added to these later. Their tasks can be far apart, as making a worktree may take long.
  if (isGenerated(task.batchID)) return batch;
  let [from, to] = [at, at];
  while (!isApart(batch[from - 1], batch[from])) from--;
  while (!isApart(batch[to], batch[to + 1])) to++;
  return batch.slice(from, to + 1);
}

function failure({ description, error }: Task): string {
  const reason = error ? translate(error.sentence ?? error.message) : vscode.l10n.t("no reason given");
  return withoutLinks(vscode.l10n.t('Task "{0}" failed: {1}', description, reason));
}

/** `Batch of 5: 4 completed, 1 failed`. */
function outcome(tasks: readonly Task[], isBatch: boolean): string {
  const count = (...statuses: readonly Task["status"][]): number =>
    tasks.filter(({ status }) => statuses.includes(status)).length;
  if (tasks.every(({ error }) => error?.name === INTERRUPTED_ERROR))
    return vscode.l10n.t("The OpenCode server stopped while {0} tasks were running.", tasks.length);
  // A task that was resumed since had completed before.
  const completed = count("completed", "resumed");
  const [failed, cancelled] = [count("error"), count("cancelled")];
  const parts = enumerate([
    completed > 0 && vscode.l10n.t("{0} completed", completed),
    failed > 0 && vscode.l10n.t("{0} failed", failed),
    cancelled > 0 && vscode.l10n.t("{0} cancelled", cancelled),
  ]);
  return isBatch
    ? vscode.l10n.t("Batch of {0}: {1}", tasks.length, parts)
    : vscode.l10n.t("{0} tasks have ended: {1}", tasks.length, parts);
}

/** Warns that a task or its batch has nearly reached its limit, while there is time to raise the limit or cancel. */
export async function showNearLimit(context: NotificationContext, task: Task): Promise<void> {
  const { nearLimit } = task;
  if (!nearLimit) return;
  const isBatch = nearLimit.scope === "batch";
  const show = isBatch ? vscode.l10n.t("Show Tasks") : vscode.l10n.t("Show Output");
  const change = vscode.l10n.t("Change Limit");
  const cancel = isBatch ? vscode.l10n.t("Cancel Batch") : vscode.l10n.t("Cancel Task");
  const name = excerpt(oneLine(task.description), TASK_SHOWN);
  const facts = [name, percentOf(nearLimit), limitAmounts(nearLimit)] as const;
  const message = isBatch
    ? vscode.l10n.t('The batch of task "{0}" has used {1}% of its limit: {2}.', ...facts)
    : vscode.l10n.t('Task "{0}" has used {1}% of its limit: {2}.', ...facts);
  const choice = await vscode.window.showWarningMessage(withoutLinks(message), show, change, cancel);
  if (choice === change) await openSettings(settingOf(nearLimit.limit));
  else if (choice === cancel) await stop(context, task, isBatch);
  else if (choice === show && isBatch) context.showTasks();
  else if (choice === show) context.showOutput(task.id);
}

async function stop(
  { tasks, logger }: NotificationContext,
  { id, batchID, parentSessionID }: Task,
  isBatch: boolean,
): Promise<void> {
  try {
    await (isBatch ? tasks.cancelBatch(batchID, parentSessionID) : tasks.cancel(id));
  } catch (error) {
    await showError(error, logger);
  }
}

/** Says that two tasks changed the same files, and offers to show the changes. */
export async function showCollision(
  { id, description }: Task,
  { description: other, paths }: Collision,
): Promise<void> {
  const show = vscode.l10n.t("Show Changes");
  const names = [other, description].map((name) => excerpt(oneLine(name), TASK_SHOWN));
  const [path = ""] = paths;
  const message =
    paths.length === 1
      ? vscode.l10n.t(
          'Tasks "{0}" and "{1}" both changed {2}.',
          ...names,
          vscode.workspace.asRelativePath(path),
        )
      : vscode.l10n.t('Tasks "{0}" and "{1}" both changed {2} files.', ...names, paths.length);
  if (await offerWarning(message, show)) await vscode.commands.executeCommand("asyncagents.showChanges", id);
}

/** Says what an agent was refused, and how the user can allow it. */
export async function showRefused(
  { folders, showOutput, logger }: Pick<NotificationContext, "folders" | "showOutput" | "logger">,
  refused: Refused,
): Promise<void> {
  if (refused.kind === "setup") {
    const message = vscode.l10n.t(
      "An agent couldn't launch a task in a worktree, because the setup command isn't allowed. Allow it, then ask the agent to try again.",
    );
    if (!(await offerWarning(message, vscode.l10n.t("Allow Setup Command…")))) return;
    const folder = folders.of(refused.sessionID);
    if (folder) await askForSetup(folder).catch((error: unknown) => showError(error, logger));
    return;
  }
  const { task, depth } = refused;
  const show = vscode.l10n.t("Show Output");
  const message = vscode.l10n.t(
    'OpenCode didn\'t allow task "{0}" to use a subagent because of its depth limit. Set "subagent_depth": {1} in OpenCode\'s configuration, then restart the server.',
    excerpt(oneLine(task.description), TASK_SHOWN),
    depth,
  );
  if (await offerWarning(message, show)) showOutput(task.id);
}

export interface NewsContext {
  /** The folder's name, if there are several folders. */
  readonly folderName: string | undefined;
  readonly showTasks: () => void;
}

/** Reports in one notification what happened while no window had the folder open. */
export async function showNews({ folderName, showTasks }: NewsContext, news: News): Promise<void> {
  const words = enumerate(newsWords(news).map(translate));
  const text =
    folderName === undefined
      ? vscode.l10n.t("While you were away: {0}", words)
      : vscode.l10n.t("While you were away from {0}: {1}", folderName, words);
  const show = vscode.l10n.t("Show");
  const { showWarningMessage, showInformationMessage } = vscode.window;
  const showMessage = news.failed + news.waiting > 0 ? showWarningMessage : showInformationMessage;
  if (await offer(text, show, showMessage)) showTasks();
}

/**
 * Notifies the user that tasks are still running in a folder that was removed from the workspace, and what happens to
 * them.
 * @param isOwnServer whether the extension started the server, which thus stops once the work has ended
 */
export async function showClosed(
  { uri, name, settings }: Pick<Folder, "uri" | "name" | "settings">,
  running: readonly Task[],
  isOwnServer: boolean,
  openFolder: FolderOpener,
  logger: Logger,
): Promise<void> {
  const stop = running.length === 1 ? vscode.l10n.t("Cancel Task") : vscode.l10n.t("Cancel Tasks");
  const add = vscode.l10n.t("Add the Folder Again");
  const text = withoutLinks(message(name, running.length, isOwnServer, settings.keepWorking()));
  const choice = await vscode.window.showWarningMessage(text, stop, add);
  if (choice === add) {
    const { workspaceFolders = [] } = vscode.workspace;
    vscode.workspace.updateWorkspaceFolders(workspaceFolders.length, 0, { uri, name });
  } else if (choice === stop) {
    const folder = openFolder({ uri, name, index: -1 });
    try {
      // If the extension's own server is no longer found, no task is running.
      await (isOwnServer ? folder.connector.adopt() : folder.connector.ensureConnected());
      const working = new Set(folder.known.active().map(({ id }) => id));
      const cancels = running.filter(({ id }) => working.has(id)).map(({ id }) => folder.calls.cancel(id));
      const failed = (await Promise.allSettled(cancels)).find((one) => one.status === "rejected");
      if (failed) throw failed.reason;
    } catch (error) {
      void showError(error, logger);
    } finally {
      folder.dispose();
    }
  }
}

function message(name: string, count: number, isOwnServer: boolean, keepWorkingMs: number): string {
  const what =
    count === 1
      ? vscode.l10n.t("A task is still running in {0}, which was removed from the workspace.", name)
      : vscode.l10n.t(
          "{0} tasks are still running in {1}, which was removed from the workspace.",
          count,
          name,
        );
  return `${what} ${whatFollows(isOwnServer, keepWorkingMs)}`;
}

function whatFollows(isOwnServer: boolean, keepWorkingMs: number): string {
  if (!isOwnServer) return vscode.l10n.t("Work continues. To see results, open the folder again.");
  return keepWorkingMs > 0
    ? vscode.l10n.t("Work continues for up to {0} without a window.", formatDuration(keepWorkingMs))
    : vscode.l10n.t("Work stops in a minute unless the folder is opened again.");
}
