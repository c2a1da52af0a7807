import * as vscode from "vscode";
import { BUDGET_EXCEEDED } from "../engine/ceiling.ts";
import type { OpenRequest, RefusedSubagent } from "../engine/engine.ts";
import type { TaskChange } from "../engine/registry.ts";
import type { PendingRequest } from "../engine/server-model.ts";
import { isActive, type Task } from "../engine/task.ts";
import type { FlowContext } from "./requests/answer-flow.ts";
import type { EndNotifications, TellContext } from "./tell-task.ts";

/** Tasks of a batch that ended this close to one another, in milliseconds, were stopped as one. */
const STOPPED_AS_ONE_MS = 5_000;

/**
 * Tells the person when what they launched has ended, when anything comes near its ceiling or is stopped there, and when two
 * tasks change the same file.
 */
export class Notifications implements vscode.Disposable {
  private readonly subscriptions: readonly { dispose(): void }[];
  private toldOfDepth = false;
  private ends: Promise<EndNotifications> | undefined;

  constructor(private readonly context: TellContext) {
    this.subscriptions = [
      context.known.onDidChange((change) => void this.tell(change)),
      context.known.onDidChange((change) => void this.tellCollisions(change)),
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

  /** What a window finds when it opens was told before. */
  private async tellCollisions({ before, after }: TaskChange): Promise<void> {
    if (!before || !after?.collisions) return;
    const known = new Set(before.collisions?.map(({ taskID }) => taskID));
    const found = after.collisions.filter(({ taskID, isFirst }) => isFirst && !known.has(taskID));
    if (found.length === 0 || this.context.notifyUser() === "never") return;
    const { tellCollision } = await import("./later.ts");
    await Promise.all(found.map((collision) => tellCollision(after, collision)));
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

/** Requests that come so soon after one another are told together, in milliseconds. */
const GATHER_MS = 100;
/** So many notifications of their own may wait for an answer; more are told in one. */
const AT_ONCE = 3;

/** Tells the person of each permission and question that waits for them, once in the life of a window. */
export class RequestNotifications implements vscode.Disposable {
  private readonly subscriptions: vscode.Disposable;
  private readonly told = new Set<string>();
  /** Those whose notification was not answered yet. */
  private readonly showing = new Set<string>();
  /** Those that the notification for several was about. */
  private readonly summarised = new Set<string>();
  private gathering: NodeJS.Timeout | undefined;

  constructor(
    private readonly context: FlowContext,
    /** Whether the person is looking at this agent's output now: it shows the request. */
    private readonly isShown: (id: string) => boolean,
  ) {
    const tellSoon = (): void => {
      this.gathering ??= setTimeout(() => this.tellNew(), GATHER_MS);
    };
    this.subscriptions = vscode.Disposable.from(
      context.known.onDidChangeRequests(tellSoon),
      context.folders.follow(({ connector }) => connector.onDidChange(tellSoon)),
    );
  }

  dispose(): void {
    clearTimeout(this.gathering);
    this.subscriptions.dispose();
  }

  private tellNew(): void {
    this.gathering = undefined;
    const open = this.context.known.openRequests();
    const fresh = open.filter(({ request }) => !this.told.has(request.id) && !this.isSummarised(request));
    for (const { request } of fresh) this.told.add(request.id);
    const untold = fresh.filter(({ child }) => !this.isShown(child.id));
    if (untold.length === 0) return;
    const stillShown = (ids: ReadonlySet<string>): number =>
      open.filter(({ request }) => ids.has(request.id)).length;
    if (stillShown(this.summarised) > 0) {
      for (const { request } of untold) this.summarised.add(request.id);
    } else if (stillShown(this.showing) + untold.length > AT_ONCE) {
      void this.run(untold, this.summarised, async () =>
        (await import("./later.ts")).tellSeveral(this.context, open.length),
      );
    } else {
      for (const one of untold)
        void this.run([one], this.showing, async () =>
          (await import("./later.ts")).tellRequest(this.context, one),
        );
    }
  }

  /** Whether one notification for all that came while no window was open tells of it, or may. */
  private isSummarised({ id, sessionID }: PendingRequest): boolean {
    return this.context.folders.of(sessionID)?.whileAway.covers(id) ?? false;
  }

  private async run(
    requests: readonly OpenRequest[],
    shown: Set<string>,
    tell: () => Promise<void>,
  ): Promise<void> {
    for (const { request } of requests) shown.add(request.id);
    try {
      await tell();
    } catch (error) {
      this.context.logger.error("A request could not be told.", error);
    } finally {
      if (shown === this.summarised) shown.clear();
      else for (const { request } of requests) shown.delete(request.id);
    }
  }
}
