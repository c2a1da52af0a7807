import type { Event } from "../engine/event.ts";
import { isIdle, type PermissionRequest, type ServerEvent } from "../engine/server-model.ts";

/** The open permissions according to events, for when the server cannot list them. */
export class ReportedPermissions {
  private readonly open = new Map<string, PermissionRequest>();

  constructor(onEvent: Event<ServerEvent>) {
    onEvent((event) => this.accept(event));
  }

  all(): readonly PermissionRequest[] {
    return [...this.open.values()];
  }

  /** Replaces the permissions of some sessions with the server's list. */
  replace(listed: readonly PermissionRequest[], isListed: (sessionID: string) => boolean): void {
    for (const { id, sessionID } of this.all()) if (isListed(sessionID)) this.open.delete(id);
    for (const request of listed) this.open.set(request.id, request);
  }

  private accept(event: ServerEvent): void {
    if (event.type === "request-asked") {
      if (event.request.type === "permission") this.open.set(event.request.id, event.request);
    } else if (event.type === "request-closed") {
      this.open.delete(event.requestID);
    } else if (event.type === "session-deleted" || isIdle(event)) {
      // The permissions of an aborted turn are never closed by an event.
      for (const { id, sessionID } of this.all()) if (sessionID === event.sessionID) this.open.delete(id);
    }
  }
}
