import { basename } from "node:path";
import * as vscode from "vscode";
import { Refusal } from "../../engine/errors.ts";
import { sentence } from "../../engine/sentence.ts";
import type { FileChange, SessionChanges } from "../../engine/server-model.ts";
import type { Child } from "../../engine/subagent.ts";
import { ChangeNode } from "../changes/changes-view.ts";
import { withoutIcons } from "../plain-text.ts";
import { readChanges } from "./changes.ts";
import { isFromCode, type CommandContext } from "./command.ts";
import { connectFor, pickChild } from "./pick-task.ts";

/** A task or subagent and what it changed. */
export interface ChangedBy {
  readonly child: Child;
  readonly changes: SessionChanges;
}

/** Whether a program said what a command is about, and neither a row nor an editor's title did. */
export function isProgram(argument: unknown): boolean {
  return isFromCode([argument]) && !(argument instanceof vscode.Uri);
}

/**
 * What the task changed that a command is about: that of its argument, else the one whose changes are listed, else one
 * that the person picks.
 */
export async function pickChanges(
  context: CommandContext,
  argument: unknown,
  title: string,
): Promise<ChangedBy | undefined> {
  const { listedTaskID } = await context.review();
  const row = argument instanceof ChangeNode ? argument.taskID : undefined;
  // The title of the list can hand over a row of another view, which is not what it is about.
  const named = row ?? (isProgram(argument) ? argument : listedTaskID);
  await connectFor(context, named);
  const child = await pickChild(context, named, { title });
  const changes = child && (await readChanges(context, child));
  return child && changes && { child, changes };
}

/**
 * The changed file that a command is about: a row of the list, what a diff editor shows, or by the ID of a task and a
 * path, which is absolute or relative to the workspace; else the one before the person, else one that is picked.
 */
export async function pickChange(
  context: CommandContext,
  argument: unknown,
  path: unknown,
  title: string,
): Promise<(ChangedBy & { readonly change: FileChange }) | undefined> {
  const named = await namedFile(context, argument, path);
  const changed = await pickChanges(context, named?.task, title);
  if (!changed) return undefined;
  const { files } = changed.changes;
  const change = named ? files.find((file) => isAt(file, named.path)) : await pickFile(files, title);
  if (named && !change)
    throw new Refusal(
      "invalid-argument",
      sentence('"{0}" is not among the files that "{1}" changed.', named.path, changed.child.description),
    );
  return change && { ...changed, change };
}

async function namedFile(
  context: CommandContext,
  argument: unknown,
  path: unknown,
): Promise<{ readonly task: unknown; readonly path: string } | undefined> {
  if (argument instanceof ChangeNode) return { task: argument.taskID, path: argument.change.path };
  const review = await context.review();
  if (isProgram(argument)) {
    if (typeof path === "string") return { task: argument, path };
    throw new Refusal(
      "invalid-argument",
      sentence("The second argument must be the path of a file that the task changed."),
    );
  }
  const file = argument instanceof vscode.Uri ? review.openedFile(argument) : review.current;
  return file && { task: file.taskID, path: file.path };
}

function isAt({ path }: FileChange, named: string): boolean {
  return path === named || vscode.workspace.asRelativePath(path, false) === named;
}

async function pickFile(files: readonly FileChange[], title: string): Promise<FileChange | undefined> {
  if (files.length === 0) {
    void vscode.window.showInformationMessage(vscode.l10n.t("The task changed no files."));
    return undefined;
  }
  const items = files.map((change) => ({
    label: withoutIcons(basename(change.path)),
    description: withoutIcons(vscode.workspace.asRelativePath(change.path)),
    change,
  }));
  const placeHolder = vscode.l10n.t("Which file?");
  const picked = await vscode.window.showQuickPick(items, { title, placeHolder, matchOnDescription: true });
  return picked?.change;
}
