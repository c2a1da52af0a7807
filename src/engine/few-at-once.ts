/** Like `Promise.all` of a job for each item, but only a few run at once. If one fails, no more of them are started. */
export async function fewAtOnce<T, R>(
  items: Iterable<T>,
  job: (item: T) => Promise<R>,
  limit = 16,
): Promise<R[]> {
  const results: R[] = [];
  const next = numbered(items);
  const work = async (): Promise<void> => {
    // A job that fails closes the generator for the others.
    for (const [at, item] of next) results[at] = await job(item);
  };
  await Promise.all(Array.from({ length: limit }, work));
  return results;
}

function* numbered<T>(items: Iterable<T>): Generator<readonly [number, T]> {
  let at = 0;
  for (const item of items) yield [at++, item];
}
