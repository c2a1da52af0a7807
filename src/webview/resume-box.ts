import type { RefusedPrompt } from "../protocol/output.ts";
import type { Context } from "./context.ts";
import { button, h } from "./dom.ts";

/** The input for a follow-up to a completed task, or to a subagent that is adopted with it. */
export class ResumeBox {
  readonly element: HTMLElement;
  private readonly text: HTMLTextAreaElement;
  private readonly button: HTMLButtonElement;
  private readonly problem = h("p", { class: "resume-problem", role: "alert" });
  private sending = false;

  /** `onDidEdit` is called with the typed text, so that it can be kept. */
  constructor(
    private readonly context: Context,
    draft: string,
    private readonly onDidEdit: (draft: string) => void,
  ) {
    const { l10n } = context;
    this.text = h("textarea", {
      rows: "1",
      dir: "auto",
      "aria-label": l10n.t("Follow-up prompt"),
      placeholder: l10n.t("Enter a follow-up…"),
    });
    this.text.value = draft;
    this.button = button("primary", () => this.send(), l10n.t("Resume"));
    const hint = h("span", { class: "resume-hint" }, l10n.t("Shift+Enter for a new line"));
    this.text.addEventListener("input", () => {
      this.problem.textContent = "";
      this.refresh();
      onDidEdit(this.text.value);
    });
    this.text.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      this.send();
    });
    this.element = h(
      "div",
      { class: "resume" },
      h("div", { class: "resume-field" }, this.text, h("div", { class: "resume-bar" }, hint, this.button)),
      this.problem,
    );
    this.refresh();
  }

  /** Sets the text of the button. */
  label(text: string): void {
    this.button.textContent = text;
  }

  /** Called when the extension has answered. A refused prompt comes back, followed by what was written since. */
  done(refused: RefusedPrompt | undefined): void {
    const written = this.sending ? "" : this.text.value;
    this.sending = false;
    this.text.value = [refused?.prompt ?? "", written].filter((text) => text.trim() !== "").join("\n\n");
    this.onDidEdit(this.text.value);
    if (refused)
      this.problem.textContent = this.context.l10n.t("The task was not resumed: {0}", refused.error);
    this.refresh();
  }

  private send(): void {
    const prompt = this.text.value.trim();
    if (prompt === "" || this.sending) return;
    this.sending = true;
    this.problem.textContent = "";
    this.refresh();
    this.onDidEdit("");
    this.context.post({ type: "resume", prompt });
  }

  private refresh(): void {
    this.text.readOnly = this.sending;
    this.button.disabled = this.sending || this.text.value.trim() === "";
  }
}
