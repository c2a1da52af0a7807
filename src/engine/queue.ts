import { hasArrived } from "./arrival.ts";
import { messageOf } from "./errors.ts";
import type { Disposable } from "./event.ts";
import type { EnginePorts } from "./ports.ts";
import type { Entry, TaskRegistry } from "./registry.ts";
import { isActive, isQueued, shortID } from "./task.ts";

/** After a start that failed or came too early, in milliseconds. */
const RETRY_MS = 2_000;

/**
 * Lets no more tasks work at once than the setting allows; the others wait in the order of their launch. What waits is
 * stored on the server, prompt included, so the queue survives every process.
 */
export class LaunchQueue implements Disposable {
  /** Slots of tasks whose session is being created. */
  private reserved = 0;
  private retry: Disposable | undefined;

  private connected = false;

  constructor(
    private readonly ports: Pick<EnginePorts, "server" | "clock" | "logger" | "settings">,
    private readonly registry: TaskRegistry,
  ) {}

  /** Takes a slot for a task that is about to be launched. False: none is free, the task has to wait. */
  reserve(): boolean {
    if (this.waiting().length > 0 || !this.hasFreeSlot()) return false;
    this.reserved++;
    return true;
  }

  /** Gives a reserved slot back: the task is in the registry now, or came to nothing. */
  release(): void {
    this.reserved--;
  }

  /** The connection is (again) there: {@link pump} works from here on. */
  connect(): void {
    this.connected = true;
  }

  /** Starts those that waited longest while there are free slots. */
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
    const working = this.registry
      .active()
      .filter(({ turn }) => turn?.kind === "working" || turn?.isStarting).length;
    return limit === 0 || working + this.reserved < limit;
  }

  private async start(entry: Entry): Promise<void> {
    const { turn } = entry;
    if (turn?.kind !== "queued") return;
    turn.isStarting = true;
    let isDecided = false;
    try {
      isDecided = await entry.serial.run(() => this.startNow(entry));
    } catch (error) {
      this.ports.logger.warn(`Couldn't start task ${shortID(entry.record.id)}: ${messageOf(error)}`);
    } finally {
      turn.isStarting = false;
    }
    if (isDecided) this.pump();
    else this.pumpLater();
  }

  /** One that is not ready keeps its place; asking again at once would only spin. */
  private pumpLater(): void {
    if (!this.connected) return;
    this.retry ??= this.ports.clock.after(RETRY_MS, () => {
      this.retry = undefined;
      this.pump();
    });
  }

  /** False: its prompt is not stored yet. */
  private async startNow(entry: Entry): Promise<boolean> {
    const { record } = entry;
    if (!isActive(record) || !isQueued(record)) return true;
    const { id, agent, model, promptMessageID: messageID } = record;
    // A task is seen as soon as its session exists, a moment before the server has stored its prompt.
    if (!hasArrived(await this.ports.server.message(id, messageID))) return false;
    // The record first: where the start fails now, the turn watcher finds the prompt unanswered and starts it.
    await this.registry.storeThenShow(entry, {
      ...record,
      queued: undefined,
      startedAt: this.ports.clock.now(),
    });
    await this.ports.server.prompt(id, { messageID, agent, model, parts: [] });
    return true;
  }
}
