import { hasArrived } from "./arrival.ts";
import { messageOf, textOf } from "./errors.ts";
import type { Disposable } from "./event.ts";
import type { EnginePorts } from "./ports.ts";
import type { Entry, TaskRegistry } from "./registry.ts";
import { sentence, type Text } from "./sentence.ts";
import { isActive, isQueued, shortID, taskError } from "./task.ts";
import type { WorktreeSetups } from "./worktree-setups.ts";
import type { TaskEvent } from "./transitions.ts";

/** The delay after a start that failed or came too early, in milliseconds. */
const RETRY_MS = 2_000;

/**
 * Limits how many tasks run at once. The others wait in the order of their launch. Queued tasks are stored on the
 * server with their prompts, so the queue survives restarts of any process.
 */
export class LaunchQueue implements Disposable {
  /** How many slots are taken by tasks whose session is being created. */
  private reserved = 0;
  private retry: Disposable | undefined;

  private connected = false;

  constructor(
    private readonly ports: Pick<EnginePorts, "server" | "clock" | "logger" | "settings">,
    private readonly registry: TaskRegistry,
    private readonly setups: WorktreeSetups,
    /** Ends a task. Must be called from within the task's queue. */
    private readonly ending: { end(entry: Entry, event: TaskEvent): Promise<void> },
  ) {}

  /** Takes a slot for a task that is about to be launched. False if none is free and the task has to wait. */
  reserve(): boolean {
    if (this.waiting().length > 0 || !this.hasFreeSlot()) return false;
    this.reserved++;
    return true;
  }

  /** Frees a reserved slot: the task is in the registry now, or its launch failed. */
  release(): void {
    this.reserved--;
  }

  /** The connection is there: from now on {@link pump} starts tasks. */
  connect(): void {
    this.connected = true;
  }

  /** Starts the tasks that have waited longest while there are free slots. */
  pump(): void {
    if (!this.connected) return;
    for (const entry of this.waiting()) {
      if (!this.hasFreeSlot()) return;
      void this.start(entry);
    }
  }

  disconnect(): void {
    this.connected = false;
    this.retry?.dispose();
    this.retry = undefined;
  }

  dispose(): void {
    this.disconnect();
  }

  private waiting(): readonly Entry[] {
    return this.registry
      .active()
      .filter(({ turn }) => turn?.kind === "queued" && !turn.isStarting)
      .sort((a, b) => a.record.createdAt - b.record.createdAt);
  }

  private hasFreeSlot(): boolean {
    const limit = this.ports.settings().maxConcurrentTasks;
    // A task that waits for the user takes no slot. When it continues, the limit may be exceeded for a while.
    const working = this.registry
      .active()
      .filter(({ turn }) =>
        turn?.kind === "working" ? turn.waiting.since === undefined : turn?.isStarting,
      ).length;
    return limit === 0 || working + this.reserved < limit;
  }

  private async start(entry: Entry): Promise<void> {
    const { turn } = entry;
    if (turn?.kind !== "queued") return;
    turn.isStarting = true;
    let isDecided = false;
    try {
      // Not in the task's queue, so that the task can be cancelled meanwhile.
      const failure = await this.setups.run(entry).then(() => undefined, textOf);
      isDecided = await entry.serial.run(() =>
        failure === undefined ? this.startNow(entry) : this.failSetup(entry, failure),
      );
    } catch (error) {
      this.ports.logger.warn(`Couldn't start task ${shortID(entry.record.id)}: ${messageOf(error)}`);
    } finally {
      turn.isStarting = false;
    }
    if (isDecided) this.pump();
    else this.pumpLater();
  }

  /** A task that is not ready keeps its place in the queue, and is tried again after a delay. */
  private pumpLater(): void {
    if (!this.connected) return;
    this.retry ??= this.ports.clock.after(RETRY_MS, () => {
      this.retry = undefined;
      this.pump();
    });
  }

  private async failSetup(entry: Entry, reason: Text): Promise<boolean> {
    // The engine is being disposed, or the task has ended.
    if (!this.connected || !isActive(entry.record)) return true;
    // A retry needs the prompt, which is stored a moment after the task appears.
    if (!(await this.isStored(entry))) return false;
    const error = taskError(
      "SetupFailed",
      sentence("The prompt wasn't sent. {0} Retry it as a new task.", reason),
    );
    await this.ending.end(entry, { type: "turn-failed", at: this.ports.clock.now(), error });
    return true;
  }

  private async isStored({ record: { id, promptMessageID } }: Entry): Promise<boolean> {
    return hasArrived(await this.ports.server.message(id, promptMessageID));
  }

  /** False if the task's prompt is not stored yet. */
  private async startNow(entry: Entry): Promise<boolean> {
    const { record } = entry;
    if (!isActive(record) || !isQueued(record)) return true;
    if (entry.turn?.prompt.kind === "interrupted") return false;
    const { id, agent, model, promptMessageID: messageID } = record;
    // A task appears as soon as its session exists, a moment before the server has stored its prompt.
    if (!(await this.isStored(entry))) return false;
    // Store the record first: if the start then fails, the turn watcher finds the prompt unanswered and starts it.
    await this.registry.storeThenShow(entry, {
      ...record,
      queued: undefined,
      worktree: record.worktree && { ...record.worktree, setup: undefined },
      startedAt: this.ports.clock.now(),
    });
    await this.ports.server.prompt(id, { messageID, agent, model, parts: [] });
    return true;
  }
}
