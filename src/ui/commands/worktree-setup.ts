import * as vscode from "vscode";
import { Refusal } from "../../engine/errors.ts";
import { sentence } from "../../engine/sentence.ts";
import { requireFolder } from "../folders/folders.ts";
import { pickIsolated } from "../worktrees/places.ts";
import { askForSetup } from "../worktrees/remedies.ts";
import type { PromptContext, ServerContext } from "./command.ts";

/**
 * Asks whether the setup command of the folder's worktrees may run.
 * @param sessionID a session of the folder, by default of the current one
 */
export async function allowSetup({ folders }: ServerContext, sessionID?: unknown): Promise<void> {
  const folder = (typeof sessionID === "string" && folders.of(sessionID)) || requireFolder(folders);
  if (folder.settings.setupCommand() === undefined)
    throw new Refusal(
      "invalid-argument",
      sentence("There is no setup command. Enter one in the setting asyncagents.isolation.setup."),
    );
  await askForSetup(folder);
}

/** Opens what the setup command of a task's worktree printed. */
export async function openSetupOutput(context: PromptContext, argument: unknown): Promise<void> {
  const picked = await pickIsolated(context, argument, vscode.l10n.t("Open Setup Output"));
  if (!picked) return;
  const { task, folder } = picked;
  const output = await folder.calls.setupOutput(task.id);
  if (output === undefined) throw new Refusal("unavailable", sentence("No setup command ran for this task."));
  await context.openText(vscode.l10n.t("Setup of {0}.log", task.description), output);
}
