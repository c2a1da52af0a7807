import * as vscode from "vscode";
import { Refusal } from "../../engine/errors.ts";
import type { Task } from "../../engine/task.ts";
import { statusWord } from "../tree/task-item.ts";
import { TaskNode } from "../tree/task-tree.ts";
import type { CommandContext } from "./command.ts";

export interface PickOptions {
  readonly title: string;
  /** Which tasks the command can work on. */
  readonly accepts: (task: Task) => boolean;
  /** Said when there is none. */
  readonly none: string;
}

/** The task a command is about: its argument (a row of the tree, a task, an ID), or one that the person picks. */
export async function pickTask(
  { engine, session }: CommandContext,
  argument: unknown,
  { title, accepts, none }: PickOptions,
): Promise<Task | undefined> {
  if (argument !== undefined) return engine.find(taskReference(argument));

  const tasks = session.id === undefined ? [] : engine.list(session.id).filter(accepts);
  if (tasks.length === 0) {
    void vscode.window.showInformationMessage(none);
    return undefined;
  }
  const picked = await vscode.window.showQuickPick(
    tasks
      .toReversed()
      .map((task) => ({ label: task.description, description: `${task.agent} · ${statusWord(task)}`, task })),
    { title, matchOnDescription: true, placeHolder: vscode.l10n.t("Which task?") },
  );
  return picked?.task;
}

/** Every task that a menu was opened on: the selected rows, or the one clicked. */
export function selectedTaskIDs(clicked: unknown, selection: unknown): readonly string[] | undefined {
  if (!(clicked instanceof TaskNode)) return undefined;
  const nodes = Array.isArray(selection) ? selection.filter((node) => node instanceof TaskNode) : [];
  return (nodes.includes(clicked) ? nodes : [clicked]).map(({ taskID }) => taskID);
}

/** The ID, or the beginning or end of one, that an argument names. */
export function taskReference(argument: unknown): string {
  if (argument instanceof TaskNode) return argument.taskID;
  if (typeof argument === "string") return argument;
  if (
    typeof argument === "object" &&
    argument !== null &&
    "id" in argument &&
    typeof argument.id === "string"
  )
    return argument.id;
  throw new Refusal("invalid-argument", "The argument must be a task or its ID.");
}
