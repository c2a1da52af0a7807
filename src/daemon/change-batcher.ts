import { Emitter, type Disposable, type Event, logged } from "../engine/event.ts";
import type { Clock, Logger } from "../engine/ports.ts";
import type { FolderChange } from "../rpc/contract.ts";

/** How often changes that nobody waits for are sent, in milliseconds. Users can't follow more. */
const PROGRESS_MS = 250;

/** Collects the changes in a folder and sends them in batches, with values as of the time of sending. */
export class ChangeBatcher implements Disposable {
  /** How to read each change, by what changed. The latest change comes last. */
  private readonly pending = new Map<string, () => FolderChange>();
  private immediate: NodeJS.Immediate | undefined;
  private timer: Disposable | undefined;
  private events = 0;
  private readonly changes: Emitter<readonly FolderChange[]>;
  readonly onDidFlush: Event<readonly FolderChange[]>;

  constructor(
    private readonly clock: Clock,
    logger: Logger,
  ) {
    this.changes = new Emitter(logged(logger, "a folder"));
    this.onDidFlush = this.changes.event;
  }

  /**
   * Adds a change to the next batch.
   * @param key the same for all changes of which the last one replaces the others
   * @param read returns the change, called when the batch is sent
   */
  note(key: string, read: () => FolderChange, urgency: "now" | "progress"): void {
    this.pending.delete(key);
    this.pending.set(key, read);
    if (urgency === "now") this.immediate ??= setImmediate(() => this.flush());
    else this.timer ??= this.clock.after(PROGRESS_MS, () => this.flush());
  }

  /** Adds a one-time event, which no later change replaces. */
  noteEvent(change: FolderChange): void {
    this.note(`event ${this.events++}`, () => change, "now");
  }

  /** Sends all pending changes immediately. */
  flush(): void {
    clearImmediate(this.immediate);
    this.timer?.dispose();
    this.immediate = this.timer = undefined;
    if (this.pending.size === 0) return;
    const batch = [...this.pending.values()].map((read) => read());
    this.pending.clear();
    this.changes.fire(batch);
  }

  dispose(): void {
    clearImmediate(this.immediate);
    this.timer?.dispose();
    this.pending.clear();
    this.changes.dispose();
  }
}
