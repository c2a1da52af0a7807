/** A line of a diff. `number` is its line in the new file, of a removed one that in the old file; undefined: not known. */
export interface DiffLine {
  readonly kind: "added" | "removed" | "context" | "hunk" | "file";
  /** With its sign, so that nobody needs the colours. */
  readonly text: string;
  readonly number?: number | undefined;
}

const HUNK = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/;
const KINDS: Readonly<Record<string, DiffLine["kind"]>> = { "+": "added", "-": "removed", "@": "hunk" };

/** Reads a unified diff, or a patch without line numbers. Files are named where there are several. */
export function diffLines(diff: string): readonly DiffLine[] {
  const lines: DiffLine[] = [];
  /** Where the hunk is in both files, and how many lines it still has there. */
  let hunk: { old: number; fresh: number; oldLeft: number; freshLeft: number } | undefined;
  for (const line of diff.replace(/\n$/, "").split("\n")) {
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
    } else if (!hunk && /^(?:\+\+\+ |\*\*\* (?:Add|Update|Delete) File: )/.test(line)) {
      lines.push({ kind: "file", text: fileName(line) });
    } else if (!hunk && /^(?:Index: |={3,}$|--- |diff |index |\*\*\* )/.test(line)) {
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

function fileName(line: string): string {
  return line
    .replace(/^(?:\+\+\+ |\*\*\* \w+ File: )/, "")
    .replace(/\t.*$/, "")
    .replace(/^b\//, "");
}
