import type { TaskView } from "../protocol/output.ts";
import type { Context } from "./context.ts";
import { h } from "./dom.ts";
import { fill } from "./format.ts";
import { icon, type IconName } from "./icons.ts";

const STATUS_ICONS: Readonly<Record<TaskView["status"], IconName>> = {
  running: "running",
  resumed: "running",
  completed: "completed",
  error: "error",
  cancelled: "cancelled",
};

/** What the task is and how it stands, with what can be done about it. */
export class Header {
  readonly element = h("header", { class: "head" });
  private readonly title = h("h1", { dir: "auto" });
  private readonly facts = h("ul", { class: "facts" });
  private readonly duration = h("span");
  private readonly cancel: HTMLButtonElement;
  private readonly copyResult: HTMLButtonElement;
  private readonly fork: HTMLButtonElement;
  private task: TaskView | undefined;

  constructor(private readonly context: Context) {
    const { strings, post } = context;
    this.cancel = action("stop", strings.cancel, () => post({ type: "cancel" }));
    this.copyResult = action("copy", strings.copyResult, () => post({ type: "copy-result" }));
    this.fork = action("fork", strings.fork, () => post({ type: "fork" }));
    const open = action("document", strings.openTranscript, () => post({ type: "open-transcript" }));
    const actions = h("div", { class: "actions" }, this.cancel, this.copyResult, this.fork, open);
    this.element.append(
      h("div", { class: "column" }, h("div", { class: "head-main" }, this.title, actions), this.facts),
    );
    this.element.hidden = true;
  }

  show(task: TaskView): void {
    const { strings, format } = this.context;
    this.task = task;
    this.element.hidden = false;
    const marks = [task.resumeCount > 0 && strings.resumedMark, task.isForked && strings.forkedMark];
    this.title.replaceChildren(
      h("span", { title: task.description }, task.description),
      ...marks.flatMap((mark) => (mark === false ? [] : [" ", h("small", { class: "mark" }, mark)])),
    );
    this.cancel.hidden = !task.activity && task.status !== "running" && task.status !== "resumed";
    this.copyResult.hidden = task.status !== "completed";
    this.fork.hidden = !task.canFork;

    const { input, output, reasoning, cacheRead, cacheWrite } = task.tokens;
    const tokens = [
      fill(strings.tokensInput, format.number(input)),
      fill(strings.tokensOutput, format.number(output)),
      fill(strings.tokensReasoning, format.number(reasoning)),
      fill(strings.tokensCacheRead, format.number(cacheRead)),
      fill(strings.tokensCacheWrite, format.number(cacheWrite)),
    ].join("\n");
    const total = input + output + reasoning + cacheRead + cacheWrite;
    this.facts.replaceChildren(
      h(
        "li",
        { class: `status status-${task.status}` },
        icon(STATUS_ICONS[task.status]),
        strings.status[task.status],
      ),
      fact(strings.agent, h("bdi", {}, task.agent)),
      ...(task.model === undefined ? [] : [fact(strings.model, h("bdi", {}, task.model))]),
      fact(strings.duration, this.duration),
      ...(task.cost > 0 ? [fact(strings.cost, format.cost(task.cost))] : []),
      ...(total > 0 ? [h("li", { title: tokens }, fill(strings.tokens, format.amount(total)))] : []),
      h("li", { class: "fact-id", title: task.id }, fill(strings.taskID, task.shortID)),
    );
    this.tick();
  }

  /** Brings the clock up to date. */
  tick(): void {
    if (!this.task) return;
    const { startedAt, endedAt } = this.task;
    this.duration.textContent =
      endedAt === undefined
        ? this.context.format.elapsed(this.context.now() - startedAt)
        : this.context.format.duration(endedAt - startedAt);
  }

  /** There is nothing left to act on. */
  retire(): void {
    for (const button of [this.cancel, this.fork]) button.hidden = true;
  }
}

function fact(label: string, value: Node | string): HTMLElement {
  return h("li", { title: label }, h("span", { class: "sr-only" }, `${label}: `), value);
}

export function action(name: IconName, label: string, run: () => void): HTMLButtonElement {
  const button = h(
    "button",
    { type: "button", class: "action", title: label },
    icon(name),
    h("span", {}, label),
  );
  button.addEventListener("click", run);
  return button;
}
