import { messageOf, type Refusal } from "./errors.ts";
import { Emitter, type Disposable, type Event } from "./event.ts";
import { noSuchSubagent } from "./find-task.ts";
import { MultiMap } from "./multi-map.ts";
import type { EnginePorts } from "./ports.ts";
import { ProgressTracker } from "./progress.ts";
import type { TaskRegistry } from "./registry.ts";
import {
  sessionOf,
  type AgentError,
  type SessionEvent,
  type Session,
  type SessionStatus,
} from "./server-model.ts";
import type { Subagent, SubagentChange } from "./subagent.ts";
import { shortID } from "./task.ts";
import type { Family } from "./tree.ts";

/** How often within the time after which silence counts as a stall it is looked for. */
const LOOKS_PER_STALL = 4;

type Ending =
  | { readonly status: "idle" | "cancelled"; readonly at: number; readonly error?: undefined }
  | { readonly status: "error"; readonly at: number; readonly error: AgentError };

/** A session that the server links to a parent. */
type ChildSession = Session & { readonly parentID: string };

/** A subagent as the engine holds it. */
interface TrackedSubagent {
  session: ChildSession;
  /** Of the present or last turn; undefined: none was seen. */
  startedAt: number | undefined;
  /** Present while it works. */
  progress: ProgressTracker | undefined;
  /** The server's last word on an error since the turn began or went on. */
  lastError: AgentError | undefined;
  /** How the last turn was seen to end. */
  ending: Ending | undefined;
  /** Of the turns that were seen to end. */
  toolCalls: number;
  snapshot: Subagent;
}

/** The sessions below others that are no tasks, followed by what the server tells of them; nothing is written to them. */
export class Subagents implements Family<Subagent>, Disposable {
  private readonly held = new Map<string, TrackedSubagent>();
  private readonly byParent = new MultiMap<string, TrackedSubagent>();
  private readonly subscription: Disposable;
  /** Looks for those that fell silent; only while one works. */
  private silenceTimer: Disposable | undefined;
  private readonly changes: Emitter<SubagentChange>;
  readonly onDidChange: Event<SubagentChange>;

  constructor(
    private readonly ports: Pick<EnginePorts, "server" | "clock" | "logger" | "settings">,
    private readonly registry: TaskRegistry,
  ) {
    const { logger } = ports;
    this.changes = new Emitter((error) => logger.error("A listener to subagent changes failed.", error));
    this.onDidChange = this.changes.event;
    this.subscription = registry.onDidChangeSession((id) => this.follow(id));
  }

  get(sessionID: string): Subagent | undefined {
    return this.held.get(sessionID)?.snapshot;
  }

  all(): readonly Subagent[] {
    return [...this.held.values()].map(({ snapshot }) => snapshot);
  }

  childrenOf(sessionID: string): readonly Subagent[] {
    return [...this.byParent.of(sessionID)].map(({ snapshot }) => snapshot);
  }

  /** Why there is no subagent of this ID. */
  unknown(sessionID: string): Refusal {
    return noSuchSubagent(sessionID);
  }

  isEmpty(): boolean {
    return this.held.size === 0;
  }

  /** Takes in what the server tells of a session; of one that is no subagent it does nothing. */
  accept(event: SessionEvent): void {
    const held = this.held.get(sessionOf(event));
    if (!held) return;
    if (event.type === "session-status") this.acceptStatus(held, event.status);
    else if (event.type === "session-error") held.lastError = event.error;
    else if (held.progress?.accept(event, this.ports.clock.now())) this.change(held, () => undefined);
  }

  /** Brings what works up to date after a (re)connect: what went on meanwhile was not told. */
  resync(statuses: ReadonlyMap<string, SessionStatus>, openRequests: ReadonlySet<string>): void {
    for (const [id, held] of this.held) {
      const status = statuses.get(id);
      if (status) this.acceptStatus(held, status);
      else if (held.progress) this.change(held, () => endUnseen(held));
      if (held.progress?.keepRequests(openRequests)) this.change(held, () => undefined);
    }
  }

  /** Reads what those at work did so far, which this process may not have seen. */
  catchUp(): void {
    for (const held of this.held.values()) if (held.progress) void this.readTurn(held, held.progress);
    this.listenForSilence();
  }

  /** Without a connection silence says nothing. */
  disconnect(): void {
    this.silenceTimer?.dispose();
    this.silenceTimer = undefined;
  }

  dispose(): void {
    this.disconnect();
    this.subscription.dispose();
    this.changes.dispose();
  }

  private follow(id: string): void {
    const session = this.registry.session(id);
    const held = this.held.get(id);
    if (!session || !this.isSubagent(session)) {
      if (!held) return;
      this.handToTask(held);
      this.drop(held);
    } else if (held?.session.parentID !== session.parentID) {
      if (held) this.drop(held);
      this.add(session);
    } else if (looksDifferent(held.session, session)) {
      this.change(held, () => (held.session = session));
    }
  }

  /** What became a task goes on with the turn that was followed here. */
  private handToTask({ session, progress, lastError }: TrackedSubagent): void {
    const entry = this.registry.entry(session.id);
    if (!entry?.turn || !progress) return;
    entry.turn.progress = progress;
    entry.turn.lastError = lastError;
    this.registry.progressed(entry);
  }

  private isSubagent(session: Session): session is ChildSession {
    const { id, parentID, archived, task } = session;
    return (
      parentID !== undefined && archived === undefined && task.kind === "none" && !this.registry.entry(id)
    );
  }

  private add(session: ChildSession): void {
    const facts = {
      session,
      startedAt: undefined,
      progress: undefined,
      lastError: undefined,
      ending: undefined,
      toolCalls: 0,
    };
    const held = { ...facts, snapshot: snapshotOf(facts) };
    this.held.set(session.id, held);
    this.byParent.add(session.parentID, held);
    this.changes.fire({ id: session.id, before: undefined, after: held.snapshot });
  }

  private drop(held: TrackedSubagent): void {
    const {
      session: { id, parentID },
      snapshot,
    } = held;
    this.held.delete(id);
    this.byParent.delete(parentID, held);
    this.changes.fire({ id, before: snapshot, after: undefined });
  }

  private acceptStatus(held: TrackedSubagent, status: SessionStatus): void {
    const now = this.ports.clock.now();
    const { progress, lastError } = held;
    if (status.type === "idle") {
      // It is told twice.
      if (progress) this.change(held, () => end(held, progress, now));
      return;
    }
    // A turn goes on after some errors: after one that the context is full, with a compaction.
    if (lastError) held.lastError = undefined;
    if (!progress) {
      this.change(held, () => begin(held, status, now));
      this.listenForSilence();
    } else if (progress.onStatus(status, now)) this.change(held, () => undefined);
  }

  private listenForSilence(): void {
    const limit = this.ports.settings().stallWarning;
    const isAnyAtWork = [...this.held.values()].some(({ progress }) => progress);
    if (this.silenceTimer || limit === 0 || !isAnyAtWork) return;
    this.silenceTimer = this.ports.clock.after(limit / LOOKS_PER_STALL, () => {
      this.silenceTimer = undefined;
      const now = this.ports.clock.now();
      for (const held of this.held.values())
        if (held.progress?.checkStall(now, limit)) this.change(held, () => undefined);
      this.listenForSilence();
    });
  }

  private async readTurn(held: TrackedSubagent, progress: ProgressTracker): Promise<void> {
    const { id } = held.session;
    try {
      const messages = await this.ports.server.messages(id);
      if (held.progress !== progress) return;
      const prompt = messages.findLastIndex(({ info }) => info.role === "user");
      const now = this.ports.clock.now();
      for (const { parts } of messages.slice(prompt + 1))
        for (const part of parts) progress.onPart(part, now);
      this.change(held, () => (held.startedAt = messages[prompt]?.info.created ?? held.startedAt));
    } catch (error) {
      this.ports.logger.warn(`Couldn't read what subagent ${shortID(id)} is doing: ${messageOf(error)}`);
    }
  }

  private change(held: TrackedSubagent, apply: () => void): void {
    const { id } = held.session;
    const before = held.snapshot;
    apply();
    held.snapshot = snapshotOf(held);
    if (this.held.get(id) === held) this.changes.fire({ id, before, after: held.snapshot });
  }
}

function begin(held: TrackedSubagent, status: SessionStatus, now: number): void {
  held.progress = new ProgressTracker(now);
  held.progress.onStatus(status, now);
  held.startedAt = now;
  held.ending = undefined;
}

function end(held: TrackedSubagent, progress: ProgressTracker, now: number): void {
  const { toolCalls, retry } = progress.snapshot();
  held.toolCalls += toolCalls;
  held.progress = undefined;
  // Of an abort while the model is about to be asked again no error tells.
  if (held.lastError?.name === "MessageAbortedError" || (!held.lastError && retry))
    held.ending = { status: "cancelled", at: now };
  else if (held.lastError) held.ending = { status: "error", at: now, error: held.lastError };
  else held.ending = { status: "idle", at: now };
  held.lastError = undefined;
}

/** It ended while nobody listened, so nobody knows how. */
function endUnseen(held: TrackedSubagent): void {
  held.progress = undefined;
  held.lastError = undefined;
}

function snapshotOf({
  session,
  startedAt = session.created,
  progress,
  ending,
  toolCalls,
}: Omit<TrackedSubagent, "snapshot" | "lastError">): Subagent {
  const { id, parentID, title, agent, model, created, updated, cost, tokens } = session;
  return {
    launchedBy: "other",
    id,
    parentSessionID: parentID,
    // OpenCode adds the agent, which is told beside it.
    description: title.replace(/ \(@\S+ subagent\)$/, ""),
    agent,
    model,
    status: progress ? "running" : (ending?.status ?? "idle"),
    createdAt: created,
    startedAt,
    endedAt: progress ? undefined : (ending?.at ?? updated),
    error: ending?.error,
    toolCalls,
    progress: progress?.snapshot(),
    cost,
    tokens,
  };
}

/** Whether anything that is shown of a session is another. */
function looksDifferent(before: Session, after: Session): boolean {
  return (
    before.title !== after.title ||
    before.updated !== after.updated ||
    before.agent !== after.agent ||
    before.cost !== after.cost ||
    before.tokens.input !== after.tokens.input ||
    before.tokens.output !== after.tokens.output
  );
}
