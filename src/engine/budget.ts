import type { Budget, CeilingMeasure, CeilingName, CeilingScope, CeilingUse } from "./ceiling.ts";
import { Refusal } from "./errors.ts";
import type { TaskError, TokenUsage } from "./task.ts";

/** From this part of a ceiling on people are warned. */
const WARNED_FROM = 0.8;

const CEILINGS: readonly Pick<CeilingUse, "ceiling" | "scope" | "measure">[] = [
  { ceiling: "taskCost", scope: "task", measure: "cost" },
  { ceiling: "taskTokens", scope: "task", measure: "tokens" },
  { ceiling: "taskMinutes", scope: "task", measure: "minutes" },
  { ceiling: "batchCost", scope: "batch", measure: "cost" },
  { ceiling: "batchTokens", scope: "batch", measure: "tokens" },
  { ceiling: "batchMinutes", scope: "batch", measure: "minutes" },
];

/** US dollars, tokens of all kinds, and minutes of work. */
export type Taken = Readonly<Record<CeilingMeasure, number>>;

/** The name of the error in which a task ends that reached a ceiling. */
export const BUDGET_EXCEEDED = "BudgetExceeded";

export function settingOf(ceiling: CeilingName): string {
  return `asyncagents.budget.${ceiling}`;
}

/** Of the ceilings in this scope the one that is used most; undefined: there is none. `taken` is asked only where there is one. */
export function mostUsed(budget: Budget, scope: CeilingScope, taken: () => Taken): CeilingUse | undefined {
  const uses = ceilingsIn(budget, scope);
  if (uses.length === 0) return undefined;
  const amounts = taken();
  return mostUsedOf(uses.map((use) => ({ ...use, used: amounts[use.measure] })));
}

export function mostUsedOf(uses: readonly (CeilingUse | undefined)[]): CeilingUse | undefined {
  let most: CeilingUse | undefined;
  for (const use of uses) if (use && (!most || shareOf(use) > shareOf(most))) most = use;
  return most;
}

/** Whether time alone brings work nearer to a ceiling. */
export function hasMinutes(budget: Budget): boolean {
  return isCeiling(budget.taskMinutes) || isCeiling(budget.batchMinutes);
}

export function isNearlyUsed(use: CeilingUse): boolean {
  return shareOf(use) >= WARNED_FROM;
}

export function isUsedUp({ used, limit }: CeilingUse): boolean {
  return used >= limit;
}

export function tokenSum({ input, output, reasoning, cacheRead, cacheWrite }: TokenUsage): number {
  return input + output + reasoning + cacheRead + cacheWrite;
}

/** Throws a {@link Refusal} that names a ceiling which is no number over 0. */
export function requireCeilings(budget: Budget): void {
  for (const { ceiling } of CEILINGS) {
    const value = budget[ceiling] ?? undefined;
    if (value === undefined || isCeiling(value)) continue;
    const setting = settingOf(ceiling);
    throw new Refusal(
      "invalid-argument",
      value === 0
        ? `The ceiling ${setting} is 0, which would stop every task at once; leave it empty for none.`
        : `The ceiling ${setting} must be a number greater than 0; change it in the settings, or leave it empty for none.`,
    );
  }
}

/** How a task ends that reached a ceiling, its own or that of its batch. */
export function exceeded({ ceiling, scope, measure, limit }: CeilingUse): TaskError {
  const amount = amountText(measure, limit);
  const reason =
    scope === "task"
      ? `Stopped at its ceiling of ${amount}.`
      : `Stopped as its batch reached its ceiling of ${amount}.`;
  return {
    name: BUDGET_EXCEEDED,
    message: `${reason} A person can raise it (${settingOf(ceiling)}), and then retry the task, or fork it to carry on.`,
  };
}

/** `$1.02 of its ceiling of $1.00 (asyncagents.budget.taskCost)`. */
export function useText({ ceiling, measure, used, limit }: CeilingUse): string {
  return `${amountText(measure, used)} of its ceiling of ${amountText(measure, limit)} (${settingOf(ceiling)})`;
}

/** US dollars, with as many digits as small amounts need. */
export function dollars(cost: number): string {
  return `$${cost >= 0.01 || cost === 0 ? cost.toFixed(2) : Number(cost.toPrecision(2))}`;
}

function amountText(measure: CeilingMeasure, amount: number): string {
  switch (measure) {
    case "cost":
      return dollars(amount);
    case "tokens":
      return `${amount.toLocaleString("en")} tokens`;
    case "minutes": {
      const minutes = amount < 1 ? Number(amount.toPrecision(1)) : Number(amount.toFixed(1));
      return minutes === 1 ? "1 minute" : `${minutes} minutes`;
    }
  }
}

function ceilingsIn(budget: Budget, scope: CeilingScope): readonly Omit<CeilingUse, "used">[] {
  return CEILINGS.flatMap((one) => {
    const limit = budget[one.ceiling];
    return one.scope === scope && isCeiling(limit) ? [{ ...one, limit }] : [];
  });
}

/** What makes no sense as a ceiling stops nothing; {@link requireCeilings} says so where something is to begin. */
function isCeiling(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value) && value > 0;
}

function shareOf({ used, limit }: CeilingUse): number {
  return used / limit;
}
