import * as vscode from "vscode";
import { invalidArgument, Refusal } from "../../engine/errors.ts";
import { sentence, type Text } from "../../engine/sentence.ts";
import type { Task } from "../../engine/task.ts";
import { launchesOf, promptOn, subjectOf, type LaunchPlan, type Subject } from "../launch-plan.ts";
import { isAgreed } from "../dialogs.ts";
import { explanation, humanMessage } from "../messages.ts";
import { connectedFolder, type Folder, type Folders } from "../folders/folders.ts";
import type { Step } from "../wizard.ts";
import type { LaunchContext, TaskContext } from "./command.ts";
import { withRemedy } from "../worktrees/isolated-task.ts";
import { requireModel } from "../../engine/model-ref.ts";
import { findChild } from "./pick.ts";

/** The state of the launch wizard. */
export interface Launching {
  readonly context: LaunchContext;
  readonly plan: LaunchPlan;
  /** Empty if they are still to be written. */
  readonly prompts: readonly string[];
  /** The draft in which the prompts are kept; undefined if they come from elsewhere and stay there. */
  readonly draft?: string | undefined;
  /** The error of the last attempt to use the prompts. */
  readonly problem?: string | undefined;
  /** The text last inserted into the box. */
  readonly inserted?: string | undefined;
  /** The option changed last. */
  readonly option?: LaunchOption | undefined;
  /** Whether the prompts are already in an editor, so that opening one isn't offered. */
  readonly isInEditor?: boolean;
  /** The launched tasks. */
  readonly tasks?: readonly Task[];
}

export type LaunchOption =
  "on" | "subject" | "agents" | "model" | "fork" | "isolation" | "editor" | "sections";

/** Launching more tasks than this at once needs confirmation, because each one costs money. */
const MANY_TASKS = 10;

/** Thrown if some of the tasks couldn't be launched. */
export class PartlyLaunched extends Refusal {
  constructor(
    text: Text,
    /** The prompts that weren't launched. */
    readonly prompts: readonly string[],
    /** How to launch them. */
    readonly plan: LaunchPlan,
  ) {
    super("unavailable", text);
  }
}

/**
 * The last step of the wizard: launches the tasks.
 * @param box the step with the prompts, which is shown again if they couldn't be launched
 */
export function launchFrom(box?: Step<Launching>): Step<Launching> {
  return {
    take: async (state) => {
      const { context, plan, prompts, draft } = state;
      const { memory, logger, reveal } = context;
      const count = launchesOf(plan, prompts).length;
      if (!(await confirmCount(count))) return undefined;
      const what = count === 1 ? (prompts[0] ?? "") : vscode.l10n.t("Batch of {0}", count);
      const row = context.showLaunching(what, context.folder);
      const launch = (): Promise<readonly Task[]> => launchAll(state);
      const written = draft === undefined ? "" : memory.draft(draft);
      try {
        const tasks = await (draft === undefined ? launch() : memory.send(draft, launch));
        if (!plan.fork) memory.keepAgent(plan.agents[0] ?? "");
        memory.keepPrompts(prompts);
        if (tasks[0]) reveal(tasks[0].id);
        return { state: { ...state, tasks } };
      } catch (error) {
        if (!box || draft === undefined) throw error;
        logger.error("Couldn't launch the prompt.", error);
        const rest = error instanceof PartlyLaunched ? error : state;
        if (rest !== state && plan.splits && memory.draft(draft) === written)
          memory.keepDraft(draft, rest.prompts.join(" | "));
        return { state: { ...state, plan: rest.plan, problem: humanMessage(error) }, to: box };
      } finally {
        row.dispose();
      }
    },
  };
}

/** Launches one task for each combination of prompt and agent, all in one batch. */
async function launchAll(state: Launching): Promise<readonly Task[]> {
  try {
    return await launchEach(state);
  } catch (error) {
    // Nothing was started.
    if (!(error instanceof Refusal && error.code === "no-worktree")) throw error;
    const inFolder = vscode.l10n.t("Run in the Folder Instead");
    if (!(await isAgreed(humanMessage(error), inFolder))) throw error;
    return launchEach({ ...state, plan: { ...state.plan, isolation: "folder" } });
  }
}

async function launchEach({ context, plan, prompts }: Launching): Promise<readonly Task[]> {
  const folder = await connectedFolder(context.folders, context.folder);
  const { session, calls: commands } = folder;
  const { model, fork, isolation } = plan;
  const parentSessionID = fork?.parentSessionID ?? (await session.ensure());
  const subject = subjectOf(plan);
  const files = subject?.files;
  const each = {
    model,
    parentSessionID,
    launchedBy: "person",
    fork: fork?.request,
    files,
    isolation,
  } as const;
  const launches = launchesOf(plan, prompts);
  const { tasks, refused, failed } = await withRemedy(
    folder,
    fork?.request.sourceSessionID ?? parentSessionID,
    () =>
      launchTogether(launches, ({ prompt, agent }, batchID) =>
        commands.launch({ ...each, agent, prompt: promptOn(subject, prompt), batchID }),
      ),
  );
  if (!failed) return tasks;
  const agents = [...new Set(refused.map(({ agent }) => agent))];
  const rest = [...new Set(refused.map(({ prompt }) => prompt))];
  throw new PartlyLaunched(
    sentence(
      "Launched {0} of {1} tasks. The others failed: {2}",
      tasks.length,
      launches.length,
      explanation(failed.reason),
    ),
    rest,
    // Without what is refused, this leaves what is launched.
    { ...plan, agents, launched: launchesOf({ agents, launched: refused }, rest) },
  );
}

/**
 * Launches the first input, which creates the batch, then the others concurrently. Rejects if the first one fails; a
 * later failure leaves the other tasks running.
 */
async function launchTogether<T>(
  inputs: readonly T[],
  launch: (input: T, batchID?: string) => Promise<Task>,
): Promise<{
  readonly tasks: readonly Task[];
  readonly refused: readonly T[];
  readonly failed: PromiseRejectedResult | undefined;
}> {
  const [first, ...rest] = inputs;
  if (first === undefined) throw new Refusal("empty-prompt", "The batch is empty; give at least one prompt.");
  const task = await launch(first);
  const settled = await Promise.allSettled(rest.map((input) => launch(input, task.batchID)));
  const launched = settled.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  const failed = settled.find((one) => one.status === "rejected");
  const refused = rest.filter((_, index) => settled[index]?.status === "rejected");
  return { tasks: [task, ...launched], refused, failed };
}

/** Whether the user wants that many tasks at once; asks only if there are many. */
async function confirmCount(count: number): Promise<boolean> {
  if (count <= MANY_TASKS) return true;
  const launch = vscode.l10n.t("Launch {0} Tasks", count);
  const question = vscode.l10n.t("This launches {0} tasks.", count);
  return isAgreed(question, launch);
}

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
    throw invalidArgument(sentence("The argument must be an object with a prompt."));
  for (const [name, value] of Object.entries(input)) {
    if (!LAUNCH_ARGUMENTS.includes(name))
      throw invalidArgument(
        sentence(
          'Argument "{0}" doesn\'t exist. Available arguments: {1}.',
          name,
          LAUNCH_ARGUMENTS.join(", "),
        ),
      );
    if (value !== undefined && typeof value !== "string")
      throw invalidArgument(sentence('"{0}" must be a string.', name));
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
  throw invalidArgument(
    folder
      ? sentence('Several folders are named "{0}". Use the path of one: {1}.', wanted, paths)
      : sentence('Folder "{0}" isn\'t in the workspace. Available folders: {1}.', wanted, paths || "—"),
  );
}
