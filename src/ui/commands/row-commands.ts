import { isDeepStrictEqual } from "node:util";
import * as vscode from "vscode";
import type { ProgramCall } from "../../engine/connection.ts";
import type { MirroredRequest } from "../../engine/folder-changes.ts";
import type { OpenRequest } from "../../engine/requests.ts";
import { Refusal } from "../../engine/errors.ts";
import { oneLine } from "../../engine/fork/excerpt.ts";
import { sentence } from "../../engine/sentence.ts";
import { type Child, isRunning, isTask } from "../../engine/subagent.ts";
import type { Task } from "../../engine/task.ts";
import { STATUS_WORDS } from "../../engine/transitions.ts";
import { inform } from "../dialogs.ts";
import { humanMessage, showError, showIfLong } from "../messages.ts";
import { title } from "../plain-text.ts";
import { quotedSelection } from "../editor/place.ts";
import { answerOneOf, answerRequest, type FlowContext } from "../requests/answer-flow.ts";
import { ancestors, isAnswered } from "../tree/family.ts";
import { nameOf, remedied } from "../worktrees/isolated-task.ts";
import { BACK, runWizard, type Step } from "../wizard.ts";
import { askPrompt } from "./ask-prompt.ts";
import type { CommandContext, PromptContext, TaskContext } from "./command.ts";
import { findChild, pickChild, pickChildren, pickConnected, referenceOf } from "./pick.ts";

export async function showOutput(context: CommandContext, argument: unknown): Promise<void> {
  const child = await pickChild(context, argument, { title: vscode.l10n.t("Show Output") });
  if (child) context.panels.show(child.id);
}

export async function showSelected({ panels, clickedID }: CommandContext): Promise<void> {
  const at = Date.now();
  const id = await clickedID();
  if (id !== undefined) panels.click(id, at);
}

export async function findInOutput({ panels }: CommandContext): Promise<void> {
  panels.find();
}

export async function openInTerminal(context: TaskContext, argument: unknown): Promise<void> {
  const picked = await pickConnected(context, argument, { title: vscode.l10n.t("Open in Terminal") });
  if (!picked) return;
  const { child, folder } = picked;
  const call = await folder.calls.attachCommand(child.id);
  const open = vscode.window.terminals.find((terminal) => isTerminalOf(terminal, call));
  const terminal = open ?? createTerminal(vscode.l10n.t("OpenCode: {0}", title(child.description)), call);
  terminal.show();
}

function createTerminal(name: string, { executable, args, directory, env }: ProgramCall): vscode.Terminal {
  return vscode.window.createTerminal({
    name,
    iconPath: new vscode.ThemeIcon("terminal"),
    shellPath: executable,
    shellArgs: [...args],
    cwd: directory,
    env: { ...env },
    // A persistent terminal would be saved across restarts, including its environment variables.
    isTransient: true,
  });
}

/** Whether this terminal runs exactly this call; a terminal of a server whose address has changed is useless. */
function isTerminalOf({ creationOptions, exitStatus }: vscode.Terminal, { args }: ProgramCall): boolean {
  return (
    exitStatus === undefined &&
    "shellArgs" in creationOptions &&
    isDeepStrictEqual(creationOptions.shellArgs, args)
  );
}

export async function cancel(context: TaskContext, argument: unknown, selection: unknown): Promise<void> {
  const children = await pickChildren(context, argument, selection, {
    title: vscode.l10n.t("Cancel Task"),
    accepts: isRunning,
    none: vscode.l10n.t("No running tasks in this session."),
  });
  await forEach(context, vscode.l10n.t("Cancelling tasks…"), children, (child) => stop(context, child));
}

export async function resume(context: PromptContext, argument: unknown): Promise<void> {
  const child = await pickChild(context, argument, {
    title: vscode.l10n.t("Resume Task"),
    accepts: ({ status }) => status === "completed" || status === "idle",
    none: vscode.l10n.t("No completed tasks. Only completed tasks can be resumed."),
  });
  if (child) await resumeAsking(context, child);
}

interface Resuming {
  /** Why the follow-up was refused. */
  readonly problem?: string;
  readonly task?: Task;
}

/** Asks for a follow-up to a completed task and resumes it; a subagent launched elsewhere is also adopted. */
export async function resumeAsking(context: PromptContext, child: Child): Promise<Task | undefined> {
  const { folders, memory, promptEditors, logger } = context;
  const { id, description, status } = child;
  if (status !== "completed" && status !== "idle")
    throw new Refusal(
      "wrong-status",
      sentence("Only completed tasks can be resumed. This one has the status {0}.", STATUS_WORDS[status]),
    );
  const draft = `resume ${id}`;
  const writeInEditor = async (): Promise<undefined> => {
    const text = memory.draft(draft) || quotedSelection();
    const folder = folders.of(id)?.uri.toString();
    await promptEditors.open({ kind: "resume", taskID: id, description, folder }, text);
    memory.keepDraft(draft, "");
  };
  const ask: Step<Resuming> = {
    take: async ({ problem }) => {
      const given = await askPrompt(memory, {
        title: isTask(child)
          ? vscode.l10n.t("Resume: {0}", description)
          : vscode.l10n.t("Adopt and Resume: {0}", description),
        hint: isTask(child)
          ? vscode.l10n.t("Enter a follow-up. The task keeps its whole conversation.")
          : vscode.l10n.t(
              "Enter a follow-up. The subagent becomes your task and keeps its whole conversation.",
            ),
        placeholder: vscode.l10n.t("Example: Now fix what you found."),
        draft,
        problem,
        editor: writeInEditor,
      });
      if (given === undefined || given === BACK) return given;
      return typeof given === "string" ? { state: {} } : given();
    },
  };
  const send: Step<Resuming> = {
    take: async () => {
      try {
        return { state: { task: await memory.send(draft, (text) => remedied(context).resume(id, text)) } };
      } catch (error) {
        logger.error("Couldn't resume the task.", error);
        return { state: { problem: humanMessage(error) }, to: ask };
      }
    },
  };
  return (await runWizard([ask, send], {})).state.task;
}

export async function retry(context: PromptContext, argument: unknown): Promise<Task | undefined> {
  const task = await pickChild(context, argument, {
    title: vscode.l10n.t("Retry Task"),
    accepts: (child) => isTask(child) && (child.status === "error" || child.status === "cancelled"),
    none: vscode.l10n.t("No failed or cancelled tasks."),
  });
  if (!task) return undefined;
  const next = await remedied(context).retry(task.id);
  context.reveal(next.id);
  return next;
}

/** Lets the user answer a request of an agent; nothing is ever allowed automatically. */
export async function answer(context: FlowContext, argument: unknown): Promise<void> {
  const { known } = context;
  const reference = referenceOf(argument);
  if (reference === undefined) return void (await answerOneOf(context, () => known.openRequests()));
  const [oldest] = requestsUnder(context, findChild(context, reference).id);
  if (oldest) await answerRequest(context, oldest);
  else inform(vscode.l10n.t("This agent isn't waiting for you."));
}

/** The open requests of an agent; if it has none, those of its descendants. */
export function requestsUnder(
  { known }: Pick<TaskContext, "known">,
  id: string,
): readonly OpenRequest<MirroredRequest>[] {
  const open = known.openRequests();
  const own = open.filter(({ child }) => child.id === id);
  return own.length > 0 ? own : open.filter(({ child }) => ancestors(known, child).includes(id));
}

/** Makes tasks of subagents that were launched elsewhere. */
export async function adopt(context: TaskContext, argument: unknown, selection: unknown): Promise<void> {
  const children = await pickChildren(context, argument, selection, {
    title: vscode.l10n.t("Adopt Subagent"),
    accepts: (child) => !isTask(child),
    none: vscode.l10n.t("Nothing to adopt: you already have all tasks of this session."),
  });
  const adopted = await forEach(context, vscode.l10n.t("Adopting subagents…"), children, ({ id }) =>
    context.tasks.adopt(id),
  );
  const [first, ...others] = adopted;
  if (first)
    inform(
      others.length === 0
        ? adoptedWords(first)
        : vscode.l10n.t("{0} subagents are now your tasks.", adopted.length),
    );
}

/** Tells the user what they can do with the adopted task. */
function adoptedWords(task: Task): string {
  const name = nameOf(task);
  if (isRunning(task)) return vscode.l10n.t('"{0}" is now your task and continues its work.', name);
  return task.status === "completed"
    ? vscode.l10n.t('"{0}" is now your task. Resume it to continue.', name)
    : vscode.l10n.t('"{0}" is now your task. Retry or continue it as a new task.', name);
}

/**
 * Asks for another name of a task: that of the argument; for `true`, as the key in the view has it, that of the selected
 * row; otherwise that of the one in front of the user.
 */
export async function rename(context: CommandContext, argument: unknown): Promise<void> {
  const { clickedID, frontID, known, tasks } = context;
  const front = argument === true ? await clickedID() : frontID();
  const task = await pickChild(context, referenceOf(argument) ?? known.get(front ?? "")?.id, {
    title: vscode.l10n.t("Rename Task"),
    accepts: isTask,
  });
  if (!task) return;
  const name = await vscode.window.showInputBox({
    title: vscode.l10n.t("Rename: {0}", title(task.description)),
    prompt: vscode.l10n.t("Enter a short name. The session's title stays as it is."),
    value: task.description,
    // Otherwise a panel that opens late would close the box.
    ignoreFocusOut: true,
    validateInput: (text) => (text.trim() === "" ? vscode.l10n.t("Enter a name.") : undefined),
  });
  if (name !== undefined && name.trim() !== task.description) await tasks.rename(task.id, name);
}

export async function copyTaskId(context: TaskContext, argument: unknown, selection: unknown): Promise<void> {
  const title = vscode.l10n.t("Copy Task ID");
  const children = await pickChildren(context, argument, selection, { title });
  if (children.length > 0) await vscode.env.clipboard.writeText(children.map(({ id }) => id).join("\n"));
}

/** Copies the final answers as Markdown; those of several tasks get headings. */
export async function copyResult(context: TaskContext, argument: unknown, selection: unknown): Promise<void> {
  const children = await pickChildren(context, argument, selection, {
    title: vscode.l10n.t("Copy Result"),
    accepts: isAnswered,
    none: vscode.l10n.t("No task has a result yet."),
  });
  if (children.length === 0) return;
  const results = await Promise.all(children.map((child) => readResult(context, child)));
  const answers = children.flatMap(({ description }, index) => {
    const result = results[index];
    return result ? [children.length > 1 ? `## ${oneLine(description)}\n\n${result}` : result] : [];
  });
  if (answers.length === 0) return inform(vscode.l10n.t("There is no result to copy."));
  await vscode.env.clipboard.writeText(answers.join("\n\n"));
}

/**
 * For a task, its record notes that the result was fetched; a subagent launched elsewhere has no record. What a task wrote
 * that isn't completed is not passed off as its result.
 */
async function readResult({ known, tasks }: TaskContext, child: Child): Promise<string | undefined> {
  if (!isTask(child)) return known.lastAnswer(child.id);
  const { result, task } = await tasks.output(child.id);
  return result && task.status !== "completed"
    ? vscode.l10n.t("Not completed. The last text:") + `\n\n${result}`
    : result;
}

/** Stops a task or subagent, including its descendants. */
async function stop({ tasks }: Pick<TaskContext, "tasks">, child: Child): Promise<void> {
  await (isTask(child) ? tasks.cancel(child.id) : tasks.stopSubagent(child.id));
}

/** Runs an action for all children concurrently, and shows the first failure. Resolves to the other results. */
export async function forEach<T>(
  { logger }: Pick<TaskContext, "logger">,
  title: string,
  children: readonly Child[],
  run: (child: Child) => Promise<T>,
): Promise<readonly T[]> {
  const settled = await showIfLong(title, Promise.allSettled(children.map(run)));
  const failed = settled.find((one) => one.status === "rejected");
  if (failed) void showError(failed.reason, logger);
  return settled.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
}
