import type { ActivityView, TaskView } from "../protocol/output.ts";
import type { Context } from "./context.ts";
import { button, h } from "./dom.ts";
import { icon, type IconName } from "./icons.ts";
import type { BoxMode, MessageBox } from "./message-box.ts";
import { type L10n, phaseWord, statusWord } from "./l10n.ts";

/** The area below the conversation: what the task is doing, or how it ended and how to continue. */
export class Footer {
  readonly element = h("footer", { class: "foot" });
  /** What the task is doing, or how it ended. */
  private readonly state = h("div");
  private readonly waiting = h("div", { class: "waiting" });
  private readonly waitingLabel = h("span", { class: "waiting-label" });
  private readonly waitingText = h("p", { class: "waiting-text", dir: "auto" });
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
    private readonly box: MessageBox,
  ) {
    const { l10n, post } = context;
    this.retry = button("secondary", (event) => this.askForRetry(event), l10n.t("Retry"));
    this.adopt = button("primary", () => post({ type: "run", command: "adopt" }), l10n.t("Adopt"));
    const withdraw = button("secondary", () => post({ type: "withdraw" }), l10n.t("Withdraw"));
    this.waiting.append(
      icon("pending"),
      h("div", { class: "waiting-body" }, this.waitingLabel, this.waitingText),
      withdraw,
    );
    this.element.append(h("div", { class: "column" }, this.state, this.waiting, this.box.element));
    this.element.hidden = true;
  }

  show(task: TaskView): void {
    const { activity, status } = task;
    this.activity = activity;
    this.element.hidden = false;
    if (activity) this.state.replaceChildren(this.activityLine(activity));
    else if (status === "error" || status === "cancelled") this.showEnding(task);
    else this.state.replaceChildren();
    this.showWaiting(task);
    const mode = this.boxMode(task);
    this.box.element.hidden = mode === undefined;
    if (mode) this.box.show(mode);
    this.tick();
  }

  /** The task is gone. What was being written to it stays. */
  showGone(): void {
    this.activity = undefined;
    this.state.replaceChildren();
    this.waiting.hidden = true;
    this.element.hidden = this.box.element.hidden = !this.box.retire();
  }

  tick(): void {
    if (this.activity) this.activityText.textContent = activityText(this.activity, this.context);
  }

  /** Undefined if the task takes no message now. */
  private boxMode({ kind, status, activity }: TaskView): BoxMode | undefined {
    const { l10n } = this.context;
    const isTask = kind === "task";
    switch (status) {
      case "running":
      case "resumed":
        if (!isTask) return undefined;
        return activity?.phase === "queued" || activity?.phase === "setting-up"
          ? laterMode(l10n)
          : nowMode(l10n);
      case "completed":
      case "idle":
        return followUpMode(l10n, isTask ? l10n.t("Resume") : l10n.t("Adopt and Resume"));
      case "error":
      case "cancelled":
        return isTask ? continueMode(l10n) : undefined;
    }
  }

  private showWaiting({ waiting, status }: TaskView): void {
    const { l10n } = this.context;
    this.waiting.hidden = waiting === undefined;
    this.waitingText.textContent = waiting ?? "";
    this.waitingLabel.textContent =
      status === "error" || status === "cancelled"
        ? l10n.t("Not sent because the task didn't complete. Select Continue to send it:")
        : status === "completed"
          ? l10n.t("Not sent yet. Withdraw it to send it yourself:")
          : l10n.t("Sent once the task has completed:");
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
      isTask
        ? l10n.t(
            "Retry launches a new task with the same prompt; Continue launches one that carries on from this conversation.",
          )
        : "",
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
    if (this.state.firstChild !== this.ending) this.state.replaceChildren(this.ending);
  }
}

function nowMode(l10n: L10n): BoxMode {
  return {
    how: "now",
    label: l10n.t("Message to the running task"),
    placeholder: l10n.t("Enter a message; the agent reads it at its next step…"),
    action: l10n.t("Send"),
    canWait: true,
  };
}

/** Until a queued task starts, its messages can only wait. */
function laterMode(l10n: L10n): BoxMode {
  return {
    how: "after",
    label: l10n.t("Message to the queued task"),
    placeholder: l10n.t("Enter a follow-up for when the task has completed…"),
    action: l10n.t("Send After This"),
    canWait: false,
  };
}

function followUpMode(l10n: L10n, action: string): BoxMode {
  return {
    how: "resume",
    label: l10n.t("Follow-up prompt"),
    placeholder: l10n.t("Enter a follow-up…"),
    action,
    canWait: false,
  };
}

function continueMode(l10n: L10n): BoxMode {
  return {
    how: "continue",
    label: l10n.t("Prompt to continue with"),
    placeholder: l10n.t("Continue where you left off."),
    action: l10n.t("Continue"),
    canWait: false,
  };
}

export function phaseIcon(phase: ActivityView["phase"]): IconName {
  switch (phase) {
    case "queued":
      return "pending";
    case "needs-permission":
    case "needs-answer":
      return "question";
    case "retrying":
    case "stalled":
      return "attention";
    case "setting-up":
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
  if (phase === "queued") return l10n.t("Queued; starts when another task ends");
  if (phase === "stalled")
    return l10n.t("{0} for {1}", phaseWord(l10n, phase), format.duration(now() - lastUpdate));
  return phaseWord(l10n, phase);
}
