import { messageOf } from "./errors.ts";
import type { AgentServer, Clock, Logger } from "./ports.ts";
import type { Entry, TaskRegistry } from "./registry.ts";
import { isActive, isQueued, shortID } from "./task.ts";

/**
 * Lets no more tasks work at once than the setting allows; the others wait in the order of their launch. What waits is
 * stored on the server, prompt included, so the queue survives every process.
 */
export class LaunchQueue {
  /** Slots of tasks whose session is being created. */
  private reserved = 0;
  private readonly starting = new Set<Entry>();

  constructor(
    private readonly registry: TaskRegistry,
    private readonly server: AgentServer,
    private readonly clock: Clock,
    private readonly logger: Logger,
    /** How many tasks may work at once; 0: any number. */
    private readonly limit: () => number,
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

  /** Starts those that waited longest while there are free slots. */
  pump(): void {
    for (const entry of this.waiting()) {
      if (!this.hasFreeSlot()) return;
      this.starting.add(entry);
      this.start(entry)
        .catch((error: unknown) => {
          this.logger.warn(`Task ${shortID(entry.record.id)} could not be started: ${messageOf(error)}`);
        })
        .finally(() => {
          this.starting.delete(entry);
          this.pump();
        });
    }
  }

  private waiting(): readonly Entry[] {
    return this.registry
      .active()
      .filter((entry) => isQueued(entry.record) && !this.starting.has(entry))
      .sort((a, b) => a.record.createdAt - b.record.createdAt);
  }

  private hasFreeSlot(): boolean {
    const limit = this.limit();
    const working = this.registry
      .active()
      .filter((entry) => !isQueued(entry.record) && !this.starting.has(entry)).length;
    return limit === 0 || working + this.reserved + this.starting.size < limit;
  }

  private start(entry: Entry): Promise<void> {
    return entry.serial.run(async () => {
      const { record } = entry;
      if (!isActive(record) || !isQueued(record)) return;
      // The record first: where the start fails now, the turn watcher finds the prompt unanswered and starts it.
      await this.registry.save(entry, { ...record, queued: undefined, startedAt: this.clock.now() });
      const { id, agent, model, promptMessageID: messageID } = record;
      await this.server.prompt(id, { messageID, agent, model, parts: [] });
    });
  }
}
