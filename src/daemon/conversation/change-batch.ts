import type { EntryChange } from "../../protocol/output.ts";

/** Changes within this time are sent together, in milliseconds: about two frames of a screen. */
const BATCH_MS = 30;

/** Collects changes and sends them together; changes of the same entry are merged. */
export class ChangeBatch {
  private changes: EntryChange[] = [];
  private timer: ReturnType<typeof setTimeout> | undefined;
  /** For each entry, the index of the change that a later one can be merged into. */
  private readonly open = new Map<string, number>();

  constructor(private readonly send: (changes: readonly EntryChange[]) => void) {}

  add(change: EntryChange): void {
    this.timer ??= setTimeout(() => this.flush(), BATCH_MS);
    if (change.type === "remove" || change.type === "remove-message") {
      this.open.clear();
      this.changes.push(change);
      return;
    }
    const id = change.type === "put" ? change.entry.id : change.id;
    const at = this.open.get(id);
    const earlier = at === undefined ? undefined : this.changes[at];
    if (at === undefined || !earlier) {
      this.open.set(id, this.changes.push(change) - 1);
    } else {
      this.changes[at] = merged(earlier, change);
    }
  }

  /** Sends the collected changes immediately. */
  flush(): void {
    const { changes } = this;
    this.drop();
    if (changes.length > 0) this.send(changes);
  }

  drop(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.changes = [];
    this.open.clear();
  }
}

function merged(earlier: EntryChange, later: EntryChange): EntryChange {
  if (later.type !== "append") return later;
  if (earlier.type === "append") return { ...earlier, delta: earlier.delta + later.delta };
  if (earlier.type !== "put" || !("text" in earlier.entry)) return earlier;
  return { ...earlier, entry: { ...earlier.entry, text: earlier.entry.text + later.delta } };
}
