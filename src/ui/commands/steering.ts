import * as vscode from "vscode";
import { isRunning, isTask } from "../../engine/subagent.ts";
import { isQueued, type Task, waitingMessage } from "../../engine/task.ts";
import { humanMessage } from "../messages.ts";
import { BACK, runWizard, type Step } from "../wizard.ts";
import { remedied } from "../worktrees/isolated-task.ts";
import { askPrompt } from "./ask-prompt.ts";
import type { PromptContext } from "./command.ts";
import { pickChild } from "./pick.ts";

/** A message to a task: what to ask, and what to do with the answer. */
interface MessageQuestion {
  readonly title: string;
  readonly hint: string;
  readonly placeholder: string;
  /** The name of the draft that keeps the text until it is sent. */
  readonly draft: string;
  readonly initial?: string;
  readonly send: (text: string) => Promise<Task>;
  /** What a button does with the text instead. */
  readonly sendLater?: ((text: string) => Promise<Task>) | undefined;
}

/** Sends a message to a running task, which reads it at its next step, or to wait until the task has completed. */
export async function sendMessage(context: PromptContext, argument: unknown): Promise<Task | undefined> {
  const { tasks } = context;
  const child = await pickChild(context, argument, {
    title: vscode.l10n.t("Send Message"),
    accepts: (each) => isTask(each) && isRunning(each),
    none: vscode.l10n.t("No running tasks in this session."),
  });
  if (!child) return undefined;
  const { id, description } = child;
  const later = (text: string): Promise<Task> => tasks.steer(id, text, { after: true });
  const waits = isTask(child) && isQueued(child);
  return askMessage(context, {
    title: vscode.l10n.t("Send Message: {0}", description),
    hint: waits
      ? vscode.l10n.t("Enter a message. It is sent as a follow-up once the task has completed.")
      : vscode.l10n.t("Enter a message. The agent reads it at its next step."),
    placeholder: vscode.l10n.t("Example: Leave the tests as they are."),
    draft: `message ${id}`,
    send: waits ? later : (text) => tasks.steer(id, text),
    sendLater: waits ? undefined : later,
  });
}

/** Launches a task that carries on from the conversation of a failed or cancelled one. */
export async function continueTask(context: PromptContext, argument: unknown): Promise<Task | undefined> {
  const child = await pickChild(context, argument, {
    title: vscode.l10n.t("Continue Task"),
    accepts: (each) => isTask(each) && (each.status === "error" || each.status === "cancelled"),
    none: vscode.l10n.t("No failed or cancelled tasks."),
  });
  if (!child) return undefined;
  const { id, description } = child;
  const waits = isTask(child) && waitingMessage(child) !== undefined;
  const next = await askMessage(context, {
    title: vscode.l10n.t("Continue: {0}", description),
    hint: waits
      ? vscode.l10n.t(
          "Enter a prompt. A new task carries on from the whole conversation; it gets your waiting message first.",
        )
      : vscode.l10n.t("Enter a prompt. A new task carries on from the whole conversation."),
    placeholder: vscode.l10n.t("Example: Leave the tests as they are."),
    draft: `continue ${id}`,
    initial: vscode.l10n.t("Continue where you left off."),
    send: (text) => remedied(context).continue(id, text),
  });
  if (next) context.reveal(next.id);
  return next;
}

interface Asking {
  /** Why the message was refused. */
  readonly problem?: string;
  readonly isLater?: boolean;
  readonly task?: Task;
}

/** Asks for a message and sends it; a refused one is asked for again. */
async function askMessage(
  { memory, logger }: PromptContext,
  { draft, send, sendLater, ...question }: MessageQuestion,
): Promise<Task | undefined> {
  const wait = {
    iconPath: new vscode.ThemeIcon("watch"),
    tooltip: vscode.l10n.t("Send After This"),
    gives: "later" as const,
  };
  const ask: Step<Asking> = {
    take: async ({ problem }) => {
      const given = await askPrompt(memory, {
        ...question,
        draft,
        problem,
        buttons: sendLater ? [wait] : [],
      });
      if (given === undefined || given === BACK) return given;
      return { state: { isLater: given === wait.gives } };
    },
  };
  const deliver: Step<Asking> = {
    take: async ({ isLater }) => {
      try {
        return { state: { task: await memory.send(draft, (isLater ? sendLater : undefined) ?? send) } };
      } catch (error) {
        logger.error("Couldn't send the message.", error);
        return { state: { problem: humanMessage(error) }, to: ask };
      }
    },
  };
  return (await runWizard([ask, deliver], {})).state.task;
}
