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
import type { ReviewContext } from "./command.ts";
import { pickConnected } from "./pick-task.ts";

/** The time after which progress is shown, in milliseconds. */
const PATIENCE_MS = 500;

/** A task or subagent and what it changed. */
export interface ChangedBy {
  readonly child: Child;
  readonly changes: SessionChanges;
}

/**
 * The changes that a command is about: those of its argument (a row of the list, or a task ID), otherwise the listed
 * ones, otherwise those of a task that the user picks.
 */
export async function pickChanges(
  context: ReviewContext,
  argument: unknown,
  title: string,
): Promise<ChangedBy | undefined> {
  const { listedTaskID } = await context.review();
  const row = argument instanceof ChangeNode ? argument.taskID : undefined;
  // A button in the list's title may pass a row of another view, which has nothing to do with the list.
  const named = row ?? (typeof argument === "string" ? argument : listedTaskID);
  const child = (await pickConnected(context, named, { title }))?.child;
  const changes = child && (await readChanges(context, child));
  return changes && { child, changes };
}

/**
 * The changed file that a command is about: the given row or diff editor; for a task ID, a file that the user picks;
 * without an argument, the file in front of the user, otherwise one that they pick.
 */
export async function pickChange(
  context: ReviewContext,
  argument: unknown,
  title: string,
): Promise<(ChangedBy & { readonly change: FileChange }) | undefined> {
  const file = typeof argument === "string" ? undefined : await shownFile(context, argument, title);
  const changed = await pickChanges(context, file?.taskID ?? argument, title);
  if (!changed) return undefined;
  const change = file ? changeAt(changed, file.path) : await pickFile(changed.changes.files, title);
  return change && { ...changed, change };
}

/** The change to a file, given its path (absolute or relative to the workspace). Throws a {@link Refusal}. */
export function changeAt({ child, changes }: ChangedBy, path: string): FileChange {
  const change = changes.files.find(
    (file) => file.path === path || vscode.workspace.asRelativePath(file.path, false) === path,
  );
  if (change) return change;
  throw new Refusal(
    "invalid-argument",
    sentence('"{1}" didn\'t change the file "{0}".', path, child.description),
  );
}

async function shownFile(
  context: ReviewContext,
  argument: unknown,
  title: string,
): Promise<ReviewedFile | undefined> {
  if (argument instanceof ChangeNode) return { taskID: argument.taskID, path: argument.change.path };
  const review = await context.review();
  return argument instanceof vscode.Uri
    ? pickShown(context, review.shownChanges(argument), title)
    : review.current;
}

/** Asks if several diffs of the same file are visible, because it is unknown to which of them the button belongs. */
async function pickShown(
  { known }: ReviewContext,
  shown: readonly ReviewedFile[],
  title: string,
): Promise<ReviewedFile | undefined> {
  if (shown.length <= 1) return shown[0];
  const items = shown.map((file) => ({
    label: withoutIcons(oneLine(known.child(file.taskID)?.description ?? file.taskID)),
    file,
  }));
  const placeHolder = vscode.l10n.t("Select a task");
  const picked = await vscode.window.showQuickPick(items, { title, placeHolder });
  if (picked) return picked.file;
  throw new Refusal("cancelled-by-caller", sentence("No task was selected."));
}

async function pickFile(files: readonly FileChange[], title: string): Promise<FileChange | undefined> {
  if (files.length === 0) {
    void vscode.window.showInformationMessage(vscode.l10n.t("The task didn't change any files."));
    return undefined;
  }
  const items = files.map((change) => ({
    label: withoutIcons(basename(change.path)),
    description: withoutIcons(vscode.workspace.asRelativePath(change.path)),
    change,
  }));
  const placeHolder = vscode.l10n.t("Select a file");
  const picked = await vscode.window.showQuickPick(items, { title, placeHolder, matchOnDescription: true });
  return picked?.change;
}

/** Reads the changes of a task or subagent; shows progress if that takes long. Undefined if the user cancels. */
export async function readChanges(
  { review }: ReviewContext,
  child: Child,
): Promise<SessionChanges | undefined> {
  return withPatience(vscode.l10n.t("Reading changes…"), (await review()).read(child));
}

/** Awaits the work; if it takes long, shows progress with a cancel button. Undefined if the user cancels. */
async function withPatience<T>(title: string, work: Promise<T>): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<"late">((resolve) => (timer = setTimeout(() => resolve("late"), PATIENCE_MS)));
  const first = await Promise.race([work, late]).finally(() => clearTimeout(timer));
  if (first !== "late") return work;
  const location = vscode.ProgressLocation.Notification;
  return vscode.window.withProgress({ location, title, cancellable: true }, async (_progress, token) => {
    const cancelled = new Promise<undefined>((resolve) =>
      token.onCancellationRequested(() => resolve(undefined)),
    );
    return Promise.race([work, cancelled]);
  });
}
