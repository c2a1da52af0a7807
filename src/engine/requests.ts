import { Emitter, type Disposable, type Event } from "./event.ts";
import type { Logger } from "./ports.ts";
import type { PendingRequest, ServerEvent } from "./server-model.ts";

/** The permissions and questions that the server waits for, the oldest first. */
export class Requests implements Disposable {
  private readonly open = new Map<string, PendingRequest>();
  private readonly changes: Emitter<void>;
  readonly onDidChange: Event<void>;

  constructor(logger: Logger) {
    this.changes = new Emitter((error) => logger.error("A listener to open requests failed.", error));
    this.onDidChange = this.changes.event;
  }

  all(): readonly PendingRequest[] {
    return [...this.open.values()];
  }

  of(sessionID: string): readonly PendingRequest[] {
    return this.all().filter((request) => request.sessionID === sessionID);
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
    const stale = this.of(sessionID);
    for (const { id } of stale) this.open.delete(id);
    if (stale.length > 0) this.changes.fire();
  }

  dispose(): void {
    this.changes.dispose();
  }
}
