import { ServerFailure } from "../engine/ports.ts";
import type { Session, SessionEvent, SessionOwner } from "../engine/server-model.ts";
import { isActive } from "../engine/task.ts";

/** A session, as far as it matters here. */
interface KnownSession {
  readonly directory: string;
  /** Whether the engine of this folder is responsible for it. */
  readonly isOurs: boolean;
  /** Whether it is that of an isolated task, or of what was launched in one. */
  readonly isIsolated: boolean;
}

/** What the connection does with worktrees. */
interface ConnectedDirectories {
  /** Called with a worktree whose events are needed from now on. */
  readonly onUse: (directory: string) => void;
  /** Stops following a worktree, and makes the server release what it keeps for it. */
  readonly onRelease: (directory: string) => Promise<void>;
}

/**
 * In which directories the sessions of a folder run. Most run in the folder itself; an isolated task, and what is
 * launched in it, runs in the worktree that its record names. OpenCode finds the directory of a session by itself, but
 * lists what is running or waiting for a user, and sends events, for each directory separately.
 */
export class SessionDirectories {
  /** The folder as the server writes it. Undefined until that is known. Until then every session is taken to be in it. */
  private own: string | undefined;
  private readonly known = new Map<string, KnownSession>();
  /** The worktrees in which something runs or has run since they were first seen. */
  private readonly worktrees = new Set<string>();

  constructor(private readonly connected?: ConnectedDirectories) {}

  get folder(): string | undefined {
    return this.own;
  }

  /** Sets the folder, as the server writes its path. */
  setFolder(directory: string): void {
    this.own = directory;
  }

  /** The worktrees in which something may be running. */
  used(): readonly string[] {
    return [...this.worktrees];
  }

  /** The directory of a session. Undefined for the folder itself, and if the session is not known. */
  of(sessionID: string): string | undefined {
    const directory = this.known.get(sessionID)?.directory;
    return this.folder === undefined || directory === this.folder ? undefined : directory;
  }

  /**
   * Makes a call in the folder and in these worktrees. Nothing runs in one that the server refuses to load, such as for an
   * invalid configuration.
   */
  async everywhere<T>(make: (directory: string | undefined) => Promise<T>): Promise<readonly T[]> {
    const inWorktrees = this.used().map((directory) =>
      make(directory).then((made): readonly T[] => [made], ifRefused),
    );
    const [inFolder, ...others] = await Promise.all([make(undefined), ...inWorktrees]);
    return [inFolder, ...others.flat()] as readonly T[];
  }

  /** From now on, something may be running in this directory. */
  use(directory: string): void {
    if (this.folder === undefined || directory === this.folder || this.worktrees.has(directory)) return;
    this.worktrees.add(directory);
    this.connected?.onUse(directory);
  }

  /** Nothing runs in this worktree any more, and it is about to be removed. */
  async release(directory: string): Promise<void> {
    this.worktrees.delete(directory);
    try {
      await this.connected?.onRelease(directory);
    } catch (error) {
      // It stays, and something may be launched in it.
      this.use(directory);
      throw error;
    }
  }

  /** The sessions among these that belong to the folder, in the same order. */
  ours(sessions: readonly Session[]): readonly Session[] {
    const listed = new Map(sessions.map((session) => [session.id, session]));
    const visited = new Map<string, KnownSession>();
    const visit = (session: Session): KnownSession => {
      const known = visited.get(session.id);
      if (known) return known;
      // Ends the search if broken data makes a session its own ancestor.
      visited.set(session.id, { directory: session.directory, isOurs: false, isIsolated: false });
      const parent = listed.get(parentOf(session) ?? "");
      const found = this.keep(session, parent && visit(parent));
      visited.set(session.id, found);
      return found;
    };
    return sessions.filter((session) => visit(session).isOurs);
  }

  /** Notes where a new or changed session runs. Returns whether it belongs to the folder. */
  note(session: Session): boolean {
    return this.keep(session, this.known.get(parentOf(session) ?? "")).isOurs;
  }

  /**
   * Which folder a session belongs to.
   * @param read reads a session: none is known yet if it was created where no events come from
   */
  async ownerOf(
    sessionID: string,
    read: (sessionID: string) => Promise<Session | undefined>,
  ): Promise<SessionOwner> {
    if (!this.known.has(sessionID)) {
      const session = await read(sessionID);
      if (!session) return "unknown";
      await this.meet(session, read);
    }
    const { isOurs, isIsolated } = this.known.get(sessionID) ?? {};
    if (isOurs) return "this";
    return isIsolated ? "another" : "unknown";
  }

  /** Notes a session that was read by itself, with those above it: all of them or none. */
  async meet(session: Session, read: (sessionID: string) => Promise<Session | undefined>): Promise<void> {
    const met = new Map<string, Session>();
    for (let each: Session | undefined = session; each && !met.has(each.id) && !this.known.has(each.id);) {
      met.set(each.id, each);
      const parentID = parentOf(each);
      each = parentID === undefined || this.known.has(parentID) ? undefined : await read(parentID);
    }
    // A session belongs to the folder of the one above it.
    for (const each of [...met.values()].reverse()) this.note(each);
  }

  /** Whether an event concerns the folder. */
  accepts(event: SessionEvent, sessionID: string): boolean {
    if (event.type === "session-changed") return this.note(event.session);
    const isOurs = this.known.get(sessionID)?.isOurs ?? true;
    if (event.type === "session-deleted") this.known.delete(sessionID);
    return isOurs;
  }

  private keep(session: Session, parent: KnownSession | undefined): KnownSession {
    const { id, directory, task } = session;
    const isTask = isIsolatedTask(session, parent);
    const isIsolated = isTask || (parent?.directory === directory && parent.isIsolated);
    const found = { directory, isOurs: this.isOurs(directory, isTask, parent), isIsolated };
    this.known.set(id, found);
    if (found.isOurs && task.kind === "task" && isActive(task.record)) this.use(directory);
    return found;
  }

  /** A session in a worktree belongs to the folder of its parent. Only a task can be in another directory than that. */
  private isOurs(directory: string, isIsolatedTask: boolean, parent: KnownSession | undefined): boolean {
    if (parent && (isIsolatedTask || parent.directory === directory)) return parent.isOurs;
    return !isIsolatedTask && directory === this.folder;
  }
}

function ifRefused(error: unknown): readonly never[] {
  if (error instanceof ServerFailure && error.status === 400) return [];
  throw error;
}

function isIsolatedTask({ task, directory }: Session, parent: KnownSession | undefined): boolean {
  if (task.kind === "task") return task.record.worktree !== undefined;
  return task.kind === "unreadable" && parent !== undefined && parent.directory !== directory;
}

function parentOf({ parentID, task }: Session): string | undefined {
  return parentID ?? (task.kind === "task" ? task.record.parentSessionID : undefined);
}
