import type * as vscode from "vscode";
import { BUDGET_EXCEEDED } from "../engine/ceiling.ts";
import type { RefusedSubagent } from "../engine/engine.ts";
import type { TaskChange } from "../engine/registry.ts";
import { isActive, type Task } from "../engine/task.ts";
import type { EndNotifications, TellContext } from "./tell-task.ts";

/** Tasks of a batch that ended this close to one another, in milliseconds, were stopped as one. */
const STOPPED_AS_ONE_MS = 5_000;

/** Tells the person when what they launched has ended, and when anything comes near its ceiling or is stopped there. */
export class Notifications implements vscode.Disposable {
  private readonly subscriptions: readonly { dispose(): void }[];
  private toldOfDepth = false;
  private ends: Promise<EndNotifications> | undefined;

  constructor(private readonly context: TellContext) {
    this.subscriptions = [
      context.known.onDidChange((change) => void this.tell(change)),
      context.known.onDidWarn((task) => void this.warn(task)),
      context.known.onDidRefuseSubagent((refused) => void this.tellDepth(refused)),
    ];
  }

  dispose(): void {
    void this.ends?.then((ends) => ends.dispose());
    for (const subscription of this.subscriptions) subscription.dispose();
  }

  private async tell({ before, after }: TaskChange): Promise<void> {
    if (!before || !after || !isActive(before) || isActive(after)) return;
    // A resume that the server did not take leaves the task as it was.
    if (before.endedAt === after.endedAt) return;
    if (after.launchedBy !== "person" && !isStoppedAtCeiling(after)) return;
    // At once, as the tasks beside it may change while the texts are loaded.
    const siblings = this.context.known.list(after.parentSessionID);
    if (after.launchedBy !== "person" && siblings.some((other) => isStoppedWith(other, after))) return;
    this.ends ??= import("./later.ts").then(({ EndNotifications }) => new EndNotifications(this.context));
    await (await this.ends).tell(after, before.status === "running" ? siblings : []);
  }

  private async warn(task: Task): Promise<void> {
    if (this.context.notifyUser() === "never") return;
    const { tellCeiling } = await import("./later.ts");
    await tellCeiling(this.context, task);
  }

  /** Agents try again and again: the remedy is the same each time. */
  private async tellDepth(refused: RefusedSubagent): Promise<void> {
    if (this.toldOfDepth || this.context.notifyUser() === "never") return;
    this.toldOfDepth = true;
    const { tellDepth } = await import("./later.ts");
    await tellDepth(this.context, refused);
  }
}

/** The ceilings are the person's, whoever launched what they stop. */
function isStoppedAtCeiling({ error }: Task): boolean {
  return error?.name === BUDGET_EXCEEDED;
}

/** Whether this other task was stopped a moment before, so that the person knows of their batch. */
function isStoppedWith(other: Task, { id, batchID, endedAt = 0 }: Task): boolean {
  return (
    other.id !== id &&
    other.batchID === batchID &&
    isStoppedAtCeiling(other) &&
    Math.abs(endedAt - (other.endedAt ?? 0)) < STOPPED_AS_ONE_MS
  );
}
