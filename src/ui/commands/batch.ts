import * as vscode from "vscode";
import { Refusal } from "../../engine/errors.ts";
import { isActive, type Task } from "../../engine/task.ts";
import { connectedFolder } from "../folders/connected-folder.ts";
import { folderTitle } from "../folders/folder-title.ts";
import { showIfLong } from "../long-work.ts";
import { humanMessage } from "../human-error.ts";
import { joinSections } from "../prompt-editor/sections.ts";
import { BACK } from "../quick-input.ts";
import { askPrompt } from "./ask-prompt.ts";
import type { Command, CommandContext, LaunchContext } from "./command.ts";
import { launchTogether, PartlyLaunched } from "./launch-plan.ts";
import { launchReviewed } from "./launch-reviewed.ts";
import { launchTask, readArguments, type LaunchArguments } from "./launch.ts";
import { BatchNode } from "../tree/nodes.ts";
import { pickTask } from "./pick-task.ts";

/** The name under which prompts that were written and not launched are kept. */
const DRAFT = "batch";

/** What a program passes: the tasks of the batch, and its ID if it has one already. */
interface BatchArguments {
  readonly tasks: readonly LaunchArguments[];
  readonly batch_id?: string | undefined;
}

export const launchBatch: Command = {
  async run(context, argument) {
    if (argument !== undefined) return launchAll(context, readBatch(argument));
    return launchAsking({ ...context, folder: await connectedFolder(context.folders) });
  },
};

export const cancelBatch: Command = {
  isAboutTask: true,
  async run(context, argument) {
    const { tasks, folders } = context;
    if (argument instanceof BatchNode) return tasks.cancelBatch(argument.batchID, argument.parentSessionID);
    // A program may give the batch itself instead of one of its tasks.
    const batchID = batchOf(argument);
    if (batchID !== undefined) return tasks.cancelBatch(batchID, folders.current?.session.id);
    const task = await pickTask(context, argument, {
      title: vscode.l10n.t("Cancel Batch"),
      accepts: isActive,
      none: vscode.l10n.t("No task is running."),
    });
    return (
      task &&
      showIfLong(vscode.l10n.t("Cancelling the batch"), tasks.cancelBatch(task.batchID, task.parentSessionID))
    );
  },
};

function batchOf(argument: unknown): string | undefined {
  return typeof argument === "object" &&
    argument !== null &&
    "batch_id" in argument &&
    typeof argument.batch_id === "string"
    ? argument.batch_id
    : undefined;
}

async function launchAll(
  context: CommandContext,
  { tasks: inputs, batch_id }: BatchArguments,
): Promise<readonly Task[]> {
  await context.folders.opened;
  // The person may turn to another folder before the last task is launched.
  const current = context.folders.current?.uri.toString();
  const { tasks, failure } = await launchTogether(
    inputs,
    (input, batchID) => launchTask(context, { ...input, folder: input.folder ?? current, batch_id: batchID }),
    batch_id,
  );
  if (failure) throw failure;
  return tasks;
}

/** Asks for the prompts, where they are not selected in the editor, then for the agents. */
async function launchAsking(context: LaunchContext): Promise<readonly Task[] | undefined> {
  const { memory, logger } = context;
  const selected = selectedTexts();
  let problem: string | undefined;
  for (;;) {
    const prompts = selected ?? (await askPrompts(context, problem));
    if (!prompts) return undefined;
    const draft = selected ? undefined : { name: DRAFT, text: memory.draft(DRAFT) };
    try {
      const step = { ...(selected ? {} : { step: 2, totalSteps: 2 }), canGoBack: !selected };
      const { result } = await launchReviewed(context, { agents: [], splits: true }, prompts, step, draft);
      if (result === BACK) continue;
      return result;
    } catch (error) {
      if (!draft) throw error;
      logger.error("The batch was not launched.", error);
      if (error instanceof PartlyLaunched && memory.draft(DRAFT) === draft.text)
        memory.keepDraft(DRAFT, error.prompts.join(" | "));
      problem = humanMessage(error);
    }
  }
}

/** One prompt for each selection of the active editor, where there are several. */
function selectedTexts(): readonly string[] | undefined {
  const editor = vscode.window.activeTextEditor;
  const texts = (editor?.selections ?? [])
    .map((each) => editor?.document.getText(each).trim() ?? "")
    .filter(Boolean);
  return texts.length > 1 ? texts : undefined;
}

/** Undefined: the person changed their mind, or writes on in an editor. */
async function askPrompts(
  { memory, promptEditors, folders, folder }: LaunchContext,
  problem: string | undefined,
): Promise<readonly string[] | undefined> {
  const answer = await askPrompt(memory, {
    title: folderTitle(folders, folder, vscode.l10n.t("Launch Batch: Prompts")),
    step: 1,
    totalSteps: 2,
    hint: vscode.l10n.t("One prompt for each task, separated by |. In an editor: by lines of ---."),
    placeholder: vscode.l10n.t("For example: review the parser | review the printer"),
    draft: DRAFT,
    problem,
    isEmpty: (text) => splitPrompts(text).length === 0,
  });
  if (answer?.goes !== "editor") return answer && splitPrompts(answer.text);
  await promptEditors.open(
    { kind: "launch", plan: { agents: [], splits: true, folder: folder.uri.toString() } },
    joinSections(splitPrompts(answer.text)),
  );
  memory.dropDraft(DRAFT, answer.text);
  return undefined;
}

function splitPrompts(text: string): readonly string[] {
  return text
    .split(/\r?\n|\|/)
    .map((prompt) => prompt.trim())
    .filter(Boolean);
}

function readBatch(argument: unknown): BatchArguments {
  const given = argument as Partial<Record<keyof BatchArguments, unknown>> | null;
  if (typeof given !== "object" || given === null || !Array.isArray(given.tasks))
    throw new Refusal("invalid-argument", "The argument must be an object with a list of tasks.");
  if (given.batch_id !== undefined && typeof given.batch_id !== "string")
    throw new Refusal("invalid-argument", '"batch_id" must be a string.');
  return { tasks: given.tasks.map(readArguments), batch_id: given.batch_id };
}
