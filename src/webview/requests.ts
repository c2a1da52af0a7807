import type { RequestView } from "../protocol/output.ts";
import type { Context } from "./context.ts";
import { h } from "./dom.ts";
import type { PageStateStore } from "./page-state.ts";
import { RequestCard } from "./request-card.ts";

/** For so many milliseconds after cards came or went, a click may be meant for what was there before. */
const SETTLING_MS = 500;

/** What waits for the user, above all else that the panel offers. A card stays the same element until its request is gone. */
export class Requests {
  readonly element: HTMLElement;
  private readonly list = h("div", { class: "column" });
  private readonly cards = new Map<string, RequestCard>();
  private settling: ReturnType<typeof setTimeout> | undefined;

  /** `onDidLeave` is called when a card went that held the focus. */
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

  /** Gives those that were not there before. */
  show(requests: readonly RequestView[]): readonly RequestView[] {
    const { replies } = this.state.current;
    const kept = requests.flatMap(({ id }) => (replies[id] ? [[id, replies[id]] as const] : []));
    this.state.update({ replies: Object.fromEntries(kept) });
    for (const [id, card] of this.cards) {
      const request = requests.find((one) => one.id === id);
      if (request) {
        card.update(request);
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

  fail(id: string, error: string): void {
    this.cards.get(id)?.fail(error);
  }

  /** Cards moved under the pointer; the keyboard's clicks are for what has the focus, and count. */
  private settle(): void {
    clearTimeout(this.settling);
    const { classList } = this.element;
    classList.add("settling");
    this.settling = setTimeout(() => classList.remove("settling"), SETTLING_MS);
  }

  private add(request: RequestView): void {
    const { id } = request;
    const card = new RequestCard(this.context, request, this.state.current.replies[id], (draft) =>
      this.state.update({ replies: { ...this.state.current.replies, [id]: draft } }),
    );
    this.settle();
    this.cards.set(id, card);
    this.list.append(card.element);
  }
}
