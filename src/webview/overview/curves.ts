import { h } from "../dom.ts";
import type { Axis, Spent } from "./layout.ts";
import type { OverviewContext } from "./table.ts";

const SVG = "http://www.w3.org/2000/svg";
const [WIDTH, HEIGHT] = [1_000, 100];

interface Curve {
  readonly measure: "cost" | "tokens";
  readonly element: HTMLElement;
  readonly total: HTMLElement;
  readonly svg: SVGSVGElement;
  readonly line: SVGPathElement;
  readonly area: SVGPathElement;
}

/** Cost and tokens over time, on the axis of the table. */
export class Curves {
  readonly element: HTMLElement;
  private readonly curves: readonly Curve[];

  constructor(private readonly context: OverviewContext) {
    const { l10n } = context;
    this.curves = [newCurve("cost", l10n.t("Cost")), newCurve("tokens", l10n.t("Tokens"))];
    const note = l10n.t("A task's usage is added when it ends; running tasks count up to now");
    this.element = h("div", { class: "curves", title: note }, ...this.curves.map(({ element }) => element));
  }

  /** @param spending in the order of time */
  show(spending: readonly Spent[], axis: Axis, now: number): void {
    const { l10n, format } = this.context;
    const last = spending.at(-1) ?? { cost: 0, tokens: 0 };
    this.element.hidden = last.cost === 0 && last.tokens === 0;
    for (const { measure, element, total, svg, line, area } of this.curves) {
      const amount = last[measure];
      element.hidden = amount === 0;
      if (amount === 0) continue;
      const text = measure === "cost" ? format.cost(amount) : format.amount(amount);
      total.textContent = text;
      svg.setAttribute(
        "aria-label",
        measure === "cost"
          ? l10n.t("Cost over time, {0} in total", text)
          : l10n.t("Tokens over time, {0} in total", text),
      );
      const x = (at: number): number => ((at - axis.from) / (axis.to - axis.from)) * WIDTH;
      const path = stepsOf(spending, measure, amount, { x, from: axis.from, now });
      line.setAttribute("d", path);
      area.setAttribute("d", `${path}V${HEIGHT}H0Z`);
    }
  }
}

function newCurve(measure: Curve["measure"], name: string): Curve {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("role", "img");
  const [area, line] = ["curve-area", "curve-line"].map((look) => {
    const path = document.createElementNS(SVG, "path");
    path.setAttribute("class", look);
    svg.append(path);
    return path;
  });
  const total = h("strong");
  const element = h(
    "div",
    { class: "curve" },
    h("div", { class: "curve-label", "aria-hidden": "true" }, h("span", {}, name), total),
    h("div", { class: "curve-plot" }, svg),
  );
  return { measure, element, total, svg, line: line!, area: area! };
}

/** A path that rises at each end of a task, from nothing at the start of the axis to `most` now. */
function stepsOf(
  spending: readonly Spent[],
  measure: "cost" | "tokens",
  most: number,
  { x, from, now }: { readonly x: (at: number) => number; readonly from: number; readonly now: number },
): string {
  const steps = spending.map(
    (spent) => `H${round(x(Math.max(from, spent.at)))}V${round(HEIGHT - (spent[measure] / most) * HEIGHT)}`,
  );
  return [`M0 ${HEIGHT}`, ...steps, `H${round(x(now))}`].join("");
}

function round(value: number): string {
  return value.toFixed(1);
}
