import { diffArrays } from "diff";

/** The number of differing lines above which two texts aren't compared, to save time. */
const MOST_DIFFERENCES = 1_000;

/** Lines `start` to `end` (exclusive) of a text, and the lines that replace them. */
interface Replacement {
  readonly start: number;
  readonly end: number;
  readonly lines: readonly string[];
}

/**
 * Undoes the change from `before` to `after` in a text that has since become `present`. Undefined if later changes
 * overlap with that change, or if there are too many differences.
 */
export function takeBack(before: string, after: string, present: string): string | undefined {
  const base = linesOf(after);
  const back = replacements(base, linesOf(before));
  const since = replacements(base, linesOf(present));
  if (!back || !since) return undefined;
  if (back.some((one) => since.some((other) => isTouching(one, other)))) return undefined;
  const all = [...back, ...since].sort((a, b) => a.start - b.start);
  let text = "";
  let at = 0;
  for (const { start, end, lines } of all) {
    text += [...base.slice(at, start), ...lines].join("");
    at = end;
  }
  return text + base.slice(at).join("");
}

/** Lines include their line endings, so that joining them restores the text. */
function linesOf(text: string): string[] {
  return text.split(/(?<=\n)/);
}

/** The replacements that turn one text into the other; undefined if there are too many. */
function replacements(from: string[], to: string[]): readonly Replacement[] | undefined {
  const changes = diffArrays(from, to, { maxEditLength: MOST_DIFFERENCES });
  if (!changes) return undefined;
  const found: Replacement[] = [];
  let at = 0;
  let open: Replacement | undefined;
  for (const { added, removed, value } of changes) {
    if (!added && !removed) {
      if (open) found.push(open);
      open = undefined;
      at += value.length;
      continue;
    }
    open ??= { start: at, end: at, lines: [] };
    if (removed) open = { ...open, end: (at += value.length) };
    else open = { ...open, lines: [...open.lines, ...value] };
  }
  return open ? [...found, open] : found;
}

/** Adjacent places overlap as well: the order of two insertions at the same place would be a guess. */
function isTouching(one: Replacement, other: Replacement): boolean {
  return one.start <= other.end && other.start <= one.end;
}
