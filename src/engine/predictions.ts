import { messageOf } from "./errors.ts";
import type { Disposable } from "./event.ts";
import type { EnginePorts, WorktreeState } from "./ports.ts";
import type { Entry, TaskChange, TaskRegistry } from "./registry.ts";
import { isSame } from "./same.ts";
import type { Part, ServerEvent } from "./server-model.ts";
import { hasOpenWork, isActive, type IsolatedWork, type Task, type TaskWorktree } from "./task.ts";
import type { TaskWorktrees } from "./task-worktrees.ts";

/** How long changes are gathered before files are read, in milliseconds. */
const GATHER_MS = 300;
/** A pause lasts this many times as long as the reading before it, so that large repositories are read less often. */
const PAUSE_FACTOR = 4;
/** The longest pause, in milliseconds: the machine may have slept while files were read. */
const LONGEST_PAUSE_MS = 5 * 60_000;
/** How long others wait for what is being read, in milliseconds: a disk or a filter of Git can hang. */
const PATIENCE_MS = 30_000;
/** How many files of a conflict are listed. */
const MAX_PATHS = 50;

/**
 * Keeps up to date what isolated tasks have changed, and which of it would conflict with the folder or with each other.
 * Reads after each step that changed files, in the background and one step at a time.
 */
export class Predictions implements Disposable {
  /** The tasks whose worktrees may have changed since they were read. */
  private changed = new Set<string>();
  /** Whether files may have changed since they were read. */
  private isDue = false;
  private timer: Disposable | undefined;
  private running: Promise<void> | undefined;
  private pause = GATHER_MS;
  private readonly end = new AbortController();

  constructor(
    private readonly ports: Pick<EnginePorts, "worktrees" | "clock" | "logger">,
    private readonly registry: TaskRegistry,
    private readonly worktrees: TaskWorktrees,
  ) {}

  /** Processes an event of the server. */
  accept(event: ServerEvent): void {
    if (event.type !== "part-changed" || !hasChangedFiles(event.part)) return;
    const owner = this.worktrees.ownerOf(event.part.sessionID);
    if (owner) this.changed.add(owner.record.id);
    this.predictSoon();
  }

  /** Processes a change of a task. */
  taskChanged({ id, before, after }: TaskChange): void {
    if (!before?.worktree && !after?.worktree) return;
    if (isSame(factsOf(before), factsOf(after))) return;
    this.changed.add(id);
    this.predictSoon();
  }

  /** Processes a change that a user made in the worktree of this directory. */
  userChanged(directory: string): void {
    for (const { record } of this.open())
      if (record.worktree?.directory === directory) this.changed.add(record.id);
    this.predictSoon();
  }

  /** Predicts again soon, because a user may have changed any file. Agents at work tell what they change. */
  predictAll(): void {
    for (const { record } of this.open()) if (!isActive(record)) this.changed.add(record.id);
    this.predictSoon();
  }

  /** Predicts again soon, because files of the folder may have changed. Does nothing if no task is concerned. */
  predictSoon(): void {
    if (this.end.signal.aborted || this.open().length === 0) return;
    this.isDue = true;
    if (!this.running) this.timer ??= this.ports.clock.after(this.pause, () => void this.predict());
  }

  /** Resolves once all that has happened so far is taken into account, whatever happens meanwhile, or if that takes long. */
  async flush(): Promise<void> {
    let timer: Disposable | undefined;
    const late = new Promise<void>((resolve) => (timer = this.ports.clock.after(PATIENCE_MS, resolve)));
    await Promise.race([this.settle(), late]).finally(() => timer?.dispose());
  }

  dispose(): void {
    this.end.abort();
    this.timer?.dispose();
    this.timer = undefined;
  }

  private async settle(): Promise<void> {
    const { isDue } = this;
    await this.running;
    if (isDue) await (this.running ?? this.predict());
  }

  private open(): readonly Entry[] {
    return this.registry.all().filter(({ record }) => hasOpenWork(record));
  }

  private predict(): Promise<void> {
    this.timer?.dispose();
    this.timer = undefined;
    this.isDue = false;
    this.running = this.read().finally(() => {
      this.running = undefined;
      if (this.isDue) this.predictSoon();
    });
    return this.running;
  }

  private async read(): Promise<void> {
    const { worktrees, clock, logger } = this.ports;
    const began = clock.now();
    const { changed } = this;
    this.changed = new Set();
    const entries = this.open().map((entry) => ({ entry, worktree: entry.record.worktree as TaskWorktree }));
    try {
      const states = await worktrees.predict(
        entries.map(({ worktree }) => worktree),
        new Set(
          entries.flatMap(({ entry, worktree }) => (changed.has(entry.record.id) ? worktree.name : [])),
        ),
        this.end.signal,
      );
      if (this.end.signal.aborted) return;
      for (const { entry, worktree } of entries) this.show(entry, states.get(worktree.name));
    } catch (error) {
      if (this.end.signal.aborted) return;
      for (const id of changed) this.changed.add(id);
      logger.warn(`Couldn't predict conflicts: ${messageOf(error)}`);
    } finally {
      const pause = PAUSE_FACTOR * (clock.now() - began);
      this.pause = Math.min(Math.max(GATHER_MS, pause), LONGEST_PAUSE_MS);
    }
  }

  private show(entry: Entry, state: WorktreeState | undefined): void {
    const work = state && this.workOf(state);
    if (!isSame(entry.work, work)) this.registry.progressed(entry, () => (entry.work = work));
  }

  private workOf({ files, added, removed, conflicts }: WorktreeState): IsolatedWork {
    const tasks = new Map(this.open().map(({ record }) => [record.worktree?.name, record]));
    return {
      files,
      added,
      removed,
      conflicts: conflicts.flatMap(({ worktree, paths }) => {
        const shown = { paths: paths.slice(0, MAX_PATHS), count: paths.length };
        if (worktree === undefined) return [shown];
        const other = tasks.get(worktree);
        return other ? [{ ...shown, task: { id: other.id, description: other.description } }] : [];
      }),
    };
  }
}

function hasChangedFiles(part: Part): boolean {
  return part.type === "tool"
    ? part.files?.access === "write"
    : part.type === "other" && part.kind === "patch";
}

/** What has to be read again if it changes. Undefined if there is nothing to predict for the task. */
function factsOf(task: Task | undefined): unknown {
  return task && hasOpenWork(task) ? [task.worktree?.base, isActive(task), task.description] : undefined;
}
