/**
 * A line of a diff. `number` is its line in the new file, or in the old file if it was removed; undefined if unknown.
 */
export interface DiffLine {
  readonly kind: "added" | "removed" | "context" | "hunk" | "file";
  /** Includes the sign, so that colors aren't needed to read the diff. */
  readonly text: string;
  readonly number?: number | undefined;
}

/** Consecutive lines of the same kind, which are shown as one text. */
export type DiffRun = Pick<DiffLine, "kind" | "text">;

const HUNK = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/;
const KINDS: Readonly<Record<string, DiffLine["kind"]>> = { "+": "added", "-": "removed", "@": "hunk" };

/** Parses a unified diff, or a patch without line numbers. Files are named only if there are several. */
export function diffLines(diff: string): readonly DiffLine[] {
  const lines: DiffLine[] = [];
  /** The position of the hunk in both files, and how many of its lines are left in each. */
  let hunk: { old: number; fresh: number; oldLeft: number; freshLeft: number } | undefined;
  const source = diff.replace(/\n$/, "").split("\n");
  // Lines that were removed or added can begin like this, too.
  const isHeader = (at: number): boolean =>
    /^--- /.test(source[at] ?? "") &&
    /^\+\+\+ /.test(source[at + 1] ?? "") &&
    (HUNK.test(source[at + 2] ?? "") || /^={3,}$/.test(source[at - 1] ?? ""));
  for (const [at, line] of source.entries()) {
    if (hunk && hunk.oldLeft <= 0 && hunk.freshLeft <= 0) hunk = undefined;
    const sign = line.charAt(0);
    const numbers = HUNK.exec(line);
    if (numbers) {
      const [, old, oldCount = "1", fresh, freshCount = "1"] = numbers;
      hunk = {
        old: Number(old),
        fresh: Number(fresh),
        oldLeft: Number(oldCount),
        freshLeft: Number(freshCount),
      };
      lines.push({ kind: "hunk", text: line });
    } else if (!hunk && (isHeader(at - 1) || /^\*\*\* (?:Add|Update|Delete) File: /.test(line))) {
      lines.push({ kind: "file", text: fileName(line) });
    } else if (!hunk && (isHeader(at) || /^(?:Index: |={3,}$|diff |index |\*\*\* )/.test(line))) {
      continue;
    } else if (sign === "\\") {
      lines.push({ kind: "context", text: line });
    } else {
      const kind = KINDS[sign] ?? "context";
      lines.push({ kind, text: line, number: kind === "removed" ? hunk?.old : hunk?.fresh });
      if (!hunk) continue;
      if (kind !== "added") {
        hunk.old++;
        hunk.oldLeft--;
      }
      if (kind !== "removed") {
        hunk.fresh++;
        hunk.freshLeft--;
      }
    }
  }
  const files = lines.filter(({ kind }) => kind === "file").length;
  return files > 1 ? lines : lines.filter(({ kind }) => kind !== "file");
}

export function diffRuns(lines: readonly DiffLine[]): readonly DiffRun[] {
  const runs: { readonly kind: DiffLine["kind"]; text: string }[] = [];
  for (const { kind, text } of lines) {
    const last = runs.at(-1);
    if (last?.kind === kind) last.text += `\n${text}`;
    else runs.push({ kind, text });
  }
  return runs;
}

function fileName(line: string): string {
  return line
    .replace(/^(?:\+\+\+ |\*\*\* \w+ File: )/, "")
    .replace(/\t.*$/, "")
    .replace(/^b\//, "");
}
