/**
 * Tests of generated cases run one of this many. It is more than one where they run for each change of the source, which
 * is looked for in many other tests as well.
 */
const STEP = Number(process.env["TEST_CASES_STEP"] ?? 1);

/** How many of this many generated cases to run. */
export function casesOf(count: number): number {
  return Math.ceil(count / STEP);
}

/** The listed cases to run. */
export function someOf<T>(all: readonly T[]): readonly T[] {
  return all.filter((_, index) => index % STEP === 0);
}
