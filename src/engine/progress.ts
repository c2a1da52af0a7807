import { isMadeBefore } from "./ids.ts";
import type { Part, PendingRequest, ServerEvent, SessionStatus } from "./server-model.ts";
import type { Phase, Progress, ToolUse } from "./task.ts";

const RECENT_TOOLS = 5;

/**
 * Tracks the progress of one turn. `accept` and each `on…` return whether anything visible to users changed. Activity
 * without visible change only updates `lastUpdate`.
 */
export class ProgressTracker {
  private activity: "queued" | "setting-up" | "starting" | "thinking" | "streaming";
  private retry: Progress["retry"];
  private stalled = false;
  private reasoningPartID: string | undefined;
  private readonly tools = new Map<string, ToolUse>();
  private readonly requests = new Map<string, PendingRequest["type"]>();

  constructor(
    private lastUpdate: number,
    queued = false,
  ) {
    this.activity = queued ? "queued" : "starting";
  }

  accept(event: ServerEvent, now: number): boolean {
    switch (event.type) {
      case "session-status":
        return this.onStatus(event.status, now);
      case "part-changed":
        return this.onPart(event.part, now);
      case "part-delta":
        return this.onDelta(event.partID, now);
      case "request-asked":
        return this.onRequestAsked(event.request, now);
      case "request-closed":
        return this.onRequestClosed(event.requestID, now);
      default:
        return false;
    }
  }

  onStatus(status: SessionStatus, now: number): boolean {
    this.alive(now);
    const isNews = this.noteRetry(status);
    const begins = status.type === "busy" && this.activity !== "thinking" && this.activity !== "streaming";
    if (begins) this.activity = "thinking";
    return begins || isNews;
  }

  /** Takes from a status that was read whether the model is to be asked again. It is no sign of activity. */
  noteRetry(status: SessionStatus): boolean {
    const before = this.retry;
    this.retry =
      status.type === "retry"
        ? { attempt: status.attempt, message: status.message, next: status.next }
        : undefined;
    return before?.attempt !== this.retry?.attempt;
  }

  /** The setup command of its worktree has started. */
  onSetup(now: number): void {
    this.alive(now);
    this.activity = "setting-up";
  }

  onPart(part: Part, now: number): boolean {
    const woke = this.alive(now);
    if (part.type === "tool") {
      const before = this.tools.get(part.id);
      // A part that was read may be older than a part received as an event in the meantime.
      if (before?.status === "completed" || before?.status === "error") return woke;
      const title = "title" in part.state && part.state.title ? part.state.title : before?.title;
      const { status } = part.state;
      this.tools.set(part.id, { tool: part.tool, title, status });
      const stepped = this.step("thinking");
      return woke || stepped || before?.status !== status || before.title !== title;
    }
    if (part.type === "reasoning") {
      this.reasoningPartID = part.id;
      return this.step("thinking") || woke;
    }
    // Text by users has no start. Only the model's own text is progress.
    if (part.type === "text" && part.start !== undefined)
      return this.step(part.end === undefined ? "streaming" : "thinking") || woke;
    return woke;
  }

  onDelta(partID: string, now: number): boolean {
    const woke = this.alive(now);
    return this.step(partID === this.reasoningPartID ? "thinking" : "streaming") || woke;
  }

  onRequestAsked(request: PendingRequest, now: number): boolean {
    this.alive(now);
    if (this.requests.has(request.id)) return false;
    this.requests.set(request.id, request.type);
    return true;
  }

  onRequestClosed(requestID: string, now: number): boolean {
    this.alive(now);
    return this.requests.delete(requestID);
  }

  /** Drops requests that are not in `open` any more: they were answered while disconnected. */
  keepRequests(open: ReadonlySet<string>): boolean {
    const stale = [...this.requests.keys()].filter((id) => !open.has(id));
    for (const id of stale) this.requests.delete(id);
    return stale.length > 0;
  }

  /** Drops requests from before the turn began, in milliseconds since 1970. */
  forgetRequests(before: number, now: number): void {
    for (const id of this.requests.keys()) if (isMadeBefore(id, before, now)) this.requests.delete(id);
  }

  /** Marks the turn as stalled after `limit` milliseconds without activity, unless it waits for a user or a retry. */
  checkStall(now: number, limit: number): boolean {
    const waits = this.requests.size > 0 || (this.retry !== undefined && this.retry.next > now);
    const stalled = limit > 0 && !waits && now - this.lastUpdate >= limit;
    const changed = stalled !== this.stalled;
    this.stalled = stalled;
    return changed;
  }

  snapshot(): Progress {
    const tools = [...this.tools.values()];
    const toolCounts: Record<string, number> = {};
    for (const { tool } of tools) toolCounts[tool] = (toolCounts[tool] ?? 0) + 1;
    return {
      phase: this.phase(tools),
      toolCalls: tools.length,
      toolCounts,
      recentTools: tools.slice(-RECENT_TOOLS),
      lastUpdate: this.lastUpdate,
      retry: this.retry,
    };
  }

  private phase(tools: readonly ToolUse[]): Phase {
    const waiting = new Set(this.requests.values());
    if (waiting.has("permission")) return "needs-permission";
    if (waiting.has("question")) return "needs-answer";
    if (this.retry) return "retrying";
    if (this.stalled) return "stalled";
    if (tools.some(({ status }) => status === "pending" || status === "running")) return "tool";
    return this.activity;
  }

  private step(activity: "thinking" | "streaming"): boolean {
    const changed = this.activity !== activity;
    this.activity = activity;
    return changed;
  }

  private alive(now: number): boolean {
    this.lastUpdate = now;
    const woke = this.stalled;
    this.stalled = false;
    return woke;
  }
}
