import * as vscode from "vscode";
import { Refusal } from "../../engine/errors.ts";
import type { Task } from "../../engine/task.ts";
import { parseModel } from "../settings.ts";
import type { Command, CommandContext } from "./command.ts";

/** What a program passes; the names are those of the tool `asyncagents_task`. */
export interface LaunchArguments {
  readonly prompt: string;
  readonly description?: string | undefined;
  readonly agent?: string | undefined;
  readonly model?: string | undefined;
  readonly batch_id?: string | undefined;
}

const LAUNCH_ARGUMENTS: readonly string[] = ["prompt", "description", "agent", "model", "batch_id"];

export const launch: Command = {
  id: "asyncagents.launch",
  async run(context, argument) {
    return argument === undefined ? launchAsking(context) : launchTask(context, readArguments(argument));
  },
};

/** Launches under the active session, which is created if there is none. */
export async function launchTask(context: CommandContext, input: LaunchArguments): Promise<Task> {
  await context.ensureConnected();
  const { prompt, description, agent, batch_id: batchID } = input;
  const model = input.model === undefined ? undefined : parseModel(input.model);
  if (input.model !== undefined && !model)
    throw new Refusal("unknown-model", `"${input.model}" does not name a model; write it as provider/model.`);
  if (prompt.trim() === "")
    throw new Refusal("empty-prompt", "The prompt is empty; say what the task is to do.");
  const parentSessionID = await context.session.ensure();
  return context.tasks.launch({
    prompt,
    description,
    agent,
    model,
    batchID,
    parentSessionID,
    launchedBy: "person",
  });
}

async function launchAsking(context: CommandContext): Promise<Task | undefined> {
  await context.ensureConnected();
  let agent = await pickAgent(context);
  let prompt = "";
  while (agent !== undefined) {
    const answer = await askPrompt(agent, prompt);
    if (answer === undefined) return undefined;
    if (answer === "back") {
      agent = await pickAgent(context);
      continue;
    }
    prompt = answer;
    try {
      const task = await launchTask(context, { prompt, agent });
      context.reveal(task.id);
      return task;
    } catch (error) {
      void offerPromptBack(prompt);
      throw error;
    }
  }
  return undefined;
}

async function pickAgent({ engine }: CommandContext): Promise<string | undefined> {
  const items = engine.agents().then((agents) =>
    agents.map(({ name, description, model }) => ({
      label: name,
      description: model ? `${model.providerID}/${model.modelID}` : "",
      detail: description ?? "",
    })),
  );
  const picked = await vscode.window.showQuickPick(items, {
    title: vscode.l10n.t("Launch Task (1/2): Agent"),
    placeHolder: vscode.l10n.t("Which agent is to do it?"),
    matchOnDetail: true,
    ignoreFocusOut: true,
  });
  return picked?.label;
}

/** The prompt, `back`, or undefined where the person changed their mind. */
function askPrompt(agent: string, value: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const box = vscode.window.createInputBox();
    box.title = vscode.l10n.t("Launch Task (2/2): Prompt for {0}", agent);
    box.prompt = vscode.l10n.t("What is the task to do? It works in the background with this prompt alone.");
    box.placeholder = vscode.l10n.t("For example: find out why the tests are slow, and report.");
    box.value = value;
    box.ignoreFocusOut = true;
    box.buttons = [vscode.QuickInputButtons.Back];
    let answer: string | undefined;
    box.onDidChangeValue(() => (box.validationMessage = undefined));
    box.onDidTriggerButton(() => {
      answer = "back";
      box.hide();
    });
    box.onDidAccept(() => {
      if (box.value.trim() === "") {
        box.validationMessage = vscode.l10n.t("Say what the task is to do.");
        return;
      }
      answer = box.value;
      box.hide();
    });
    box.onDidHide(() => {
      box.dispose();
      resolve(answer);
    });
    box.show();
  });
}

/** What a person typed is not lost because the launch failed. */
async function offerPromptBack(prompt: string): Promise<void> {
  const copy = vscode.l10n.t("Copy Prompt");
  const choice = await vscode.window.showWarningMessage(vscode.l10n.t("The task was not launched."), copy);
  if (choice === copy) await vscode.env.clipboard.writeText(prompt);
}

/** Takes what a program passed; throws a {@link Refusal} that names what does not fit. */
export function readArguments(argument: unknown): LaunchArguments {
  if (typeof argument !== "object" || argument === null)
    throw new Refusal("invalid-argument", "The argument must be an object with a prompt.");
  const given = argument as Readonly<Record<string, unknown>>;
  const text = (name: string): string | undefined => {
    const value = given[name] ?? undefined;
    if (value !== undefined && typeof value !== "string")
      throw new Refusal("invalid-argument", `"${name}" must be a string.`);
    return value;
  };
  const unknown = Object.keys(given).filter((name) => !LAUNCH_ARGUMENTS.includes(name));
  if (unknown.length > 0)
    throw new Refusal(
      "invalid-argument",
      `There is no argument ${unknown.join(", ")}; there are: ${LAUNCH_ARGUMENTS.join(", ")}.`,
    );
  return {
    prompt: text("prompt") ?? "",
    description: text("description"),
    agent: text("agent"),
    model: text("model"),
    batch_id: text("batch_id"),
  };
}
