import type { ConversationEntry, EntryChange } from "../protocol/output.ts";
import { Segmenter } from "./segmenter.ts";

/** An entry and its rows, at least one. */
export interface Item {
  entry: ConversationEntry;
  readonly rows: Row[];
  /** Only for entries whose text is laid out in several rows. */
  text: Segmenter | undefined;
}

/** A unit of layout: an entry, or one segment of its text. */
export interface Row {
  readonly item: Item;
  /** The Markdown of the segment; empty if the entry isn't split into segments. */
  text: string;
  /** Whether this is the first row of its entry. */
  readonly first: boolean;
  /** In pixels; an estimate until the row is measured. */
  height: number;
}

/** Hears of each change right after it happened. */
export interface ConversationObserver {
  /** At `index`, the rows `removed` were replaced by `inserted`. */
  onSplice(index: number, removed: readonly Row[], inserted: readonly Row[]): void;
  onChange(row: Row): void;
}

/** The conversation as received so far, as a flat list of rows. */
export class Conversation {
  readonly rows: Row[] = [];
  /** Whether there are older entries that haven't been received yet. */
  hasEarlier = false;
  private readonly items = new Map<string, Item>();

  constructor(private readonly observer: ConversationObserver) {}

  get isEmpty(): boolean {
    return this.rows.length === 0;
  }

  /** The oldest entry received. */
  get oldest(): ConversationEntry | undefined {
    return this.rows[0]?.item.entry;
  }

  /** The row in which the entry with that ID begins. */
  firstRow(id: string): Row | undefined {
    return this.items.get(id)?.rows[0];
  }

  /** The row in the place of one that may have been made again since. */
  present(row: Row): Row | undefined {
    const { entry, rows } = row.item;
    return this.items.get(entry.id)?.rows[rows.indexOf(row)];
  }

  reset(entries: readonly ConversationEntry[], hasEarlier: boolean): void {
    this.items.clear();
    this.splice(0, this.rows.length, []);
    this.prepend(entries, hasEarlier);
  }

  /** Adds older entries at the start. */
  prepend(entries: readonly ConversationEntry[], hasEarlier: boolean): void {
    this.hasEarlier = hasEarlier;
    const fresh = entries.filter(({ id }) => !this.items.has(id));
    this.splice(
      0,
      0,
      fresh.flatMap((entry) => this.build(entry).rows),
    );
  }

  apply(change: EntryChange): void {
    switch (change.type) {
      case "put":
        if (this.items.has(change.entry.id)) this.replace(change.entry);
        else this.insert(change.entry, change.after);
        break;
      case "append": {
        const item = this.items.get(change.id);
        if (item) this.grow(item, change.delta);
        break;
      }
      case "remove":
        this.remove(change.id);
        break;
      case "remove-message":
        for (const [id, { entry }] of this.items) if (entry.messageID === change.messageID) this.remove(id);
        break;
    }
  }

  private insert(entry: ConversationEntry, after: string | undefined): void {
    const previous = after === undefined ? undefined : this.items.get(after);
    // The entry is older than those received, and will come with a page of earlier entries.
    if (!previous && (after !== undefined || this.hasEarlier)) return;
    const at = previous ? this.indexOf(previous.rows.at(-1)) + 1 : 0;
    this.splice(at, 0, this.build(entry).rows);
  }

  private replace(entry: ConversationEntry): void {
    const item = this.items.get(entry.id);
    if (!item) return;
    const before = item.entry;
    item.entry = entry;
    if (before.kind !== entry.kind) {
      this.splice(this.indexOf(item.rows[0]), item.rows.length, this.build(entry).rows);
    } else if (item.text && "text" in entry && "text" in before) {
      const isLonger = entry.text.startsWith(before.text);
      if (isLonger) item.text.append(entry.text.slice(before.text.length));
      else item.text = segmented(entry.text);
      this.layOut(item, item.text);
    } else {
      this.observer.onChange(item.rows[0]!);
    }
  }

  private grow(item: Item, delta: string): void {
    const { entry, text } = item;
    if (!("text" in entry)) return;
    item.entry = { ...entry, text: entry.text + delta };
    text?.append(delta);
    if (text) this.layOut(item, text);
    else this.observer.onChange(item.rows[0]!);
  }

  /** Lays out changed text: rows whose segment is the same stay as they are. */
  private layOut(item: Item, text: Segmenter): void {
    const { rows } = item;
    const count = Math.max(1, text.count);
    const end = this.indexOf(rows.at(-1)) + 1;
    const surplus = rows.splice(count).length;
    for (const [index, row] of rows.entries()) {
      const segment = text.segment(index);
      if (segment === row.text) continue;
      row.text = segment;
      this.observer.onChange(row);
    }
    const fresh: Row[] = [];
    for (let index = rows.length; index < count; index++)
      fresh.push(segmentRow(item, text.segment(index), false));
    rows.push(...fresh);
    this.splice(end - surplus, surplus, fresh);
  }

  private remove(id: string): void {
    const item = this.items.get(id);
    if (!item) return;
    this.items.delete(id);
    this.splice(this.indexOf(item.rows[0]), item.rows.length, []);
  }

  private build(entry: ConversationEntry): Item {
    const item = itemOf(entry);
    this.items.set(entry.id, item);
    return item;
  }

  /** Searches from the end, where most of the wanted rows are. */
  private indexOf(row: Row | undefined): number {
    return row ? this.rows.lastIndexOf(row) : -1;
  }

  private splice(at: number, count: number, inserted: readonly Row[]): void {
    if (count === 0 && inserted.length === 0) return;
    const removed = this.rows.splice(at, count, ...inserted);
    this.observer.onSplice(at, removed, inserted);
  }
}

function itemOf(entry: ConversationEntry): Item {
  if (entry.kind !== "text" && entry.kind !== "prompt") {
    const item: Item = { entry, rows: [], text: undefined };
    item.rows.push({ item, text: "", first: true, height: LINE_HEIGHT + ROW_GAP });
    return item;
  }
  const text = segmented(entry.text);
  const item: Item = { entry, rows: [], text };
  for (let index = 0; index < Math.max(1, text.count); index++)
    item.rows.push(segmentRow(item, text.segment(index), index === 0));
  return item;
}

function segmented(text: string): Segmenter {
  const segmenter = new Segmenter();
  segmenter.append(text);
  return segmenter;
}

function segmentRow(item: Item, text: string, first: boolean): Row {
  return { item, text, first, height: guessHeight(text) };
}

const LINE_HEIGHT = 22;
const ROW_GAP = 12;
const LINE_LENGTH = 85;

function guessHeight(text: string): number {
  let lines = 0;
  for (let at = 0; at < text.length;) {
    const newline = text.indexOf("\n", at);
    const end = newline < 0 ? text.length : newline;
    lines += Math.max(0.5, Math.ceil((end - at) / LINE_LENGTH));
    at = end + 1;
  }
  return lines * LINE_HEIGHT + ROW_GAP;
}
