import * as vscode from "vscode";
import type { TaskEngine } from "../engine/engine.ts";
import type { TaskChange } from "../engine/registry.ts";
import { isActive, type Task } from "../engine/task.ts";
import type { Settings } from "./settings.ts";

/** Tells the person when a task that they launched has ended. */
export class Notifications implements vscode.Disposable {
  private readonly subscription: { dispose(): void };

  constructor(
    engine: TaskEngine,
    private readonly settings: Settings,
    private readonly showOutput: (taskID: string) => void,
    /** Whether the person is looking at this task's output now. */
    private readonly isShown: (taskID: string) => boolean,
  ) {
    this.subscription = engine.onDidChange((change) => void this.tell(change));
  }

  dispose(): void {
    this.subscription.dispose();
  }

  private async tell({ before, after }: TaskChange): Promise<void> {
    if (!before || !after || !isActive(before) || isActive(after)) return;
    // A resume that the server did not take leaves the task as it was.
    if (before.endedAt === after.endedAt) return;
    if (after.launchedBy !== "person" || this.isShown(after.id) || !this.wants(after)) return;
    const show = vscode.l10n.t("Show Output");
    if ((await this.notify(after, show)) === show) this.showOutput(after.id);
  }

  private wants({ status }: Task): boolean {
    const setting = this.settings.notifyUser();
    // Whoever cancelled a task knows that it ended.
    if (setting === "never" || status === "cancelled") return false;
    return setting === "always" || status === "error";
  }

  private notify({ status, description, error }: Task, show: string): Thenable<string | undefined> {
    return status === "error"
      ? vscode.window.showErrorMessage(
          vscode.l10n.t(
            'Task "{0}" failed: {1}',
            description,
            error?.message ?? vscode.l10n.t("no reason was given"),
          ),
          show,
        )
      : vscode.window.showInformationMessage(
          vscode.l10n.t('Task "{0}" completed.', withoutLinks(description)),
          show,
        );
  }
}

/** The editor makes links of Markdown ones in a notification, commands included: what agents and models write must not. */
function withoutLinks(text: string): string {
  return text.replaceAll("](", "] (");
}
