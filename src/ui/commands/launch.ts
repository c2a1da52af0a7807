import { Refusal } from "../../engine/errors.ts";
import { requireModel } from "../../engine/model-ref.ts";
import type { Task } from "../../engine/task.ts";
import { promptOn, type Subject } from "../editor/subject.ts";
import { connectedFolder } from "../folders/connected-folder.ts";
import type { Command, CommandContext } from "./command.ts";
import { folderNamed } from "./pick-folder.ts";
import { launchAsking } from "./launch-flow.ts";

/** What a program passes; the names are those of the tool `asyncagents_task`. */
export interface LaunchArguments {
  readonly prompt: string;
  readonly description?: string | undefined;
  readonly agent?: string | undefined;
  readonly model?: string | undefined;
  readonly batch_id?: string | undefined;
  /** The folder to work in, by its path or its name in the workspace; by default the current one. */
  readonly folder?: string | undefined;
}

const LAUNCH_ARGUMENTS: readonly string[] = ["prompt", "description", "agent", "model", "batch_id", "folder"];

export const launch: Command = {
  run: async (context, argument) =>
    argument === undefined ? launchAsking(context) : launchTask(context, readArguments(argument)),
};

/** From the empty view, whose button goes with the first task: the task's row has the focus then. */
export const launchFromView: Command = {
  run: async (context) => {
    const task = await launchAsking(context);
    if (task) context.reveal(task.id, { focus: true });
    return task;
  },
};

/** Launches under the active session, which is created if there is none. */
export async function launchTask(
  context: CommandContext,
  input: LaunchArguments,
  subject?: Subject,
): Promise<Task> {
  const { session, calls } = await connectedFolder(
    context.folders,
    input.folder === undefined ? undefined : folderNamed(context.folders, input.folder),
  );
  const { prompt, description, agent, batch_id: batchID } = input;
  const model = requireModel(input.model);
  if (prompt.trim() === "")
    throw new Refusal("empty-prompt", "The prompt is empty; say what the task is to do.");
  const parentSessionID = await session.ensure();
  return calls.launch({
    prompt: promptOn(subject, prompt),
    files: subject?.files,
    description,
    agent,
    model,
    batchID,
    parentSessionID,
    launchedBy: "person",
  });
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
    folder: text("folder"),
  };
}
