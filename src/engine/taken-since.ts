import type { Entry, TaskRegistry } from "./registry.ts";
import { isActive, type TokenUsage } from "./task.ts";
import { addTokens, noTokens, spent } from "./totals.ts";
import type { WorkTime } from "./work-time.ts";

/** What the tasks that were active in a period used. */
export interface TakenSince {
  readonly tasks: number;
  /** How many of these tasks were launched before the period. Their earlier usage is included. */
  readonly launchedBefore: number;
  /** In US dollars, including descendants. */
  readonly cost: number;
  readonly tokens: TokenUsage;
  /** Milliseconds of work, summed over the tasks. */
  readonly worked: number;
}

/** Sums up the tasks that were active at some time since `time`, and their descendants. Counts each session once. */
export function takenSince(registry: TaskRegistry, work: WorkTime, time: number, now: number): TakenSince {
  const counted = new Map<string, boolean>();
  const counts = (id: string): boolean => {
    let isCounted = counted.get(id);
    if (isCounted === undefined) {
      // Set first, because broken metadata can make a session its own ancestor.
      counted.set(id, false);
      const entry = registry.entry(id);
      const parentID = registry.parentOf(id);
      isCounted = (entry && wasAtWork(entry, time)) || (parentID !== undefined && counts(parentID));
      counted.set(id, isCounted);
    }
    return isCounted;
  };
  let [tasks, launchedBefore, cost, worked] = [0, 0, 0, 0];
  const tokens = noTokens();
  for (const session of registry.sessions()) {
    if (!counts(session.id)) continue;
    const entry = registry.entry(session.id);
    const taken = spent(session, entry?.record.baseline);
    cost += taken.cost;
    addTokens(tokens, taken.tokens);
    if (!entry || !wasAtWork(entry, time)) continue;
    tasks++;
    worked += work.of(entry, now);
    if (entry.record.createdAt < time) launchedBefore++;
  }
  return { tasks, launchedBefore, cost, tokens, worked };
}

export function sumTaken(parts: readonly TakenSince[]): TakenSince {
  let [tasks, launchedBefore, cost, worked] = [0, 0, 0, 0];
  const tokens = noTokens();
  for (const part of parts) {
    tasks += part.tasks;
    launchedBefore += part.launchedBefore;
    cost += part.cost;
    worked += part.worked;
    addTokens(tokens, part.tokens);
  }
  return { tasks, launchedBefore, cost, tokens, worked };
}

function wasAtWork({ record }: Entry, since: number): boolean {
  return isActive(record) || (record.endedAt ?? record.createdAt) >= since;
}
