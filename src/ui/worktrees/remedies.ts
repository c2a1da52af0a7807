import * as vscode from "vscode";
import { Refusal } from "../../engine/errors.ts";
import type { TaskCommands } from "../../engine/task-commands.ts";
import { isAgreed } from "../dialogs.ts";
import type { Folder, Folders } from "../folders/folders.ts";
import { nameOf, ownerOfWorktree, type IsolatedTask } from "./owner.ts";

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
  const detail = vscode.l10n.t("It is made again from its last kept state.");
  if (!(await isAgreed(question, vscode.l10n.t("Make Worktree Again"), detail))) return false;
  await remake(folder, task);
  return true;
}

/** Makes the worktree of a task again, which includes its setup. */
export async function remake(folder: Folder, { id }: IsolatedTask): Promise<void> {
  const title = vscode.l10n.t("Making the worktree…");
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
