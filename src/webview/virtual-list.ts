import type { ConversationObserver, Row } from "./conversation.ts";

export interface RowRenderer {
  create(row: Row): HTMLElement;
  update(row: Row, element: HTMLElement): void;
}

/** The reader's position: a row, and the distance of its top from the top of the view, in pixels. */
export interface ReadingPosition {
  readonly row: Row;
  readonly top: number;
}

/** What stays in place during a layout. */
interface Anchor extends ReadingPosition {
  /** Below the top of a row that begins above the view: the first element that begins in it. */
  readonly inner?: { readonly path: readonly number[]; readonly top: number } | undefined;
}

/** How much is rendered above and below the visible part, as a multiple of the view's height. */
const MARGIN = 0.75;
/** Milliseconds of each frame for rows that aren't visible yet. */
const AHEAD_MS = 5;
/** Maximum number of rows that stay in the page because a selection spans them. */
const MAX_SELECTED_ROWS = 300;
/** Pixels from the end that still count as the end. */
const END_TOLERANCE = 2;

/**
 * Keeps only the rows near the view in the page; spacers stand for the others. What the reader looks at stays in place,
 * whatever changes around it; if the reader is at the end, the view follows the end.
 */
export class VirtualList implements ConversationObserver {
  readonly element = document.createElement("div");
  private readonly spaceAbove = document.createElement("div");
  private readonly content = document.createElement("div");
  private readonly spaceBelow = document.createElement("div");
  /** The rows in the page, in order: from index `first` up to, but not including, `last`. */
  private readonly mounted: Row[] = [];
  private readonly elements = new Map<Row, HTMLElement>();
  private readonly changed = new Set<Row>();
  private first = 0;
  /** The total heights of the rows above and below those in the page, in pixels. */
  private above = 0;
  private below = 0;
  private frame: number | undefined;
  private lastScrollTop = 0;
  private isFollowing = true;
  private wanted: ReadingPosition | undefined;
  /** What was in front of the reader after the last layout. */
  private kept: Anchor | undefined;
  /** The width of the view at that time. */
  private width = 0;

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

  /** The rows in the page, with their elements, in any order. */
  get shown(): ReadonlyMap<Row, HTMLElement> {
    return this.elements;
  }

  follow(): void {
    this.wanted = undefined;
    this.isFollowing = true;
    this.schedule();
  }

  /** Keeps the visible rows in place, even at the end. Call it before the reader expands or collapses something. */
  hold(): void {
    this.isFollowing = false;
    this.schedule();
  }

  /** Undefined while the view follows the end. */
  position(): ReadingPosition | undefined {
    return this.isFollowing ? undefined : (this.wanted ?? this.firstSeen());
  }

  /** Scrolls a row back to its former position. */
  restore(position: ReadingPosition): void {
    this.isFollowing = false;
    this.wanted = position;
    // What moved the view until now is of no importance.
    this.lastScrollTop = this.scroller.scrollTop;
    this.schedule();
  }

  onChange(row: Row): void {
    if (!this.elements.has(row)) return;
    this.changed.add(row);
    this.schedule();
  }

  onSplice(index: number, removed: readonly Row[], inserted: readonly Row[]): void {
    if (this.wanted && removed.includes(this.wanted.row)) this.wanted = undefined;
    const growth = heightOf(inserted) - heightOf(removed);
    if (index >= this.last) {
      this.below += growth;
    } else if (index + removed.length <= this.first) {
      this.above += growth;
      this.first += inserted.length - removed.length;
    } else {
      this.noticeScroll();
      // Rows after the change are removed from the page; the next layout adds the visible ones again.
      this.unmount(Math.max(0, index - this.first), this.mounted.length);
      this.first = Math.min(this.first, index);
      this.above = heightOf(this.rows.slice(0, this.first));
      this.below = heightOf(this.rows.slice(this.last));
      // A shorter content may have scrolled the view.
      this.lastScrollTop = this.scroller.scrollTop;
    }
    this.schedule();
  }

  private get last(): number {
    return this.first + this.mounted.length;
  }

  /** Updates the state if the reader has scrolled since the last call. */
  private noticeScroll(): void {
    const { scrollTop } = this.scroller;
    // What was in front of the reader has moved, and the browser may have scrolled.
    if (this.isResized) {
      this.lastScrollTop = scrollTop;
      return;
    }
    const moved = scrollTop - this.lastScrollTop;
    this.lastScrollTop = scrollTop;
    // The layout updates `lastScrollTop` itself, so any other movement is the reader's.
    if (Math.abs(moved) < 1) return;
    this.wanted = undefined;
    this.isFollowing = this.atEnd() || (this.isFollowing && moved > 0);
  }

  private get isResized(): boolean {
    return this.scroller.clientWidth !== this.width;
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
    // Nothing can be measured while the page is hidden.
    if (view === 0) return;
    const { isResized } = this;
    // The layout may run before the scroll event.
    this.noticeScroll();
    const anchor = this.isFollowing
      ? undefined
      : (this.wanted ?? (isResized ? this.kept : undefined) ?? this.anchor());
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
    this.kept = this.isFollowing ? undefined : this.anchor();
    this.width = this.scroller.clientWidth;
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

  private mountAround(view: number, anchor: Anchor | undefined): void {
    const margin = view * MARGIN;
    if (this.wanted && !this.elements.has(this.wanted.row)) {
      this.jumpTo(this.rows.indexOf(this.wanted.row));
      this.setSpaces();
      this.scroller.scrollTop += this.contentTop() - this.wanted.top;
    } else {
      const seen = -this.contentTop();
      this.trim(seen - 2 * margin, seen + view + 2 * margin);
      this.setSpaces();
      // Rows may have been added above.
      this.keepInPlace(anchor);
    }
    // Heights of rows that were never in the page are estimates, so one pass may not fill the view.
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
      // Visible rows are added now; rows ahead only as far as the frame has time.
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

  /** Removes the rows outside of this range from the page; in pixels from the top of the content. */
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

  /** Removes mounted rows from the page, after recording their heights. */
  private unmount(from: number, to: number): readonly Row[] {
    const rows = this.mounted.slice(from, to);
    for (const row of rows) row.height = this.elements.get(row)!.getBoundingClientRect().height;
    for (const row of rows) {
      const element = this.elements.get(row)!;
      // Otherwise the focus would be lost, and with it scrolling by keyboard.
      if (element.contains(document.activeElement)) this.scroller.focus({ preventScroll: true });
      element.remove();
      this.elements.delete(row);
    }
    this.mounted.splice(from, rows.length);
    return rows;
  }

  /** Removes all rows from the page, so that it can be filled from this index in both directions. */
  private jumpTo(index: number): void {
    this.unmount(0, this.mounted.length);
    this.first = Math.max(0, index);
    this.above = heightOf(this.rows.slice(0, this.first));
    this.below = heightOf(this.rows.slice(this.first));
  }

  /** The index of the row at this distance from the start of the list, in pixels. */
  private indexAt(offset: number): number {
    let bottom = 0;
    const index = this.rows.findIndex((row) => (bottom += row.height) > offset);
    return index < 0 ? this.rows.length : index;
  }

  private setSpaces(): void {
    this.spaceAbove.style.height = `${this.first === 0 ? 0 : Math.max(0, this.above)}px`;
    this.spaceBelow.style.height = `${this.last === this.rows.length ? 0 : Math.max(0, this.below)}px`;
  }

  private keepInPlace(anchor: Anchor | undefined): void {
    const element = anchor && this.elements.get(anchor.row);
    if (!element) return;
    const inner = anchor.inner && descendant(element, anchor.inner.path);
    const [kept, top] = inner ? [inner, anchor.inner.top] : [element, anchor.top];
    this.scroller.scrollTop += offsetOf(kept, this.scroller) - top;
  }

  private anchor(): Anchor | undefined {
    const seen = this.firstSeen();
    return (
      seen && { ...seen, inner: seen.top < 0 ? this.innerAnchor(this.elements.get(seen.row)!) : undefined }
    );
  }

  private innerAnchor(row: Element): Anchor["inner"] {
    const viewTop = this.scroller.getBoundingClientRect().top;
    const path: number[] = [];
    let element = row;
    while (offsetOf(element, this.scroller) < 0) {
      const index = [...element.children].findIndex(
        (child) => child.getBoundingClientRect().bottom > viewTop,
      );
      if (index < 0) break;
      path.push(index);
      element = element.children[index]!;
    }
    return { path, top: offsetOf(element, this.scroller) };
  }

  /** The row at the top of the view. If the reader has just scrolled there, it may not be in the page yet. */
  rowAtTop(): Row | undefined {
    const { height } = this.content.getBoundingClientRect();
    const top = this.contentTop();
    return (top > 0 && this.first > 0) || top + height <= 0
      ? this.rows[this.indexAt(-offsetOf(this.element, this.scroller))]
      : this.firstSeen()?.row;
  }

  /** The first row of the page that is at least partly visible. */
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

/** Where the path leads: the index of a child at each level. */
function descendant(element: Element, path: readonly number[]): Element | undefined {
  return path.reduce<Element | undefined>((parent, index) => parent?.children[index], element);
}

/** The distance of the element's top from the top of the view. */
function offsetOf(element: Element, scroller: Element): number {
  return element.getBoundingClientRect().top - scroller.getBoundingClientRect().top;
}
