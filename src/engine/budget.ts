import {
  BUDGET_EXCEEDED,
  type Budget,
  type LimitMeasure,
  type LimitName,
  type LimitScope,
  type LimitUse,
} from "./limit.ts";
import { invalidArgument, Refusal } from "./errors.ts";
import { sentence, type Text } from "./sentence.ts";
import { shortID, taskError, type TaskError, type TokenUsage } from "./task.ts";

/** The share of a limit from which users are warned. */
const WARNED_FROM = 0.8;

const LIMITS: readonly Pick<LimitUse, "limit" | "scope" | "measure">[] = [
  { limit: "taskCost", scope: "task", measure: "cost" },
  { limit: "taskTokens", scope: "task", measure: "tokens" },
  { limit: "taskMinutes", scope: "task", measure: "minutes" },
  { limit: "batchCost", scope: "batch", measure: "cost" },
  { limit: "batchTokens", scope: "batch", measure: "tokens" },
  { limit: "batchMinutes", scope: "batch", measure: "minutes" },
];

/** What was used: US dollars, tokens of all kinds, and minutes of work. */
export type Taken = Readonly<Record<LimitMeasure, number>>;

export function settingOf(limit: LimitName): string {
  return `asyncagents.budget.${limit}`;
}

/** The most used limit in this scope. Undefined if there is none. `taken` is called only if there is one. */
export function mostUsed(budget: Budget, scope: LimitScope, taken: () => Taken): LimitUse | undefined {
  const uses = limitsIn(budget, scope);
  if (uses.length === 0) return undefined;
  const amounts = taken();
  return mostUsedOf(uses.map((use) => ({ ...use, used: amounts[use.measure] })));
}

export function mostUsedOf(uses: readonly (LimitUse | undefined)[]): LimitUse | undefined {
  let most: LimitUse | undefined;
  for (const use of uses) if (use && (!most || shareOf(use) > shareOf(most))) most = use;
  return most;
}

/** Whether there is a limit of time, which is reached without any event. */
export function hasMinutes(budget: Budget): boolean {
  return isLimit(budget.taskMinutes) || isLimit(budget.batchMinutes);
}

export function isNearlyUsed(use: LimitUse): boolean {
  return shareOf(use) >= WARNED_FROM;
}

export function isUsedUp({ used, amount }: LimitUse): boolean {
  return used >= amount;
}

export function tokenSum({ input, output, reasoning, cacheRead, cacheWrite }: TokenUsage): number {
  return input + output + reasoning + cacheRead + cacheWrite;
}

/** Throws a {@link Refusal} that names a limit which is not a number greater than 0. */
export function requireLimits(budget: Budget): void {
  for (const { limit } of LIMITS) {
    const value = budget[limit] ?? undefined;
    if (value === undefined || isLimit(value)) continue;
    const setting = settingOf(limit);
    throw invalidArgument(
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

/** The error of a task that reached a limit, its own or that of its batch. */
export function exceeded({ limit, scope, measure, amount }: LimitUse): TaskError {
  const facts = [amountText(measure, amount), settingOf(limit)];
  return taskError(
    BUDGET_EXCEEDED,
    scope === "task"
      ? sentence(
          "Stopped at its limit of {0}. The user can increase the limit ({1}), then retry or continue the task.",
          ...facts,
        )
      : sentence(
          "Stopped because its batch reached its limit of {0}. The user can increase the limit ({1}), then retry or continue the task.",
          ...facts,
        ),
  );
}

/** The error of a task that is stopped because a completed task above it, or the batch of that one, reached a limit. */
export function exceededAbove({ limit, measure, amount }: LimitUse): TaskError {
  return taskError(
    BUDGET_EXCEEDED,
    sentence(
      "Stopped because a task above it reached the limit of {0} for itself or its batch. The user can increase the limit ({1}), then retry or continue the task.",
      amountText(measure, amount),
      settingOf(limit),
    ),
  );
}

/** Why a batch has no room for another task. */
export function batchIsFull(batchID: string, { limit, measure, used, amount }: LimitUse): Refusal {
  return new Refusal(
    "over-budget",
    sentence(
      "Batch {0} has used {1} of its limit of {2} ({3}). The user can increase the limit.",
      batchID,
      amountText(measure, used),
      amountText(measure, amount),
      settingOf(limit),
    ),
  );
}

/** Why a task cannot be resumed. */
export function hasNoRoom(taskID: string, { limit, scope, measure, used, amount }: LimitUse): Refusal {
  const facts = [shortID(taskID), amountText(measure, used), amountText(measure, amount), settingOf(limit)];
  return new Refusal(
    "over-budget",
    scope === "task"
      ? sentence(
          "Task {0} has used {1} of its limit of {2} ({3}). The user can increase the limit.",
          ...facts,
        )
      : sentence(
          "The batch of task {0} has used {1} of its limit of {2} ({3}). The user can increase the limit.",
          ...facts,
        ),
  );
}

/** Why a task may not begin or go on below a completed task that, or whose batch, used up a limit. */
export function noRoomAbove({ limit, measure, amount }: LimitUse): Refusal {
  return new Refusal(
    "over-budget",
    sentence(
      "A task above it has reached the limit of {0} for itself or its batch ({1}). The user can increase the limit.",
      amountText(measure, amount),
      settingOf(limit),
    ),
  );
}

/** Why a running subagent is not adopted: as a task it would be stopped. */
export function isOverAlready(id: string, { limit, measure, used, amount }: LimitUse): Refusal {
  return new Refusal(
    "over-budget",
    sentence(
      "Subagent {0} has used {1} of the limit of {2} ({3}) and would be stopped as a task. Increase the limit, or adopt the subagent when it has finished.",
      shortID(id),
      amountText(measure, used),
      amountText(measure, amount),
      settingOf(limit),
    ),
  );
}

/** US dollars, with enough digits for small amounts. */
function dollars(cost: number): string {
  return `$${cost >= 0.01 || cost === 0 ? cost.toFixed(2) : Number(cost.toPrecision(2))}`;
}

function amountText(measure: LimitMeasure, amount: number): Text {
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

function limitsIn(budget: Budget, scope: LimitScope): readonly Omit<LimitUse, "used">[] {
  return LIMITS.flatMap((one) => {
    const amount = budget[one.limit];
    return one.scope === scope && isLimit(amount) ? [{ ...one, amount }] : [];
  });
}

/** Invalid values are ignored while tasks run; {@link requireLimits} reports them when something is to start. */
function isLimit(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value) && value > 0;
}

function shareOf({ used, amount }: LimitUse): number {
  return used / amount;
}
