/**
 * Tests run one of this many generated cases: all of them, unless they run again and again, as for each change of the
 * source that `npm run mutants` makes.
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
