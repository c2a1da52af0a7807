import type { Session } from "./server-model.ts";
import { isActive, type Spending, type Task, type TokenUsage } from "./task.ts";

/** The combined usage of tasks and their descendants. */
export interface Totals {
  readonly tasks: number;
  /** In US dollars. */
  readonly cost: number;
  readonly tokens: TokenUsage;
  readonly toolCalls: number;
  /** From the first start to the last end (or now), in milliseconds. */
  readonly duration: number;
}

type Spender = Pick<Session, "id" | "cost" | "tokens">;

/** The sessions of a folder, and the tasks among them. */
export interface SpendingSource {
  session(id: string): Spender | undefined;
  descendantsOf(sessionID: string): readonly Spender[];
  get(id: string): Task | undefined;
}

/** Sums up the tasks and their descendants. Counts each session once. */
export function totals(source: SpendingSource, taskIDs: readonly string[], now: number): Totals {
  const sessions = new Map<string, Spender>();
  for (const id of taskIDs) {
    const session = source.session(id);
    if (session) sessions.set(id, session);
    for (const descendant of source.descendantsOf(id)) sessions.set(descendant.id, descendant);
  }
  let [cost, toolCalls, tasks] = [0, 0, 0];
  let [start, end] = [Infinity, 0];
  const tokens = noTokens();
  for (const session of sessions.values()) {
    const task = source.get(session.id);
    // The task's usage, as that of its session may include usage copied from another conversation.
    const taken = task ?? session;
    cost += taken.cost;
    addTokens(tokens, taken.tokens);
    if (!task) continue;
    tasks++;
    toolCalls += task.toolCalls + (task.progress?.toolCalls ?? 0);
    start = Math.min(start, task.createdAt);
    end = Math.max(end, isActive(task) ? now : (task.endedAt ?? task.createdAt));
  }
  return { tasks, cost, tokens, toolCalls, duration: tasks === 0 ? 0 : end - start };
}

/** A session's own usage, without usage copied from another conversation. */
export function spent(
  { cost, tokens }: Pick<Session, "cost" | "tokens">,
  baseline: Spending | undefined,
): Pick<Session, "cost" | "tokens"> {
  if (!baseline) return { cost, tokens };
  const own = noTokens();
  addTokens(own, tokens);
  addTokens(own, baseline, -1);
  return { cost: cost - baseline.cost, tokens: own };
}

type TokenSum = { -readonly [Kind in keyof TokenUsage]: number };

export function noTokens(): TokenSum {
  return { input: 0, output: 0, reasoning: 0, cacheRead: 0, cacheWrite: 0 };
}

export function addTokens(sum: TokenSum, tokens: TokenUsage, times = 1): void {
  for (const kind of Object.keys(sum) as (keyof TokenUsage)[]) sum[kind] += times * tokens[kind];
}
