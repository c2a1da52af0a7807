/** What a limit can stand over, and what it can be a limit of. */
export type LimitScope = "task" | "batch";
export type LimitMeasure = "cost" | "tokens" | "minutes";

/** A limit by the name of its setting. */
export type LimitName = `${LimitScope}${Capitalize<LimitMeasure>}`;

/** The limits as someone wrote them down, below `asyncagents.budget`; null or undefined: none. */
export type Budget = Readonly<Partial<Record<LimitName, unknown>>>;

/** How far a limit is used: in US dollars, tokens of all kinds, or minutes of work. */
export interface LimitUse {
  readonly limit: LimitName;
  readonly scope: LimitScope;
  readonly measure: LimitMeasure;
  readonly used: number;
  readonly amount: number;
}

/** The name of the error in which a task ends that reached a limit. */
export const BUDGET_EXCEEDED = "BudgetExceeded";

/** In whole percent, rounded down: what is not reached does not look so. */
export function percentOf({ used, amount }: LimitUse): number {
  return Math.floor((used / amount) * 100);
}
