import { TOOL_OUTPUT, type Excerpt, type ToolDetail, type ToolEntry } from "../protocol/output.ts";
import type { Context, Disclosures } from "./context.ts";
import type { Row } from "./conversation.ts";
import { diffView } from "./diff-view.ts";
import { button, h, replaceChangedTail } from "./dom.ts";
import { action } from "./header.ts";
import { icon, toolIcon, type IconName } from "./icons.ts";
import { styledTerminalText } from "../protocol/terminal-text.ts";

const STATUS_ICONS: Readonly<Record<ToolEntry["status"], IconName>> = {
  pending: "pending",
  running: "running",
  completed: "completed",
  error: "error",
};

/** Renders tool calls: one line each, with input and output below it when expanded. */
export class ToolView {
  /** The details of expanded calls; requested when first shown, and again when the call has changed. */
  private readonly details = new Map<string, { readonly entry: ToolEntry; detail: ToolDetail | undefined }>();

  constructor(private readonly context: Context) {}

  show(row: Row, entry: ToolEntry, element: HTMLElement, disclosures: Disclosures): void {
    const open = disclosures.isOpen(entry.id);
    let line = element.querySelector<HTMLElement>(":scope > .line");
    if (!line) {
      line = button("line", () => disclosures.toggle(row));
      element.append(line);
    }
    if (entry.hasSession && !element.querySelector(":scope > .action")) line.after(this.openSession(entry));
    element.dataset["status"] = entry.status;
    line.ariaExpanded = String(open);
    line.replaceChildren(...this.lineContent(entry));
    const body = element.querySelector(":scope > .detail");
    if (!open) {
      body?.remove();
      this.details.delete(entry.id);
      return;
    }
    const detail = this.detailOf(entry);
    const fresh = h("div", {}, ...(detail ? this.detailContent(detail, entry) : [this.waiting()]));
    // As in what is shown, or the two would never be equal.
    for (const control of fresh.querySelectorAll("button")) control.tabIndex = -1;
    replaceChangedTail(body ?? element.appendChild(h("div", { class: "detail" })), fresh);
  }

  private openSession({ id }: ToolEntry): HTMLElement {
    const { l10n, post } = this.context;
    return action("open", l10n.t("Open Subagent"), () => post({ type: "open-session", id }));
  }

  /** Stores details from the extension; the row must then be redrawn. */
  receive(detail: ToolDetail): void {
    const known = this.details.get(detail.id);
    if (known) known.detail = detail;
  }

  private detailOf(entry: ToolEntry): ToolDetail | undefined {
    const known = this.details.get(entry.id);
    if (known?.entry === entry) return known.detail;
    this.details.set(entry.id, { entry, detail: known?.detail });
    this.context.post({ type: "tool-detail", id: entry.id });
    return known?.detail;
  }

  private lineContent({ tool, title, status, start, end }: ToolEntry): Node[] {
    const { l10n, format, now } = this.context;
    const content: Node[] = [
      icon("chevron"),
      icon(toolIcon(tool)),
      h("bdi", { class: "line-name" }, tool),
      h("bdi", { class: "line-title", title }, title ?? ""),
    ];
    if (start !== undefined)
      content.push(
        end === undefined
          ? h("span", { class: "line-time", "data-since": String(start) }, format.duration(now() - start))
          : h("span", { class: "line-time" }, format.duration(end - start)),
      );
    const words: Readonly<Record<typeof status, string>> = {
      pending: l10n.t("pending"),
      running: l10n.t("running"),
      completed: l10n.t("completed"),
      error: l10n.t("failed"),
    };
    content.push(
      h("span", { class: "line-status", title: words[status] }, icon(STATUS_ICONS[status])),
      h("span", { class: "sr-only" }, words[status]),
    );
    return content;
  }

  private waiting(): Node {
    return h("p", { class: "detail-note detail-wait" }, this.context.l10n.t("Loading details…"));
  }

  private detailContent(detail: ToolDetail, entry: ToolEntry): Node[] {
    const { l10n } = this.context;
    const sections: Node[] = [];
    const heading = (text: string): Node => h("h2", { class: "detail-head" }, text);
    sections.push(heading(l10n.t("Input")));
    if (detail.input.length === 0) sections.push(h("p", { class: "detail-note" }, l10n.t("No input")));
    else
      sections.push(
        h("dl", { class: "fields" }, ...detail.input.flatMap((field) => this.field(detail.id, field))),
      );
    if (detail.diff)
      sections.push(heading(l10n.t("Changes")), ...diffView(detail.id, detail.diff, this.context));
    sections.push(heading(l10n.t("Output")));
    if (detail.output === undefined || detail.output.text === "") {
      const isOver = entry.status === "completed" || entry.status === "error";
      sections.push(h("p", { class: "detail-note" }, isOver ? l10n.t("No output") : l10n.t("No output yet")));
    } else {
      const styled = styledTerminalText(detail.output.text).map(({ text, classes }) =>
        classes.length === 0 ? text : h("span", { class: classes.join(" ") }, text),
      );
      sections.push(
        h(
          "pre",
          { class: entry.status === "error" ? "output wrapped" : "output", dir: "ltr", tabindex: "0" },
          ...styled,
        ),
      );
      sections.push(...this.more(detail.id, TOOL_OUTPUT, detail.output));
    }
    return sections;
  }

  private field(id: string, { name, value, isFile }: ToolDetail["input"][number]): Node[] {
    const { l10n, post } = this.context;
    const term = h("dt", {}, h("bdi", {}, name));
    if (isFile) {
      const open = (): void => post({ type: "open-field", id, field: name });
      const link = button("link", open, h("bdi", {}, value.text));
      link.title = l10n.t("Open File");
      return [term, h("dd", {}, link)];
    }
    const text = value.text.includes("\n")
      ? h("pre", { dir: "ltr", tabindex: "0" }, value.text)
      : h("code", { dir: "auto" }, value.text);
    return [term, h("dd", {}, text, ...this.more(id, name, value))];
  }

  private more(id: string, field: string, { text, total }: Excerpt): Node[] {
    if (text.length === total) return [];
    const { l10n, format, post } = this.context;
    const label = l10n.t("Show All ({0} Characters)", format.number(total));
    const all = button("link", () => post({ type: "open-field", id, field }), label);
    return [h("p", { class: "detail-note" }, all)];
  }
}
