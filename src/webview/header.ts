import type { ActivityView, TaskLink, TaskView } from "../protocol/output.ts";
import type { Context } from "./context.ts";
import { button, h } from "./dom.ts";
import { phaseIcon } from "./footer.ts";
import { icon, type IconName } from "./icons.ts";
import { type L10n, phaseWord, statusWord } from "./l10n.ts";

const STATUS_ICONS: Readonly<Record<TaskView["status"], IconName>> = {
  running: "running",
  resumed: "running",
  completed: "completed",
  error: "error",
  cancelled: "cancelled",
  idle: "idle",
};

/** The phases in which a task waits for something. */
const HELD_UP: ReadonlySet<ActivityView["phase"]> = new Set([
  "queued",
  "needs-permission",
  "needs-answer",
  "retrying",
  "stalled",
]);

/** The task, its state and its actions. */
export class Header {
  readonly element = h("header", { class: "head" });
  private readonly title = h("h1", { dir: "auto" });
  private readonly facts = h("ul", { class: "facts" });
  private readonly links = h("ul", { class: "links", hidden: true });
  private readonly duration = h("span");
  private readonly cancel: HTMLButtonElement;
  private readonly adopt: HTMLButtonElement;
  private readonly copyResult: HTMLButtonElement;
  private readonly fork: HTMLButtonElement;
  private readonly changes: HTMLButtonElement;
  private readonly bringBack: HTMLButtonElement;
  private readonly terminal: HTMLButtonElement;
  private task: TaskView | undefined;

  constructor(private readonly context: Context) {
    const { l10n, post } = context;
    this.cancel = action("stop", l10n.t("Cancel"), () => post({ type: "run", command: "cancel" }));
    this.adopt = action("adopt", l10n.t("Adopt"), () => post({ type: "run", command: "adopt" }));
    this.fork = action("fork", l10n.t("Fork"), () => post({ type: "run", command: "fork" }));
    this.changes = action("diff", l10n.t("Show Changes"), () =>
      post({ type: "run", command: "showChanges" }),
    );
    this.bringBack = action("bringBack", l10n.t("Bring Back…"), () =>
      post({ type: "run", command: "bringBack" }),
    );
    this.copyResult = action("copy", l10n.t("Copy Result"), () => post({ type: "copy-result" }));
    const open = action("document", l10n.t("Open as Document"), () => post({ type: "open-transcript" }));
    this.terminal = action("terminal", l10n.t("Open in Terminal"), () =>
      post({ type: "run", command: "openInTerminal" }),
    );
    const actions = h("div", { class: "actions" });
    actions.append(this.cancel, this.adopt, this.fork, this.changes, this.bringBack);
    actions.append(this.copyResult, open, this.terminal);
    this.element.append(
      h(
        "div",
        { class: "column" },
        this.title,
        h("div", { class: "head-bar" }, this.facts, actions),
        this.links,
      ),
    );
    this.element.hidden = true;
  }

  show(task: TaskView): void {
    const { l10n, format } = this.context;
    this.task = task;
    this.element.hidden = false;
    const marks = [
      task.resumeCount > 0 && l10n.t("(resumed)"),
      task.isForked && l10n.t("(forked)"),
      task.worktree !== undefined && worktreeMark(l10n, task.worktree),
    ];
    this.title.replaceChildren(
      h("span", { title: task.description }, task.description),
      ...marks.flatMap((mark) => (mark === false ? [] : [" ", h("small", { class: "mark" }, mark)])),
    );
    for (const button of [this.fork, this.changes, this.terminal]) button.hidden = false;
    const isTask = task.kind === "task";
    const isAtWork = task.activity !== undefined || task.status === "running" || task.status === "resumed";
    this.cancel.hidden = !isAtWork;
    this.copyResult.hidden = isTask ? task.status !== "completed" : isAtWork;
    this.adopt.hidden = isTask;
    this.bringBack.hidden = task.worktree !== "open";

    const { input, output, reasoning, cacheRead, cacheWrite } = task.tokens;
    const tokens = [
      l10n.t("Input: {0}", format.number(input)),
      l10n.t("Output: {0}", format.number(output)),
      l10n.t("Reasoning: {0}", format.number(reasoning)),
      l10n.t("Cache reads: {0}", format.number(cacheRead)),
      l10n.t("Cache writes: {0}", format.number(cacheWrite)),
    ].join("\n");
    const total = input + output + reasoning + cacheRead + cacheWrite;
    this.facts.replaceChildren(
      this.status(task),
      ...(isTask
        ? []
        : [
            h(
              "li",
              {
                title: l10n.t(
                  "Launched by an agent or from the terminal. Adopt it to manage it like a task you launched.",
                ),
              },
              l10n.t("OpenCode subagent"),
            ),
          ]),
      ...(task.agent === undefined ? [] : [fact(l10n.t("Agent"), h("bdi", {}, task.agent))]),
      ...(task.model === undefined ? [] : [fact(l10n.t("Model"), h("bdi", {}, task.model))]),
      fact(l10n.t("Duration"), this.duration),
      ...(task.nearLimit
        ? [
            h(
              "li",
              { class: "near-limit" },
              task.nearLimit.scope === "task"
                ? l10n.t("{0}% of its limit", format.number(task.nearLimit.percent))
                : l10n.t("{0}% of its batch's limit", format.number(task.nearLimit.percent)),
            ),
          ]
        : []),
      ...(task.cost > 0 ? [fact(l10n.t("Cost"), format.cost(task.cost))] : []),
      ...(total > 0 ? [h("li", { title: tokens }, l10n.t("{0} tokens", format.amount(total)))] : []),
      h(
        "li",
        { class: "fact-id", title: task.id },
        isTask ? l10n.t("Task {0}", task.shortID) : l10n.t("Session {0}", task.shortID),
      ),
    );
    this.showLinks(task.links);
    this.tick();
  }

  /** Links to the tasks that this one replaces, or that replace it. */
  private showLinks(links: readonly TaskLink[]): void {
    const key = JSON.stringify(links);
    // A redraw would take the focus from a link.
    if (this.links.dataset["shown"] === key) return;
    this.links.dataset["shown"] = key;
    this.links.hidden = links.length === 0;
    const { l10n, post } = this.context;
    this.links.replaceChildren(
      ...links.map(({ kind, id, shortID }) =>
        h(
          "li",
          {},
          button("link", () => post({ type: "open-task", id }), linkText(l10n, kind, shortID)),
        ),
      ),
    );
  }

  /** A task that is held up isn't shown as running. */
  private status({ status, activity }: TaskView): HTMLElement {
    const { l10n } = this.context;
    const phase = activity?.phase;
    if (!phase || !HELD_UP.has(phase))
      return h(
        "li",
        { class: `status status-${status}` },
        icon(STATUS_ICONS[status]),
        statusWord(l10n, status),
      );
    const look = phase === "queued" ? "queued" : "waiting";
    return h("li", { class: `status status-${look}` }, icon(phaseIcon(phase)), phaseWord(l10n, phase));
  }

  /** Updates the duration. */
  tick(): void {
    if (!this.task) return;
    const { startedAt, endedAt } = this.task;
    this.duration.textContent =
      endedAt === undefined
        ? this.context.format.duration(this.context.now() - startedAt)
        : this.context.format.duration(endedAt - startedAt);
  }

  /** Hides the status, and the actions that need the task to exist. */
  retire(): void {
    this.facts.querySelector(".status")?.remove();
    const gone = [this.cancel, this.adopt, this.fork, this.changes, this.bringBack, this.terminal];
    for (const button of gone) button.hidden = true;
  }
}

function worktreeMark(l10n: L10n, worktree: NonNullable<TaskView["worktree"]>): string {
  const words: Readonly<Record<typeof worktree, string>> = {
    open: l10n.t("(worktree)"),
    broughtBack: l10n.t("(brought back)"),
    branched: l10n.t("(branch created)"),
    discarded: l10n.t("(discarded)"),
  };
  return words[worktree];
}

function linkText(l10n: L10n, kind: TaskLink["kind"], shortID: string): string {
  const words: Readonly<Record<typeof kind, string>> = {
    continues: l10n.t("Continues task {0}", shortID),
    retries: l10n.t("Retries task {0}", shortID),
    "continued-as": l10n.t("Continued as task {0}", shortID),
    "retried-as": l10n.t("Retried as task {0}", shortID),
  };
  return words[kind];
}

function fact(label: string, value: Node | string): HTMLElement {
  return h("li", { title: label }, h("span", { class: "sr-only" }, `${label}: `), value);
}

/** An icon button whose label is its tooltip and its name for screen readers. */
export function action(name: IconName, label: string, run: () => void): HTMLButtonElement {
  const element = button("action", run, icon(name));
  element.title = label;
  element.ariaLabel = label;
  return element;
}
