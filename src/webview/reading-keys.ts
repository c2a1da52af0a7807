/** Pixels of a page that are still visible after a page key. */
const OVERLAP = 40;
const CONTROLS = "button, a[href], input, textarea, [tabindex]";

/**
 * The keys of the conversation. It is one stop of the Tab key, so that what follows it is near; Tab then goes to the
 * first control in view, from which the arrow keys go to the others.
 */
export class ReadingKeys {
  constructor(
    private readonly scroller: HTMLElement,
    /** Follows the end of the conversation. */
    private readonly toEnd: () => void,
  ) {
    const follow = (at: Document | HTMLElement, handles: (event: KeyboardEvent) => boolean): void =>
      at.addEventListener("keydown", (given) => {
        const event = given as KeyboardEvent;
        if (event.altKey || event.ctrlKey || event.metaKey || event.isComposing) return;
        if (handles(event)) event.preventDefault();
      });
    follow(scroller, (event) => this.move(event));
    follow(document, (event) => event.key === "Tab" && event.shiftKey && this.comeBack(event.target));
  }

  private move({ key, shiftKey, target }: KeyboardEvent): boolean {
    const { scroller } = this;
    const isInRow = target !== scroller;
    if (key === "Tab")
      return shiftKey ? isInRow && this.backToText() : (!isInRow && this.enter()) || this.leave();
    if (shiftKey) return false;
    if (isInRow && target instanceof HTMLElement && (key === "ArrowDown" || key === "ArrowUp"))
      return !canScroll(target, key) && this.go(target, key === "ArrowDown" ? 1 : -1);
    if (isInRow && target instanceof HTMLElement && isScrollable(target)) return false;
    // The editor's smooth scrolling would be stopped by each row that is added on the way.
    const page = scroller.clientHeight - OVERLAP;
    if (key === "PageDown") scroller.scrollTop += page;
    else if (key === "PageUp") scroller.scrollTop -= page;
    else if (key === "Home") scroller.scrollTop = 0;
    else if (key === "End") this.toEnd();
    else return false;
    return true;
  }

  private controls(): readonly HTMLElement[] {
    return [...this.scroller.querySelectorAll<HTMLElement>(CONTROLS)].filter(isVisible);
  }

  private backToText(): boolean {
    this.scroller.focus({ preventScroll: true });
    return true;
  }

  /** Goes past the other controls of the conversation, of which long outputs would be stops of the Tab key. */
  private leave(): boolean {
    const { scroller } = this;
    const next = tabStops().find(
      (control) => scroller.compareDocumentPosition(control) === Node.DOCUMENT_POSITION_FOLLOWING,
    );
    next?.focus();
    return next !== undefined;
  }

  /** Comes to the conversation from what follows it, and not to its last control, which may be out of view. */
  private comeBack(from: EventTarget | null): boolean {
    if (!(from instanceof HTMLElement) || this.scroller.contains(from)) return false;
    // The radio buttons of a question are one stop.
    const isBeside = (stop: HTMLElement): boolean =>
      from instanceof HTMLInputElement &&
      stop instanceof HTMLInputElement &&
      stop.type === "radio" &&
      stop.name === from.name;
    const before = tabStops().findLast(
      (stop) => stop.compareDocumentPosition(from) & Node.DOCUMENT_POSITION_FOLLOWING && !isBeside(stop),
    );
    return this.scroller.contains(before ?? null) && this.backToText();
  }

  private enter(): boolean {
    const view = this.scroller.getBoundingClientRect();
    const first = this.controls().find((control) => {
      const { top, bottom } = control.getBoundingClientRect();
      return bottom > view.top && top < view.bottom;
    });
    first?.focus({ preventScroll: true });
    return first !== undefined;
  }

  private go(from: HTMLElement, by: 1 | -1): boolean {
    const controls = this.controls();
    const next = controls[controls.indexOf(from) + by];
    // The rows further away aren't in the page yet.
    if (next) next.focus();
    else this.scroller.scrollTop += by * (this.scroller.clientHeight - OVERLAP);
    return true;
  }
}

/** What the Tab key stops at. */
function tabStops(): readonly HTMLElement[] {
  return [...document.querySelectorAll<HTMLElement>(CONTROLS)].filter(
    (control) => control.tabIndex >= 0 && !control.matches(":disabled") && isVisible(control),
  );
}

function isVisible(element: HTMLElement): boolean {
  return element.checkVisibility({ visibilityProperty: true });
}

function isScrollable({ scrollHeight, clientHeight }: HTMLElement): boolean {
  return scrollHeight > clientHeight + 1;
}

function canScroll(element: HTMLElement, key: "ArrowDown" | "ArrowUp"): boolean {
  if (!isScrollable(element) || element instanceof HTMLButtonElement) return false;
  const { scrollTop, clientHeight, scrollHeight } = element;
  return key === "ArrowUp" ? scrollTop > 0 : scrollTop + clientHeight < scrollHeight - 1;
}
