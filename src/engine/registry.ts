import type { Refusal } from "./errors.ts";
import { Emitter, type Event, logged } from "./event.ts";
import { findTask, noSuchTask } from "./find-task.ts";
import { MultiMap } from "./multi-map.ts";
import { ServerFailure, type AgentServer, type Logger, type TaskMemoryStore } from "./ports.ts";
import { turnAfter, turnOf, type FinalAnswer, type RunningTurn } from "./running-turn.ts";
import type { Text } from "./sentence.ts";
import { Serial } from "./serial.ts";
import type { Session } from "./server-model.ts";
import { hasOpenWork, isActive, shortID, type Task, type TaskRecord } from "./task.ts";
import { goneSession, isSettled, TaskMemory } from "./task-memory.ts";
import { spent } from "./totals.ts";
import { descendants, Tree, type Family } from "./tree.ts";

/** A task in the engine's memory. */
export interface Entry {
  record: TaskRecord;
  /** Its session as last received from the server. */
  session: Session;
  /** Undefined if the task has ended. */
  turn: RunningTurn | undefined;
  answer?: FinalAnswer | undefined;
  collisions?: Task["collisions"];
  work?: Task["work"];
  /** The cached snapshot of the task, once requested. */
  snapshot?: Task | undefined;
  /** The ID of the last message that steered the task. */
  steeredBy?: string | undefined;
  /** The notices of subtasks that may wake the task, by the IDs of their messages. */
  wokenBy?: ReadonlySet<string> | undefined;
  /** Why the message that waits for it couldn't be sent yet. After a failure, the next connect sends it at the latest. */
  heldBack?: "until-told" | "failed" | undefined;
  /** Runs the commands and endings of the task one at a time. */
  readonly serial: Serial;
}

/** A task before and after a change. Undefined if it did not exist. */
export interface TaskChange {
  readonly id: string;
  readonly before: Task | undefined;
  readonly after: Task | undefined;
}

/** A session whose task record cannot be used, and why. */
export interface UnreadableTask {
  readonly sessionID: string;
  readonly title: string;
  readonly reason: Text;
}

/** All sessions of the folder and the tasks among them, kept in sync with the server. */
export class TaskRegistry {
  readonly sessionTree = new Tree<Session>(({ parentID }) => parentID);
  readonly tasks: Family<Task> = {
    get: (id) => this.get(id),
    all: () => this.all().map((entry) => this.snapshot(entry)),
    childrenOf: (parentID) => this.tasksOf(parentID).map((entry) => this.snapshot(entry)),
  };
  private readonly entries = new Map<string, Entry>();
  /** Tasks by the parent that their records name. */
  private readonly byParent = new MultiMap<string, Entry>();
  private readonly activeEntries = new Set<Entry>();
  readonly memory: TaskMemory;
  /** Tasks whose session is gone but whose parent still has to be notified. */
  private readonly lostEntries = new Map<string, Entry>();
  private readonly changes: Emitter<TaskChange>;
  private readonly losses: Emitter<Entry>;
  /** The prompt IDs of failed launches. */
  private readonly discarded = new Set<string>();
  private readonly discards: Emitter<string>;
  private readonly sessionChanges: Emitter<string>;
  readonly onDidChange: Event<TaskChange>;
  /** The ID of a session, task or not, that was added, changed or removed. */
  readonly onDidChangeSession: Event<string>;
  /** Fires just before a running task is removed because its session is gone. */
  readonly onWillLose: Event<Entry>;
  /** Fires with the ID of a session that a failed launch has left. */
  readonly onDidFindDiscarded: Event<string>;

  constructor(
    private readonly server: AgentServer,
    private readonly logger: Logger,
    private readonly now: () => number,
    store: TaskMemoryStore,
  ) {
    this.memory = new TaskMemory(store);
    this.losses = new Emitter(logged(logger, "lost tasks"));
    this.onWillLose = this.losses.event;
    this.discards = new Emitter(logged(logger, "discarded tasks"));
    this.onDidFindDiscarded = this.discards.event;
    this.changes = new Emitter(logged(logger, "task changes"));
    this.onDidChange = this.changes.event;
    this.sessionChanges = new Emitter(logged(logger, "sessions"));
    this.onDidChangeSession = this.sessionChanges.event;
  }

  session(id: string): Session | undefined {
    return this.sessionTree.get(id);
  }

  sessions(): readonly Session[] {
    return this.sessionTree.all();
  }

  entry(id: string): Entry | undefined {
    return this.entries.get(id);
  }

  all(): readonly Entry[] {
    return [...this.entries.values()];
  }

  /** The tasks whose session is gone but whose parent still has to be notified. */
  lost(): readonly Entry[] {
    return [...this.lostEntries.values()];
  }

  /** Whether the task is still known, either in the list or as a {@link lost} one. */
  holds(entry: Entry): boolean {
    const { id } = entry.record;
    return this.entries.get(id) === entry || this.lostEntries.get(id) === entry;
  }

  /** Tasks that an earlier process left unsettled and that the server did not list. */
  missing(): readonly TaskRecord[] {
    return this.memory.unsettled().filter(({ id }) => !this.knows(id));
  }

  /** Whether no known task is queued or running, and no parent still has to be notified. */
  isSettled(): boolean {
    return !this.memory.unsettled().some(({ id }) => this.knows(id));
  }

  active(): readonly Entry[] {
    return [...this.activeEntries];
  }

  /** All tasks whose records name this parent, including cleared ones. */
  tasksOf(parentID: string): readonly Entry[] {
    return [...this.byParent.of(parentID)];
  }

  /** The task of a parent whose current or last turn was requested by this call. */
  calledBy(callID: string, parentSessionID: string): Entry | undefined {
    return this.all().find(
      ({ record }) => record.callID === callID && record.parentSessionID === parentSessionID,
    );
  }

  parentOf(sessionID: string): string | undefined {
    // Some forks are linked to their parent only by their task record.
    return this.sessionTree.get(sessionID)?.parentID ?? this.entries.get(sessionID)?.record.parentSessionID;
  }

  /** The IDs of the ancestors of a session, nearest first. */
  above(sessionID: string): ReadonlySet<string> {
    // A set, as broken metadata can make a session its own ancestor.
    const above = new Set<string>();
    for (let id = this.parentOf(sessionID); id !== undefined && !above.has(id); id = this.parentOf(id))
      above.add(id);
    return above;
  }

  /** The sessions that the server links to this one as their parent. */
  linkedTo(parentID: string): readonly Session[] {
    return this.sessionTree.childrenOf(parentID);
  }

  /** All descendants of a session, nearest first. */
  descendantsOf(sessionID: string): readonly Session[] {
    return descendants(sessionID, (id) => this.childSessions(id));
  }

  /**
   * Finds a task by its ID, or by a prefix or suffix of it that is unique among the tasks of `parentSessionID`, or
   * among all tasks if that is undefined. Throws a {@link Refusal} if no task or more than one matches.
   */
  find(reference: string, parentSessionID?: string): Entry {
    const { id } = findTask(this.tasks, this.memory.tombstones, reference, parentSessionID);
    return this.entries.get(id) as Entry;
  }

  /** Undefined if there is no such task. */
  get(id: string): Task | undefined {
    const entry = this.entries.get(id);
    return entry && this.snapshot(entry);
  }

  /** The current state of the task. The same object until something changes. */
  snapshot(entry: Entry): Task {
    // With the record first, V8 would give each task a hidden class of its own, and reading many would be slow.
    entry.snapshot ??= {
      progress: entry.turn?.progress.snapshot(),
      nearLimit: entry.turn?.nearLimit,
      collisions: entry.collisions,
      work: hasOpenWork(entry.record) ? entry.work : undefined,
      ...spent(entry.session, entry.record.baseline),
      ...entry.record,
    };
    return entry.snapshot;
  }

  /** Applies a session from the server, unless the known record is newer. Returns its entry if it is a task. */
  applySession(session: Session): Entry | undefined {
    this.sessionTree.keep(session);
    const entry = this.adoptTask(session);
    this.sessionChanges.fire(session.id);
    return entry;
  }

  private adoptTask(session: Session): Entry | undefined {
    const entry = this.entries.get(session.id);
    if (session.task.kind === "unreadable" && entry) {
      this.drop(entry);
      return undefined;
    }
    if (session.task.kind !== "task") {
      if (entry && session.task.kind === "none") this.change(entry, () => (entry.session = session));
      return entry;
    }
    const { record } = session.task;
    if (this.discarded.has(record.promptMessageID)) {
      this.discards.fire(record.id);
      return undefined;
    }
    if (!entry) {
      const created: Entry = { record, session, turn: turnOf(record, this.now()), serial: new Serial() };
      this.entries.set(record.id, created);
      this.byParent.add(record.parentSessionID, created);
      if (created.turn) this.activeEntries.add(created);
      this.remember(record);
      this.changes.fire({ id: record.id, before: undefined, after: this.snapshot(created) });
      return created;
    }
    const newer = record.revision > entry.record.revision;
    const { cost, tokens } = entry.session;
    const hasSpent =
      session.cost !== cost ||
      session.tokens.output !== tokens.output ||
      session.tokens.input !== tokens.input;
    if (newer || hasSpent)
      this.change(entry, () => {
        entry.session = session;
        if (newer) this.replace(entry, record);
      });
    else entry.session = session;
    return entry;
  }

  /** Removes a deleted session and its task. The task is kept as lost while its parent has to be notified. */
  forget(sessionID: string): Entry | undefined {
    const entry = this.entries.get(sessionID);
    if (entry && isActive(entry.record)) this.losses.fire(entry);
    this.sessionTree.forget(sessionID);
    if (entry) {
      this.memory.bury(entry.record);
      if (this.memory.isUnsettled(sessionID)) this.lostEntries.set(sessionID, entry);
      this.drop(entry);
    }
    this.sessionChanges.fire(sessionID);
    return entry;
  }

  /** Removes the task of a failed launch without a notice. If its session exists or appears later, it is not a task. */
  discard(promptMessageID: string): void {
    this.discarded.add(promptMessageID);
    const entry = this.all().find(({ record }) => record.promptMessageID === promptMessageID);
    if (!entry) return;
    this.memory.forget(entry.record.id);
    this.drop(entry);
    this.discards.fire(entry.record.id);
  }

  /** Registers a task that an earlier process left unsettled and whose session is gone. */
  lose(record: TaskRecord): void {
    this.applySession(goneSession(record));
    this.forget(record.id);
  }

  /** Stores a changed record, then shows it. If storing fails, nothing changes. */
  async storeThenShow(entry: Entry, next: Omit<TaskRecord, "revision">): Promise<void> {
    await this.store(entry, { ...next, revision: entry.record.revision + 1 });
  }

  /**
   * Shows a changed record immediately and stores it. If storing fails, the newer record stays in memory and
   * {@link flush} stores it later.
   */
  async showThenStore(entry: Entry, next: Omit<TaskRecord, "revision">): Promise<void> {
    this.show(entry, next);
    await this.flush(entry);
  }

  /** Shows a changed record. The next {@link flush} or {@link storeThenShow} stores it. */
  show(entry: Entry, next: Omit<TaskRecord, "revision">): void {
    const record = { ...next, revision: entry.record.revision + 1 };
    this.change(entry, () => this.replace(entry, record));
  }

  /** Shows and stores an earlier record again, even if the next one was stored and only the answer was lost. */
  async takeBack(entry: Entry, earlier: TaskRecord): Promise<void> {
    const revision = Math.max(entry.record.revision, earlier.revision + 1) + 1;
    this.change(entry, () => this.replace(entry, { ...earlier, revision }));
    await this.flush(entry);
  }

  /** Whether the server's copy of the record is older than the one here. */
  isUnstored(entry: Entry): boolean {
    const { task } = entry.session;
    const isThere = this.entries.get(entry.record.id) === entry;
    return isThere && task.kind === "task" && task.record.revision < entry.record.revision;
  }

  /** Stores the record if the server's copy is older. */
  async flush(entry: Entry): Promise<void> {
    if (this.isUnstored(entry)) await this.store(entry, entry.record);
  }

  /** Notifies listeners that the progress of a task changed, or applies another visible change. */
  progressed(entry: Entry, apply: () => void = () => undefined): void {
    this.change(entry, apply);
  }

  dispose(): void {
    this.changes.dispose();
    this.losses.dispose();
    this.discards.dispose();
    this.sessionChanges.dispose();
  }

  /** The refusal for an unknown task ID. */
  unknown(wanted: string): Refusal {
    return noSuchTask(this.memory.tombstones, wanted);
  }

  /** The child sessions. Some forks are linked to their parent only by their task record. */
  private childSessions(parentID: string): readonly Session[] {
    return [...this.linkedTo(parentID), ...this.tasksOf(parentID).map(({ session }) => session)];
  }

  private knows(id: string): boolean {
    return this.entries.has(id) || this.lostEntries.has(id);
  }

  private remember(record: TaskRecord): void {
    if (isSettled(record)) this.lostEntries.delete(record.id);
    this.memory.remember(record);
  }

  private async store(entry: Entry, record: TaskRecord): Promise<void> {
    const stored = await this.stored(record);
    if (stored) {
      if (this.entries.get(record.id) === entry) this.applySession(stored);
    } else {
      this.logger.warn(`The session of task ${shortID(record.id)} is gone.`);
      this.forget(record.id);
    }
  }

  /** Stores the record and returns its session. Undefined if the session is gone. */
  private async stored(record: TaskRecord): Promise<Session | undefined> {
    try {
      return await this.server.saveRecord(record);
    } catch (error) {
      // Another process has stored its own record, perhaps with the same revision.
      if (error instanceof ServerFailure && error.reason === "refused") throw error;
      // Without a response the record may still have been stored, unless another process has resumed the task.
      const session = await this.server.session(record.id).catch(() => undefined);
      const known = session?.task.kind === "task" ? session.task.record : undefined;
      const isOwn = known?.promptMessageID === record.promptMessageID;
      if (isOwn && known?.revision === record.revision) return session;
      throw error;
    }
  }

  private drop(entry: Entry): void {
    this.entries.delete(entry.record.id);
    this.byParent.delete(entry.record.parentSessionID, entry);
    this.activeEntries.delete(entry);
    this.changes.fire({ id: entry.record.id, before: this.snapshot(entry), after: undefined });
  }

  private replace(entry: Entry, record: TaskRecord): void {
    entry.turn = turnAfter(entry.turn, entry.record, record, this.now());
    entry.record = record;
    this.remember(record);
    if (!entry.turn) this.activeEntries.delete(entry);
    else if (this.entries.get(record.id) === entry) this.activeEntries.add(entry);
  }

  private change(entry: Entry, apply: () => void): void {
    const before = this.snapshot(entry);
    apply();
    entry.snapshot = undefined;
    if (this.entries.get(entry.record.id) !== entry) return;
    this.changes.fire({ id: entry.record.id, before, after: this.snapshot(entry) });
  }
}
