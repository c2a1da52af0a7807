import type { ErrorEntry, FileEntry, PromptEntry, ReasoningEntry } from "../protocol/output.ts";
import type { Context, Disclosures } from "./context.ts";
import type { Row } from "./conversation.ts";
import { button, h } from "./dom.ts";
import { action } from "./header.ts";
import { icon } from "./icons.ts";
import { MarkdownFlow, renderMarkdown } from "./markdown-flow.ts";
import { plainTerminalText } from "../protocol/terminal-text.ts";
import type { ToolView } from "./tool-view.ts";
import type { RowRenderer } from "./virtual-list.ts";

/** Draws the rows of a conversation. */
export class RowView implements RowRenderer {
  private readonly flows = new WeakMap<HTMLElement, MarkdownFlow>();

  constructor(
    private readonly context: Context,
    private readonly disclosures: Disclosures,
    private readonly tools: ToolView,
    private readonly copy: (text: string) => void,
  ) {}

  create(row: Row): HTMLElement {
    const element = h("div", { class: `row row-${row.item.entry.kind}` });
    this.update(row, element);
    return element;
  }

  update(row: Row, element: HTMLElement): void {
    this.fill(row, element);
    this.context.images.fill(element);
    // The conversation is one stop of the Tab key, see ReadingKeys.
    for (const control of element.querySelectorAll("button")) control.tabIndex = -1;
  }

  private fill(row: Row, element: HTMLElement): void {
    const { entry } = row.item;
    switch (entry.kind) {
      case "text":
        this.showText(row, element);
        break;
      case "prompt":
        this.showPrompt(row, entry, element);
        break;
      case "reasoning":
        this.showReasoning(row, entry, element);
        break;
      case "tool":
        this.tools.show(row, entry, element, this.disclosures);
        break;
      case "file":
        element.replaceChildren(...this.file(entry));
        break;
      case "error":
        element.replaceChildren(this.error(entry, element));
        break;
      case "compaction":
        element.replaceChildren(this.compaction());
        break;
    }
  }

  private showText(row: Row, element: HTMLElement): void {
    let body = element.querySelector(":scope > .answer");
    if (!body) {
      body = h("div", { class: "answer" });
      element.append(body);
      if (row.first) element.prepend(this.copyButton(row));
    }
    renderMarkdown(body, plainTerminalText(row.text), this.context);
  }

  /** Copies the whole entry, not only this row. */
  private copyButton({ item }: Row): HTMLElement {
    return action("copy", this.context.l10n.t("Copy Message"), () => {
      if ("text" in item.entry) this.copy(item.entry.text);
    });
  }

  private showPrompt(row: Row, entry: PromptEntry, element: HTMLElement): void {
    const { format } = this.context;
    let body = element.querySelector(".prompt");
    if (!body) {
      body = h("div", { class: "prompt" });
      const box = h("div", { class: "prompt-box", "data-origin": entry.origin });
      if (row.first) {
        element.classList.add("row-prompt-first");
        const at = h("time", { datetime: new Date(entry.at).toISOString() }, format.moment(entry.at));
        const head = h("div", { class: "prompt-head" }, h("h2", {}, this.origin(entry)), at);
        head.append(this.copyButton(row));
        box.append(head);
      }
      box.append(body);
      element.append(box);
    }
    renderMarkdown(body, plainTerminalText(row.text), this.context, { breaks: true });
  }

  private origin({ origin }: PromptEntry): string {
    const { l10n } = this.context;
    const words: Readonly<Record<typeof origin, string>> = {
      prompt: l10n.t("Prompt"),
      "follow-up": l10n.t("Follow-up"),
      message: l10n.t("Message"),
      inherited: l10n.t("Inherited prompt"),
      notice: l10n.t("Notification"),
    };
    return words[origin];
  }

  private showReasoning(row: Row, entry: ReasoningEntry, element: HTMLElement): void {
    const open = this.disclosures.isOpen(entry.id);
    const label = h("span", { class: "line-name" }, this.reasoningLabel(entry));
    let line = element.querySelector("button");
    if (line) line.querySelector(".line-name")?.replaceWith(label);
    else {
      line = button("line", () => this.disclosures.toggle(row), icon("chevron"), icon("thought"), label);
      element.append(line);
    }
    line.ariaExpanded = String(open);
    const body = element.querySelector<HTMLElement>(".reasoning");
    if (!open) {
      body?.remove();
      return;
    }
    const shown = body ?? element.appendChild(h("div", { class: "reasoning" }));
    let flow = this.flows.get(shown);
    if (!flow) {
      flow = new MarkdownFlow(shown, this.context);
      this.flows.set(shown, flow);
    }
    flow.show(plainTerminalText(entry.text));
  }

  private reasoningLabel({ start, end }: ReasoningEntry): string {
    const { l10n, format } = this.context;
    if (end === undefined) return start === undefined ? l10n.t("Thought") : l10n.t("Thinking");
    return start === undefined ? l10n.t("Thought") : l10n.t("Thought for {0}", format.duration(end - start));
  }

  private file({ name, mime }: FileEntry): Node[] {
    const label = h("span", { class: "note-text", title: mime }, h("bdi", {}, name));
    return [
      h(
        "div",
        { class: "note" },
        icon("file"),
        h("span", { class: "sr-only" }, this.context.l10n.t("Attachment")),
        label,
      ),
    ];
  }

  private error({ message, interrupted }: ErrorEntry, element: HTMLElement): Node {
    element.classList.toggle("interrupted", interrupted);
    if (interrupted)
      return h("div", { class: "note" }, icon("cancelled"), this.context.l10n.t("Interrupted"));
    return h(
      "div",
      { class: "problem" },
      icon("error"),
      h("div", { class: "problem-text", dir: "auto" }, message),
    );
  }

  private compaction(): Node {
    return h(
      "div",
      { class: "note divider" },
      icon("compress"),
      h("span", {}, this.context.l10n.t("The conversation so far was summarized for the model")),
    );
  }
}
