import { Emitter, type Disposable, type Event } from "../engine/event.ts";
import type { Clock, Logger } from "../engine/ports.ts";
import type { FolderChange } from "../rpc/contract.ts";

/** How often what only goes on is told, in milliseconds: users see no more. */
const PROGRESS_MS = 100;

/** Collects what changes in a folder and tells it in one go, each thing as it then is. */
export class ChangeBatcher implements Disposable {
  /** What gives the change, by the thing that changed; the thing that changed last comes last. */
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
    this.changes = new Emitter((error) => logger.error("A listener to a folder failed.", error));
    this.onDidFlush = this.changes.event;
  }

  /**
   * @param key the same for all changes of which the last one tells everything
   * @param read gives the change when it is told
   */
  note(key: string, read: () => FolderChange, urgency: "now" | "progress"): void {
    this.pending.delete(key);
    this.pending.set(key, read);
    if (urgency === "now") this.immediate ??= setImmediate(() => this.flush());
    else this.timer ??= this.clock.after(PROGRESS_MS, () => this.flush());
  }

  /** Something that happened once. */
  noteEvent(change: FolderChange): void {
    this.note(`event ${this.events++}`, () => change, "now");
  }

  /** Tells at once what waits to be told. */
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
