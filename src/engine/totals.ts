import { spent, type TaskRegistry } from "./registry.ts";
import type { Session } from "./server-model.ts";
import { isActive, type TokenUsage } from "./task.ts";

/** What tasks took together, everything below them included. */
export interface Totals {
  readonly tasks: number;
  /** US dollars. */
  readonly cost: number;
  readonly tokens: TokenUsage;
  readonly toolCalls: number;
  /** From the first start to the last end (or now), in milliseconds. */
  readonly duration: number;
}

/** Sums over the tasks and their descendants; a session that is reached twice counts once. */
export function totals(registry: TaskRegistry, taskIDs: readonly string[], now: number): Totals {
  const sessions = new Map<string, Session>();
  for (const id of taskIDs) {
    const session = registry.session(id);
    if (session) sessions.set(id, session);
    for (const below of registry.descendantsOf(id)) sessions.set(below.id, below);
  }
  let [cost, toolCalls, tasks] = [0, 0, 0];
  let [start, end] = [Infinity, 0];
  const tokens = { input: 0, output: 0, reasoning: 0, cacheRead: 0, cacheWrite: 0 };
  for (const session of sessions.values()) {
    const entry = registry.entry(session.id);
    const taken = entry ? spent(entry) : session;
    cost += taken.cost;
    for (const kind of Object.keys(tokens) as (keyof TokenUsage)[]) tokens[kind] += taken.tokens[kind];
    if (!entry) continue;
    const { record, progress } = entry;
    tasks++;
    toolCalls += record.toolCalls + (progress?.snapshot().toolCalls ?? 0);
    start = Math.min(start, record.createdAt);
    end = Math.max(end, isActive(record) ? now : (record.endedAt ?? record.createdAt));
  }
  return { tasks, cost, tokens, toolCalls, duration: tasks === 0 ? 0 : end - start };
}
