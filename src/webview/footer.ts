import type { ActivityView, TaskView } from "../protocol/output.ts";
import type { Context } from "./context.ts";
import { h } from "./dom.ts";
import { fill } from "./format.ts";
import { icon, type IconName } from "./icons.ts";
import type { ResumeBox } from "./resume-box.ts";

/** Below the conversation: what the task is doing, or how it ended and the way on. */
export class Footer {
  readonly element = h("footer", { class: "foot" });
  private readonly content = h("div", { class: "column" });
  private readonly activityText = h("span", { class: "activity-text", dir: "auto" });
  private activity: ActivityView | undefined;

  constructor(
    private readonly context: Context,
    private readonly resume: ResumeBox,
  ) {
    this.element.append(this.content);
    this.element.hidden = true;
  }

  show(task: TaskView): void {
    this.activity = task.activity;
    this.element.hidden = false;
    if (task.activity) this.content.replaceChildren(this.activityLine(task.activity));
    else if (task.status === "completed" || task.status === "idle") this.showResume(task);
    else if (task.status === "error") this.content.replaceChildren(this.failure(task));
    else if (task.status === "cancelled") this.content.replaceChildren(this.cancelled(task));
    else this.element.hidden = true;
    this.tick();
  }

  tick(): void {
    if (this.activity) this.activityText.textContent = activityText(this.activity, this.context);
  }

  /** The box stays the same element, so that what is being typed is not disturbed. */
  private showResume({ kind }: TaskView): void {
    const { resume, adoptAndResume } = this.context.strings;
    this.resume.label(kind === "task" ? resume : adoptAndResume);
    if (this.content.firstChild !== this.resume.element) this.content.replaceChildren(this.resume.element);
  }

  private activityLine(activity: ActivityView): HTMLElement {
    const { strings } = this.context;
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
          toolCalls === 1 ? strings.toolCall : fill(strings.toolCalls, this.context.format.number(toolCalls)),
        ),
      );
    return line;
  }

  private failure(task: TaskView): HTMLElement {
    return this.withRetry(task, "error", this.context.strings.failed, task.error ?? "");
  }

  private cancelled(task: TaskView): HTMLElement {
    return this.withRetry(task, "cancelled", this.context.strings.status.cancelled);
  }

  /** How it ended; a task can be tried again, a subagent once it is adopted. */
  private withRetry(task: TaskView, name: IconName, title: string, ...lines: readonly string[]): HTMLElement {
    const { strings, post } = this.context;
    const isTask = task.kind === "task";
    const box = ending(name, title, ...lines, isTask ? strings.errorRemedy : "");
    box.append(
      isTask
        ? primary(strings.retry, () => post({ type: "retry" }))
        : primary(strings.adopt, () => post({ type: "adopt" })),
    );
    return box;
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

/** What goes on, in words. */
function activityText(activity: ActivityView, { strings, format, now }: Context): string {
  const { phase, tool, retry, lastUpdate } = activity;
  if (phase === "tool" && tool)
    return tool.title === undefined || tool.title === ""
      ? fill(strings.toolRunning, tool.name)
      : fill(strings.toolRunningTitled, tool.name, tool.title);
  if (phase === "retrying" && retry) {
    const wait = fill(strings.retryIn, format.elapsed(retry.next - now()), format.number(retry.attempt));
    return `${retry.message === "" ? strings.phase.retrying : retry.message} · ${wait}`;
  }
  if (phase === "stalled")
    return fill(strings.silentFor, strings.phase.stalled, format.elapsed(now() - lastUpdate));
  return strings.phase[phase];
}

function ending(name: IconName, title: string, ...lines: readonly string[]): HTMLElement {
  const texts = lines.filter((line) => line !== "").map((line) => h("p", { dir: "auto" }, line));
  return h(
    "div",
    { class: `ending ending-${name}` },
    icon(name),
    h("div", { class: "ending-text" }, h("strong", {}, title), ...texts),
  );
}

export function primary(label: string, run: () => void): HTMLButtonElement {
  const button = h("button", { type: "button", class: "primary" }, label);
  button.addEventListener("click", run);
  return button;
}
