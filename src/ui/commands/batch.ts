import * as vscode from "vscode";
import { Refusal } from "../../engine/errors.ts";
import type { AgentInfo } from "../../engine/server-model.ts";
import { isActive, type Task } from "../../engine/task.ts";
import { showIfLong } from "../long-work.ts";
import type { Command, CommandContext } from "./command.ts";
import { launchTask, readArguments, type LaunchArguments } from "./launch.ts";
import { BatchNode } from "../tree/nodes.ts";
import { pickTask } from "./pick-task.ts";

/** What a program passes: the tasks of the batch, and its ID if it has one already. */
interface BatchArguments {
  readonly tasks: readonly LaunchArguments[];
  readonly batch_id?: string | undefined;
}

export const launchBatch: Command = {
  id: "asyncagents.launchBatch",
  async run(context, argument) {
    await context.ensureConnected();
    const input = argument === undefined ? await askBatch(context) : readBatch(argument);
    return input && launchAll(context, input);
  },
};

export const cancelBatch: Command = {
  id: "asyncagents.cancelBatch",
  isAboutTask: true,
  async run(context, argument) {
    const { tasks, session } = context;
    if (argument instanceof BatchNode) return tasks.cancelBatch(argument.batchID, argument.parentSessionID);
    // A program may give the batch itself instead of one of its tasks.
    const batchID = batchOf(argument);
    if (batchID !== undefined) return tasks.cancelBatch(batchID, session.id);
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

/** All or as many as can be: one that is refused does not take back those launched before it. */
async function launchAll(
  context: CommandContext,
  { tasks, batch_id }: BatchArguments,
): Promise<readonly Task[]> {
  const [first, ...rest] = tasks;
  if (!first) throw new Refusal("empty-prompt", "The batch is empty; give at least one prompt.");
  // The first one names the batch for the others.
  const launched = [await launchTask(context, { ...first, batch_id })];
  const batchID = launched[0]?.batchID;
  return [
    ...launched,
    ...(await Promise.all(rest.map((input) => launchTask(context, { ...input, batch_id: batchID })))),
  ];
}

async function askBatch({ engine }: CommandContext): Promise<BatchArguments | undefined> {
  const prompts = selectedTexts() ?? (await askPrompts());
  if (!prompts) return undefined;
  const items = engine.agents().then((agents) => agents.map(agentItem));
  const agents = await vscode.window.showQuickPick(items, {
    title: vscode.l10n.t("Launch Batch (2/2): Agents"),
    placeHolder: vscode.l10n.t("Each prompt goes to each of the agents chosen"),
    canPickMany: true,
    ignoreFocusOut: true,
  });
  if (!agents || agents.length === 0) return undefined;
  const tasks = prompts.flatMap((prompt) => agents.map(({ label }) => ({ prompt, agent: label })));
  const launch = vscode.l10n.t("Launch {0} Tasks", tasks.length);
  const sure =
    tasks.length <= MANY_TASKS ||
    (await vscode.window.showWarningMessage(
      vscode.l10n.t("{0} tasks are about to be launched.", tasks.length),
      { modal: true },
      launch,
    )) === launch;
  return sure ? { tasks } : undefined;
}

function agentItem({ name, description }: AgentInfo, index: number): vscode.QuickPickItem {
  return { label: name, detail: description ?? "", picked: index === 0 };
}

/** So many tasks at once are asked about: each one costs. */
const MANY_TASKS = 10;

/** One prompt for each selection of the active editor, where there are several. */
function selectedTexts(): readonly string[] | undefined {
  const editor = vscode.window.activeTextEditor;
  const texts = (editor?.selections ?? [])
    .map((each) => editor?.document.getText(each).trim() ?? "")
    .filter(Boolean);
  return texts.length > 1 ? texts : undefined;
}

async function askPrompts(): Promise<readonly string[] | undefined> {
  const text = await vscode.window.showInputBox({
    title: vscode.l10n.t("Launch Batch (1/2): Prompts"),
    prompt: vscode.l10n.t("One prompt for each task, separated by | or by lines of what you paste."),
    placeHolder: vscode.l10n.t("For example: review the parser | review the printer"),
    ignoreFocusOut: true,
    validateInput: (value) =>
      splitPrompts(value).length === 0 ? vscode.l10n.t("Say what the tasks are to do.") : undefined,
  });
  return text === undefined ? undefined : splitPrompts(text);
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
