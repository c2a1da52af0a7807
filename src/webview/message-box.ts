import { MAX_MESSAGE, type ReturnedText, type Sending } from "../protocol/output.ts";
import type { Context } from "./context.ts";
import { button, h } from "./dom.ts";
import { whyTooLong } from "./text-limit.ts";

/** What the box is for at the moment. */
export interface BoxMode {
  /** What `Enter` and the main button do. */
  readonly how: Sending;
  /** The name of the box for screen readers. */
  readonly label: string;
  readonly placeholder: string;
  /** The text of the main button. */
  readonly action: string;
  /** Whether a message can also wait until the task has completed. */
  readonly canWait: boolean;
}

/** The input for messages to the task, which stays while the task changes, so that typing isn't disturbed. */
export class MessageBox {
  readonly element: HTMLElement;
  private readonly text: HTMLTextAreaElement;
  private readonly main: HTMLButtonElement;
  private readonly wait: HTMLButtonElement;
  private readonly problem = h("p", { class: "message-problem", role: "alert" });
  private mode: BoxMode | undefined;
  private sending = false;
  /** What came back while a message was being sent. It is in the box once that is done. */
  private meanwhile: ReturnedText[] = [];

  /** `onDidEdit` is called with the typed text, so that it can be kept. */
  constructor(
    private readonly context: Context,
    draft: string,
    private readonly onDidEdit: (draft: string) => void,
  ) {
    const { l10n } = context;
    this.text = h("textarea", { rows: "1", dir: "auto" });
    this.text.value = draft;
    this.main = button("primary", ({ detail: clicks }) => {
      // Continuing needs no text, and a double-click means one task.
      if (clicks <= 1) this.send(this.mode?.how);
    });
    this.wait = button("secondary", () => this.send("after"), l10n.t("Send After This"));
    this.wait.title = l10n.t("Sends the message as a follow-up once the task has completed");
    const hint = h("span", { class: "message-hint" }, l10n.t("Shift+Enter for a new line"));
    this.text.addEventListener("input", () => {
      this.problem.textContent = "";
      this.refresh();
      onDidEdit(this.text.value);
    });
    this.text.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      if (!event.repeat) this.send(this.mode?.how);
    });
    this.element = h(
      "div",
      { class: "message" },
      h(
        "div",
        { class: "message-field" },
        this.text,
        h("div", { class: "message-bar" }, hint, this.wait, this.main),
      ),
      this.problem,
    );
  }

  show(mode: BoxMode): void {
    this.mode = mode;
    this.text.ariaLabel = mode.label;
    this.text.placeholder = mode.placeholder;
    this.main.textContent = mode.action;
    this.main.hidden = false;
    this.wait.hidden = !mode.canWait;
    this.refresh();
  }

  /** The task is gone. What is written can still be copied; false if nothing is. */
  retire(): boolean {
    this.mode = undefined;
    this.text.ariaLabel = this.context.l10n.t("Message that wasn't sent");
    this.main.hidden = this.wait.hidden = true;
    return this.text.value.trim() !== "";
  }

  /** Called when the extension has answered. A refused message comes back, followed by what was written since. */
  done(returned: ReturnedText | undefined): void {
    if (this.sending) this.text.value = "";
    this.sending = false;
    for (const each of this.meanwhile.splice(0)) this.takeBack(each);
    this.takeBack(returned ?? { text: "" });
  }

  /** Puts a text before what is written in the box. */
  takeBack({ text, error }: ReturnedText): void {
    if (this.sending) {
      this.meanwhile.push({ text, error });
      this.onDidEdit(this.meanwhile.map((each) => each.text).join("\n\n"));
      return;
    }
    this.text.value = [text, this.text.value].filter((each) => each.trim() !== "").join("\n\n");
    this.onDidEdit(this.text.value);
    if (error !== undefined) this.problem.textContent = error;
    this.refresh();
  }

  private send(how: Sending | undefined): void {
    const text = this.text.value.trim();
    if (how === undefined || this.sending || (text === "" && how !== "continue")) return;
    const problem = whyTooLong([text], MAX_MESSAGE, this.context);
    this.problem.textContent = problem ?? "";
    if (problem !== undefined) return;
    this.sending = true;
    // A button that is disabled loses the focus.
    if (this.element.contains(document.activeElement)) this.text.focus();
    this.refresh();
    this.onDidEdit("");
    this.context.post({ type: "send", text, how });
  }

  private refresh(): void {
    const isEmpty = this.text.value.trim() === "";
    this.text.readOnly = this.sending;
    this.wait.disabled = this.sending || isEmpty;
    this.main.disabled = this.sending || (isEmpty && this.mode?.how !== "continue");
  }
}
