import type { Formatter } from "../../protocol/format.ts";
import { h } from "../dom.ts";
import { icon } from "../icons.ts";
import type { L10n } from "../l10n.ts";
import { isActive, type Axis, type Interval, type Lane } from "./layout.ts";
import { intervalWords, STATE_ICONS, stateWord } from "./words.ts";

/** What the parts of the overview need. */
export interface OverviewContext {
  readonly l10n: L10n;
  readonly format: Formatter;
  /** Milliseconds since 1970, by the extension's clock. */
  readonly now: () => number;
  /** The time of day. */
  readonly clock: (at: number) => string;
  readonly openTask: (id: string) => void;
}

interface Row {
  readonly element: HTMLElement;
  readonly button: HTMLButtonElement;
  readonly duration: HTMLElement;
  lane: Lane;
  /** The day for which its times are in words. */
  dayStart: number;
}

/** Rows that PageUp and PageDown pass over. */
const PAGE = 10;

/**
 * The tasks as a table in ARIA terms, with one row for each. The bars' places depend on the axis only through the style
 * of the table, so they grow and move without being made again. One row's button is in the order of the Tab key; arrow
 * keys move among the rows.
 */
export class LaneTable {
  readonly element: HTMLElement;
  private readonly rows = new Map<string, Row>();
  private readonly ticks = h("div", { class: "ticks", "aria-hidden": "true" });
  private readonly lines = h("div");
  private readonly body = h("div", { role: "rowgroup", class: "lanes-body" });
  /** The task whose button has the focus, or had it last; undefined before the user has come to the rows. */
  private current: string | undefined;
  private dayStart = 0;
  /** The button in the order of the Tab key. */
  private stop: HTMLButtonElement | undefined;

  /** Times are in seconds since then in styles, which have less precision than times need. */
  private readonly origin: number;

  constructor(private readonly context: OverviewContext) {
    const { l10n } = context;
    this.origin = context.now();
    const heading = (name: string, ...more: readonly Node[]): HTMLElement =>
      h("div", { role: "columnheader", class: `lane-${name}` }, ...more);
    const label = (text: string): HTMLElement => h("span", {}, text);
    this.element = h(
      "div",
      { role: "table", class: "lanes", "aria-label": l10n.t("Today's tasks, newest first") },
      h(
        "div",
        { role: "rowgroup", class: "lanes-head" },
        h(
          "div",
          { role: "row", class: "lane" },
          heading("task", label(l10n.t("Task"))),
          heading("state", label(l10n.t("Status"))),
          heading("track", h("span", { class: "sr-only" }, l10n.t("Times")), this.ticks),
          heading("duration", label(l10n.t("Duration"))),
          heading("tokens", label(l10n.t("Tokens"))),
          heading("cost", label(l10n.t("Cost"))),
        ),
      ),
      this.body,
      h("div", { class: "tick-lines", "aria-hidden": "true" }, this.lines),
    );
    this.element.addEventListener("keydown", (event) => this.onKeyDown(event));
    this.body.addEventListener("focusin", ({ target }) => this.onFocus(target));
    this.body.addEventListener("click", ({ target }) => {
      const row = target instanceof Element && target.closest<HTMLElement>("[data-lane]");
      if (row) context.openTask(row.dataset["lane"] ?? "");
    });
  }

  show(lanes: readonly Lane[], dayStart: number): void {
    this.dayStart = dayStart;
    const hadFocus = this.body.contains(document.activeElement);
    const position = [...this.rows.keys()].indexOf(this.current ?? "");
    const before = new Map(this.rows);
    this.rows.clear();
    for (const lane of lanes) this.rows.set(lane.task.id, this.row(lane, before.get(lane.task.id)));
    let at = this.body.firstElementChild;
    for (const { element } of this.rows.values())
      if (element === at) at = at.nextElementSibling;
      else this.body.insertBefore(element, at);
    while (at) {
      const gone = at;
      at = at.nextElementSibling;
      gone.remove();
    }
    if (this.current !== undefined && !this.rows.has(this.current)) {
      const ids = [...this.rows.keys()];
      this.current = ids[Math.min(position, ids.length - 1)];
    }
    const button = this.moveStop();
    // A moved element loses the focus.
    if (hadFocus && document.activeElement !== button) button?.focus({ preventScroll: true });
  }

  /** Places all bars by this axis. */
  scale({ from, to, ticks }: Axis): void {
    this.setNumber("--from", from);
    this.setNumber("--to", to);
    const { clock } = this.context;
    const places = (text: (at: number) => string): HTMLElement[] =>
      ticks.map((at) => this.placed(h("span", { class: "tick" }, text(at)), at));
    this.ticks.replaceChildren(...places(clock));
    this.lines.replaceChildren(...places(() => ""));
  }

  /** Lets what is active grow until now. */
  tick(now: number): void {
    const { format } = this.context;
    this.setNumber("--now", now);
    for (const { duration, lane } of this.rows.values()) {
      const text = format.duration(durationOf(lane, now));
      if (duration.textContent !== text) duration.textContent = text;
    }
  }

  private row(lane: Lane, known: Row | undefined): Row {
    const { dayStart } = this;
    if (known?.dayStart === dayStart && JSON.stringify(known.lane) === JSON.stringify(lane)) return known;
    const { l10n, format } = this.context;
    const { task, state, depth } = lane;
    const row = known ?? this.newRow(lane);
    row.lane = lane;
    row.dayStart = dayStart;
    row.element.dataset["state"] = state;
    row.element.style.setProperty("--depth", String(Math.min(depth, 6)));
    const name = h("bdi", { class: "lane-name" }, task.description);
    row.button.replaceChildren(icon(STATE_ICONS[state]), name);
    row.button.title = task.description;
    const cell = (name: string, text: string): HTMLElement =>
      h("div", { role: "cell", class: `lane-${name}` }, text);
    // The button stays in its place, so that it keeps the focus.
    const level = h("span", { class: "sr-only" }, l10n.t("Subtask, level {0}", format.number(depth)));
    row.button.nextSibling?.remove();
    if (depth > 0) row.button.after(level);
    for (const old of [...row.element.children].slice(1)) old.remove();
    row.element.append(
      cell("state", stateWord(l10n, task)),
      h("div", { role: "cell", class: "lane-track" }, ...lane.intervals.map((each) => this.bar(each))),
      row.duration,
      cell("tokens", task.tokens > 0 ? format.amount(task.tokens) : ""),
      cell("cost", task.cost > 0 ? format.cost(task.cost) : ""),
    );
    return row;
  }

  private newRow(lane: Lane): Row {
    const button = h("button", { type: "button", class: "lane-open", tabindex: "-1" });
    const head = h("div", { role: "rowheader", class: "lane-task" }, button);
    return {
      lane,
      dayStart: this.dayStart,
      element: h("div", { role: "row", class: "lane", "data-lane": lane.task.id }, head),
      button,
      duration: h("div", { role: "cell", class: "lane-duration" }),
    };
  }

  private bar(interval: Interval): HTMLElement {
    const { l10n, clock, format } = this.context;
    const { kind, from, to } = interval;
    const time = (at: number): string => (at < this.dayStart ? format.moment(at) : clock(at));
    const words = intervalWords(l10n, interval, [time(from), to === undefined ? "" : time(to)]);
    const bar = this.placed(h("span", { class: `bar bar-${kind}`, title: words }), from);
    bar.append(h("span", { class: "sr-only" }, `${words}. `));
    if (to !== undefined) this.setNumber("--end", to, bar);
    return bar;
  }

  private placed(element: HTMLElement, at: number): HTMLElement {
    this.setNumber("--at", at, element);
    return element;
  }

  private setNumber(name: string, time: number, element = this.element): void {
    element.style.setProperty(name, ((time - this.origin) / 1_000).toFixed(1));
  }

  private onKeyDown(event: KeyboardEvent): void {
    const ids = [...this.rows.keys()];
    const at = ids.indexOf(this.current ?? "");
    const moves: Readonly<Record<string, number>> = {
      ArrowDown: at + 1,
      ArrowUp: at - 1,
      PageDown: at + PAGE,
      PageUp: at - PAGE,
      Home: 0,
      End: ids.length - 1,
    };
    const to = moves[event.key];
    if (to === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const id = ids[Math.max(0, Math.min(to, ids.length - 1))];
    this.rows.get(id ?? "")?.button.focus();
  }

  private onFocus(target: EventTarget | null): void {
    const row = target instanceof Element && target.closest<HTMLElement>("[data-lane]");
    if (!row) return;
    this.current = row.dataset["lane"];
    this.moveStop();
  }

  private moveStop(): HTMLButtonElement | undefined {
    const [first] = this.rows.values();
    const button = (this.rows.get(this.current ?? "") ?? first)?.button;
    this.stop?.setAttribute("tabindex", "-1");
    this.stop = button;
    button?.setAttribute("tabindex", "0");
    return button;
  }
}

/** How long the current or last turn has taken; of a queued task, how long it has been queued. */
function durationOf({ task, intervals }: Lane, now: number): number {
  const from = intervals.at(-1)?.kind === "queued" ? intervals.at(-1)!.from : task.startedAt;
  return Math.max(0, (isActive(task) ? now : (task.endedAt ?? task.startedAt)) - from);
}
