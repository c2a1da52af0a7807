import type { Excerpt } from "../protocol/output.ts";
import { diffLines, diffRuns, type DiffRun } from "../protocol/diff-lines.ts";
import type { Context } from "./context.ts";
import { button, h } from "./dom.ts";

/** A diff with line numbers, and a button that opens the full diff if it was shortened. */
export function diffView(id: string, { text, total }: Excerpt, { l10n, format, post }: Context): Node[] {
  const lines = diffLines(text);
  // A file that is empty, or was only moved.
  if (lines.length === 0) return [h("p", { class: "detail-note" }, l10n.t("No lines are added or removed."))];
  const isNumbered = lines.some(({ number }) => number !== undefined);
  const view = h(
    "div",
    { class: "diff", tabindex: "0", role: "group", "aria-label": l10n.t("Changes") },
    // One text for all numbers: a cell for each line would add an element for each.
    isNumbered &&
      h(
        "pre",
        { class: "diff-numbers", "aria-hidden": "true" },
        lines.map(({ number }) => number ?? "").join("\n"),
      ),
    h("pre", { class: "diff-text", dir: "ltr" }, ...diffRuns(lines).map(run)),
  );
  if (text.length === total) return [view];
  const label = l10n.t("Open All Changes ({0} Characters)", format.number(total));
  const all = button("link", () => post({ type: "open-diff", id }), label);
  return [view, h("p", { class: "detail-note" }, all)];
}

function run({ kind, text }: DiffRun): Node {
  return h("span", { class: `diff-line ${kind}` }, text === "" ? "\n" : text);
}
