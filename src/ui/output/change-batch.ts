import type { EntryChange } from "../../protocol/output.ts";

/** Changes that wait to be sent, merged so that there is at most one for what is said of an entry. */
export class ChangeBatch {
  private changes: EntryChange[] = [];
  /** Where the change of an entry stands that a later one can be merged into. */
  private readonly open = new Map<string, number>();

  get isEmpty(): boolean {
    return this.changes.length === 0;
  }

  add(change: EntryChange): void {
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

  /** Hands the changes over and starts anew. */
  take(): readonly EntryChange[] {
    const { changes } = this;
    this.changes = [];
    this.open.clear();
    return changes;
  }
}

function merged(earlier: EntryChange, later: EntryChange): EntryChange {
  if (later.type !== "append") return later;
  if (earlier.type === "append") return { ...earlier, delta: earlier.delta + later.delta };
  if (earlier.type !== "put" || !("text" in earlier.entry)) return earlier;
  return { ...earlier, entry: { ...earlier.entry, text: earlier.entry.text + later.delta } };
}
