import * as vscode from "vscode";
import { showChanges as show } from "../changes/show-changes.ts";
import { connectedFolder } from "../folders/connected-folder.ts";
import type { Command } from "./command.ts";
import { connectFor, pickChild } from "./pick-task.ts";

/** Milliseconds after which progress is shown. */
const PATIENCE_MS = 500;

export const showChanges: Command = {
  isAboutTask: true,
  async run(context, argument) {
    await connectFor(context, argument);
    const child = await pickChild(context, argument, {
      title: vscode.l10n.t("Show Changes"),
    });
    if (!child) return undefined;
    const folder = await connectedFolder(context.folders, context.folders.of(child.id));
    // What a fork inherited was done before it was there.
    const reading = folder.connection.server.changes(child.id, child.createdAt);
    const changes = await withPatience(vscode.l10n.t("Reading the changes"), reading);
    if (changes) await show(child, changes, context.addText);
    return changes;
  },
};

/** What the work gives; if it takes long, with progress and a way to cancel. Undefined: cancelled. */
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
