import { Emitter, type Disposable, type Event } from "./event.ts";
import type { Logger } from "./ports.ts";
import type { TaskChange, TaskRegistry } from "./registry.ts";
import type { PendingRequest, ServerEvent } from "./server-model.ts";
import { isRunning, type Child, type SubagentChange } from "./subagent.ts";
import type { Subagents } from "./subagents.ts";

/** A permission or a question that waits for a user, and who asks. */
export interface OpenRequest {
  readonly request: PendingRequest;
  readonly child: Child;
}

/** The permissions and questions that the server waits for, the oldest first. */
export class Requests implements Disposable {
  private readonly open = new Map<string, PendingRequest>();
  private readonly changes: Emitter<void>;
  private readonly subscriptions: readonly Disposable[];
  readonly onDidChange: Event<void>;

  constructor(
    private readonly registry: TaskRegistry,
    private readonly subagents: Subagents,
    logger: Logger,
  ) {
    this.changes = new Emitter((error) => logger.error("A listener to open requests failed.", error));
    this.onDidChange = this.changes.event;
    this.subscriptions = [
      registry.onDidChange((change) => this.follow(change)),
      subagents.onDidChange((change) => this.follow(change)),
    ];
  }

  all(): readonly PendingRequest[] {
    return [...this.open.values()];
  }

  /** Those of tasks and subagents at work: what others asked for is of no use. */
  ofWorking(): readonly PendingRequest[] {
    return this.all().filter(({ sessionID }) => this.isWorking(sessionID));
  }

  accept(event: ServerEvent): void {
    if (event.type === "request-asked") this.open.set(event.request.id, event.request);
    else if (event.type !== "request-closed" || !this.open.delete(event.requestID)) return;
    this.changes.fire();
  }

  /** Only these count from here on. In one step: those that stay open must not look answered for a moment. */
  replace(requests: readonly PendingRequest[]): void {
    this.open.clear();
    for (const request of requests) this.open.set(request.id, request);
    this.changes.fire();
  }

  /** No request outlives the turn that asked; those of an aborted one stay on the server's list for good. */
  forget(sessionID: string): void {
    const stale = this.all().filter((request) => request.sessionID === sessionID);
    for (const { id } of stale) this.open.delete(id);
    if (stale.length > 0) this.changes.fire();
  }

  dispose(): void {
    for (const subscription of this.subscriptions) subscription.dispose();
    this.changes.dispose();
  }

  /** What a turn asked for has no use once it has ended, nor for the next one. A subagent that is adopted works on. */
  private follow({ id, before }: TaskChange | SubagentChange): void {
    if (before && isRunning(before) !== this.isWorking(id)) this.forget(id);
  }

  private isWorking(sessionID: string): boolean {
    const child = this.registry.get(sessionID) ?? this.subagents.get(sessionID);
    return child !== undefined && isRunning(child);
  }
}
