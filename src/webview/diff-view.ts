import type { Excerpt } from "../protocol/output.ts";
import type { Context } from "./context.ts";
import { diffLines, type DiffLine } from "./diff-lines.ts";
import { h } from "./dom.ts";

/** A diff with its line numbers; a long one with a button that opens the whole of it. */
export function diffView(id: string, { text, total }: Excerpt, { l10n, format, post }: Context): Node[] {
  const lines = diffLines(text);
  const isNumbered = lines.some(({ number }) => number !== undefined);
  const view = h(
    "div",
    { class: "diff", tabindex: "0", role: "group", "aria-label": l10n.t("Changes") },
    // One text for all numbers: a cell for each line would cost the page an element for each.
    isNumbered &&
      h(
        "pre",
        { class: "diff-numbers", "aria-hidden": "true" },
        lines.map(({ number }) => number ?? "").join("\n"),
      ),
    h("pre", { class: "diff-text", dir: "ltr" }, ...runs(lines)),
  );
  if (text.length === total) return [view];
  const all = h(
    "button",
    { type: "button", class: "link" },
    l10n.t("Open all changes ({0} characters)", format.number(total)),
  );
  all.addEventListener("click", () => post({ type: "open-diff", id }));
  return [view, h("p", { class: "detail-note" }, all)];
}

/** Lines of one kind that follow each other share an element. */
function runs(lines: readonly DiffLine[]): Node[] {
  const runs: { readonly kind: DiffLine["kind"]; text: string }[] = [];
  for (const { kind, text } of lines) {
    const last = runs.at(-1);
    if (last?.kind === kind) last.text += `\n${text}`;
    else runs.push({ kind, text });
  }
  return runs.map(({ kind, text }) => h("span", { class: `diff-line ${kind}` }, text === "" ? "\n" : text));
}
