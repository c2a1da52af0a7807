import { relative } from "node:path";
import * as vscode from "vscode";
import { excerpt, oneLine } from "../../engine/fork/excerpt.ts";
import { isTask, type Child } from "../../engine/subagent.ts";
import type { Task, TaskWorktree } from "../../engine/task.ts";
import type { Tasks } from "../folders/all-tasks.ts";
import { withoutLinks } from "../plain-text.ts";
import { ancestors } from "../tree/family.ts";
import { Refusal } from "../../engine/errors.ts";
import type { TaskCommands } from "../../engine/task-commands.ts";
import { isAgreed } from "../dialogs.ts";
import type { Folder, Folders } from "../folders/folders.ts";

/** Characters of a description in a message. */
const NAME_LENGTH = 80;

export type IsolatedTask = Task & { readonly worktree: TaskWorktree };

export function isIsolated(child: Child): child is IsolatedTask {
  return isTask(child) && child.worktree !== undefined;
}

/** Whether the worktree of a task still exists. */
export function isThere({ worktree }: IsolatedTask): Promise<boolean> {
  return Promise.resolve(vscode.workspace.fs.stat(vscode.Uri.file(worktree.directory))).then(
    () => true,
    () => false,
  );
}

/** The name of a task in a message. */
export function nameOf({ description }: Child): string {
  return withoutLinks(excerpt(oneLine(description), NAME_LENGTH));
}

/** The task in whose worktree an agent works. Undefined if it works in the folder. */
function ownerOfWorktree(family: Pick<Tasks, "child">, id: string): IsolatedTask | undefined {
  const child = family.child(id);
  const ids = child ? [id, ...ancestors(family, child)] : [];
  return ids.flatMap((one) => family.child(one) ?? []).find(isIsolated);
}

/** The directory of the worktree in which an agent works. Undefined if it works in the folder. */
export function worktreeDirectory(family: Pick<Tasks, "child">, id: string): string | undefined {
  return ownerOfWorktree(family, id)?.worktree.directory;
}

/** The path of a file as users see it: relative to the worktree that it is in, otherwise to the workspace. */
export function shownPath(path: string, worktree: string | undefined, includesFolder?: boolean): string {
  const below = worktree === undefined ? ".." : relative(worktree, path);
  return below.startsWith("..") ? vscode.workspace.asRelativePath(path, includesFolder) : below;
}

/**
 * Makes a call in a folder. If a worktree stands in its way and the user agrees to what helps, does that, and calls again.
 * @param sessionID the session that the call is about
 */
export async function withRemedy<T>(folder: Folder, sessionID: string, call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    if (!(error instanceof Refusal && (await isRemedied(folder, sessionID, error)))) throw error;
    return withRemedy(folder, sessionID, call);
  }
}

interface Remedied {
  readonly tasks: Pick<TaskCommands, "resume" | "retry" | "continue">;
  readonly folders: Folders;
}

/** The same commands, which go on with a task like {@link withRemedy}. */
export function remedied({ tasks, folders }: Remedied): Pick<TaskCommands, "resume" | "retry" | "continue"> {
  const at = <R>(taskID: string, call: () => Promise<R>): Promise<R> => {
    const folder = folders.of(taskID);
    return folder ? withRemedy(folder, taskID, call) : call();
  };
  return {
    resume: (taskID, ...rest) => at(taskID, () => tasks.resume(taskID, ...rest)),
    retry: (taskID) => at(taskID, () => tasks.retry(taskID)),
    continue: (taskID, ...rest) => at(taskID, () => tasks.continue(taskID, ...rest)),
  };
}

async function isRemedied(folder: Folder, sessionID: string, { code }: Refusal): Promise<boolean> {
  if (code === "setup-not-allowed") return askForSetup(folder);
  const owner = code === "worktree-gone" ? ownerOfWorktree(folder.known, sessionID) : undefined;
  return owner !== undefined && (await askToRemake(folder, owner));
}

/** Offers to make a worktree that is gone again. Resolves to whether it is there. */
export async function askToRemake(folder: Folder, task: IsolatedTask): Promise<boolean> {
  const question = vscode.l10n.t('The worktree of "{0}" no longer exists.', nameOf(task));
  const detail = vscode.l10n.t("It is recreated from its last saved state.");
  if (!(await isAgreed(question, vscode.l10n.t("Recreate Worktree"), detail))) return false;
  await remake(folder, task);
  return true;
}

/** Makes the worktree of a task again, which includes its setup. */
export async function remake(folder: Folder, { id }: IsolatedTask): Promise<void> {
  const title = vscode.l10n.t("Creating the worktree…");
  const options = { location: vscode.ProgressLocation.Notification, title, cancellable: true };
  await withRemedy(folder, id, async () =>
    vscode.window.withProgress(options, (_progress, token) => {
      const controller = new AbortController();
      token.onCancellationRequested(() => controller.abort());
      return folder.calls.remakeWorktree(id, controller.signal);
    }),
  );
}

/** Asks whether the setup command of the folder's worktrees may run. */
export async function askForSetup(folder: Folder): Promise<boolean> {
  const command = folder.settings.setupCommand();
  if (command === undefined) return false;
  const question = vscode.l10n.t("Allow this command to run in each new worktree of {0}?", folder.name);
  const detail = vscode.l10n.t(
    "{0}\n\nIt runs in your shell, and agents' permissions don't limit it. You are asked again if it changes.",
    command,
  );
  if (!(await isAgreed(question, vscode.l10n.t("Allow"), detail))) return false;
  await folder.allowSetup(command);
  return true;
}
