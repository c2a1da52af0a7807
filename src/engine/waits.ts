import { messageOf } from "./errors.ts";
import type { Disposable } from "./event.ts";
import { timeOf } from "./ids.ts";
import type { Clock, Logger } from "./ports.ts";
import type { TaskRegistry } from "./registry.ts";
import type { Requests } from "./requests.ts";
import { shortID, withSpan } from "./task.ts";

/** Stores when each task itself waited for its user, so that it can be shown later. */
export class Waits implements Disposable {
  private readonly subscription: Disposable;
  /** Since when tasks have been waiting, by their IDs. */
  private readonly since = new Map<string, number>();
  private connected = false;

  constructor(
    private readonly registry: TaskRegistry,
    private readonly requests: Requests,
    private readonly clock: Clock,
    private readonly logger: Logger,
  ) {
    this.subscription = requests.onDidChange(() => this.note());
  }

  /** Stores what has ended by now, and from then on what ends. Called once the requests are up to date. */
  connect(): void {
    this.connected = true;
    this.note();
  }

  /** Another engine may be writing the records from now on. */
  disconnect(): void {
    this.connected = false;
  }

  dispose(): void {
    this.subscription.dispose();
  }

  private note(): void {
    const now = this.clock.now();
    const waiting = new Set<string>();
    for (const { id, sessionID } of this.requests.ofWorking()) {
      waiting.add(sessionID);
      const { startedAt = 0 } = this.registry.get(sessionID) ?? {};
      const asked = timeOf(id, now);
      // A time before the turn comes from an ID that holds no valid time.
      const from = asked < startedAt ? now : asked;
      this.since.set(sessionID, Math.min(this.since.get(sessionID) ?? now, from));
    }
    if (!this.connected) return;
    for (const [id, from] of this.since)
      if (!waiting.has(id)) {
        this.since.delete(id);
        void this.store(id, from, now);
      }
  }

  private async store(id: string, from: number, to: number): Promise<void> {
    const entry = this.registry.entry(id);
    if (!entry) return;
    try {
      await entry.serial.run(async () => {
        const { record } = entry;
        const spans = withSpan(record.spans, ["wait", from, Math.min(to, record.endedAt ?? to)]);
        await this.registry.storeThenShow(entry, { ...record, spans });
      });
    } catch (error) {
      this.logger.warn(`Couldn't store that task ${shortID(id)} waited: ${messageOf(error)}`);
    }
  }
}
