import { DisposableStore } from "../engine/disposable-store.ts";
import * as vscode from "vscode";
import { BUDGET_EXCEEDED } from "../engine/limit.ts";
import type { OpenRequest, RequestRef } from "../engine/requests.ts";
import type { Refused } from "../engine/folder-changes.ts";
import type { TaskChange } from "../engine/registry.ts";
import { isActive, isTakenBack, type Task } from "../engine/task.ts";
import { loadLater } from "./load-later.ts";
import type { FlowContext } from "./requests/answer-flow.ts";
import type { EndNotifications, NotificationContext } from "./task-notifications.ts";

/** Tasks of a batch that end within this time, in milliseconds, count as stopped together. */
const STOPPED_AS_ONE_MS = 5_000;

/**
 * Notifies the user when a task they launched has ended, when a task approaches a limit or is stopped by one, when
 * two tasks change the same file, and when an agent was refused what the user can allow.
 */
export class Notifications implements vscode.Disposable {
  private readonly disposables: DisposableStore;
  /** The kinds of refusals that were shown. */
  private readonly refusals = new Set<Refused["kind"]>();
  /** When the last reported stop of an agent's tasks at a limit was, by batch; in milliseconds since 1970. */
  private readonly reportedStops = new Map<string, number>();
  private ends: Promise<EndNotifications> | undefined;

  constructor(private readonly context: NotificationContext) {
    this.disposables = new DisposableStore(
      context.known.onDidChange((change) => void this.show(change)),
      context.known.onDidChange((change) => void this.showCollisions(change)),
      context.known.onDidWarn((task) => void this.warn(task)),
      context.known.onDidRefuse((refused) => void this.showRefused(refused)),
    );
  }

  dispose(): void {
    void this.ends?.then((ends) => ends.dispose());
    this.disposables.dispose();
  }

  private async show({ before, after }: TaskChange): Promise<void> {
    if (!before || !isActive(before) || (after && (isActive(after) || isTakenBack(before, after)))) return;
    if (!after) {
      if (before.launchedBy === "person" && before.status === "running")
        (await this.endNotifications()).leave(before, this.context.known.list(before.parentSessionID));
      return;
    }
    if (after.launchedBy !== "person" && !isStoppedAtLimit(after)) return;
    // Read before the texts are loaded, because the other tasks may change in the meantime.
    const siblings = this.context.known.list(after.parentSessionID);
    if (after.launchedBy !== "person" && this.isReported(after)) return;
    (await this.endNotifications()).show(after, before.status === "running" ? siblings : []);
  }

  private endNotifications(): Promise<EndNotifications> {
    return (this.ends ??= loadLater().then(({ EndNotifications }) => new EndNotifications(this.context)));
  }

  /** Whether the stop of another task of the batch was reported within a moment. If not, this one is noted. */
  private isReported({ parentSessionID, batchID, endedAt = 0 }: Task): boolean {
    const batch = `${parentSessionID}/${batchID}`;
    const reported = this.reportedStops.get(batch);
    if (reported !== undefined && Math.abs(endedAt - reported) < STOPPED_AS_ONE_MS) return true;
    this.reportedStops.set(batch, endedAt);
    return false;
  }

  /** Skips collisions that a window finds when it opens: these were reported before. */
  private async showCollisions({ before, after }: TaskChange): Promise<void> {
    if (!before || !after?.collisions) return;
    const known = new Set(before.collisions?.map(({ taskID }) => taskID));
    const found = after.collisions.filter(({ taskID, isFirst }) => isFirst && !known.has(taskID));
    if (found.length === 0 || this.context.notifyUser() === "never") return;
    const { showCollision } = await loadLater();
    await Promise.all(found.map((collision) => showCollision(after, collision)));
  }

  private async warn(task: Task): Promise<void> {
    if (this.context.notifyUser() === "never") return;
    const { showNearLimit } = await loadLater();
    await showNearLimit(this.context, task);
  }

  /** Shown once, because agents retry and the remedy is the same each time. */
  private async showRefused(refused: Refused): Promise<void> {
    const { kind } = refused;
    if (this.refusals.has(kind) || this.context.notifyUser() === "never") return;
    this.refusals.add(kind);
    const { showRefused } = await loadLater();
    await showRefused(this.context, refused);
    // A subagent needs another server first.
    if (kind === "setup") this.refusals.delete(kind);
  }
}

/** Limits are set by the user, so reaching one is reported whoever launched the task. */
function isStoppedAtLimit({ error }: Task): boolean {
  return error?.name === BUDGET_EXCEEDED;
}

/** Requests that arrive within this time of each other, in milliseconds, are shown together. */
const GATHER_MS = 100;
/** How long a combined notification is in front of the user, in milliseconds; then the editor may have hidden it. */
const SUMMARY_MS = 10_000;

/** Notifies the user once per window of each permission and question that waits for them. */
export class RequestNotifications implements vscode.Disposable {
  private readonly disposables: vscode.Disposable;
  private readonly shown = new Set<string>();
  /** The requests whose notification hasn't been answered yet. */
  private readonly showing = new Set<string>();
  /** The requests covered by the combined notification. */
  private summarised = new Set<string>();
  /** When that notification was shown, in milliseconds since 1970. */
  private summarisedAt = 0;
  private gathering: NodeJS.Timeout | undefined;

  constructor(
    private readonly context: FlowContext,
    /** Whether the user can see the output of this agent, which includes the request. */
    private readonly isShown: (id: string) => boolean,
    /** The time in milliseconds since 1970. */
    private readonly now: () => number = Date.now,
  ) {
    const showSoon = (): void => {
      this.gathering ??= setTimeout(() => this.showNew(), GATHER_MS);
    };
    this.disposables = vscode.Disposable.from(
      context.known.onDidChangeRequests(showSoon),
      context.folders.follow(({ connector }) => connector.onDidChange(showSoon)),
    );
  }

  dispose(): void {
    clearTimeout(this.gathering);
    this.disposables.dispose();
  }

  private showNew(): void {
    this.gathering = undefined;
    const open = this.context.known.openRequests();
    const fresh = open.filter(({ request }) => !this.shown.has(request.id) && !this.isSummarised(request));
    for (const { request } of fresh) this.shown.add(request.id);
    const unshown = fresh.filter(({ child }) => !this.isShown(child.id));
    if (unshown.length === 0) return;
    const now = this.now();
    const stillShown = (ids: ReadonlySet<string>): number =>
      open.filter(({ request }) => ids.has(request.id)).length;
    const summarised = stillShown(this.summarised);
    if (summarised > 0 && now - this.summarisedAt < SUMMARY_MS) {
      for (const { request } of unshown) this.summarised.add(request.id);
    } else if (summarised + stillShown(this.showing) + unshown.length > 1) {
      this.summarisedAt = now;
      // The end of an earlier one doesn't concern this one.
      this.summarised = new Set(this.summarised);
      void this.run(unshown, this.summarised, async () =>
        (await loadLater()).showSeveral(this.context, open.length),
      );
    } else {
      for (const one of unshown)
        void this.run([one], this.showing, async () => (await loadLater()).showRequest(this.context, one));
    }
  }

  /** Whether the request is or may be covered by the notification of what happened while no window was open. */
  private isSummarised({ id, sessionID }: RequestRef): boolean {
    return this.context.folders.of(sessionID)?.whileAway.covers(id) ?? false;
  }

  private async run(
    requests: readonly OpenRequest[],
    shown: Set<string>,
    show: () => Promise<void>,
  ): Promise<void> {
    for (const { request } of requests) shown.add(request.id);
    try {
      await show();
    } catch (error) {
      this.context.logger.error("Couldn't show a request.", error);
    } finally {
      if (shown === this.summarised) shown.clear();
      else for (const { request } of requests) shown.delete(request.id);
    }
  }
}
