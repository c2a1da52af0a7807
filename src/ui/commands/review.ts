import * as vscode from "vscode";
import type { FileChange } from "../../engine/server-model.ts";
import { ChangeNode } from "../changes/changes-view.ts";
import { presentFile } from "../changes/present-file.ts";
import { showChange } from "../changes/show-changes.ts";
import { showError } from "../human-error.ts";
import { isFromCode, type Command, type CommandContext } from "./command.ts";
import { pickChange, pickChanges, type ChangedBy } from "./pick-change.ts";

/** What accepting gives a program. */
interface Accepted {
  /** Absolute paths. */
  readonly accepted: readonly string[];
}

export const openChange: Command = {
  isAboutTask: true,
  async run(_context, node) {
    if (node instanceof ChangeNode) await showChange(node.title, node.taskID, node.change);
  },
};

export const closeChanges: Command = {
  run: async ({ review }) => (await review()).close(),
};

export const acceptChange: Command = {
  isAboutTask: true,
  async run(context, argument, path) {
    const target = await pickChange(context, argument, path, vscode.l10n.t("Accept Change"));
    return target && accept(context, target, [target.change]);
  },
};

export const acceptAllChanges: Command = {
  isAboutTask: true,
  async run(context, argument) {
    const target = await pickChanges(context, argument, vscode.l10n.t("Accept All Changes"));
    if (!target) return undefined;
    const review = await context.review();
    const pending = await review.pending(target.child.id, target.changes.files);
    const result = await accept(
      context,
      target,
      pending.map(({ change }) => change),
    );
    if (!isFromCode([argument]))
      tellAccepted(context, target, result).catch((error: unknown) => showError(error, context.logger));
    return result;
  },
};

/** The files stay as they are; they leave the list. */
async function accept(
  context: CommandContext,
  { child, changes }: ChangedBy,
  files: readonly FileChange[],
): Promise<Accepted> {
  const review = await context.review();
  const placed = files.map(async (change) => ({ change, present: await presentFile(change.path) }));
  review.accept(child.id, await Promise.all(placed));
  await review.update(child, changes);
  return { accepted: files.map(({ path }) => path) };
}

async function tellAccepted(
  context: CommandContext,
  { child, changes }: ChangedBy,
  { accepted }: Accepted,
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
  review.unaccept(child.id, accepted);
  await review.show(child, changes);
}
