import * as vscode from "vscode";
import { Refusal } from "../../engine/errors.ts";
import { sentence } from "../../engine/sentence.ts";
import { isTask } from "../../engine/subagent.ts";
import { requireFolder, type Folder } from "../folders/folders.ts";
import type { PromptContext, ServerContext } from "./command.ts";
import { pickConnected } from "./pick.ts";

/** Asks whether the setup command of the folder's worktrees may run. */
export async function allowSetup({ folders }: ServerContext): Promise<void> {
  const folder = requireFolder(folders);
  if (folder.settings.setupCommand() === undefined)
    throw new Refusal(
      "invalid-argument",
      sentence("There is no setup command. Enter one in the setting asyncagents.isolation.setup."),
    );
  await askForSetup(folder);
}

/** Runs a launch; if it is refused because of the setup command, asks the user, and runs it again if it is allowed. */
export async function withSetupAllowed<T>(folder: Folder, launch: () => Promise<T>): Promise<T> {
  try {
    return await launch();
  } catch (error) {
    if (!(error instanceof Refusal) || error.code !== "setup-not-allowed" || !(await askForSetup(folder)))
      throw error;
    return launch();
  }
}

async function askForSetup(folder: Folder): Promise<boolean> {
  const command = folder.settings.setupCommand();
  if (command === undefined) return false;
  const allow = vscode.l10n.t("Allow");
  const question = vscode.l10n.t("Allow this command to run in each new worktree of {0}?", folder.name);
  const detail = vscode.l10n.t(
    "{0}\n\nIt runs in your shell, outside of any permission of agents. You are asked again if it changes.",
    command,
  );
  const choice = await vscode.window.showWarningMessage(question, { modal: true, detail }, allow);
  if (choice !== allow) return false;
  await folder.allowSetup(command);
  return true;
}

/** Opens what the setup command of a task's worktree printed. */
export async function openSetupOutput(context: PromptContext, argument: unknown): Promise<void> {
  const picked = await pickConnected(context, argument, {
    title: vscode.l10n.t("Open Setup Output"),
    accepts: (child) => isTask(child) && child.worktree !== undefined,
    none: vscode.l10n.t("No task has a worktree."),
  });
  if (!picked) return;
  const { child, folder } = picked;
  const output = await folder.calls.setupOutput(child.id);
  if (output === undefined) throw new Refusal("unavailable", sentence("No setup command ran for this task."));
  await context.openText(vscode.l10n.t("Setup of {0}.log", child.description), output);
}
