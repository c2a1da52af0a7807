/** What a limit applies to, and what it measures. */
export type LimitScope = "task" | "batch";
export type LimitMeasure = "cost" | "tokens" | "minutes";

/** The name of a limit, as in its setting. */
export type LimitName = `${LimitScope}${Capitalize<LimitMeasure>}`;

/** The limits as entered in the settings `asyncagents.budget.*`. Null or undefined means no limit. */
export type Budget = Readonly<Partial<Record<LimitName, unknown>>>;

/** How much of a limit is used, in US dollars, tokens of all kinds, or minutes of work. */
export interface LimitUse {
  readonly limit: LimitName;
  readonly scope: LimitScope;
  readonly measure: LimitMeasure;
  readonly used: number;
  readonly amount: number;
}

/** The error name of tasks that reached a limit. */
export const BUDGET_EXCEEDED = "BudgetExceeded";

/** The used share in whole percent, rounded down, so that 100 means that the limit is reached. */
export function percentOf({ used, amount }: LimitUse): number {
  return Math.floor((used / amount) * 100);
}
