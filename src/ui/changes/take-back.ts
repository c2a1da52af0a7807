import { diffArrays } from "diff";

/** Lines that may differ between two texts before it is not worth the time to compare them. */
const MOST_DIFFERENCES = 1_000;

/** Lines `start` to `end` (exclusive) of a text, which became these. */
interface Replacement {
  readonly start: number;
  readonly end: number;
  readonly lines: readonly string[];
}

/**
 * What a text is without the change from `before` to `after`, where others changed it since to `present`. Undefined:
 * their changes touch it, or are too many.
 */
export function takeBack(before: string, after: string, present: string): string | undefined {
  const base = linesOf(after);
  const back = replacements(base, linesOf(before));
  const since = replacements(base, linesOf(present));
  if (!back || !since) return undefined;
  if (back.some((one) => since.some((other) => isTouching(one, other)))) return undefined;
  const all = [...back, ...since].sort((a, b) => a.start - b.start);
  const kept: string[] = [];
  let at = 0;
  for (const { start, end, lines } of all) {
    kept.push(...base.slice(at, start), ...lines);
    at = end;
  }
  return [...kept, ...base.slice(at)].join("");
}

/** With their ends, so that putting them together gives the text. */
function linesOf(text: string): string[] {
  return text.split(/(?<=\n)/);
}

/** What has to be replaced in one text to make the other; undefined: too much. */
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

/** Places side by side touch as well: which of two insertions comes first would be a guess. */
function isTouching(one: Replacement, other: Replacement): boolean {
  return one.start <= other.end && other.start <= one.end;
}
