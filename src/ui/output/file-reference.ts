/** A position in a file; both values are one-based. */
export interface FilePosition {
  readonly line: number;
  readonly column: number;
}

/**
 * Parses a reference as agents write it: `src/a.ts`, `src/a.ts:12`, `src/a.ts:12:5`, `src/a.ts:12-20`, `src/a.ts#L12`.
 */
export function pathAndPosition(reference: string): {
  readonly file: string;
  readonly position: FilePosition | undefined;
} {
  const match = /^(.+?)(?::(\d{1,7})(?:[:-](\d{1,7}))?|#L(\d{1,7})(?:-L?\d+)?)$/.exec(reference);
  if (!match) return { file: reference, position: undefined };
  const [, file = reference, line, second, anchor] = match;
  const column = reference.includes(`:${line}:`) ? Number(second ?? 1) : 1;
  return { file, position: { line: Math.max(1, Number(line ?? anchor)), column: Math.max(1, column) } };
}
