import * as vscode from "vscode";
import type { SessionChanges } from "../../engine/server-model.ts";
import type { Child } from "../../engine/subagent.ts";
import { showChanges as show } from "../changes/show-changes.ts";
import type { Command, CommandContext } from "./command.ts";
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
    const changes = await readChanges(context, child);
    if (!changes) return undefined;
    // The documents of the diff take their texts from there.
    await (await context.review()).show(child, changes);
    await show(child, changes);
    return changes;
  },
};

/** What a task or subagent changed; if it takes long, with progress. Undefined: the person cancelled. */
export async function readChanges(
  { review }: CommandContext,
  child: Child,
): Promise<SessionChanges | undefined> {
  return withPatience(vscode.l10n.t("Reading the changes"), (await review()).read(child));
}

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
