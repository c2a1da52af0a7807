import type { ConversationObserver, Row } from "./conversation.ts";

export interface RowRenderer {
  create(row: Row): HTMLElement;
  update(row: Row, element: HTMLElement): void;
}

/** Where the reader is: a row, and how far its top is below the top of the view. */
export interface ReadingPosition {
  readonly row: Row;
  readonly top: number;
}

/** How much is kept ready above and below what is seen, in heights of the view. */
const MARGIN = 0.75;
/** Milliseconds that a frame may spend on rows that are not seen yet. */
const AHEAD_MS = 5;
/** Rows that may stay in the page for the sake of a selection that reaches over them. */
const MAX_SELECTED_ROWS = 300;
/** Pixels from the end that still count as its end. */
const END_TOLERANCE = 2;

/**
 * Keeps only the rows near the view in the page; spacers stand for the others. What the reader looks at stays where
 * it is whatever changes around it, or the view follows the end while the reader is there.
 */
export class VirtualList implements ConversationObserver {
  readonly element = document.createElement("div");
  private readonly spaceAbove = document.createElement("div");
  private readonly content = document.createElement("div");
  private readonly spaceBelow = document.createElement("div");
  /** The rows that are in the page, in order: those from index `first` up to, but not including, `last`. */
  private readonly mounted: Row[] = [];
  private readonly elements = new Map<Row, HTMLElement>();
  private readonly changed = new Set<Row>();
  private first = 0;
  /** Heights of the rows that are not in the page, in pixels. */
  private above = 0;
  private below = 0;
  private frame: number | undefined;
  private lastScrollTop = 0;
  private isFollowing = true;
  private wanted: ReadingPosition | undefined;

  constructor(
    private readonly scroller: HTMLElement,
    private readonly rows: readonly Row[],
    private readonly renderer: RowRenderer,
    private readonly onDidLayout: () => void,
  ) {
    this.element.append(this.spaceAbove, this.content, this.spaceBelow);
    scroller.addEventListener(
      "scroll",
      () => {
        this.noticeScroll();
        this.schedule();
      },
      { passive: true },
    );
    new ResizeObserver(() => this.schedule()).observe(scroller);
  }

  /** Whether the view stays at the end while the conversation grows. */
  get following(): boolean {
    return this.isFollowing;
  }

  follow(): void {
    this.wanted = undefined;
    this.isFollowing = true;
    this.schedule();
  }

  /** Before the reader opens or closes something: what is seen stays in place, even at the end. */
  hold(): void {
    this.isFollowing = false;
    this.schedule();
  }

  /** Undefined while the view follows the end. */
  position(): ReadingPosition | undefined {
    return this.isFollowing ? undefined : (this.wanted ?? this.firstSeen());
  }

  /** Brings a row to where it was. */
  restore(position: ReadingPosition): void {
    this.isFollowing = false;
    this.wanted = position;
    this.schedule();
  }

  onChange(row: Row): void {
    if (!this.elements.has(row)) return;
    this.changed.add(row);
    this.schedule();
  }

  onSplice(index: number, removed: readonly Row[], inserted: readonly Row[]): void {
    const growth = heightOf(inserted) - heightOf(removed);
    if (index >= this.last) {
      this.below += growth;
    } else if (index + removed.length <= this.first) {
      this.above += growth;
      this.first += inserted.length - removed.length;
    } else {
      // What comes after the place leaves the page; the next layout takes in again what is seen.
      this.unmount(Math.max(0, index - this.first), this.mounted.length);
      this.first = Math.min(this.first, index);
      this.above = heightOf(this.rows.slice(0, this.first));
      this.below = heightOf(this.rows.slice(this.last));
    }
    this.schedule();
  }

  private get last(): number {
    return this.first + this.mounted.length;
  }

  /** Takes note of where the reader scrolled to since the last time. */
  private noticeScroll(): void {
    const { scrollTop } = this.scroller;
    const moved = scrollTop - this.lastScrollTop;
    this.lastScrollTop = scrollTop;
    // What the layout did is noted in `lastScrollTop` right away: the rest was the reader.
    if (Math.abs(moved) < 1) return;
    this.wanted = undefined;
    this.isFollowing = this.atEnd() || (this.isFollowing && moved > 0);
  }

  private atEnd(): boolean {
    const { scrollTop, clientHeight, scrollHeight } = this.scroller;
    return scrollTop + clientHeight >= scrollHeight - END_TOLERANCE;
  }

  private schedule(): void {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = undefined;
      this.layout();
    });
  }

  private layout(): void {
    const view = this.scroller.clientHeight;
    // Nothing can be measured in a page that is not shown.
    if (view === 0) return;
    // A layout may come before the event that tells of the scrolling.
    this.noticeScroll();
    const anchor = this.isFollowing ? undefined : (this.wanted ?? this.firstSeen());
    for (const row of this.changed) {
      const element = this.elements.get(row);
      if (element) this.renderer.update(row, element);
    }
    this.changed.clear();
    if (this.isFollowing) this.mountEnd(view);
    else this.mountAround(view, anchor);
    this.setSpaces();
    if (this.isFollowing) this.scroller.scrollTop = this.scroller.scrollHeight;
    else this.keepInPlace(anchor);
    this.lastScrollTop = this.scroller.scrollTop;
    if (!this.wanted && this.atEnd()) this.isFollowing = true;
    this.onDidLayout();
  }

  private mountEnd(view: number): void {
    if (this.below > 3 * view) this.jumpTo(this.rows.length);
    while (this.last < this.rows.length) this.mountNext();
    const { height } = this.content.getBoundingClientRect();
    const wanted = view * (1 + MARGIN);
    if (height > 2 * wanted) this.trim(height - 2 * wanted, height);
    for (let missing = wanted - height; missing > 0 && this.first > 0;) missing -= this.mountPrevious();
  }

  private mountAround(view: number, anchor: ReadingPosition | undefined): void {
    const margin = view * MARGIN;
    if (this.wanted && !this.elements.has(this.wanted.row)) {
      this.jumpTo(this.rows.indexOf(this.wanted.row));
      this.setSpaces();
      this.scroller.scrollTop += this.contentTop() - this.wanted.top;
    } else {
      const seen = -this.contentTop();
      this.trim(seen - 2 * margin, seen + view + 2 * margin);
      this.setSpaces();
    }
    // The heights of rows that were never in the page are guesses, so one pass may fall short of the view.
    for (let pass = 0; pass < 3; pass++) {
      let top = this.contentTop();
      let bottom = top + this.content.getBoundingClientRect().height;
      if (this.mounted.length === 0 || bottom < -view || top > 2 * view) {
        this.jumpTo(this.indexAt(-offsetOf(this.element, this.scroller)));
        this.setSpaces();
        top = bottom = this.contentTop();
      }
      const ahead = pass === 0 ? margin : 0;
      const reachesUp = top <= -ahead || this.first === 0;
      const reachesDown = bottom >= view + ahead || this.last === this.rows.length;
      if (reachesUp && reachesDown) return;
      // What is seen is taken in now, what lies ahead as far as the frame has time for it.
      const deadline = performance.now() + AHEAD_MS;
      const ready = (missing: number): boolean => missing <= 0 || performance.now() > deadline;
      while (this.last < this.rows.length && (bottom < view || !ready(view + margin - bottom)))
        bottom += this.mountNext();
      while (this.first > 0 && (top > 0 || !ready(top + margin))) top -= this.mountPrevious();
      if ((this.first > 0 && top > -margin) || (this.last < this.rows.length && bottom < view + margin))
        this.schedule();
      this.setSpaces();
      this.keepInPlace(anchor);
    }
  }

  private mountNext(): number {
    const row = this.rows[this.last]!;
    this.below -= row.height;
    this.mounted.push(row);
    this.content.append(this.create(row));
    return row.height;
  }

  private mountPrevious(): number {
    const row = this.rows[--this.first]!;
    this.above -= row.height;
    this.mounted.unshift(row);
    this.content.prepend(this.create(row));
    return row.height;
  }

  private create(row: Row): HTMLElement {
    const element = this.renderer.create(row);
    this.elements.set(row, element);
    return element;
  }

  /** Takes the rows out of the page that lie outside of the stretch, in pixels from the top of the content. */
  private trim(from: number, to: number): void {
    if (this.mounted.length < MAX_SELECTED_ROWS && this.holdsSelection()) return;
    const { top } = this.content.getBoundingClientRect();
    const bounds = this.mounted.map((row) => this.elements.get(row)!.getBoundingClientRect());
    const start = bounds.findIndex((bound) => bound.bottom - top > from);
    const end = bounds.findLastIndex((bound) => bound.top - top < to) + 1;
    if (start < 0 || end <= start) return;
    for (const row of this.unmount(end, this.mounted.length)) this.below += row.height;
    for (const row of this.unmount(0, start)) this.above += row.height;
    this.first += start;
  }

  /** Takes mounted rows out of the page, their heights noted. */
  private unmount(from: number, to: number): readonly Row[] {
    const rows = this.mounted.slice(from, to);
    for (const row of rows) row.height = this.elements.get(row)!.getBoundingClientRect().height;
    for (const row of rows) {
      const element = this.elements.get(row)!;
      // Otherwise the keys that scroll would be lost with the focus.
      if (element.contains(document.activeElement)) this.scroller.focus({ preventScroll: true });
      element.remove();
      this.elements.delete(row);
    }
    this.mounted.splice(from, rows.length);
    return rows;
  }

  /** Leaves the page empty of rows, ready to be filled from that one on in both directions. */
  private jumpTo(index: number): void {
    this.unmount(0, this.mounted.length);
    this.first = Math.max(0, index);
    this.above = heightOf(this.rows.slice(0, this.first));
    this.below = heightOf(this.rows.slice(this.first));
  }

  /** The row that lies so many pixels below the start of the list. */
  private indexAt(offset: number): number {
    let bottom = 0;
    const index = this.rows.findIndex((row) => (bottom += row.height) > offset);
    return index < 0 ? this.rows.length : index;
  }

  private setSpaces(): void {
    this.spaceAbove.style.height = `${this.first === 0 ? 0 : Math.max(0, this.above)}px`;
    this.spaceBelow.style.height = `${this.last === this.rows.length ? 0 : Math.max(0, this.below)}px`;
  }

  private keepInPlace(anchor: ReadingPosition | undefined): void {
    const element = anchor && this.elements.get(anchor.row);
    if (element) this.scroller.scrollTop += offsetOf(element, this.scroller) - anchor.top;
  }

  private firstSeen(): ReadingPosition | undefined {
    for (const row of this.mounted) {
      const element = this.elements.get(row)!;
      const top = offsetOf(element, this.scroller);
      if (top + element.offsetHeight > 0) return { row, top };
    }
    return undefined;
  }

  private contentTop(): number {
    return offsetOf(this.content, this.scroller);
  }

  private holdsSelection(): boolean {
    const selection = document.getSelection();
    return selection !== null && !selection.isCollapsed && this.content.contains(selection.anchorNode);
  }
}

function heightOf(rows: readonly Row[]): number {
  return rows.reduce((sum, row) => sum + row.height, 0);
}

/** How far the element's top is below that of the view. */
function offsetOf(element: HTMLElement, scroller: HTMLElement): number {
  return element.getBoundingClientRect().top - scroller.getBoundingClientRect().top;
}
