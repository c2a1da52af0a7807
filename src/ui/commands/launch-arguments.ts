import { requireModel } from "../../engine/model-ref.ts";
import { Refusal } from "../../engine/errors.ts";
import { sentence } from "../../engine/sentence.ts";
import type { Task } from "../../engine/task.ts";
import { promptOn, type Subject } from "../launch-plan.ts";
import { connectedFolder, type Folder, type Folders } from "../folders/folders.ts";
import type { TaskContext } from "./command.ts";
import { findChild } from "./pick.ts";

/** The arguments of a launch, named as in the tool `asyncagents_task`. */
export interface LaunchArguments {
  readonly prompt: string;
  readonly description?: string | undefined;
  /** By default the agent from the settings; for a fork, the agent of the source. */
  readonly agent?: string | undefined;
  /** `provider/model`. */
  readonly model?: string | undefined;
  readonly batch_id?: string | undefined;
  /** The path or workspace name of the folder to work in; by default the current folder. */
  readonly folder?: string | undefined;
}

const LAUNCH_ARGUMENTS: readonly string[] = ["prompt", "description", "agent", "model", "batch_id", "folder"];

/** Validates arguments from a keybinding or a program. Throws a `Refusal` that names the problem. */
function readArguments(input: unknown): LaunchArguments {
  if (typeof input !== "object" || input === null)
    throw new Refusal("invalid-argument", sentence("The argument must be an object with a prompt."));
  for (const [name, value] of Object.entries(input)) {
    if (!LAUNCH_ARGUMENTS.includes(name))
      throw new Refusal(
        "invalid-argument",
        sentence(
          'Argument "{0}" doesn\'t exist. Available arguments: {1}.',
          name,
          LAUNCH_ARGUMENTS.join(", "),
        ),
      );
    if (value !== undefined && typeof value !== "string")
      throw new Refusal("invalid-argument", sentence('"{0}" must be a string.', name));
  }
  const { prompt = "", ...rest } = input as Partial<LaunchArguments>;
  if (prompt.trim() === "")
    throw new Refusal("empty-prompt", sentence("The prompt is empty. Enter what the task should do."));
  return { prompt, ...rest };
}

/** Launches in the active session, which is created if there is none. */
export async function launchTask(
  { folders }: Pick<TaskContext, "folders">,
  input: unknown,
  subject?: Subject,
): Promise<Task> {
  const { prompt, description, agent, batch_id: batchID, folder, ...given } = readArguments(input);
  const { session, calls } = await connectedFolder(
    folders,
    folder === undefined ? undefined : folderNamed(folders, folder),
  );
  const model = requireModel(given.model);
  return calls.launch({
    prompt: promptOn(subject, prompt),
    files: subject?.files,
    description,
    agent,
    model,
    batchID,
    parentSessionID: await session.ensure(),
    launchedBy: "person",
  });
}

/**
 * Launches a new task that continues the conversation of a session, task or subagent; for a task or subagent, with its
 * agent and model by default.
 */
export async function forkTask(
  context: Pick<TaskContext, "known" | "tasks">,
  id: string,
  input: unknown,
): Promise<Task> {
  const { known, tasks } = context;
  const { prompt, description, agent, model, batch_id: batchID } = readArguments(input);
  const isSession = !known.child(id) && known.session(id) !== undefined;
  const source = isSession ? undefined : findChild(context, id);
  return tasks.launch({
    prompt,
    description,
    agent: agent ?? source?.agent,
    model: requireModel(model) ?? source?.model,
    batchID,
    parentSessionID: source?.parentSessionID ?? id,
    launchedBy: "person",
    fork: { sourceSessionID: source?.id ?? id },
  });
}

/** Finds the folder that a program names by path, address or workspace name. Throws a {@link Refusal}. */
function folderNamed(folders: Folders, wanted: string): Folder {
  const found = folders.all.filter(({ uri, name }) =>
    [uri.fsPath, uri.toString(), name].includes(wanted.trim()),
  );
  const [folder, ...others] = found;
  if (folder && others.length === 0) return folder;
  const paths = (found.length > 0 ? found : folders.all).map(({ uri }) => uri.fsPath).join(", ");
  throw new Refusal(
    "invalid-argument",
    folder
      ? sentence('Several folders are named "{0}". Use the path of one: {1}.', wanted, paths)
      : sentence('Folder "{0}" isn\'t in the workspace. Available folders: {1}.', wanted, paths || "—"),
  );
}
