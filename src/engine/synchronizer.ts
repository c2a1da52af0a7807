import type { AgentPermissions } from "./agent-permissions.ts";
import type { BudgetGuard } from "./budget-guard.ts";
import type { Catalog } from "./catalog.ts";
import type { Collisions } from "./collisions.ts";
import type { ConfirmedPrompts } from "./confirmed-prompts.ts";
import type { Ending } from "./ending.ts";
import { messageOf } from "./errors.ts";
import { Emitter, type Disposable, type Event, logged } from "./event.ts";
import type { LiveTranscripts } from "./live-transcripts.ts";
import type { Notices } from "./notices.ts";
import type { Predictions } from "./predictions.ts";
import type { AgentServer, Logger } from "./ports.ts";
import type { LaunchQueue } from "./queue.ts";
import type { TaskRegistry } from "./registry.ts";
import type { Requests } from "./requests.ts";
import type { Resume } from "./resume.ts";
import {
  isIdle,
  sessionOf,
  type Part,
  type PendingRequest,
  type ServerEvent,
  type Session,
  type SessionStatus,
} from "./server-model.ts";
import type { Subagents } from "./subagents.ts";
import { isActive, type Task } from "./task.ts";
import type { Waits } from "./waits.ts";
import type { TurnWatcher } from "./turns.ts";
import type { WokenTurns } from "./woken-turns.ts";
import type { WorktreeWork } from "./worktree-work.ts";

const NO_STATUSES: ReadonlyMap<string, SessionStatus> = new Map();

/** A subagent that the server refused to an agent of this task. */
export interface RefusedSubagent {
  readonly kind: "subagent";
  readonly task: Task;
  /** How many levels of subagents the server would have to allow. */
  readonly depth: number;
}

interface SynchronizerParts {
  readonly server: AgentServer;
  readonly logger: Logger;
  readonly registry: TaskRegistry;
  readonly subagents: Subagents;
  readonly requests: Requests;
  readonly catalog: Catalog;
  readonly permissions: AgentPermissions;
  readonly turns: TurnWatcher;
  readonly guard: BudgetGuard;
  readonly waits: Waits;
  readonly collisions: Collisions;
  readonly predictions: Predictions;
  readonly ending: Ending;
  readonly notices: Notices;
  readonly confirmed: ConfirmedPrompts;
  readonly resume: Resume;
  readonly woken: WokenTurns;
  readonly queue: LaunchQueue;
  readonly transcripts: LiveTranscripts;
  readonly worktreeWork: WorktreeWork;
}

/**
 * Keeps the engine in sync with the server: through lists at each connect, and through events in between, which it
 * passes on to the parts concerned.
 */
export class Synchronizer implements Disposable {
  private connected = false;
  /** Whether this engine has connected before. */
  private tookUp = false;
  /** Counts connects and disconnects, so that an outdated connect stops. */
  private attempt = 0;
  /** Events received during a connect. Undefined at other times. */
  private early: ServerEvent[] | undefined;
  private readonly subscription: Disposable;
  private readonly refusals: Emitter<RefusedSubagent>;
  /** OpenCode refused a subagent of a task, because the server's configuration does not allow subagents that deep. */
  readonly onDidRefuseSubagent: Event<RefusedSubagent>;

  constructor(private readonly parts: SynchronizerParts) {
    const { server, logger } = parts;
    this.refusals = new Emitter(logged(logger, "refusals"));
    this.onDidRefuseSubagent = this.refusals.event;
    this.subscription = server.onEvent((event) => this.accept(event));
  }

  get isConnected(): boolean {
    return this.connected;
  }

  /** Updates everything after each connect, and resumes unfinished work such as notices. */
  async connect(): Promise<void> {
    const { server, catalog, registry, permissions, subagents, notices, queue, transcripts } = this.parts;
    const attempt = ++this.attempt;
    catalog.forget();
    permissions.disconnect();
    const knownBefore = registry.sessions().map(({ id }) => id);
    // Events received while the lists are being read are newer than the lists.
    this.early ??= [];
    try {
      const listed = await server.sessions();
      const sessions = [...listed, ...(await this.unlisted(listed, knownBefore))];
      sessions.push(...(await this.remembered(sessions)));
      // Only now is it known in which worktrees tasks wait for a user.
      const requests = await server.pendingRequests();
      if (attempt !== this.attempt) return;
      this.applySessions(sessions, knownBefore);
      const statuses = subagents.isEmpty() ? NO_STATUSES : await server.statuses();
      if (attempt !== this.attempt) return;
      this.applyRequests(requests, statuses);
    } finally {
      if (attempt === this.attempt) this.replayEarly();
    }
    this.connected = true;
    // The messages that were held back are sent again.
    for (const entry of registry.all()) entry.heldBack = undefined;
    permissions.connect();
    notices.connect();
    queue.connect();
    subagents.catchUp();
    await Promise.all([this.takeUp(), transcripts.reload()]);
  }

  /** The connection is lost. Work that needs it pauses until the next {@link connect}. */
  disconnect(): void {
    const { permissions, subagents, turns, guard, waits, notices, confirmed, queue, resume, transcripts } =
      this.parts;
    this.connected = false;
    this.attempt++;
    permissions.disconnect();
    queue.disconnect();
    this.replayEarly();
    subagents.disconnect();
    turns.disconnect();
    guard.disconnect();
    waits.disconnect();
    notices.disconnect();
    resume.disconnect();
    confirmed.disconnect();
    transcripts.disconnect();
  }

  /** New settings may free a slot for queued tasks, or change the limits of running ones. */
  settingsChanged(): void {
    if (!this.connected) return;
    this.parts.guard.connect(true);
    this.parts.queue.pump();
  }

  /** Processes an event of the server, or one that the engine knows ahead of it. */
  accept(event: ServerEvent): void {
    if (this.early) this.early.push(event);
    else this.handle(event);
  }

  dispose(): void {
    // Work in progress must not start anything new.
    this.connected = false;
    this.attempt++;
    this.subscription.dispose();
    this.refusals.dispose();
  }

  /**
   * The sessions that the server has but doesn't list any more: those of a project that the repository has left, such as by
   * getting a remote.
   */
  private async unlisted(listed: readonly Session[], known: readonly string[]): Promise<readonly Session[]> {
    const there = new Set(listed.map(({ id }) => id));
    const found: Session[] = [];
    for (const id of known) {
      const session = there.has(id) ? undefined : await this.parts.server.session(id);
      if (session) found.push(session);
    }
    return found;
  }

  /** The sessions of tasks that an earlier engine left unsettled, of those that aren't listed. */
  private async remembered(listed: readonly Session[]): Promise<readonly Session[]> {
    const { server, registry } = this.parts;
    const there = new Set(listed.map(({ id }) => id));
    const others = registry.missing().filter(({ id }) => !there.has(id));
    // What can't be read is read once more when it is decided which tasks are gone.
    const found = await Promise.all(others.map(({ id }) => server.session(id).catch(() => undefined)));
    return found.filter((session) => session !== undefined);
  }

  private applySessions(sessions: readonly Session[], knownBefore: readonly string[]): void {
    const { registry } = this.parts;
    const there = new Set(sessions.map(({ id }) => id));
    for (const id of knownBefore) if (!there.has(id)) registry.forget(id);
    for (const session of sessions) registry.applySession(session);
  }

  private applyRequests(
    listed: readonly PendingRequest[],
    statuses: ReadonlyMap<string, SessionStatus>,
  ): void {
    const { registry, subagents, requests } = this.parts;
    const pending = requests.withoutVoid(listed);
    const open = new Set(pending.map(({ id }) => id));
    for (const entry of registry.active())
      if (entry.turn?.progress.keepRequests(open)) registry.progressed(entry);
    // Must precede the requests, because requests of turns that began or ended are removed.
    subagents.resync(statuses, open, new Set(this.early?.filter(isIdle).map(sessionOf)));
    requests.replace(pending);
    for (const request of pending) this.handle({ type: "request-asked", request });
  }

  private replayEarly(): void {
    const early = this.early ?? [];
    this.early = undefined;
    for (const event of early) this.handle(event);
  }

  /** Resumes unfinished work. */
  private async takeUp(): Promise<void> {
    const { guard, waits, turns, notices, ending, resume, woken, queue, worktreeWork } = this.parts;
    guard.connect(this.tookUp);
    waits.connect();
    this.tookUp = true;
    void worktreeWork.takeUp();
    await this.loseMissing();
    if (!this.connected) return;
    await Promise.all([turns.connect(), notices.deliverPending(), ending.stopLateStarts(), woken.takeUp()]);
    if (!this.connected) return;
    void resume.connect();
    queue.pump();
  }

  /** Registers tasks whose session was deleted while no process was watching. */
  private async loseMissing(): Promise<void> {
    const { server, registry, logger } = this.parts;
    try {
      for (const record of registry.missing()) if (!(await server.session(record.id))) registry.lose(record);
    } catch (error) {
      logger.warn(`Couldn't read which tasks are gone: ${messageOf(error)}`);
    }
  }

  private handle(event: ServerEvent): void {
    const { registry, subagents, requests, turns, ending, notices, confirmed, transcripts } = this.parts;
    turns.hear();
    if (event.type === "heartbeat") return;
    // Most events by far are these, which only continue a text.
    if (event.type === "part-delta") {
      transcripts.accept(event);
      const entry = registry.entry(event.sessionID);
      if (entry) turns.accept(entry, event);
      else subagents.accept(event);
      return;
    }
    this.parts.collisions.accept(event);
    this.parts.predictions.accept(event);
    if (event.type === "session-changed") {
      const { id, undoneFrom } = event.session;
      const wasUndone = registry.session(id)?.undoneFrom !== undefined;
      const entry = registry.applySession(event.session);
      if (entry && isActive(entry.record)) turns.watch();
      if (wasUndone && !undoneFrom) notices.release(id);
      return;
    }
    if (event.type === "session-deleted") {
      const entry = registry.entry(event.sessionID);
      // The server continues the turn of a deleted session.
      if (entry && isActive(entry.record)) ending.abort(entry);
      registry.forget(event.sessionID);
      requests.forget(event.sessionID);
      return;
    }
    const entry = registry.entry(sessionOf(event));
    // Writing a fork's history emits no events; the prompt after it is the first. Such events are repeated whenever
    // files changed.
    if (event.type === "message-changed" && event.info.id === entry?.record.promptMessageID)
      if (entry.record.isForked) void transcripts.reloadBefore(event.info);
    requests.accept(event);
    transcripts.accept(event);
    notices.accept(event);
    confirmed.accept(event);
    if (!entry) return subagents.accept(event);
    turns.accept(entry, event);
    // While disconnected, another engine may follow the task.
    if (this.connected) this.parts.woken.accept(entry, event);
    ending.stopLateStart(entry, event);
    if (event.type === "part-changed" && isTooDeep(event.part))
      this.refusals.fire({
        kind: "subagent",
        task: registry.snapshot(entry),
        depth: registry.above(event.part.sessionID).size + 1,
      });
  }
}

function isTooDeep(part: Part): boolean {
  return part.type === "tool" && part.state.status === "error" && part.state.refused === "too-deep";
}
