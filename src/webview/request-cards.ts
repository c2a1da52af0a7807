import type { RequestView } from "../protocol/output.ts";
import type { Context } from "./context.ts";
import { h } from "./dom.ts";
import type { PageState, PageStateStore } from "./page-state.ts";
import { RequestCard } from "./request-card.ts";

/** Milliseconds without mouse clicks after cards were added, changed or removed: a click may be meant for another card. */
const SETTLING_MS = 500;

/** The requests that wait for the user. The card of a request stays the same element. */
export class RequestCards {
  readonly element: HTMLElement;
  private readonly list = h("div", { class: "column" });
  private readonly cards = new Map<string, RequestCard>();
  private settling: ReturnType<typeof setTimeout> | undefined;

  /** `onDidLeave` is called when a card that had the focus was removed. */
  constructor(
    private readonly context: Context,
    private readonly state: PageStateStore,
    private readonly onDidLeave: () => void,
  ) {
    this.element = h(
      "section",
      { class: "requests", "aria-label": context.l10n.t("Waiting for you"), hidden: true },
      this.list,
    );
  }

  /** Shows these requests, and returns those that are new. */
  show(requests: readonly RequestView[]): readonly RequestView[] {
    const { replies } = this.state.current;
    const kept = requests.flatMap(({ id }) => (replies[id] ? [[id, replies[id]] as const] : []));
    this.state.update({ replies: Object.fromEntries(kept) });
    for (const [id, card] of this.cards) {
      const request = requests.find((one) => one.id === id);
      if (request) {
        if (card.update(request)) this.settle();
        continue;
      }
      const held = card.element.contains(document.activeElement);
      this.settle();
      card.element.remove();
      this.cards.delete(id);
      if (held) this.onDidLeave();
    }
    const fresh = requests.filter(({ id }) => !this.cards.has(id));
    for (const request of fresh) this.add(request);
    this.element.hidden = this.cards.size === 0;
    return fresh;
  }

  /** Shows replies that the user wrote in another page, except to requests with a reply in this one. */
  takeOver(replies: PageState["replies"]): void {
    const own = this.state.current.replies;
    this.state.update({ replies: { ...replies, ...own } });
    for (const [id, card] of this.cards)
      if (replies[id] && !own[id]) {
        const { request } = card;
        const other = this.create(request);
        this.cards.set(id, other);
        card.element.replaceWith(other.element);
      }
  }

  fail(id: string, error: string): void {
    this.cards.get(id)?.fail(error);
  }

  /** Ignores the mouse for a moment, because cards moved under the pointer. Keyboard clicks still count. */
  private settle(): void {
    clearTimeout(this.settling);
    const { classList } = this.element;
    classList.add("settling");
    this.settling = setTimeout(() => classList.remove("settling"), SETTLING_MS);
  }

  private add(request: RequestView): void {
    const card = this.create(request);
    this.settle();
    this.cards.set(request.id, card);
    this.list.append(card.element);
  }

  private create(request: RequestView): RequestCard {
    const { id } = request;
    return new RequestCard(this.context, request, this.state.current.replies[id], (draft) =>
      this.state.update({ replies: { ...this.state.current.replies, [id]: draft } }),
    );
  }
}
