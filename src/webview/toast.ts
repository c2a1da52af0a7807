import { h } from "./dom.ts";

const SHOWN_MS = 6_000;

/** Says something small for a moment, to those who see the page. */
export class Toast {
  readonly element = h("p", { class: "toast", "aria-hidden": "true", dir: "auto" });
  private timer: number | undefined;

  show(text: string): void {
    window.clearTimeout(this.timer);
    this.element.textContent = text;
    this.timer = window.setTimeout(() => (this.element.textContent = ""), SHOWN_MS);
  }
}
