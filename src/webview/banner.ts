import type { ConnectionView } from "../protocol/output.ts";
import type { Context } from "./context.ts";
import { button, h } from "./dom.ts";
import { icon } from "./icons.ts";

/** Says above the conversation why it may be outdated: no connection, or the task is gone. */
export class Banner {
  readonly element: HTMLElement;
  private connection: ConnectionView = "connected";
  private isGone = false;
  private shown: ConnectionView | "gone" = "connected";

  constructor(private readonly context: Context) {
    this.element = h("section", { class: "banner", "aria-label": context.l10n.t("Status"), hidden: true });
  }

  showConnection(connection: ConnectionView): void {
    this.connection = connection;
    this.draw();
  }

  showGone(isGone: boolean): void {
    this.isGone = isGone;
    this.draw();
  }

  private draw(): void {
    const { l10n, post } = this.context;
    const kind = this.isGone ? "gone" : this.connection;
    // A redraw would take the focus from the button.
    if (kind === this.shown) return;
    this.shown = kind;
    const line = h("div", { class: "column" });
    if (kind === "gone")
      line.append(
        icon("cancelled"),
        h(
          "span",
          {},
          h("strong", {}, l10n.t("This task is no longer available.")),
          " ",
          l10n.t("Its session was deleted on the server, or its folder is no longer in the workspace."),
        ),
      );
    else if (kind === "connecting")
      line.append(icon("running"), h("span", {}, l10n.t("Connecting to OpenCode…")));
    else if (kind === "disconnected")
      line.append(
        icon("offline"),
        h("span", {}, l10n.t("Not connected to OpenCode. The conversation may be out of date.")),
        button("primary", () => post({ type: "run", command: "connect" }), l10n.t("Connect")),
      );
    this.element.replaceChildren(line);
    this.element.dataset["kind"] = kind;
    this.element.hidden = kind === "connected";
  }
}

const SHOWN_MS = 6_000;

/** Shows a short message for a moment; the page announces it separately to screen readers. */
export class Toast {
  readonly element = h("p", { class: "toast", "aria-hidden": "true", dir: "auto" });
  private timer: number | undefined;

  show(text: string): void {
    window.clearTimeout(this.timer);
    this.element.textContent = text;
    this.timer = window.setTimeout(() => (this.element.textContent = ""), SHOWN_MS);
  }
}
