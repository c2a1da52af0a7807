import { Refusal } from "./errors.ts";
import type { Entry, TaskRegistry } from "./registry.ts";
import { sentence } from "./sentence.ts";
import type { PermissionRequest, ServerEvent } from "./server-model.ts";
import type { EngineSettings } from "./settings.ts";
import { isActive, type Collision, type TaskRecord } from "./task.ts";

/** How many files are kept, the most recently written ones. Other files are not checked. */
const MAX_FILES = 10_000;
/** How many sessions are kept, those heard of last. One that returns counts as new. */
const MAX_SESSIONS = 1_000;
/** How many files that two tasks share are listed. */
const MAX_SHARED_FILES = 50;

/** What is known about a session's file accesses. Times are counts of writes. */
interface Access {
  /** When the session was first seen. It is assumed to know all writes before that. */
  readonly since: number;
  /** By {@link Collisions.keyOf}, when it last started to read the file. */
  readonly reads: Map<string, number>;
  /** The calls already counted, as the server sends each of them several times. */
  readonly calls: Set<string>;
}

/** A session's last write of a file. */
interface Write {
  readonly at: number;
  /** Its last write that has happened. An announced one may not. */
  readonly doneAt: number | undefined;
}

/**
 * Which sessions read and wrote which files of a folder, according to their tool calls. A read counts from its start
 * and a write until its end, so that of two concurrent accesses neither counts as having seen the other.
 */
export class Collisions {
  private writes = 0;
  /** The session heard of last comes last. */
  private readonly sessions = new Map<string, Access>();
  /** By {@link keyOf}, the sessions that wrote the file, each with its last write. The file written last comes last. */
  private readonly writers = new Map<string, Map<string, Write>>();

  constructor(
    private readonly registry: TaskRegistry,
    private readonly settings: () => EngineSettings,
    private readonly ignoresCase = false,
  ) {}

  /** Processes an event of the server. */
  accept(event: ServerEvent): void {
    if (event.type === "session-deleted") this.sessions.delete(event.sessionID);
    if (event.type !== "part-changed") return;
    const { part } = event;
    const { reads, calls } = this.access(part.sessionID);
    if (part.type !== "tool" || !part.files || calls.has(part.id)) return;
    calls.add(part.id);
    const { access, paths } = part.files;
    for (const path of paths)
      if (access === "read") reads.set(this.keyOf(path), this.writes);
      else this.wrote(part.sessionID, path, true);
    if (access === "write") this.mark(part.sessionID, paths);
  }

  /**
   * Announces that a session is about to write these files. Throws a {@link Refusal} if a task or one of its
   * descendants would overwrite what another session wrote to a file since this session last read it.
   * @param paths absolute paths
   */
  beginWrite(sessionID: string, paths: readonly string[]): void {
    if (this.settings().collisions === "block" && this.taskOf(sessionID))
      for (const path of paths) {
        const write = this.unseenWrites(sessionID, path).at(-1);
        if (write) throw stale(path, this.taskOf(write.by)?.record.description, write.isDone);
      }
    for (const path of paths) this.wrote(sessionID, path, false);
  }

  /**
   * Throws a {@link Refusal} if what a task asks to do to files would undo what another session did to them while it
   * waited for the answer.
   */
  requireUnchanged({ sessionID, files = [] }: PermissionRequest): void {
    if (this.settings().collisions !== "block" || !this.taskOf(sessionID)) return;
    const paths = files.flatMap(({ path, movedTo }) => [path, movedTo ?? []].flat());
    const changed = paths.find((path) => this.unseenWrites(sessionID, path).some(({ isDone }) => isDone));
    if (changed !== undefined)
      throw new Refusal(
        "stale-file",
        sentence(
          "{0} was changed after this was asked, which allowing it would undo. Reject it; with a message, the agent reads the file again.",
          changed,
        ),
      );
  }

  /** Who wrote the file after this session had read it, or announced that, the last one last. */
  private unseenWrites(
    sessionID: string,
    path: string,
  ): readonly { readonly by: string; readonly isDone: boolean }[] {
    const { since, reads } = this.access(sessionID);
    const key = this.keyOf(path);
    const seen = reads.get(key) ?? since;
    return [...(this.writers.get(key) ?? [])]
      .filter(([id, { at }]) => id !== sessionID && at > seen)
      .map(([by, { doneAt = 0 }]) => ({ by, isDone: doneAt > seen }));
  }

  /** Marks the task that changed these files with the tasks that changed them before, if both ran at the same time. */
  private mark(sessionID: string, paths: readonly string[]): void {
    const entry = this.taskOf(sessionID);
    if (!entry || this.settings().collisions === "off") return;
    const before = entry.collisions ?? [];
    let after = before;
    for (const path of paths)
      for (const other of this.tasksThatWrote(path))
        if (other !== entry && ranDuring(other.record, entry.record))
          after = this.withFile(after, path, other.record, !hasCollided(other, entry));
    if (after !== before) this.registry.progressed(entry, () => (entry.collisions = after));
  }

  private tasksThatWrote(path: string): readonly Entry[] {
    return [...(this.writers.get(this.keyOf(path)) ?? [])].flatMap(([id, { doneAt }]) =>
      doneAt === undefined ? [] : (this.taskOf(id) ?? []),
    );
  }

  /** The task of a session: the session itself, or its nearest ancestor that is a task. */
  private taskOf(sessionID: string): Entry | undefined {
    const [task] = [sessionID, ...this.registry.above(sessionID)].flatMap(
      (id) => this.registry.entry(id) ?? [],
    );
    return task;
  }

  private wrote(sessionID: string, path: string, isDone: boolean): void {
    const key = this.keyOf(path);
    const writers = this.writers.get(key) ?? new Map<string, Write>();
    this.writers.delete(key);
    this.writers.set(key, writers);
    const last = writers.get(sessionID);
    writers.delete(sessionID);
    const at = ++this.writes;
    writers.set(sessionID, { at, doneAt: isDone ? at : last?.doneAt });
    const [oldest] = this.writers.keys();
    if (this.writers.size > MAX_FILES && oldest !== undefined) this.writers.delete(oldest);
  }

  /** The same for all ways to write a path that name the same file. */
  private keyOf(path: string): string {
    return this.ignoresCase ? path.toLowerCase() : path;
  }

  /** Adds to a task's collisions a file that another task had changed before. */
  private withFile(
    collisions: readonly Collision[],
    path: string,
    { id, description }: TaskRecord,
    isFirst: boolean,
  ): readonly Collision[] {
    const known = collisions.find(({ taskID }) => taskID === id);
    if (!known) return [...collisions, { taskID: id, description, paths: [path], isFirst }];
    const isListed = known.paths.some((one) => this.keyOf(one) === this.keyOf(path));
    if (isListed || known.paths.length === MAX_SHARED_FILES) return collisions;
    return collisions.map((each) => (each === known ? { ...known, paths: [...known.paths, path] } : each));
  }

  private access(sessionID: string): Access {
    const access = this.sessions.get(sessionID) ?? { since: this.writes, reads: new Map(), calls: new Set() };
    this.sessions.delete(sessionID);
    this.sessions.set(sessionID, access);
    const [oldest] = this.sessions.keys();
    if (this.sessions.size > MAX_SESSIONS && oldest !== undefined) this.sessions.delete(oldest);
    return access;
  }
}

/** Whether another task was running at any time during the current turn of this one. */
function ranDuring(other: TaskRecord, own: TaskRecord): boolean {
  return isActive(other) || (other.endedAt ?? 0) >= own.startedAt;
}

function hasCollided({ collisions }: Entry, other: Entry): boolean {
  return collisions?.some(({ taskID }) => taskID === other.record.id) === true;
}

/** In English only, as the model reads it. */
function stale(path: string, task: string | undefined, isDone: boolean): Refusal {
  const who = task === undefined ? "Another session" : `The task "${task}"`;
  const what = isDone ? "changed" : "is changing, or was about to change,";
  return new Refusal(
    "stale-file",
    `${who} ${what} ${path} after you last read it. Read it again, then make your change to what it holds now.`,
  );
}
