import { basename } from "node:path";
import * as vscode from "vscode";
import { Refusal } from "../../engine/errors.ts";
import { oneLine } from "../../engine/fork/excerpt.ts";
import { sentence } from "../../engine/sentence.ts";
import type { FileChange, SessionChanges } from "../../engine/server-model.ts";
import type { Child } from "../../engine/subagent.ts";
import type { ReviewedFile } from "../changes/change-side.ts";
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
  const named = row ?? (isFromCode([argument]) ? argument : listedTaskID);
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
  const named = await namedFile(context, argument, path, title);
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
  title: string,
): Promise<{ readonly task: unknown; readonly path: string } | undefined> {
  if (argument instanceof ChangeNode) return { task: argument.taskID, path: argument.change.path };
  const review = await context.review();
  if (isFromCode([argument])) {
    if (typeof path === "string") return { task: argument, path };
    throw new Refusal(
      "invalid-argument",
      sentence("The second argument must be the path of a file that the task changed."),
    );
  }
  const file =
    argument instanceof vscode.Uri
      ? await pickShown(context, review.shownChanges(argument), title)
      : review.current;
  return file && { task: file.taskID, path: file.path };
}

/** Diffs of the same file, side by side: which of them a button belongs to is not known. */
async function pickShown(
  { known }: CommandContext,
  shown: readonly ReviewedFile[],
  title: string,
): Promise<ReviewedFile | undefined> {
  if (shown.length <= 1) return shown[0];
  const items = shown.map((file) => ({
    label: withoutIcons(oneLine(known.child(file.taskID)?.description ?? file.taskID)),
    file,
  }));
  const placeHolder = vscode.l10n.t("Which task?");
  const picked = await vscode.window.showQuickPick(items, { title, placeHolder });
  if (picked) return picked.file;
  throw new Refusal("cancelled-by-caller", sentence("No task was picked."));
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
