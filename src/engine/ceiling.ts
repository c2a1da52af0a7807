/** What a ceiling can stand over, and what it can be a ceiling of. */
export type CeilingScope = "task" | "batch";
export type CeilingMeasure = "cost" | "tokens" | "minutes";

/** A ceiling by the name of its setting. */
export type CeilingName = `${CeilingScope}${Capitalize<CeilingMeasure>}`;

/** The ceilings as someone wrote them down, below `asyncagents.budget`; null or undefined: none. */
export type Budget = Readonly<Partial<Record<CeilingName, unknown>>>;

/** How far a ceiling is used: in US dollars, tokens of all kinds, or minutes of work. */
export interface CeilingUse {
  readonly ceiling: CeilingName;
  readonly scope: CeilingScope;
  readonly measure: CeilingMeasure;
  readonly used: number;
  readonly limit: number;
}

/** The name of the error in which a task ends that reached a ceiling. */
export const BUDGET_EXCEEDED = "BudgetExceeded";

/** In whole percent, rounded down: what is not reached does not look so. */
export function percentOf({ used, limit }: CeilingUse): number {
  return Math.floor((used / limit) * 100);
}
