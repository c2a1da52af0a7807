/** Times several things fairly on a machine that also does other work. */

/** The middle value; for an even number of values, the mean of the two middle ones. */
export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** The value below which this share (0 to 1) of the values lies. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  const at = share * (sorted.length - 1);
  const low = sorted[Math.floor(at)];
  const high = sorted[Math.ceil(at)];
  if (low === undefined || high === undefined) throw new Error("There are no values.");
  return low + (high - low) * (at - Math.floor(at));
}

/** For each round, the first figure divided by the second; steadier than comparing two medians. */
export function ratios(figures: readonly number[], control: readonly number[]): number[] {
  return figures.map((figure, round) => figure / (control[round] ?? NaN));
}

/** Milliseconds that the job took. */
export async function timed(job: () => unknown): Promise<number> {
  const start = performance.now();
  await job();
  return performance.now() - start;
}

/**
 * Milliseconds of CPU time that the job used in all threads, which other programs hardly change. For jobs that wait for
 * no other process.
 */
export async function computed(job: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  await job();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

export interface Rounds {
  readonly rounds: number;
  /** Rounds that run first and don't count. */
  readonly warmUp: number;
}

/**
 * Runs all measurements once per round, in reverse order every second round, so that disturbances of the machine affect
 * all of them alike. Each measurement gives one figure per round; the results are in the order of the rounds.
 */
export async function interleaved<Name extends string>(
  { rounds, warmUp }: Rounds,
  measurements: Readonly<Record<Name, () => number | Promise<number>>>,
): Promise<Record<Name, number[]>> {
  const names = Object.keys(measurements) as Name[];
  const figures = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<Name, number[]>;
  for (let round = -warmUp; round < rounds; round++)
    for (const name of round % 2 === 0 ? names : names.toReversed()) {
      const figure = await measurements[name]();
      if (round >= 0) figures[name].push(figure);
    }
  return figures;
}

/**
 * How much faster than its size something grows, from each of its sizes to each larger one: 1 if linear, and at most a
 * little more if the figures are noisy. The sizes ascend.
 */
export function beyondLinear(sizes: readonly number[], figures: readonly number[]): number {
  const steps = sizes.flatMap((size, at) =>
    sizes.slice(0, at).map((smaller, before) => {
      const [from = NaN, to = NaN] = [figures[before], figures[at]];
      return to / from / (size / smaller);
    }),
  );
  return Math.max(...steps);
}
