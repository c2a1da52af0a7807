import { Emitter, type Disposable, type Event, logged } from "./event.ts";
import type { Clock, Logger } from "./ports.ts";
import { isMadeBefore } from "./ids.ts";
import type { TaskChange, TaskRegistry } from "./registry.ts";
import type { PendingRequest, ServerEvent } from "./server-model.ts";
import { isRunning, isTask, type Child, type SubagentChange } from "./subagent.ts";
import type { Subagents } from "./subagents.ts";

/** Names a request. */
export type RequestRef = Pick<PendingRequest, "id" | "sessionID">;

/** A permission or question that waits for a user, and the task or subagent that asks. */
export interface OpenRequest<R extends RequestRef = RequestRef> {
  readonly request: R;
  readonly child: Child;
}

/** The open permissions and questions, the oldest first. */
export class Requests implements Disposable {
  private readonly open = new Map<string, PendingRequest>();
  private readonly changes: Emitter<void>;
  private readonly disposables: readonly Disposable[];
  readonly onDidChange: Event<void>;

  constructor(
    private readonly registry: TaskRegistry,
    private readonly subagents: Subagents,
    private readonly clock: Clock,
    logger: Logger,
  ) {
    this.changes = new Emitter(logged(logger, "open requests"));
    this.onDidChange = this.changes.event;
    this.disposables = [
      registry.onDidChange((change) => this.follow(change)),
      subagents.onDidChange((change) => this.follow(change)),
    ];
  }

  get(id: string): PendingRequest | undefined {
    return this.open.get(id);
  }

  all(): readonly PendingRequest[] {
    return [...this.open.values()];
  }

  /** The requests of running tasks and subagents. Requests of other sessions no longer have an effect. */
  ofWorking(): readonly PendingRequest[] {
    return this.all().filter(({ sessionID }) => this.isWorking(sessionID));
  }

  accept(event: ServerEvent): void {
    if (event.type === "request-asked") this.open.set(event.request.id, event.request);
    else if (event.type !== "request-closed" || !this.open.delete(event.requestID)) return;
    this.changes.fire();
  }

  /**
   * Leaves out those of a running subagent, adopted or not, from before its turn: the server keeps listing those of aborted
   * turns. Those that are open stay open, because the start of a turn may be noticed late.
   */
  withoutVoid(listed: readonly PendingRequest[]): readonly PendingRequest[] {
    const now = this.clock.now();
    return listed.filter(({ id, sessionID }) => {
      const child = this.child(sessionID);
      const isForeign = child !== undefined && (!isTask(child) || child.adoptedAt !== undefined);
      return !isForeign || !isRunning(child) || this.open.has(id) || !isMadeBefore(id, child.startedAt, now);
    });
  }

  /** Replaces all requests in one step, so that requests that stay open do not appear answered for a moment. */
  replace(requests: readonly PendingRequest[]): void {
    this.open.clear();
    for (const request of requests) this.open.set(request.id, request);
    this.changes.fire();
  }

  /**
   * Removes a session's requests from before this time (milliseconds since 1970). The server keeps listing those of
   * aborted turns, but they have no effect.
   */
  forget(sessionID: string, before = Infinity): void {
    const now = this.clock.now();
    const stale = this.all().filter(
      (request) => request.sessionID === sessionID && isMadeBefore(request.id, before, now),
    );
    for (const { id } of stale) this.open.delete(id);
    if (stale.length > 0) this.changes.fire();
  }

  dispose(): void {
    for (const subscription of this.disposables) subscription.dispose();
    this.changes.dispose();
  }

  /**
   * Requests become void when their turn ends. A turn can be noticed after its first request, and it can be learned later
   * when it began. An adopted subagent keeps running, and keeps its requests.
   */
  private follow({ id, before }: TaskChange | SubagentChange): void {
    const child = this.child(id);
    const isWorking = child !== undefined && isRunning(child);
    if (!before || (isRunning(before) === isWorking && before.startedAt === child?.startedAt)) return;
    this.forget(id, isWorking ? child.startedAt : Infinity);
  }

  private isWorking(sessionID: string): boolean {
    const child = this.child(sessionID);
    return child !== undefined && isRunning(child);
  }

  private child(id: string): Child | undefined {
    return this.registry.get(id) ?? this.subagents.get(id);
  }
}
