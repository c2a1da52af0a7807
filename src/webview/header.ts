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
  idle: "idle",
};

/** What the task is and how it stands, with what can be done about it. */
export class Header {
  readonly element = h("header", { class: "head" });
  private readonly title = h("h1", { dir: "auto" });
  private readonly facts = h("ul", { class: "facts" });
  private readonly duration = h("span");
  private readonly cancel: HTMLButtonElement;
  private readonly adopt: HTMLButtonElement;
  private readonly copyResult: HTMLButtonElement;
  private readonly fork: HTMLButtonElement;
  private readonly changes: HTMLButtonElement;
  private readonly terminal: HTMLButtonElement;
  private task: TaskView | undefined;

  constructor(private readonly context: Context) {
    const { strings, post } = context;
    this.cancel = action("stop", strings.cancel, () => post({ type: "cancel" }));
    this.adopt = action("adopt", strings.adopt, () => post({ type: "adopt" }));
    this.fork = action("fork", strings.fork, () => post({ type: "fork" }));
    this.changes = action("diff", strings.showChanges, () => post({ type: "show-changes" }));
    this.copyResult = action("copy", strings.copyResult, () => post({ type: "copy-result" }));
    const open = action("document", strings.openTranscript, () => post({ type: "open-transcript" }));
    this.terminal = action("terminal", strings.openTerminal, () => post({ type: "open-terminal" }));
    const actions = h("div", { class: "actions" });
    actions.append(this.cancel, this.adopt, this.fork, this.changes, this.copyResult, open, this.terminal);
    this.element.append(
      h("div", { class: "column" }, this.title, h("div", { class: "head-bar" }, this.facts, actions)),
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
    const isTask = task.kind === "task";
    const isAtWork = task.activity !== undefined || task.status === "running" || task.status === "resumed";
    this.cancel.hidden = !isAtWork;
    this.copyResult.hidden = isTask ? task.status !== "completed" : isAtWork;
    this.adopt.hidden = isTask;

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
      this.status(task),
      ...(isTask ? [] : [h("li", { title: strings.subagentHint }, strings.subagent)]),
      ...(task.agent === undefined ? [] : [fact(strings.agent, h("bdi", {}, task.agent))]),
      ...(task.model === undefined ? [] : [fact(strings.model, h("bdi", {}, task.model))]),
      fact(strings.duration, this.duration),
      ...(task.ceiling
        ? [
            h(
              "li",
              { class: "near-ceiling" },
              fill(strings.ceiling[task.ceiling.scope], format.number(task.ceiling.percent)),
            ),
          ]
        : []),
      ...(task.cost > 0 ? [fact(strings.cost, format.cost(task.cost))] : []),
      ...(total > 0 ? [h("li", { title: tokens }, fill(strings.tokens, format.amount(total)))] : []),
      h(
        "li",
        { class: "fact-id", title: task.id },
        fill(isTask ? strings.taskID : strings.sessionID, task.shortID),
      ),
    );
    this.tick();
  }

  /** One that waits for a person does not run on. */
  private status({ status, activity }: TaskView): HTMLElement {
    const { strings } = this.context;
    const phase = activity?.phase;
    return phase === "needs-permission" || phase === "needs-answer"
      ? h("li", { class: "status status-waiting" }, icon("question"), strings.phase[phase])
      : h("li", { class: `status status-${status}` }, icon(STATUS_ICONS[status]), strings.status[status]);
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

  /** There is nothing left to act on but what was read. */
  retire(): void {
    for (const button of [this.cancel, this.adopt, this.fork, this.changes, this.terminal])
      button.hidden = true;
  }
}

function fact(label: string, value: Node | string): HTMLElement {
  return h("li", { title: label }, h("span", { class: "sr-only" }, `${label}: `), value);
}

/** A button that shows its name when pointed at, and has it for those who do not see it. */
export function action(name: IconName, label: string, run: () => void): HTMLButtonElement {
  const attributes = { type: "button", class: "action", title: label, "aria-label": label };
  const button = h("button", attributes, icon(name));
  button.addEventListener("click", run);
  return button;
}
