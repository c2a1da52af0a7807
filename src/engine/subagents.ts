import { beganWith } from "./asked.ts";
import { messageOf, type Refusal } from "./errors.ts";
import { Emitter, type Disposable, type Event, logged } from "./event.ts";
import { noSuchSubagent } from "./find-task.ts";
import { MultiMap } from "./multi-map.ts";
import type { EnginePorts } from "./ports.ts";
import { ProgressTracker } from "./progress.ts";
import type { TaskRegistry } from "./registry.ts";
import {
  ABORTED,
  sessionOf,
  type AgentError,
  type SessionEvent,
  type Session,
  type SessionStatus,
} from "./server-model.ts";
import type { Subagent, SubagentChange } from "./subagent.ts";
import { shortID } from "./task.ts";
import type { Family } from "./tree.ts";

/** How many stall checks are made within the time after which silence counts as a stall. */
const LOOKS_PER_STALL = 4;

type Ending =
  | { readonly status: "idle" | "cancelled"; readonly at: number; readonly error?: undefined }
  | { readonly status: "error"; readonly at: number; readonly error: AgentError };

/** A session that the server links to a parent. */
type ChildSession = Session & { readonly parentID: string };

/** A subagent in the engine's memory. */
interface TrackedSubagent {
  session: ChildSession;
  /** When the current or last turn began. Undefined if none was seen. */
  startedAt: number | undefined;
  /** Only set while it is running. */
  progress: ProgressTracker | undefined;
  /** The last error that the server reported since the turn began or continued. */
  lastError: AgentError | undefined;
  /** How the last turn ended, if its end was seen. */
  ending: Ending | undefined;
  /** The tool calls of the turns whose end was seen. */
  toolCalls: number;
  snapshot: Subagent;
}

/** The child sessions that are not tasks, followed by events. Nothing is written to them. */
export class Subagents implements Family<Subagent>, Disposable {
  private readonly held = new Map<string, TrackedSubagent>();
  private readonly byParent = new MultiMap<string, TrackedSubagent>();
  private readonly subscription: Disposable;
  /** Checks for stalls. Only active while a subagent is running. */
  private silenceTimer: Disposable | undefined;
  private readonly changes: Emitter<SubagentChange>;
  readonly onDidChange: Event<SubagentChange>;

  constructor(
    private readonly ports: Pick<EnginePorts, "server" | "clock" | "logger" | "settings">,
    private readonly registry: TaskRegistry,
  ) {
    const { logger } = ports;
    this.changes = new Emitter(logged(logger, "subagent changes"));
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

  /** The refusal for an unknown session ID. */
  unknown(sessionID: string): Refusal {
    return noSuchSubagent(sessionID);
  }

  isEmpty(): boolean {
    return this.held.size === 0;
  }

  /** Processes an event of a session. Ignores sessions that are not subagents. */
  accept(event: SessionEvent): void {
    const held = this.held.get(sessionOf(event));
    if (!held) return;
    if (event.type === "session-status") this.acceptStatus(held, event.status, this.ports.clock.now());
    else if (event.type === "session-error") held.lastError = event.error;
    else if (held.progress?.accept(event, this.ports.clock.now())) this.change(held, () => undefined);
  }

  /**
   * Updates running subagents after each connect, since events may have been missed.
   * @param toEnd those whose end is among the events still to come, which say how they ended
   */
  resync(
    statuses: ReadonlyMap<string, SessionStatus>,
    openRequests: ReadonlySet<string>,
    toEnd: ReadonlySet<string>,
  ): void {
    for (const [id, held] of this.held) {
      const status = statuses.get(id);
      // When its turn began is known once that is read.
      if (status) this.acceptStatus(held, status, undefined);
      else if (held.progress && !toEnd.has(id)) this.change(held, () => endUnseen(held));
      if (held.progress?.keepRequests(openRequests)) this.change(held, () => undefined);
    }
  }

  /** Reads the turns of running subagents, parts of which may have been missed. */
  catchUp(): void {
    for (const held of this.held.values()) if (held.progress) void this.readTurn(held, held.progress);
    this.listenForSilence();
  }

  /** Stops checking for stalls, since silence means nothing without a connection. */
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

  /** Passes the progress of the current turn on to the task that the subagent has become. */
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

  /** @param began when the turn began if it was not known yet; undefined if that is unknown */
  private acceptStatus(held: TrackedSubagent, status: SessionStatus, began: number | undefined): void {
    const now = this.ports.clock.now();
    const { progress, lastError } = held;
    if (status.type === "idle") {
      // OpenCode sends idle twice at the end of a turn; the second is ignored.
      if (progress) this.change(held, () => end(held, progress, now));
      return;
    }
    // Some errors do not end the turn, such as a full context, which the server compacts.
    if (lastError) held.lastError = undefined;
    if (!progress) {
      this.change(held, () => begin(held, status, now, began));
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
      const prompt = beganWith(messages);
      const now = this.ports.clock.now();
      for (const { parts } of messages.slice(prompt ? messages.indexOf(prompt) + 1 : 0))
        for (const part of parts) progress.onPart(part, now);
      const { created: startedAt = held.startedAt } = prompt?.info ?? {};
      if (startedAt !== undefined) progress.forgetRequests(startedAt, now);
      this.change(held, () => (held.startedAt = startedAt));
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

function begin(
  held: TrackedSubagent,
  status: SessionStatus,
  now: number,
  startedAt: number | undefined,
): void {
  held.progress = new ProgressTracker(now);
  held.progress.onStatus(status, now);
  held.startedAt = startedAt;
  held.ending = undefined;
}

function end(held: TrackedSubagent, progress: ProgressTracker, now: number): void {
  const { toolCalls, retry } = progress.snapshot();
  held.toolCalls += toolCalls;
  held.progress = undefined;
  // Aborting a turn that waits for a retry causes no error.
  if (held.lastError?.name === ABORTED || (!held.lastError && retry))
    held.ending = { status: "cancelled", at: now };
  else if (held.lastError) held.ending = { status: "error", at: now, error: held.lastError };
  else held.ending = { status: "idle", at: now };
  held.lastError = undefined;
}

/** Ends a turn whose end was missed, so its outcome is unknown. */
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
    description: title,
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

/** Whether anything that is shown of a session differs. */
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
