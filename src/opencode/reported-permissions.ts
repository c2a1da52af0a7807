import type { Event } from "../engine/event.ts";
import type { PermissionRequest, ServerEvent } from "../engine/server-model.ts";

/** The permissions that wait as far as events told: what there is where the server cannot list them. */
export class ReportedPermissions {
  private readonly open = new Map<string, PermissionRequest>();

  constructor(onEvent: Event<ServerEvent>) {
    onEvent((event) => this.accept(event));
  }

  all(): readonly PermissionRequest[] {
    return [...this.open.values()];
  }

  /** The server listed them: what was not told meanwhile counts no more. */
  replace(listed: readonly PermissionRequest[]): void {
    this.open.clear();
    for (const request of listed) this.open.set(request.id, request);
  }

  private accept(event: ServerEvent): void {
    if (event.type === "request-asked") {
      if (event.request.type === "permission") this.open.set(event.request.id, event.request);
    } else if (event.type === "request-closed") {
      this.open.delete(event.requestID);
    } else if (event.type === "session-deleted" || isIdle(event)) {
      // No event tells of those of a turn that was aborted.
      for (const { id, sessionID } of this.all()) if (sessionID === event.sessionID) this.open.delete(id);
    }
  }
}

function isIdle(event: ServerEvent): event is Extract<ServerEvent, { type: "session-status" }> {
  return event.type === "session-status" && event.status.type === "idle";
}
