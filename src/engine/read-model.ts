import type { ConnectionState } from "./connection.ts";
import { Emitter, type Disposable, type Event, logged } from "./event.ts";
import { withTombstone, type Tombstone } from "./find-task.ts";
import type {
  FolderChange,
  FolderSnapshot,
  MirroredRequest,
  MirroredSession,
  Refused,
} from "./folder-changes.ts";
import { FolderTasks } from "./folder-tasks.ts";
import type { Clock, Logger } from "./ports.ts";
import type { TaskChange } from "./registry.ts";
import { isSame } from "./same.ts";
import type { Child, Subagent, SubagentChange } from "./subagent.ts";
import { isActive, type Task } from "./task.ts";
import { Tree } from "./tree.ts";

/** A value before and after a change. Undefined if it did not exist. */
interface Difference<T> {
  readonly id: string;
  readonly before: T | undefined;
  readonly after: T | undefined;
}

/**
 * A window's mirror of a folder's engine: applies the engine's changes and answers like the engine. Listeners are
 * notified once all changes of a batch are applied.
 */
export class ReadModel extends FolderTasks<MirroredSession, MirroredRequest> implements Disposable {
  protected sessionTree = sessionTree();
  protected tasks = childTree<Task>();
  protected subagents = childTree<Subagent>();
  private activeIDs = new Set<string>();
  protected requests: readonly MirroredRequest[] = [];
  protected tombstones: readonly Tombstone[] = [];
  /** Sessions missing from the last `reset`, kept because the engine had not read the sessions yet. */
  private readonly unconfirmed = new Set<string>();
  private state: ConnectionState = { kind: "disconnected" };
  private latest: string | undefined;
  private readonly emitters: Disposable[] = [];
  private readonly changes: Emitter<TaskChange>;
  private readonly sessionChanges: Emitter<string>;
  private readonly subagentChanges: Emitter<SubagentChange>;
  private readonly requestChanges: Emitter<void>;
  private readonly warnings: Emitter<Task>;
  private readonly refusals: Emitter<Refused>;
  private readonly connectionChanges: Emitter<ConnectionState>;
  private readonly latestChanges: Emitter<string | undefined>;
  readonly onDidChange: Event<TaskChange>;
  /** The ID of a session that was added, changed or removed. */
  readonly onDidChangeSession: Event<string>;
  readonly onDidChangeSubagent: Event<SubagentChange>;
  /** The pending requests have changed. */
  readonly onDidChangeRequests: Event<void>;
  /** A task nears a limit (`nearLimit`). Fires once per limit; for a batch, with one of its tasks. */
  readonly onDidWarn: Event<Task>;
  readonly onDidRefuse: Event<Refused>;
  readonly onDidChangeConnection: Event<ConnectionState>;
  readonly onDidChangeLatest: Event<string | undefined>;

  constructor(clock: Clock, logger: Logger) {
    super(clock);
    const emitter = <T>(): Emitter<T> => {
      const made = new Emitter<T>(logged(logger, "the tasks"));
      this.emitters.push(made);
      return made;
    };
    this.onDidChange = (this.changes = emitter<TaskChange>()).event;
    this.onDidChangeSession = (this.sessionChanges = emitter<string>()).event;
    this.onDidChangeSubagent = (this.subagentChanges = emitter<SubagentChange>()).event;
    this.onDidChangeRequests = (this.requestChanges = emitter<void>()).event;
    this.onDidWarn = (this.warnings = emitter<Task>()).event;
    this.onDidRefuse = (this.refusals = emitter<Refused>()).event;
    this.onDidChangeConnection = (this.connectionChanges = emitter<ConnectionState>()).event;
    this.onDidChangeLatest = (this.latestChanges = emitter<string | undefined>()).event;
  }

  /** Applies changes of the engine, in order. */
  apply(changes: readonly FolderChange[]): void {
    const notifications = changes.flatMap((change) => this.take(change));
    for (const notify of notifications) notify();
  }

  get connection(): ConnectionState {
    return this.state;
  }

  /** The session in which a user last wrote. Undefined if the folder has none. */
  get latestSessionID(): string | undefined {
    return this.latest;
  }

  /** All active tasks (queued or running), of any session, in no order. */
  active(): readonly Task[] {
    return [...this.activeIDs].flatMap((id) => this.tasks.get(id) ?? []);
  }

  dispose(): void {
    for (const each of this.emitters) each.dispose();
  }

  /** Applies one change, and returns functions that notify the listeners. */
  private take(change: FolderChange): readonly (() => void)[] {
    switch (change.type) {
      case "connection":
        return this.takeConnection(change.state);
      case "session":
        this.unconfirmed.delete(change.id);
        place(this.sessionTree, change.id, change.session);
        return [() => this.sessionChanges.fire(change.id)];
      case "task":
        return this.takeTask(change.id, change.task);
      case "subagent":
        return this.takeSubagent(change.id, change.subagent);
      case "requests":
        this.requests = change.requests;
        return [() => this.requestChanges.fire()];
      case "tombstone":
        this.tombstones = withTombstone(this.tombstones, change.tombstone);
        return [];
      case "latest-session":
        this.latest = change.id;
        return [() => this.latestChanges.fire(change.id)];
      case "reset":
        return this.reset(change.snapshot);
      case "near-limit":
        return [() => this.warnings.fire(change.task)];
      case "refused":
        return [() => this.refusals.fire(change.refused)];
    }
  }

  private takeConnection(state: ConnectionState): readonly (() => void)[] {
    this.state = state;
    const notify = () => this.connectionChanges.fire(state);
    return state.kind === "connected" ? [...this.dropUnconfirmed(), notify] : [notify];
  }

  private takeTask(id: string, after: Task | undefined): readonly (() => void)[] {
    const before = this.tasks.get(id);
    place(this.tasks, id, after);
    if (after && isActive(after)) this.activeIDs.add(id);
    else this.activeIDs.delete(id);
    return before || after ? [() => this.changes.fire({ id, before, after })] : [];
  }

  private takeSubagent(id: string, after: Subagent | undefined): readonly (() => void)[] {
    const before = this.subagents.get(id);
    place(this.subagents, id, after);
    return before || after ? [() => this.subagentChanges.fire({ id, before, after })] : [];
  }

  /** Replaces everything. Items missing from the snapshot are removed, once the engine has read the sessions. */
  private reset(next: FolderSnapshot): readonly (() => void)[] {
    const isRead = next.connection.kind === "connected";
    const sessions = difference(this.sessionTree, sessionTree(), next.sessions, isRead);
    const tasks = difference(this.tasks, childTree<Task>(), next.tasks, isRead);
    const subagents = difference(this.subagents, childTree<Subagent>(), next.subagents, isRead);
    this.unconfirmed.clear();
    if (!isRead) {
      const listed = new Set(next.sessions.map(({ id }) => id));
      for (const { id } of this.sessionTree.all()) if (!listed.has(id)) this.unconfirmed.add(id);
    }
    this.sessionTree = sessions.tree;
    this.tasks = tasks.tree;
    this.subagents = subagents.tree;
    this.activeIDs = new Set(
      this.tasks
        .all()
        .filter(isActive)
        .map(({ id }) => id),
    );
    const others = isRead
      ? []
      : this.requests.filter(({ id }) => !next.requests.some((one) => one.id === id));
    const requests = [...others, ...next.requests];
    const hasOtherRequests = !isSame(this.requests, requests);
    const isElsewhere = this.latest !== next.latestSessionID;
    const hasOtherState = !isSame(this.state, next.connection);
    this.requests = requests;
    this.tombstones = next.tombstones;
    this.latest = next.latestSessionID;
    this.state = next.connection;
    return [
      ...tasks.differences.map((change) => () => this.changes.fire(change)),
      ...sessions.differences.map(
        ({ id }) =>
          () =>
            this.sessionChanges.fire(id),
      ),
      ...subagents.differences.map((change) => () => this.subagentChanges.fire(change)),
      ...(hasOtherRequests ? [() => this.requestChanges.fire()] : []),
      ...(isElsewhere ? [() => this.latestChanges.fire(this.latest)] : []),
      ...(hasOtherState ? [() => this.connectionChanges.fire(this.state)] : []),
    ];
  }

  private dropUnconfirmed(): readonly (() => void)[] {
    const gone = [...this.unconfirmed];
    return gone.flatMap((id) => [
      ...this.takeTask(id, undefined),
      ...this.take({ type: "session", id }),
      ...this.takeSubagent(id, undefined),
    ]);
  }
}

function sessionTree(): Tree<MirroredSession> {
  return new Tree(({ parentID }) => parentID);
}

function childTree<T extends Child>(): Tree<T> {
  return new Tree(({ parentSessionID }) => parentSessionID);
}

function place<T extends { readonly id: string }>(tree: Tree<T>, id: string, value: T | undefined): void {
  if (value) tree.keep(value);
  else tree.forget(id);
}

/** Fills a tree with the values and returns how they differ from before. Equal values keep their identity. */
function difference<T extends { readonly id: string }>(
  before: Tree<T>,
  tree: Tree<T>,
  values: readonly T[],
  isWhole: boolean,
): { readonly tree: Tree<T>; readonly differences: readonly Difference<T>[] } {
  const differences: Difference<T>[] = [];
  for (const value of values) {
    const known = before.get(value.id);
    const isKnown = known !== undefined && isSame(known, value);
    tree.keep(isKnown ? known : value);
    if (!isKnown) differences.push({ id: value.id, before: known, after: value });
  }
  for (const known of before.all()) {
    if (tree.get(known.id)) continue;
    if (isWhole) differences.push({ id: known.id, before: known, after: undefined });
    else tree.keep(known);
  }
  return { tree, differences };
}
