import type { Event } from "../engine/event.ts";
import { isSame } from "../engine/same.ts";
import { isIdle, type PermissionRequest, type ServerEvent } from "../engine/server-model.ts";

/** Where open permissions outlive this process. */
export interface PermissionStore {
  readonly permissions: readonly PermissionRequest[];
  keepPermissions(open: readonly PermissionRequest[]): void;
}

/** The open permissions according to events, for when the server cannot list them. */
export class ReportedPermissions {
  private readonly open: Map<string, PermissionRequest>;
  /** For each list being read: the permissions, and the sessions without a turn, that events told of meanwhile. */
  private readonly readings = new Set<Set<string>>();

  constructor(
    onEvent: Event<ServerEvent>,
    private readonly store?: PermissionStore,
  ) {
    this.open = new Map(store?.permissions.map((request) => [request.id, request]));
    onEvent((event) => this.accept(event));
  }

  all(): readonly PermissionRequest[] {
    return [...this.open.values()];
  }

  /** Forgets a request that was answered, or that the server no longer has. */
  close(requestID: string): void {
    const wasOpen = this.open.delete(requestID);
    this.tell(requestID);
    if (wasOpen) this.keep();
  }

  /** Replaces the permissions of some sessions with the server's list, except for what is newer than that. */
  async replace(
    reading: Promise<readonly PermissionRequest[]>,
    isListed: (sessionID: string) => boolean,
  ): Promise<void> {
    const told = new Set<string>();
    this.readings.add(told);
    try {
      const listed = await reading;
      const before = [...this.open.keys()];
      for (const { id, sessionID } of this.all())
        if (isListed(sessionID) && !told.has(id)) this.open.delete(id);
      for (const request of listed)
        if (!told.has(request.id) && !told.has(request.sessionID)) this.open.set(request.id, request);
      if (!isSame(before, [...this.open.keys()])) this.keep();
    } finally {
      this.readings.delete(told);
    }
  }

  private accept(event: ServerEvent): void {
    if (event.type === "request-asked") {
      if (event.request.type !== "permission") return;
      this.open.set(event.request.id, event.request);
      this.tell(event.request.id);
      this.keep();
    } else if (event.type === "request-closed") {
      this.close(event.requestID);
    } else if (event.type === "session-deleted" || isIdle(event)) {
      // The permissions of an aborted turn are never closed by an event.
      const ended = this.all().filter(({ sessionID }) => sessionID === event.sessionID);
      for (const { id } of ended) this.open.delete(id);
      this.tell(event.sessionID);
      if (ended.length > 0) this.keep();
    }
  }

  private keep(): void {
    this.store?.keepPermissions(this.all());
  }

  private tell(id: string): void {
    for (const told of this.readings) told.add(id);
  }
}
