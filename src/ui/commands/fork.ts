import * as vscode from "vscode";
import type { ForkRequest } from "../../engine/fork/builder.ts";
import { requireModel } from "../../engine/model-ref.ts";
import type { ModelRef, Task } from "../../engine/task.ts";
import { askPrompt, BACK, offerPromptBack } from "./ask-prompt.ts";
import type { Command, CommandContext } from "./command.ts";
import { reviewFork } from "./fork-review.ts";
import { readArguments, type LaunchArguments } from "./launch.ts";
import { pickTask } from "./pick-task.ts";

/** A fork as the person has it before them. */
export interface ForkDraft {
  /** What is forked, in a few words. */
  readonly title: string;
  readonly request: ForkRequest;
  /** How the message begins that the fork starts from; undefined: it starts from the beginning. */
  readonly start?: string | undefined;
  readonly parentSessionID: string;
  readonly agent: string | undefined;
  readonly model: ModelRef | undefined;
}

export const fork: Command = {
  id: "asyncagents.fork",
  isAboutTask: true,
  async run(context, argument, prompt, options) {
    await context.ensureConnected();
    const task = await pickTask(context, argument, {
      title: vscode.l10n.t("Fork Task"),
      accepts: () => true,
      none: vscode.l10n.t("There are no tasks in this session."),
    });
    if (!task) return undefined;
    if (typeof prompt === "string")
      return forkTask(context, task.id, readArguments({ ...(options as object | undefined), prompt }));
    const { id, description, parentSessionID, agent, model } = task;
    const request = { sourceSessionID: id };
    return forkAsking(context, { title: description, request, parentSessionID, agent, model });
  },
};

export const launchForked: Command = {
  id: "asyncagents.launchForked",
  async run(context, argument) {
    await context.ensureConnected();
    if (argument !== undefined) return launchFork(context, readArguments(argument));
    const parentSessionID = await context.session.ensure();
    const session = context.engine.session(parentSessionID);
    return forkAsking(context, {
      title: session?.title ?? "",
      request: { sourceSessionID: parentSessionID },
      parentSessionID,
      agent: session?.agent ?? (await context.engine.agents())[0]?.name,
      model: session?.model,
    });
  },
};

/** A new task that carries on from another one's conversation, as the same agent with the same model unless changed. */
export async function forkTask(
  { engine, tasks }: Pick<CommandContext, "engine" | "tasks">,
  taskID: string,
  input: LaunchArguments,
): Promise<Task> {
  const { id, parentSessionID, agent, model } = engine.find(taskID);
  return tasks.launch({
    prompt: input.prompt,
    description: input.description,
    agent: input.agent ?? agent,
    model: requireModel(input.model) ?? model,
    batchID: input.batch_id,
    parentSessionID,
    launchedBy: "person",
    fork: { sourceSessionID: id },
  });
}

/** A fork of the active session, as a program asks for it. */
async function launchFork(context: CommandContext, input: LaunchArguments): Promise<Task> {
  const { prompt, description, agent, model, batch_id: batchID } = input;
  const sourceSessionID = await context.session.ensure();
  return context.tasks.launch({
    prompt,
    description,
    agent,
    model: requireModel(model),
    batchID,
    parentSessionID: sourceSessionID,
    launchedBy: "person",
    fork: { sourceSessionID },
  });
}

async function forkAsking(context: CommandContext, draft: ForkDraft): Promise<Task | undefined> {
  let current = draft;
  for (let prompt = ""; ;) {
    const answer = await askPrompt({
      title: vscode.l10n.t("Fork (1/2): {0}", draft.title),
      hint: vscode.l10n.t("What is the task to do? It knows this conversation, cut to what fits."),
      value: prompt,
      canGoBack: false,
    });
    if (answer === undefined || answer === BACK) return undefined;
    prompt = answer;
    try {
      const reviewed = await reviewFork(context, current);
      if (!reviewed) return undefined;
      current = reviewed.draft;
      if (reviewed.goes === "launch") return await launchDraft(context, current, prompt);
    } catch (error) {
      void offerPromptBack(prompt);
      throw error;
    }
  }
}

async function launchDraft(context: CommandContext, draft: ForkDraft, prompt: string): Promise<Task> {
  const { request: fork, parentSessionID, agent, model } = draft;
  const task = await context.tasks.launch({
    prompt,
    agent,
    model,
    parentSessionID,
    launchedBy: "person",
    fork,
  });
  context.reveal(task.id);
  return task;
}
