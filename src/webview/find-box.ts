import { MAX_QUERY } from "../protocol/output-guard.ts";
import type { Context } from "./context.ts";
import { h } from "./dom.ts";
import { action } from "./header.ts";

export interface FindBoxEvents {
  /** Another text was entered. */
  readonly onEdit: (query: string) => void;
  /** The next match is wanted, or with −1 the previous one. */
  readonly onStep: (by: 1 | -1) => void;
  readonly onClose: () => void;
}

/** The box for finding text, which covers a corner of the conversation. */
export class FindBox {
  readonly element: HTMLElement;
  private readonly text: HTMLInputElement;
  private readonly count = h("span", { class: "find-count" });

  constructor({ l10n }: Context, { onEdit, onStep, onClose }: FindBoxEvents) {
    this.text = h("input", {
      type: "text",
      maxlength: String(MAX_QUERY),
      dir: "auto",
      spellcheck: "false",
      "aria-label": l10n.t("Find in output"),
      placeholder: l10n.t("Find"),
    });
    this.text.addEventListener("input", () => onEdit(this.text.value));
    this.element = h(
      "div",
      { class: "find", role: "search", hidden: true },
      this.text,
      this.count,
      action("up", l10n.t("Previous Match (Shift+Enter)"), () => onStep(-1)),
      action("down", l10n.t("Next Match (Enter)"), () => onStep(1)),
      action("close", l10n.t("Close (Escape)"), onClose),
    );
    this.element.addEventListener("keydown", (event) => {
      if (event.key === "Escape") onClose();
      else if (event.key === "Enter" && event.target === this.text && !event.isComposing)
        onStep(event.shiftKey ? -1 : 1);
      else return;
      event.preventDefault();
    });
  }

  get query(): string {
    return this.text.value;
  }

  /** Shows the box, with this text if there is one. */
  open(query: string): void {
    const isOpen = !this.element.hidden && document.activeElement === this.text;
    if (isOpen && query === "") return;
    this.element.hidden = false;
    if (query !== "") this.text.value = query.slice(0, MAX_QUERY);
    this.text.focus();
    this.text.select();
  }

  close(): void {
    this.element.hidden = true;
  }

  showCount(text: string, isMissing: boolean): void {
    this.count.textContent = text;
    this.element.classList.toggle("find-missing", isMissing);
  }
}
