import type { PanelMessage } from "../../protocol/output.ts";
import type { OverviewMessage } from "../../protocol/overview.ts";
import { button, h } from "../dom.ts";
import { icon } from "../icons.ts";
import { Curves } from "./curves.ts";
import { axisOf, type Axis, type Lane, type LaneState, lanesOf, spendingOf } from "./layout.ts";
import { LaneTable, type OverviewContext } from "./table.ts";
import { countWord, stateWord } from "./words.ts";

const MINUTE = 60_000;
/** Milliseconds that can be looked at, up to now; zero stands for the whole day. */
const RANGES = [0, 60 * MINUTE, 10 * MINUTE] as const;
const DAY = 24 * 60 * MINUTE;
/** Counted in this order, most urgent first. */
const STATES: readonly LaneState[] = [
  "waiting",
  "working",
  "queued",
  "error",
  "cancelled",
  "completed",
  "idle",
];

/** The state that outlives the page. */
export interface OverviewState {
  readonly range?: number;
  readonly scrolled?: number;
}

interface Surroundings {
  readonly post: (message: PanelMessage) => void;
  readonly kept: OverviewState;
  readonly keep: (state: OverviewState) => void;
}

type Tasks = Extract<OverviewMessage, { type: "tasks" }>;

/** The tasks of the day on one time axis. */
export class OverviewPage {
  private readonly table: LaneTable;
  private readonly curves: Curves;
  private readonly facts = h("ul", { class: "facts" });
  private readonly banner: HTMLElement;
  private readonly empty = h("p", { class: "placeholder" });
  private readonly announcer = h("div", { class: "sr-only", role: "status", "aria-live": "polite" });
  private readonly scroller: HTMLElement;
  private readonly ranges: HTMLSelectElement;
  private shown: Tasks | undefined;
  private lanes: readonly Lane[] = [];
  private axis: Axis | undefined;
  /** Until when it is known what happened: now, or when the connection was lost. */
  private at: number;
  /** The tasks that waited for the user when last shown. */
  private waiting: ReadonlySet<string> = new Set();
  /** The scroll position to restore once there are rows. */
  private scrolled: number | undefined;

  constructor(
    private readonly context: OverviewContext,
    private readonly surroundings: Surroundings,
    root: HTMLElement,
  ) {
    const { l10n } = context;
    const { kept } = surroundings;
    this.at = context.now();
    this.table = new LaneTable(context);
    this.curves = new Curves(context);
    this.banner = h("section", { class: "banner", "aria-label": l10n.t("Status"), hidden: true });
    this.scrolled = kept.scrolled;
    const names = [l10n.t("All of today"), l10n.t("Last hour"), l10n.t("Last 10 minutes")];
    this.ranges = h(
      "select",
      { class: "range", "aria-label": l10n.t("Time range") },
      ...RANGES.map((range, index) =>
        h("option", { value: String(range), selected: range === kept.range }, names[index]),
      ),
    );
    this.ranges.addEventListener("change", () => {
      this.keep();
      this.draw();
    });
    this.scroller = h("main", { class: "overview" }, this.empty, this.curves.element, this.table.element);
    this.scroller.addEventListener("scroll", () => this.keep());
    root.replaceChildren(
      h(
        "header",
        { class: "head overview-head" },
        h("h1", {}, l10n.t("Tasks Today")),
        this.ranges,
        this.facts,
      ),
      this.banner,
      this.scroller,
      this.announcer,
    );
    window.setInterval(() => this.tick(), 1_000);
  }

  show(tasks: Tasks): void {
    this.showConnection(tasks.connection);
    this.at = tasks.connection === "connected" ? this.context.now() : Math.max(this.at, tasks.dayStart);
    this.shown = tasks;
    this.announce(tasks);
    this.draw();
    if (this.scrolled !== undefined && tasks.tasks.length > 0) {
      this.scroller.scrollTop = this.scrolled;
      this.scrolled = undefined;
    }
  }

  private get range(): number {
    return Number(this.ranges.value);
  }

  private keep(): void {
    this.surroundings.keep({ range: this.range, scrolled: this.scrolled ?? this.scroller.scrollTop });
  }

  private draw(): void {
    if (!this.shown) return;
    const { dayStart, tasks } = this.shown;
    const { l10n } = this.context;
    const { at } = this;
    const start = this.range === 0 ? dayStart : Math.max(dayStart, at - this.range);
    this.lanes = lanesOf(tasks, start);
    const isEmpty = this.lanes.length === 0;
    this.empty.hidden = !isEmpty;
    this.empty.textContent =
      tasks.length > 0
        ? l10n.t("No task was active in this time.")
        : l10n.t(
            "No tasks to show today. The tasks that you or your agents launch appear here until they are cleared.",
          );
    this.table.element.hidden = isEmpty;
    this.facts.hidden = isEmpty;
    this.ranges.hidden = tasks.length === 0;
    const earliest = Math.min(at, ...this.lanes.map(({ intervals }) => intervals[0]?.from ?? at));
    this.axis = axisOf(Math.max(start, earliest), at, dayStart);
    this.table.scale(this.axis);
    this.table.show(this.lanes, dayStart);
    this.table.tick(at);
    this.showFacts();
    this.showSpending();
  }

  private tick(): void {
    if (!this.shown || !this.axis) return;
    // What happens without a connection is unknown.
    if (this.shown.connection !== "connected") return;
    const at = (this.at = this.context.now());
    if (at - this.shown.dayStart >= DAY) this.surroundings.post({ type: "ready" });
    if (at >= this.axis.to) this.draw();
    else {
      this.table.tick(at);
      this.showSpending();
    }
  }

  private showSpending(): void {
    if (!this.axis) return;
    const { at } = this;
    this.curves.show(
      spendingOf(
        this.lanes.map(({ task }) => task),
        at,
      ),
      this.axis,
      at,
    );
  }

  private showFacts(): void {
    const { l10n, format } = this.context;
    const total = this.lanes.length;
    const counts = STATES.flatMap((state) => {
      const count = this.lanes.filter((lane) => lane.state === state).length;
      if (count === 0) return [];
      const words = countWord(l10n, state, format.number(count), count === 1);
      return [h("li", { class: `count-${state}` }, words)];
    });
    const all = total === 1 ? l10n.t("1 task") : l10n.t("{0} tasks", format.number(total));
    this.facts.replaceChildren(h("li", {}, all), ...counts);
  }

  private showConnection(connection: Tasks["connection"]): void {
    if (this.shown?.connection === connection) return;
    const { l10n } = this.context;
    this.banner.hidden = connection === "connected";
    this.banner.dataset["kind"] = connection;
    const isLost = connection === "disconnected";
    const text = isLost
      ? l10n.t("Not connected to OpenCode. The overview may be out of date.")
      : l10n.t("Connecting to OpenCode…");
    const connect = (): void => this.surroundings.post({ type: "run", command: "connect" });
    this.banner.replaceChildren(
      h(
        "div",
        { class: "column" },
        icon(isLost ? "offline" : "running"),
        h("span", {}, text),
        isLost && button("primary", connect, l10n.t("Connect")),
      ),
    );
  }

  /** Tells screen readers which tasks have begun to wait for the user. */
  private announce({ tasks }: Tasks): void {
    const { l10n } = this.context;
    const waiting = tasks.filter(({ waitingSince }) => waitingSince !== undefined);
    const fresh = waiting.filter(({ id }) => !this.waiting.has(id));
    this.waiting = new Set(waiting.map(({ id }) => id));
    if (fresh.length > 0)
      this.announcer.textContent = fresh
        .map((task) => l10n.t("{0}: {1}", task.description, stateWord(l10n, task)))
        .join("\n");
  }
}
