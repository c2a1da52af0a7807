import * as vscode from "vscode";
import type { FileChange } from "../../engine/server-model.ts";
import { ChangeNode } from "../changes/changes-view.ts";
import { presentFile } from "../changes/present-file.ts";
import { showChange, showChanges as showInEditor } from "../changes/show-changes.ts";
import { showError } from "../human-error.ts";
import type { CommandContext, ReviewContext } from "./command.ts";
import { pickChange, pickChanges, readChanges, type ChangedBy } from "./pick-change.ts";
import { pickConnected } from "./pick-task.ts";

export async function showChanges(context: ReviewContext, argument: unknown): Promise<void> {
  const title = vscode.l10n.t("Show Changes");
  const child = (await pickConnected(context, argument, { title }))?.child;
  const changes = child && (await readChanges(context, child));
  if (!changes) return;
  // The documents of the diff take their texts from there.
  await (await context.review()).show(child, changes);
  await showInEditor(child, changes);
}

export async function openChange(_context: CommandContext, node: unknown): Promise<void> {
  if (node instanceof ChangeNode) await showChange(node.title, node.taskID, node.change);
}

export async function closeChanges({ review }: ReviewContext): Promise<void> {
  (await review()).close();
}

export async function acceptChange(context: ReviewContext, argument: unknown): Promise<void> {
  const target = await pickChange(context, argument, vscode.l10n.t("Accept Change"));
  if (target) await accept(context, target, [target.change]);
}

export async function acceptAllChanges(context: ReviewContext, argument: unknown): Promise<void> {
  const target = await pickChanges(context, argument, vscode.l10n.t("Accept All Changes"));
  if (!target) return;
  const files = await pendingOf(context, target);
  await accept(context, target, files);
  tellAccepted(context, target, files).catch((error: unknown) => showError(error, context.logger));
}

/** The files stay as they are; they leave the list. */
export async function accept(
  context: ReviewContext,
  { child, changes }: ChangedBy,
  files: readonly FileChange[],
): Promise<void> {
  const review = await context.review();
  const placed = files.map(async (change) => ({ change, present: await presentFile(change.path) }));
  review.accept(child.id, await Promise.all(placed));
  await review.update(child, changes);
}

/** What of a task's changes was neither accepted nor reverted yet. */
export async function pendingOf(
  { review }: ReviewContext,
  { child, changes }: ChangedBy,
): Promise<readonly FileChange[]> {
  return (await (await review()).pending(child.id, changes.files)).map(({ change }) => change);
}

async function tellAccepted(
  context: ReviewContext,
  { child, changes }: ChangedBy,
  accepted: readonly FileChange[],
): Promise<void> {
  if (accepted.length === 0) {
    void vscode.window.showInformationMessage(vscode.l10n.t("There is no change left to review."));
    return;
  }
  const undo = vscode.l10n.t("Undo");
  const message =
    accepted.length === 1
      ? vscode.l10n.t("Accepted one change. Its file stays as it is.")
      : vscode.l10n.t("Accepted {0} changes. Their files stay as they are.", accepted.length);
  if ((await vscode.window.showInformationMessage(message, undo)) !== undo) return;
  const review = await context.review();
  review.unaccept(
    child.id,
    accepted.map(({ path }) => path),
  );
  await review.show(child, changes);
}
