import { shortID } from "../engine/task.ts";

/** Short IDs by task ID: the shortest unique ending of at least six characters. */
export function uniqueShortIDs(tasks: readonly { readonly id: string }[]): ReadonlyMap<string, string> {
  const shortIDs = new Map(tasks.map(({ id }) => [id, shortID(id)]));
  for (;;) {
    const uses = new Map<string, number>();
    for (const end of shortIDs.values()) uses.set(end, (uses.get(end) ?? 0) + 1);
    const shared = [...shortIDs].filter(([, end]) => uses.get(end) !== 1);
    if (shared.length === 0) return shortIDs;
    for (const [id, end] of shared) shortIDs.set(id, id.slice(-end.length - 1));
  }
}
