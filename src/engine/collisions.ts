import { Refusal } from "./errors.ts";
import type { Entry, TaskRegistry } from "./registry.ts";
import type { ServerEvent } from "./server-model.ts";
import type { EngineSettings } from "./settings.ts";
import { isActive, type Collision, type TaskRecord } from "./task.ts";

/** Files kept at most, those written last; of the others nothing is said. */
const MAX_FILES = 10_000;
/** Files of two tasks that are named at most. */
const MAX_SHARED_FILES = 50;

/** What is known of a session's tools. Moments are counts of writes. */
interface Access {
  /** When it was seen first: what was written before that is no news to it. */
  readonly since: number;
  /** By path, when it began to read the file last. */
  readonly reads: Map<string, number>;
  /** The calls that were taken in: the server tells of each several times. */
  readonly calls: Set<string>;
}

/** A session's last write of a file. */
interface Write {
  readonly at: number;
  /** Whether it has written the file at least once: what is about to be written may never be. */
  readonly isDone: boolean;
}

/**
 * Which sessions read and wrote which files of a folder, as far as their tools say. A read counts from its beginning and a
 * write until its end, so that of two at the same time neither passes for having seen the other.
 */
export class Collisions {
  private writes = 0;
  private readonly sessions = new Map<string, Access>();
  /** By path, the sessions that wrote the file, each with its last write; the file written last is the last one. */
  private readonly writers = new Map<string, Map<string, Write>>();

  constructor(
    private readonly registry: TaskRegistry,
    private readonly settings: () => EngineSettings,
  ) {}

  /** Takes in what the server tells. */
  accept(event: ServerEvent): void {
    if (event.type === "session-deleted") this.sessions.delete(event.sessionID);
    if (event.type !== "part-changed") return;
    const { part } = event;
    const { reads, calls } = this.access(part.sessionID);
    if (part.type !== "tool" || !part.files || calls.has(part.id)) return;
    calls.add(part.id);
    const { access, paths } = part.files;
    for (const path of paths)
      if (access === "read") reads.set(path, this.writes);
      else this.wrote(part.sessionID, path, true);
    if (access === "write") this.mark(part.sessionID, paths);
  }

  /**
   * Says that a session is about to write these files. Throws a {@link Refusal} where a task, or what works below one,
   * would take away what another session made of a file since this one last read it.
   * @param paths absolute ones
   */
  beginWrite(sessionID: string, paths: readonly string[]): void {
    if (this.settings().collisions === "block" && this.taskOf(sessionID))
      for (const path of paths) {
        const writer = this.unseenWriter(sessionID, path);
        if (writer !== undefined) throw stale(path, this.taskOf(writer)?.record.description);
      }
    for (const path of paths) this.wrote(sessionID, path, false);
  }

  /** The session that wrote the file last since this one saw it. */
  private unseenWriter(sessionID: string, path: string): string | undefined {
    const { since, reads } = this.access(sessionID);
    const seen = reads.get(path) ?? since;
    return [...(this.writers.get(path) ?? [])].findLast(([id, { at }]) => id !== sessionID && at > seen)?.[0];
  }

  /** Marks the task that changed these files with those tasks that had changed them before, as far as both were at work. */
  private mark(sessionID: string, paths: readonly string[]): void {
    const entry = this.taskOf(sessionID);
    if (!entry || this.settings().collisions === "off") return;
    const before = entry.collisions ?? [];
    let after = before;
    for (const path of paths)
      for (const other of this.tasksThatWrote(path))
        if (other !== entry && wereAtWork(other.record, entry.record))
          after = withFile(after, path, other.record, !hasCollided(other, entry));
    if (after !== before) this.registry.progressed(entry, () => (entry.collisions = after));
  }

  private tasksThatWrote(path: string): readonly Entry[] {
    return [...(this.writers.get(path) ?? [])].flatMap(([id, { isDone }]) =>
      isDone ? (this.taskOf(id) ?? []) : [],
    );
  }

  /** The task that a session is, or is below. */
  private taskOf(sessionID: string): Entry | undefined {
    const [task] = [sessionID, ...this.registry.above(sessionID)].flatMap(
      (id) => this.registry.entry(id) ?? [],
    );
    return task;
  }

  private wrote(sessionID: string, path: string, isDone: boolean): void {
    const writers = this.writers.get(path) ?? new Map<string, Write>();
    this.writers.delete(path);
    this.writers.set(path, writers);
    const last = writers.get(sessionID);
    writers.delete(sessionID);
    writers.set(sessionID, { at: ++this.writes, isDone: isDone || last?.isDone === true });
    const [oldest] = this.writers.keys();
    if (this.writers.size > MAX_FILES && oldest !== undefined) this.writers.delete(oldest);
  }

  private access(sessionID: string): Access {
    const known = this.sessions.get(sessionID);
    if (known) return known;
    const access = { since: this.writes, reads: new Map<string, number>(), calls: new Set<string>() };
    this.sessions.set(sessionID, access);
    return access;
  }
}

/** Whether another task worked at any time of the turn in which this one works. */
function wereAtWork(other: TaskRecord, own: TaskRecord): boolean {
  return isActive(other) || (other.endedAt ?? 0) >= own.startedAt;
}

function hasCollided({ collisions }: Entry, other: Entry): boolean {
  return collisions?.some(({ taskID }) => taskID === other.record.id) === true;
}

/** What is known of a task's collisions after one more file, which another task had changed. */
function withFile(
  collisions: readonly Collision[],
  path: string,
  { id, description }: TaskRecord,
  isFirst: boolean,
): readonly Collision[] {
  const known = collisions.find(({ taskID }) => taskID === id);
  if (!known) return [...collisions, { taskID: id, description, paths: [path], isFirst }];
  if (known.paths.includes(path) || known.paths.length === MAX_SHARED_FILES) return collisions;
  return collisions.map((each) => (each === known ? { ...known, paths: [...known.paths, path] } : each));
}

/** For the model, which reads English. */
function stale(path: string, task: string | undefined): Refusal {
  const who = task === undefined ? "Another session" : `The task "${task}"`;
  return new Refusal(
    "stale-file",
    `${who} changed ${path} after you last read it. Read it again, then make your change to what it holds now.`,
  );
}
