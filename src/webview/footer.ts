import type { ActivityView, TaskView } from "../protocol/output.ts";
import type { Context } from "./context.ts";
import { button, h } from "./dom.ts";
import { icon, type IconName } from "./icons.ts";
import type { ResumeBox } from "./resume-box.ts";
import { phaseWord, statusWord } from "./l10n.ts";

/** The area below the conversation: what the task is doing, or how it ended and how to continue. */
export class Footer {
  readonly element = h("footer", { class: "foot" });
  private readonly content = h("div", { class: "column" });
  private readonly activityText = h("span", { class: "activity-text", dir: "auto" });
  private activity: ActivityView | undefined;
  /** How the task ended. The element and its button are reused, so that the focus isn't lost. */
  private readonly ending = h("div");
  private readonly endingText = h("div", { class: "ending-text" });
  private readonly retry: HTMLButtonElement;
  private readonly adopt: HTMLButtonElement;
  private isRetrying = false;

  constructor(
    private readonly context: Context,
    private readonly resume: ResumeBox,
  ) {
    const { l10n, post } = context;
    this.retry = button("primary", (event) => this.askForRetry(event), l10n.t("Retry"));
    this.adopt = button("primary", () => post({ type: "run", command: "adopt" }), l10n.t("Adopt"));
    this.element.append(this.content);
    this.element.hidden = true;
  }

  show(task: TaskView): void {
    this.activity = task.activity;
    this.element.hidden = false;
    if (task.activity) this.content.replaceChildren(this.activityLine(task.activity));
    else if (task.status === "completed" || task.status === "idle") this.showResume(task);
    else if (task.status === "error" || task.status === "cancelled") this.showEnding(task);
    else this.element.hidden = true;
    this.tick();
  }

  tick(): void {
    if (this.activity) this.activityText.textContent = activityText(this.activity, this.context);
  }

  /** The box is reused, so that typing isn't disturbed. */
  private showResume({ kind }: TaskView): void {
    const { l10n } = this.context;
    this.resume.label(kind === "task" ? l10n.t("Resume") : l10n.t("Adopt and Resume"));
    this.hold(this.resume.element);
  }

  private hold(element: HTMLElement): void {
    if (this.content.firstChild !== element) this.content.replaceChildren(element);
  }

  /** Shows whether a retry is in progress. */
  showRetrying(isRetrying: boolean): void {
    const { l10n } = this.context;
    this.isRetrying = isRetrying;
    this.retry.textContent = isRetrying ? l10n.t("Retrying…") : l10n.t("Retry");
    // The `disabled` attribute would take the focus from the button.
    this.retry.setAttribute("aria-disabled", String(isRetrying));
  }

  private askForRetry({ detail: clicks }: MouseEvent): void {
    // Each retry costs money, and a double-click means one retry.
    if (this.isRetrying || clicks > 1) return;
    this.showRetrying(true);
    this.context.post({ type: "run", command: "retry" });
  }

  private activityLine(activity: ActivityView): HTMLElement {
    const { l10n } = this.context;
    const { phase, toolCalls } = activity;
    const line = h(
      "div",
      { class: "activity", "data-phase": phase },
      icon(phaseIcon(phase)),
      this.activityText,
    );
    if (toolCalls > 0)
      line.append(
        h(
          "span",
          { class: "activity-count" },
          toolCalls === 1
            ? l10n.t("1 tool call")
            : l10n.t("{0} tool calls", this.context.format.number(toolCalls)),
        ),
      );
    return line;
  }

  /** Shows how the task ended. A task can be retried; a subagent has to be adopted first. */
  private showEnding({ kind, status, error = "" }: TaskView): void {
    const { l10n } = this.context;
    const isError = status === "error";
    const isTask = kind === "task";
    const lines = [
      isError ? error : "",
      isTask ? l10n.t("Retry launches a new task with the same prompt.") : "",
    ].filter((line) => line !== "");
    const name: IconName = isError ? "error" : "cancelled";
    const button = isTask ? this.retry : this.adopt;
    this.endingText.replaceChildren(
      h("strong", {}, isError ? l10n.t("The task failed") : statusWord(l10n, "cancelled")),
      ...lines.map((line) => h("p", { dir: "auto" }, line)),
    );
    const look = `ending ending-${name}`;
    if (this.ending.className !== look || this.ending.lastChild !== button)
      this.ending.replaceChildren(icon(name), this.endingText, button);
    this.ending.className = look;
    this.hold(this.ending);
  }
}

function phaseIcon(phase: ActivityView["phase"]): IconName {
  switch (phase) {
    case "queued":
      return "pending";
    case "needs-permission":
    case "needs-answer":
      return "question";
    case "retrying":
    case "stalled":
      return "attention";
    case "starting":
    case "thinking":
    case "streaming":
    case "tool":
      return "running";
  }
}

function activityText(activity: ActivityView, { l10n, format, now }: Context): string {
  const { phase, tool, retry, lastUpdate } = activity;
  if (phase === "tool" && tool)
    return tool.title === undefined || tool.title === ""
      ? l10n.t("Running {0}", tool.name)
      : l10n.t("Running {0}: {1}", tool.name, tool.title);
  if (phase === "retrying" && retry) {
    const wait = l10n.t(
      "{0} · attempt {1}",
      format.duration(retry.next - now()),
      format.number(retry.attempt),
    );
    return `${retry.message === "" ? phaseWord(l10n, phase) : retry.message} · ${wait}`;
  }
  if (phase === "stalled")
    return l10n.t("{0} for {1}", phaseWord(l10n, phase), format.duration(now() - lastUpdate));
  return phaseWord(l10n, phase);
}
