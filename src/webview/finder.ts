import { countMatches, findExpression } from "../protocol/find.ts";
import type { FoundAt } from "../protocol/output.ts";
import type { Context, Disclosures } from "./context.ts";
import type { Conversation, Row } from "./conversation.ts";
import { FindBox } from "./find-box.ts";
import { rangesIn, textOfHtml } from "./readable-text.ts";
import { plainTerminalText } from "../protocol/terminal-text.ts";
import type { VirtualList } from "./virtual-list.ts";

/** Milliseconds without typing after which the search begins. */
const DELAY_MS = 120;
/** Milliseconds after which the search is done again in a growing conversation, even if that goes on growing. */
const GROWTH_MS = 500;
/** Milliseconds of searching after which the page gets a turn. */
const SLICE_MS = 12;
/** Pixels that the box covers at the top of the view. */
const COVERED = 48;
const LONGEST_QUERY = 200;

interface Found {
  readonly row: Row;
  /** Matches that can be seen without expanding the row. */
  readonly seen: number;
  readonly count: number;
}

/** One match: a row, and the number of the match in it, counted from 0. */
interface Match {
  readonly row: Row;
  readonly nth: number;
}

/** What the finder works on. */
export interface Findable {
  readonly conversation: Conversation;
  readonly list: VirtualList;
  readonly scroller: HTMLElement;
  readonly disclosures: Disclosures;
  readonly announce: (text: string) => void;
}

/**
 * Finds text in the whole conversation: in rows that are not in the page, in collapsed ones, and in the details of tool
 * calls, which the extension searches. Matches are marked without changing the page.
 */
export class Finder {
  readonly box: FindBox;
  private expression: RegExp | undefined;
  /** The text from which the expression was made; another one may be in the box. */
  private query = "";
  private found: readonly Found[] = [];
  private current: Match | undefined;
  /** The row from which on a match is looked for; undefined for the first one. */
  private from: Row | undefined;
  /** A match to go to, as soon as its entry is there. */
  private wanted: FoundAt | undefined;
  /** The selection with which finding began. */
  private selected: Range | undefined;
  private readonly texts = new WeakMap<Row, { readonly source: unknown; readonly text: string }>();
  private search: object | undefined;
  private timer: number | undefined;
  /** Whether the current match is still to be scrolled to. */
  private isRevealing = false;

  constructor(
    private readonly context: Context,
    private readonly page: Findable,
  ) {
    this.box = new FindBox(context, {
      onEdit: () => this.schedule(),
      onStep: (by) => this.step(by),
      onClose: () => this.close(),
    });
  }

  get isOpen(): boolean {
    return !this.box.element.hidden;
  }

  /**
   * Shows the box, with the match at `at`, otherwise with the selected text if there is some, and looks from there or from
   * the reader's position on.
   */
  open(at?: FoundAt): void {
    this.wanted = at;
    if (at) {
      this.box.open(at.query);
      this.schedule();
      return;
    }
    const { list } = this.page;
    const selection = document.getSelection();
    const range = selection && !selection.isCollapsed ? selection.getRangeAt(0) : undefined;
    const text = range?.toString() ?? "";
    const isQuery = text.length <= LONGEST_QUERY && !text.includes("\n");
    const holder = range && [...list.shown].find(([, element]) => element.contains(range.startContainer));
    this.selected = holder && range;
    this.from = holder?.[0] ?? list.rowAtTop();
    this.box.open(isQuery ? text.trim() : "");
    this.schedule();
  }

  /** Selects the current match, so that reading goes on there. */
  close(): void {
    const { current } = this;
    const element = current && this.page.list.shown.get(current.row);
    const range = element && this.expression && rangesIn(element, this.expression)[current.nth];
    this.box.close();
    this.stop();
    this.page.scroller.focus({ preventScroll: true });
    if (range)
      document
        .getSelection()
        ?.setBaseAndExtent(range.startContainer, range.startOffset, range.endContainer, range.endOffset);
  }

  /** Goes to the next match, or with −1 to the previous one; after the last one follows the first. */
  step(by: 1 | -1): void {
    this.wanted = undefined;
    if (!this.expression || this.query !== this.box.query) {
      this.begin();
      return;
    }
    const { total } = this;
    if (total > 0) this.goTo((this.position + by + total) % total);
  }

  /** The conversation has changed. */
  didChange(): void {
    if (this.isOpen) this.timer ??= window.setTimeout(() => this.begin(), GROWTH_MS);
  }

  /** Rows were added to the page, changed or removed. */
  didLayout(): void {
    if (this.expression) this.mark(this.expression);
  }

  /** Takes the matches in the details of tool calls, by entry ID, and searches the rest. */
  receive(query: string, counts: Readonly<Record<string, number>>): void {
    if (this.expression && this.isOpen && query === this.box.query)
      void this.searchFor(this.expression, counts);
  }

  private schedule(): void {
    window.clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.begin(), DELAY_MS);
  }

  private begin(): void {
    window.clearTimeout(this.timer);
    this.timer = undefined;
    if (!this.isOpen) return;
    const { query } = this.box;
    const expression = findExpression(query);
    if (!expression) {
      this.stop();
      return;
    }
    this.expression = expression;
    this.query = query;
    this.context.post({ type: "find-in-tools", query });
  }

  private stop(): void {
    this.search = this.expression = this.current = undefined;
    this.isRevealing = false;
    this.found = [];
    CSS.highlights.clear();
    this.box.showCount("", false);
  }

  private async searchFor(expression: RegExp, inTools: Readonly<Record<string, number>>): Promise<void> {
    const search = (this.search = {});
    const found: Found[] = [];
    let pause = performance.now() + SLICE_MS;
    for (const row of [...this.page.conversation.rows]) {
      if (performance.now() > pause) {
        await new Promise((resolve) => setTimeout(resolve));
        if (this.search !== search) return;
        pause = performance.now() + SLICE_MS;
      }
      const seen = countMatches(this.textOf(row), expression);
      const count = seen + (row.first ? (inTools[row.item.entry.id] ?? 0) : 0);
      if (count > 0) found.push({ row, seen, count });
    }
    this.found = found;
    this.choose();
  }

  /** Stays at the current match if that is still one; otherwise goes to the first one from the reader's position on. */
  private choose(): void {
    if (this.wanted && this.goToWanted(this.wanted)) return;
    const { current } = this;
    const { conversation } = this.page;
    const present = current && conversation.present(current.row);
    // It may come with earlier messages.
    if (current && !present && conversation.hasEarlier) return;
    const same = this.found.find(({ row }) => row === present);
    if (current && same) {
      this.current = { row: same.row, nth: Math.min(current.nth, same.count - 1) };
      this.showPosition();
      this.didLayout();
      return;
    }
    this.current = undefined;
    if (this.total > 0) this.goTo(this.first() % this.total);
    else {
      CSS.highlights.clear();
      this.showPosition();
    }
  }

  /** Goes to the match if its entry is there, and otherwise nowhere as long as the entry may come. */
  private goToWanted({ entryID, nth }: FoundAt): boolean {
    const { conversation } = this.page;
    const item = conversation.firstRow(entryID)?.item;
    const found = this.found.filter(({ row }) => row.item === item);
    const count = found.reduce((sum, one) => sum + one.count, 0);
    const isComing = !item && (conversation.hasEarlier || conversation.isEmpty);
    if (!isComing) this.wanted = undefined;
    if (found[0]) this.goTo(this.before(found[0].row) + Math.min(nth, count - 1));
    return isComing || count > 0;
  }

  /** The position of the first match from where finding began. */
  private first(): number {
    const { conversation, list } = this.page;
    const from = this.from && conversation.present(this.from);
    const later = new Set(
      from ? conversation.rows.slice(conversation.rows.indexOf(from)) : conversation.rows,
    );
    const next = this.found.find(({ row }) => later.has(row));
    if (!next) return 0;
    const position = this.before(next.row);
    const element = list.shown.get(next.row);
    if (next.row !== from || !element || !this.expression) return position;
    const { top } = this.page.scroller.getBoundingClientRect();
    const { selected } = this;
    const nth = rangesIn(element, this.expression).findIndex((range) =>
      selected
        ? range.compareBoundaryPoints(Range.START_TO_START, selected) >= 0
        : range.getBoundingClientRect().bottom > top,
    );
    // Matches in a collapsed line aren't in the page.
    return position + (nth >= 0 || next.seen === 0 ? Math.max(0, nth) : next.count);
  }

  private goTo(position: number): void {
    let rest = position;
    const at = this.found.find(({ count }) => rest < count || ((rest -= count), false));
    // If the conversation was just read again, it is searched again soon.
    if (!at || this.page.conversation.present(at.row) !== at.row) return;
    this.current = { row: at.row, nth: rest };
    this.from = at.row;
    this.isRevealing = true;
    this.showPosition();
    const { list, scroller, disclosures } = this.page;
    const { entry } = at.row.item;
    const isHidden = entry.kind === "reasoning" || rest >= at.seen;
    const opens = isHidden && !disclosures.isOpen(entry.id);
    if (opens) disclosures.toggle(at.row);
    if (!list.shown.has(at.row)) list.restore({ row: at.row, top: scroller.clientHeight / 3 });
    // The layout of what was just expanded shows the match.
    else if (!opens) this.didLayout();
  }

  private showPosition(): void {
    const { l10n, format } = this.context;
    const text =
      this.total === 0
        ? l10n.t("No results")
        : l10n.t("{0} of {1}", format.number(this.position + 1), format.number(this.total));
    this.box.showCount(text, this.total === 0);
    this.page.announce(text);
  }

  private get total(): number {
    return this.found.reduce((sum, { count }) => sum + count, 0);
  }

  private get position(): number {
    return this.current ? this.before(this.current.row) + this.current.nth : -1;
  }

  /** The number of matches before the row. */
  private before(row: Row): number {
    let sum = 0;
    for (const found of this.found) {
      if (found.row === row) break;
      sum += found.count;
    }
    return sum;
  }

  /** Marks the matches in the page, and scrolls to the current one once it is there. */
  private mark(expression: RegExp): void {
    const { current } = this;
    const all: Range[] = [];
    let range: Range | undefined;
    for (const [row, element] of this.page.list.shown) {
      const ranges = rangesIn(element, expression);
      all.push(...ranges);
      if (row !== current?.row) continue;
      const isLoading = element.querySelector(".detail-wait") !== null;
      range = ranges[current.nth] ?? (isLoading ? undefined : ranges.at(-1));
    }
    CSS.highlights.set("found", new Highlight(...all));
    const chosen = new Highlight(...(range ? [range] : []));
    chosen.priority = 1;
    CSS.highlights.set("found-current", chosen);
    if (!this.isRevealing || !range || !current) return;
    this.isRevealing = false;
    this.bringIntoView(current.row, range);
  }

  private bringIntoView(row: Row, range: Range): void {
    const { list, scroller } = this.page;
    for (let at = range.startContainer.parentElement; at && at !== scroller; at = at.parentElement)
      scrollWithin(at, range);
    const view = scroller.getBoundingClientRect();
    const { top, bottom } = range.getBoundingClientRect();
    if (top >= view.top + COVERED && bottom <= view.bottom) return;
    const element = list.shown.get(row);
    if (!element) return;
    const wanted = view.height / 3 - (top - element.getBoundingClientRect().top);
    list.restore({ row, top: wanted });
  }

  /** The text that can be found in a row without its tool's details. */
  private textOf(row: Row): string {
    const { entry } = row.item;
    const source = row.text === "" ? entry : row.text;
    const known = this.texts.get(row);
    if (known?.source === source) return known.text;
    const text = this.read(row);
    this.texts.set(row, { source, text });
    return text;
  }

  private read(row: Row): string {
    const { markdown } = this.context;
    const { entry } = row.item;
    switch (entry.kind) {
      case "text":
        return textOfHtml(markdown.toHtml(plainTerminalText(row.text)));
      case "prompt":
        return textOfHtml(markdown.toHtml(plainTerminalText(row.text), { breaks: true }));
      case "reasoning":
        return textOfHtml(markdown.toHtml(plainTerminalText(entry.text)));
      case "tool":
        return [entry.tool, entry.title].join("\u0000");
      case "file":
        return entry.name;
      case "error":
        return entry.interrupted ? "" : entry.message;
      case "compaction":
        return "";
    }
  }
}

/** Scrolls an element inside a row, such as a long output, so that the range is visible in it. */
function scrollWithin(element: Element, range: Range): void {
  const { overflowX, overflowY } = getComputedStyle(element);
  const [view, at] = [element.getBoundingClientRect(), range.getBoundingClientRect()];
  if (/auto|scroll/.test(overflowY) && (at.top < view.top || at.bottom > view.bottom))
    element.scrollTop += at.top - view.top - view.height / 3;
  if (/auto|scroll/.test(overflowX) && (at.left < view.left || at.right > view.right))
    element.scrollLeft += at.left - view.left - view.width / 3;
}
