import * as vscode from "vscode";
import type { RefusedSubagent } from "../engine/engine.ts";
import { excerpt, oneLine } from "../engine/fork/excerpt.ts";
import type { EndContext } from "./notifications.ts";
import { withoutLinks } from "./plain-text.ts";

/** As much of a task's description as a notification shows. */
const TASK_SHOWN = 60;

/** Says what to set in OpenCode's configuration so that the agents of tasks can use subagents. */
export async function tellDepth(
  { showOutput }: Pick<EndContext, "showOutput">,
  { task, depth }: RefusedSubagent,
): Promise<void> {
  const show = vscode.l10n.t("Show Output");
  const message = vscode.l10n.t(
    'OpenCode refused task "{0}" a subagent, because its configuration allows none at this level. Set "subagent_depth": {1} in OpenCode\'s configuration, then restart the server.',
    excerpt(oneLine(task.description), TASK_SHOWN),
    depth,
  );
  const choice = await vscode.window.showWarningMessage(withoutLinks(message), show);
  if (choice === show) showOutput(task.id);
}
