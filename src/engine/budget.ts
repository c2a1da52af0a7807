import {
  BUDGET_EXCEEDED,
  type Budget,
  type CeilingMeasure,
  type CeilingName,
  type CeilingScope,
  type CeilingUse,
} from "./ceiling.ts";
import { Refusal } from "./errors.ts";
import { sentence, type Text } from "./sentence.ts";
import { shortID, taskError, type TaskError, type TokenUsage } from "./task.ts";

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

/** Whether anything was written down as a ceiling. */
export function isAnySet(budget: Budget): boolean {
  return Object.values(budget).some((value) => (value ?? undefined) !== undefined);
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
        ? sentence(
            "The limit {0} is 0, which would stop every task immediately. Clear it for no limit.",
            setting,
          )
        : sentence(
            "The limit {0} must be a number greater than 0. Change it in the settings, or clear it for no limit.",
            setting,
          ),
    );
  }
}

/** How a task ends that reached a ceiling, its own or that of its batch. */
export function exceeded({ ceiling, scope, measure, limit }: CeilingUse): TaskError {
  const facts = [amountText(measure, limit), settingOf(ceiling)];
  return taskError(
    BUDGET_EXCEEDED,
    scope === "task"
      ? sentence(
          "Stopped at its limit of {0}. The user can increase the limit ({1}), then retry the task, or fork it to continue.",
          ...facts,
        )
      : sentence(
          "Stopped because its batch reached its limit of {0}. The user can increase the limit ({1}), then retry the task, or fork it to continue.",
          ...facts,
        ),
  );
}

/** Why nothing more may begin in a batch. */
export function batchIsFull(batchID: string, { ceiling, measure, used, limit }: CeilingUse): Refusal {
  return new Refusal(
    "over-budget",
    sentence(
      "Batch {0} has used {1} of its limit of {2} ({3}). Increase the limit, or launch the task in another batch.",
      batchID,
      amountText(measure, used),
      amountText(measure, limit),
      settingOf(ceiling),
    ),
  );
}

/** Why a task may not be resumed. */
export function hasNoRoom(taskID: string, { ceiling, scope, measure, used, limit }: CeilingUse): Refusal {
  const facts = [shortID(taskID), amountText(measure, used), amountText(measure, limit), settingOf(ceiling)];
  return new Refusal(
    "over-budget",
    scope === "task"
      ? sentence(
          "Task {0} has used {1} of its limit of {2} ({3}). Increase the limit to resume the task, or launch a new one.",
          ...facts,
        )
      : sentence(
          "The batch of task {0} has used {1} of its limit of {2} ({3}). Increase the limit to resume the task, or launch a new one.",
          ...facts,
        ),
  );
}

/** Why a subagent at work is not adopted: as a task it would be stopped. */
export function isOverAlready(id: string, { ceiling, measure, used, limit }: CeilingUse): Refusal {
  return new Refusal(
    "over-budget",
    sentence(
      "Subagent {0} has used {1} of the limit of {2} ({3}) and would be stopped as a task. Increase the limit, or adopt the subagent when it has finished.",
      shortID(id),
      amountText(measure, used),
      amountText(measure, limit),
      settingOf(ceiling),
    ),
  );
}

/** US dollars, with as many digits as small amounts need. */
function dollars(cost: number): string {
  return `$${cost >= 0.01 || cost === 0 ? cost.toFixed(2) : Number(cost.toPrecision(2))}`;
}

function amountText(measure: CeilingMeasure, amount: number): Text {
  switch (measure) {
    case "cost":
      return dollars(amount);
    case "tokens":
      return sentence("{0} tokens", amount.toLocaleString("en"));
    case "minutes": {
      const minutes = amount < 1 ? Number(amount.toPrecision(1)) : Number(amount.toFixed(1));
      return minutes === 1 ? sentence("1 minute") : sentence("{0} minutes", minutes);
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
