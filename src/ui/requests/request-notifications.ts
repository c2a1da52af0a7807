import * as vscode from "vscode";
import type { OpenRequest } from "../../engine/engine.ts";
import type { PendingRequest } from "../../engine/server-model.ts";
import type { FlowContext } from "./answer-flow.ts";

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
        (await import("../later.ts")).tellSeveral(this.context, open.length),
      );
    } else {
      for (const one of untold)
        void this.run([one], this.showing, async () =>
          (await import("../later.ts")).tellRequest(this.context, one),
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
