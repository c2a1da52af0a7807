import * as vscode from "vscode";
import { requireModel } from "../../engine/model-ref.ts";
import type { Task } from "../../engine/task.ts";
import { connectedFolder } from "../folders/connected-folder.ts";
import type { Command, CommandContext } from "./command.ts";
import { readArguments, type LaunchArguments } from "./launch.ts";
import { forkAsking } from "./launch-flow.ts";
import { folderNamed } from "./pick-folder.ts";
import { connectFor, findChild, pickChild } from "./pick-task.ts";

export const fork: Command = {
  isAboutTask: true,
  async run(context, argument, prompt, options) {
    await connectFor(context, argument);
    const child = await pickChild(context, argument, {
      title: vscode.l10n.t("Fork Task"),
    });
    if (!child) return undefined;
    if (typeof prompt === "string")
      return forkTask(context, child.id, readArguments({ ...(options as object | undefined), prompt }));
    const { id, description, parentSessionID, agent, model } = child;
    const draft = { title: description, request: { sourceSessionID: id }, parentSessionID };
    const folder = await connectedFolder(context.folders, context.folders.of(id));
    return forkAsking(
      { ...context, folder },
      { agents: agent === undefined ? [] : [agent], model, fork: draft },
    );
  },
};

export const launchForked: Command = {
  async run(context, argument) {
    const given = argument === undefined ? undefined : readArguments(argument);
    const { folders } = context;
    const folder = await connectedFolder(
      folders,
      given?.folder === undefined ? undefined : folderNamed(folders, given.folder),
    );
    const sessionID = await folder.session.ensure();
    if (given) return launchFork(context, sessionID, given);
    const session = folder.known.session(sessionID);
    const agent = session?.agent ?? (await folder.calls.agents())[0]?.name;
    return forkAsking(
      { ...context, folder },
      {
        agents: agent === undefined ? [] : [agent],
        model: session?.model,
        fork: {
          title: session?.title ?? "",
          request: { sourceSessionID: sessionID },
          parentSessionID: sessionID,
        },
      },
    );
  },
};

/**
 * A new task that carries on from the conversation of another one, or of a subagent of others, as the same agent with
 * the same model unless changed.
 */
export async function forkTask(
  { known, tasks }: Pick<CommandContext, "known" | "tasks">,
  taskID: string,
  input: LaunchArguments,
): Promise<Task> {
  const { id, parentSessionID, agent, model } = findChild({ known }, taskID);
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

/** A fork of a session, as a program asks for it. */
async function launchFork(
  { tasks }: CommandContext,
  sourceSessionID: string,
  input: LaunchArguments,
): Promise<Task> {
  const { prompt, description, agent, model, batch_id: batchID } = input;
  return tasks.launch({
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
